"""The audit of a port that others made, of which nothing is known but the source and the result."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from rusbeir.audit.port_checks.aligned import AlignedPort
from rusbeir.audit.port_checks.gates import Gate, list_figures, refuse_unknown
from rusbeir.audit.port_checks.measurement import RecordFile, keep_records
from rusbeir.audit.port_checks.pages import PAGE
from rusbeir.audit.port_checks.report import SEGMENTS, check_records, write_report
from rusbeir.audit.port_checks.segment_checks import CHECKS, AuditCheck
from rusbeir.audit.port_checks.tally import SHOWN
from rusbeir.audit.published_ports.collapse import find_collapse, find_twins
from rusbeir.audit.published_ports.drift import find_drift
from rusbeir.audit.published_ports.integrity import compare_ids, measure_lengths
from rusbeir.datasets import ALL_SPLITS, REPORT, TEXTS, LoadedSplits, find_entry, load_splits, read_card, split_view
from rusbeir.errors import BadInput, option, unknown
from rusbeir.storage import atomic_file
from rusbeir.text import slug
from rusbeir.types import Dataset, Progress, silent

COLLAPSE, DRIFT, DROPPED, TWINS = "collapse.jsonl", "drift.jsonl", "dropped.jsonl", "twins.jsonl"
FILES = frozenset({REPORT, PAGE, TEXTS, SEGMENTS, COLLAPSE, DRIFT, DROPPED, TWINS})
FIGURES = ("lost", "added", "judged-missing", "collapse", "twins", "drift", "dropped", "detectable")
"""What gates can use in addition to the figures of the segment checks."""


def check_published(
    source: str | Path,
    port: str | Path,
    *,
    source_language: str | None = None,
    language: str | None = None,
    split: str | None = None,
    out: str | Path | None = None,
    checks: Mapping[str, AuditCheck] = CHECKS,
    gates: Sequence[Gate] = (),
    processes: int | None = None,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Audit a port of which only the source and the result are known.

    Args:
        source: Name or path of the dataset that was translated.
        port: Name or path of its translation, with the same ids.
        source_language: The language of a source without a card.
        language: The language of a port without a card.
        split: The split to check; by default all that both datasets have.
        out: The folder of the report; by default one in the working directory, named after the port.
        checks: The checks, by the names of their flags.
        gates: Conditions that the report must meet (`parse_gates`).
        processes: The number of processes; by default one for each processor.
        progress: Receives what is being done.

    Returns:
        The report (docs/audit.md), also written to out.

    Raises:
        BadInput: The datasets have no common id, one language or the same content, or out holds something else.
    """
    if gates:
        refuse_unknown(gates, [*FIGURES, *list_figures(checks, translated_back=False, compared=False)])
    aligned = align(source, port, source_language, language, split, out, progress)
    with keep_records(aligned.records(), aligned.folder, progress) as records:
        report = check_records(records, aligned, checks, aligned.folder, processes=processes, progress=progress)
        integrity = check_integrity(aligned, records, progress)
    report |= {"reference": None, "round_trip": None, "integrity": integrity}
    write_report(report, gates, aligned.folder)
    return report


def check_integrity(port: AlignedPort, records: RecordFile, progress: Progress) -> dict[str, Any]:
    """Count what the port lost or mixed up, with examples, sentences, and the figures that gates use."""
    ids = compare_ids(port, progress)
    collapsed = {level: find_collapse(records, kind) for kind, level in _LEVELS.items()}
    groups = [(kind, same) for kind, level in _LEVELS.items() for same in collapsed[level].groups.values()]
    _write_rows([{"kind": kind, "ids": same} for kind, same in groups], port.folder / COLLAPSE)
    twins = list(find_twins(collapsed["documents"], port.dataset.qrels))
    _write_rows(twins, port.folder / TWINS)
    with_twins = len({row["query"] for row in twins})
    # What became the same text as another one is counted as that alone.
    skipped = {(kind, record_id) for kind, level in _LEVELS.items() for record_id in collapsed[level].ids}
    drifted = find_drift(records, port.languages, skipped, port.folder, progress)
    _write_rows([row._asdict() for row in drifted], port.folder / DRIFT)
    drifted_ids = {level: {row.record_id for row in drifted if row.kind == kind} for kind, level in _LEVELS.items()}
    totals = {name: sum(ids[level][name] for level in _LEVELS.values()) for name in ("source", "port", "lost", "added")}
    n = max(sum(level.n for level in collapsed.values()), 1)
    dropped, judgements, reasons = ids["dropped"], ids["judgements"], ids["dropped"]["ids"]
    _write_rows([{"query": query_id, "reason": reason} for query_id, reason in reasons.items()], port.folder / DROPPED)
    dropped["ids"] = dict(islice(reasons.items(), SHOWN))
    integrity = {
        **ids,
        "collapse": {level: collapse.summary() for level, collapse in collapsed.items()},
        "twins": {
            "documents": sum(len(row["twins"]) for row in twins),
            "queries": with_twins,
            "examples": twins[:SHOWN],
        },
        "drift": {
            **{level: len(record_ids) for level, record_ids in drifted_ids.items()},
            "examples": [row._asdict() for row in drifted[:SHOWN]],
        },
        "lengths": measure_lengths(records),
        "figures": {
            "lost": totals["lost"] / totals["source"],
            "added": totals["added"] / totals["port"],
            "judged-missing": judgements["missing"] / max(judgements["port"], 1),
            "collapse": sum(len(level.ids) for level in collapsed.values()) / n,
            "twins": with_twins / max(len(port.dataset.qrels), 1),
            "drift": sum(map(len, drifted_ids.values())) / n,
            "dropped": (dropped["source"] - dropped["kept"]) / max(dropped["source"], 1),
            **({} if dropped["detectable_ratio"] is None else {"detectable": dropped["detectable_ratio"]}),
        },
    }
    return {**integrity, "sentences": summarize(integrity)}


_LEVELS = {"document": "documents", "query": "queries"}


def summarize(integrity: Mapping[str, Any]) -> list[str]:
    """Return sentences that say what was found, and the remedy."""
    lines = []
    dropped, twins, missing = integrity["dropped"], integrity["twins"], integrity["judgements"]["missing"]
    if dropped["kept"] < dropped["source"]:
        line = (
            f"{dropped['kept']:,} of {dropped['source']:,} queries with a relevant document are left: "
            f"{dropped['lost']:,} are lost, {dropped['without_relevant']:,} have no relevant document any more."
        )
        if (clusters := dropped["n_clusters"])["source"] < dropped["source"]:
            line += f" Of the {clusters['source']:,} that are independent, {clusters['port']:,} are left."
        if ratio := dropped["detectable_ratio"]:
            line += f" The smallest difference between systems that can be detected is {ratio:.2f} times as large."
        lines.append(line)
    if missing:
        lines.append(f"{missing:,} judgements are of documents that the port lacks.")
    for level in _LEVELS.values():
        if texts := integrity["collapse"][level]["texts"]:
            groups = integrity["collapse"][level]["groups"]
            lines.append(f"{texts:,} {level} with different sources have become {groups:,} texts.")
    if twins["documents"]:
        lines.append(
            f"Of {twins['queries']:,} queries, relevant documents have {twins['documents']:,} duplicates that are not "
            f"judged ({TWINS}): a system that finds these is punished."
        )
    if drifted := integrity["drift"]["documents"] + integrity["drift"]["queries"]:
        lines.append(f"{drifted:,} documents and queries have the translation of another one.")
    if lines:
        lines.append(REMEDY)
    return lines


REMEDY = (
    "Translate these texts again, from the source: deleting documents and queries changes what is measured, and "
    "leaves fewer queries to measure it."
)


def _write_rows(rows: Iterable[Mapping[str, Any]], path: Path) -> None:
    with atomic_file(path) as file:
        file.writelines(orjson.dumps(row) + b"\n" for row in rows)


def align(
    source: str | Path,
    port: str | Path,
    source_language: str | None,
    language: str | None,
    split: str | None,
    out: str | Path | None,
    progress: Progress,
) -> AlignedPort:
    """Align the port with its source, both with the splits that they share. Raises BadInput as check_published."""
    original = _load(source, source_language, "source_language", progress)
    ported = _load(port, language, "language", progress)
    shared = [name for name in original.qrels if name in ported.qrels]
    if split is not None and split not in shared:
        raise unknown("split", split, shared, owner=f"both {source} and {port}")
    names = [split] if split is not None else shared
    # Where no split of one is called as one of the other, all are compared.
    first = _take_splits(original, names or list(original.qrels), ())
    second = _take_splits(ported, names or list(ported.qrels), first.queries.keys())
    if first.card.language == second.card.language:
        raise BadInput(
            f"{source} and {port} are both in {first.card.language!r}, so one is not a translation of the other. "
            f"If a card is wrong, correct its language; else name the languages with {option('source_language')} and "
            f"{option('language')}."
        )
    if first.fingerprint == second.fingerprint:
        raise BadInput(f"{port} has the same content as {source}: it is the source itself, not a port of it.")
    if not first.queries.keys() & second.queries.keys():
        raise BadInput(f"{port} is not a port of {source}: they have no query id in common.")
    folder = Path(out) if out is not None else Path(f"{slug(second.card.name) or 'port'}-audit")
    if folder.exists() and not (folder.is_dir() and _holds_audit(folder)):
        raise BadInput(f"{folder} holds something else than an audit. Choose another folder with {option('out')}.")
    return AlignedPort(
        folder=folder,
        source=first,
        dataset=second,
        splits={name: ported.qrels[name] for name in names} or ported.qrels,
        split=names[0] if names else next(iter(ported.qrels)),
        settings={},
        origin=source,
    )


def _holds_audit(folder: Path) -> bool:
    """Return whether a folder has nothing but the files of an audit, perhaps of one that was killed while writing."""
    return all(path.name in FILES or path.name.startswith(".") for path in folder.iterdir())


def _load(name_or_path: str | Path, language: str | None, parameter: str, progress: Progress) -> LoadedSplits:
    """Load the dataset with all its splits and queries; parameter names the language of a path without a card."""
    path, _ = split_view(str(name_or_path))
    registered = isinstance(name_or_path, str) and find_entry(name_or_path) is not None
    if path is not None and not registered and language is None and not read_card(path).get("language"):
        raise BadInput(
            f"{name_or_path} has no card.json that names its language. Name it with {option(parameter)}, as in "
            f"{option(parameter, 'en')}."
        )
    return load_splits(name_or_path, language=language, split=ALL_SPLITS, all_queries=True, progress=progress)


def _take_splits(loaded: LoadedSplits, names: Sequence[str], also: Collection[str]) -> Dataset:
    """Take the dataset with the judgements of these splits, and the queries that they judge or that are in also."""
    qrels: dict[str, Mapping[str, int]] = {}
    for name in names:
        for query_id, grades in loaded.qrels[name].items():
            qrels[query_id] = {**qrels.get(query_id, {}), **grades}
    texts = loaded.dataset.queries.items()
    queries = {query_id: text for query_id, text in texts if query_id in qrels or query_id in also}
    return replace(loaded.dataset, queries=queries, qrels=qrels)

"""Remove from a port the texts that are not translations, with the qrels and queries that depend on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import orjson

from rusbeir import __version__
from rusbeir.audit.port_checks.aligned import open_port
from rusbeir.audit.port_checks.gates import Gate, parse_gates, refuse_unknown
from rusbeir.audit.port_checks.report import read_report, read_segments
from rusbeir.datasets import ALL_SPLITS, QA, Material, Sample, find_entry, load_splits, read_json
from rusbeir.errors import BadInput, option, unknown
from rusbeir.storage import atomic_file, atomic_folder
from rusbeir.translation import FAILURES, Segment, publish, without_remarks, write_source_path
from rusbeir.types import Card, Dataset, Progress, Qrels, silent

PLAN = "cleaning.json"
_REPAIR = {"kind": {"document", "query"}, "id": str, "field": {"title", "text", "query"}, "before": str, "after": str}
_PLAN = {
    "fingerprint": str, "flags": [str], "share": float, "before": {str: int}, "after": {str: int},
    "documents": [{"id": str}], "queries": [{"id": str}], "repaired": [_REPAIR],
}  # fmt: skip
DROPPING = (*FAILURES, "repetition", "length")
"""The flags whose texts are removed by default. A text flagged "chat-prefix" is repaired instead."""
_QE = "qe."
"""Begins the name of a score of a quality estimation, in gates and here."""
SHARE = 0.2
"""A document is removed when at least this share of its characters is in flagged segments."""


def plan_cleaning(
    folder: str | Path,
    *,
    flags: Sequence[str] = DROPPING,
    share: float = SHARE,
    source: str | Path | None = None,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Plan what cleaning removes and repairs, by the last audit check; also written to qa/cleaning.json.

    A document is removed when at least that share of its characters is in flagged segments, a query when any of its
    segments is flagged. The judgements of a removed document are removed with it, and so is a query that loses its
    last relevant document. The port is not changed.

    Args:
        folder: The port.
        flags: The flags whose texts are removed; "qe.NAME<NUMBER" is that of segments with such a score of a quality
            estimation.
        share: The share of a document's characters, above 0 and at most 1.
        source: Name or path of the dataset that was translated, where the port does not name it.
        progress: Receives what is being done.

    Returns:
        The plan: `documents` and `queries` with their flags, what is `repaired`, and counts `before` and `after`.

    Raises:
        BadInput: The port has not been checked, or has changed since.
    """
    if not 0 < share <= 1:
        raise BadInput(f"{option('share', share)} is not a share. Give a number above 0 and at most 1.")
    port = open_port(folder, source=source, progress=progress)
    names, conditions = _read_flags(flags, read_report(port))
    documents: list[dict[str, Any]] = []
    queries: list[dict[str, Any]] = []
    repairs: list[dict[str, Any]] = []
    for (kind, record_id), rows in groupby(read_segments(port.folder), key=lambda row: (row["kind"], row["id"])):
        chars = flagged = 0
        causes: set[str] = set()
        for row in rows:
            chars += len(row["source"])
            if chosen := (names & row["flags"].keys()) | _find_conditions(row, conditions):
                flagged += len(row["source"])
                causes |= chosen
            elif "chat-prefix" in row["flags"]:
                segment = Segment(row["source"], row["translation"], *port.languages)
                about = {name: row[name] for name in ("kind", "id", "field")}
                repairs.append({**about, "before": segment.answer, "after": without_remarks(segment)})
        if causes and (kind == "query" or flagged >= share * chars):
            (documents if kind == "document" else queries).append({"id": record_id, "flags": sorted(causes)})
    unrepaired = [row for row in repairs if row["after"] is None]
    documents += [{"id": row["id"], "flags": ["chat-prefix"]} for row in unrepaired if row["kind"] == "document"]
    queries += [{"id": row["id"], "flags": ["chat-prefix"]} for row in unrepaired if row["kind"] == "query"]
    plan = {
        "port": port.dataset.card.name,
        "fingerprint": port.dataset.fingerprint,
        "flags": list(flags),
        "share": share,
        "documents": documents,
        "repaired": [row for row in repairs if row["after"] is not None],
        **_follow(port.dataset, {row["id"] for row in documents}, queries),
    }
    with atomic_file(port.folder / QA / PLAN) as file:
        file.write(orjson.dumps(plan, option=orjson.OPT_INDENT_2) + b"\n")
    return plan


def _read_flags(flags: Sequence[str], report: dict[str, Any]) -> tuple[set[str], list[Gate]]:
    """The names of flags, and the conditions that scores meet. Raises UnknownName for one that the report lacks."""
    known = report["flags"]
    names = {name for name in flags if not name.startswith(_QE)}
    conditions = [gate for text in flags if text.startswith(_QE) for gate in parse_gates(text)]
    for name in names:
        if name not in known:
            raise unknown("flag", name, known)
    refuse_unknown(conditions, [f"{_QE}{name}" for name in report.get("qe", {})])
    return names, conditions


def _find_conditions(row: dict[str, Any], conditions: Sequence[Gate]) -> set[str]:
    """Find the conditions that the scores of a segment meet; one without a score meets none."""
    scores = row.get("qe", {})
    return {
        gate.text
        for gate in conditions
        if (score := scores.get(gate.name.removeprefix(_QE))) is not None and gate.holds(score)
    }


def apply_cleaning(
    folder: str | Path, out: str | Path, *, source: str | Path | None = None, progress: Progress = silent
) -> Card:
    """Write a port, cleaned as planned in qa/cleaning.json, to another folder; the port is not changed.

    Args:
        folder: The port.
        out: The new folder.
        source: Name or path of the dataset that was translated, where the port does not name it.
        progress: Receives what is being done.

    Returns:
        The card of the cleaned port.

    Raises:
        BadInput: There is no plan, the port has changed since, out exists, or no document or query would be left.
    """
    port = open_port(folder, source=source, progress=progress)
    path, out = port.folder / QA / PLAN, Path(out)
    if not path.exists():
        raise BadInput(f"{folder} has no cleaning plan. Make one with `{port.write_audit_command('clean')}`.")
    again = f"Make a new plan with `{port.write_audit_command('clean')}`."
    plan = read_json(path, _PLAN, again)
    if plan["fingerprint"] != port.dataset.fingerprint:
        raise BadInput(f"{path} was made before the port changed. Check the port again, and make a new plan.")
    if out.exists():
        raise BadInput(f"{out} already exists. Choose another folder with {option('out')}.")
    removed = {row["id"] for row in plan["documents"]}
    dropped = {row["id"] for row in plan["queries"]}
    remaining = frozenset(doc.doc_id for doc in port.dataset.corpus if doc.doc_id not in removed)
    queries = {query_id: text for query_id, text in port.dataset.queries.items() if query_id not in dropped}
    if not remaining or not queries:
        raise BadInput(f"{path} would leave no {'query' if remaining else 'document'}, so nothing was written.")
    qrels = _filter_qrels(port.dataset.qrels, removed, dropped)
    repairs: dict[str, str] = {}
    for row in plan["repaired"]:
        try:
            text = _text_of(port.dataset, row)
        except KeyError:
            raise BadInput(f"{path} repairs the {row['kind']} {row['id']!r}, which the port lacks. {again}") from None
        repairs[text] = repairs.get(text, text).replace(row["before"], row["after"], 1)
    cleaned = replace(port.dataset, corpus=Sample(port.dataset.corpus, remaining), queries=queries, qrels=qrels)

    note = {name: plan[name] for name in ("fingerprint", "flags", "share", "before", "after")}
    provenance = {
        **port.dataset.card.provenance,
        "cleaned": {"made_by": f"rusbeir {__version__}, audit clean", "repaired": len(plan["repaired"]), **note},
    }
    card = replace(port.dataset.card, provenance=provenance)
    metadata = load_splits(port.folder, split=ALL_SPLITS, all_queries=True).metadata
    with atomic_folder(out) as new:
        publish(
            new,
            Material(dataset=cleaned, splits=port.splits, query_metadata=metadata).reduce_to(cleaned),
            lambda kind, texts: [repairs.get(text, text) for text in texts],
            card,
            progress,
        )
        if find_entry(str(port.origin)) is None:
            write_source_path(new, Path(port.origin))
    return card


def _follow(dataset: Dataset, removed: set[str], queries: list[dict[str, Any]]) -> dict[str, Any]:
    """The queries that are removed, for their own flags or for lack of documents; the counts before and after."""
    reasons = {row["id"]: row["flags"] for row in queries}
    for query_id, grades in dataset.qrels.items():
        relevant = {doc_id for doc_id, grade in grades.items() if grade > 0}
        if query_id not in reasons and relevant and relevant <= removed:
            reasons[query_id] = ["no relevant document is left"]
    left = _filter_qrels(dataset.qrels, removed, set(reasons))
    n_docs = len(dataset.corpus)
    return {
        "queries": [{"id": query_id, "flags": why} for query_id, why in reasons.items()],
        "reasons": dict(Counter(name for why in reasons.values() for name in why)),
        "before": {"documents": n_docs, "queries": len(dataset.queries), "judgements": _count(dataset.qrels)},
        "after": {
            "documents": n_docs - len(removed),
            "queries": len(dataset.queries) - len(reasons),
            "judgements": _count(left),
        },
    }


def _filter_qrels(qrels: Qrels, removed: set[str], dropped: set[str]) -> Qrels:
    return {
        query_id: {doc_id: grade for doc_id, grade in grades.items() if doc_id not in removed}
        for query_id, grades in qrels.items()
        if query_id not in dropped
    }


def _count(qrels: Qrels) -> int:
    return sum(map(len, qrels.values()))


def _text_of(dataset: Dataset, row: dict[str, Any]) -> str:
    """Return the whole text that contains a repaired segment."""
    if row["kind"] == "query":
        return dataset.queries[row["id"]]
    text: str = getattr(dataset.corpus[row["id"]], row["field"])
    return text

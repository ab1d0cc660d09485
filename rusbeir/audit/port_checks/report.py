"""The audit of a port: every segment checked, translated back and compared; the report as JSON and as an HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Unpack

import orjson

from rusbeir import __version__
from rusbeir.audit.port_checks import scores
from rusbeir.audit.port_checks.aligned import AlignedPort, open_port
from rusbeir.audit.port_checks.gates import Gate, apply_gates, collect_figures, list_figures, refuse_unknown
from rusbeir.audit.port_checks.measurement import BackTranslations, Measurer, RecordFile, keep_records, measure
from rusbeir.audit.port_checks.opinions import SAID, read_opinions
from rusbeir.audit.port_checks.pages import PAGE, template_environment
from rusbeir.audit.port_checks.reference import compare_port, open_reference
from rusbeir.audit.port_checks.retrieval_round_trip import RoundTrip, open_round_trip
from rusbeir.audit.port_checks.segment_checks import CHECKS, AuditCheck, CheckedTexts, prepare_checks
from rusbeir.audit.port_checks.tally import Tally
from rusbeir.audit.quality_estimation.estimators import NamedQuality
from rusbeir.audit.quality_estimation.score_file import ScoreFile
from rusbeir.audit.quality_estimation.sources import open_quality, parse_sources
from rusbeir.datasets import QA, REPORT, TEXTS, is_published, read_json, read_jsonl, write_audit_command
from rusbeir.errors import BadInput
from rusbeir.jobs import Tell
from rusbeir.notebook import ShownTable
from rusbeir.storage import atomic_file
from rusbeir.text import write_command
from rusbeir.translation import TextOptions, Translator, translate_texts
from rusbeir.types import Progress, silent

if TYPE_CHECKING:
    from rusbeir.cluster import Workers

SEGMENTS: Final = "segments.jsonl"


class AuditReport(ShownTable, dict[str, Any]):
    """A report that a notebook shows as a table of its figures."""

    def _caption(self) -> str:
        return f"<Audit of {self['port']}: {self['n_segments']:,} segments>"

    def _records(self) -> Iterator[dict[str, Any]]:
        return ({"figure": name, "value": value} for name, value in collect_figures(self).items())


def audit_port(
    folder: str | Path,
    *,
    source: str | Path | None = None,
    back_translator: str | Translator | None = None,
    reference: str | Path | None = None,
    language: str | None = None,
    split: str | None = None,
    round_trip: bool = True,
    checks: Mapping[str, AuditCheck] = CHECKS,
    processes: int | None = None,
    budget_chars: int | None = None,
    budget_cost: float | None = None,
    on: str | None = None,
    progress: Progress = silent,
    gates: Sequence[Gate] = (),
    qe: Sequence[str] = (),
    tell: Tell = lambda line: None,
    **options: Unpack[TextOptions],
) -> AuditReport:
    """Audit a port: check every segment, translate it back, and compare.

    Args:
        folder: The port.
        source: Name or path of the dataset that was translated, where the port does not name it.
        back_translator: Translates the port back; without one there is no chrF and no round trip. Segments that were
            translated back before are not sent again.
        reference: Name or path of a human translation of the same dataset, with the same ids.
        language: The language of a port without a card.
        split: The split on which retrieval is measured; by default `test`, else the first.
        round_trip: Whether BM25 is measured on source, port and back-translation.
        checks: The checks, by the names of their flags.
        processes: The number of processes; by default one for each processor.
        budget_chars: The most characters that are sent to the back-translator.
        budget_cost: The most that the back-translator may cost.
        on: Where checks and a local back-translator run: "ray" or "ray://HOST:PORT" (docs/scale.md).
        progress: Receives what is being done.
        gates: Conditions that the report must meet (`parse_gates`).
        qe: Quality estimations of the segments: files of scores, "cometkiwi", "xcomet", "metricx",
            "python:module.function" or "command:PROGRAM", each perhaps after a name of its own, as in "kiwi=FILE".
        tell: Receives lines for the user, such as what is sent where.
        **options: Options of the back-translator, and those of batches, as in `rusbeir.port`.

    Returns:
        The report, a dict (docs/audit.md), also written to qa/report.json and qa/report.html in the folder. A notebook
        shows its figures as a table.

    Raises:
        BadInput: The folder is not a port, or `rusbeir publish` wrote it, or the reference is of another dataset.
        BackendError: The back-translator fails, or its budget is spent.

    Examples:
        >>> audit_port("scifact-kk", back_translator="google")["levels"]["documents"]["chrF"]  # doctest: +SKIP
        61.7
    """
    sources = parse_sources(qe)
    figures = list_figures(
        checks, translated_back=back_translator is not None, compared=reference is not None,
        qualities=[source.name for source in sources],
    )  # fmt: skip
    refuse_unknown(gates, figures)
    port = open_port(folder, source=source, language=language, split=split, progress=progress)
    _refuse_published(port)
    other = open_reference(port, reference, progress) if reference is not None else None
    with ExitStack() as stack:
        workers = None
        if on is not None:
            from rusbeir.cluster import open_workers

            workers = stack.enter_context(open_workers(on))
        records = stack.enter_context(keep_records(port.records(), port.folder / QA, progress))
        back = None
        if back_translator is not None:
            translation = translate_texts(
                (translation for _, translation in records.pairs()),
                source=port.languages[1],
                target=port.languages[0],
                # The answers in its journal are not asked for again.
                out=port.folder / QA / "back",
                translator=back_translator,
                budget_chars=budget_chars,
                budget_cost=budget_cost,
                on=workers,
                progress=progress,
                tell=tell,
                **options,
            )
            plan, journal = stack.enter_context(translation)
            back = BackTranslations(journal=journal, plan=plan)
        quality = open_quality(sources, records, port.languages, port.folder / QA, stack, progress)
        trip = stack.enter_context(open_round_trip(port)) if back and round_trip else None
        report = check_records(
            records, port, checks, port.folder / QA, back=back, trip=trip, quality=quality, processes=processes,
            workers=workers, progress=progress,
        )  # fmt: skip
    if back is not None and (n := back.n_missing):
        tell(f"{n:,} of {report['n_segments']:,} segments have no back-translation; they count as they are.")
    report["reference"] = compare_port(port, other, processes=processes, progress=progress) if other else None
    report["round_trip"] = trip.measure(progress) if trip else None
    write_report(report, gates, port.folder / QA)
    return AuditReport(report)


def _refuse_published(port: AlignedPort) -> None:
    if is_published(port.folder):
        raise BadInput(
            f"{port.folder} was written by `rusbeir publish`: its audit would put the texts of the source into what is "
            "uploaded. Check the port itself, or "
            f"`{write_command('audit', 'published', port.source.card.name, port.folder, '--out', 'DIR')}`, "
            "which writes into another folder."
        )


def check_records(
    records: RecordFile,
    port: AlignedPort,
    checks: Mapping[str, AuditCheck],
    folder: Path,
    *,
    back: BackTranslations | None = None,
    trip: RoundTrip | None = None,
    quality: Sequence[NamedQuality] = (),
    processes: int | None,
    workers: Workers | None = None,
    progress: Progress,
) -> dict[str, Any]:
    """Check all records, and write a line for each to texts.jsonl, and for each segment to segments.jsonl.

    Returns the keys of a report that say what was audited, and the sums.
    """
    texts = CheckedTexts(languages=port.languages, pairs=records.pairs, translated_back=back is not None)
    finders = prepare_checks(texts, checks)
    tally = Tally()
    with atomic_file(folder / TEXTS) as text_file, atomic_file(folder / SEGMENTS) as segment_file:
        measurer = Measurer(texts.languages, finders)
        for result in measure(records, back, measurer, processes, progress, workers, quality):
            text_file.write(result.row)
            segment_file.writelines(result.segment_rows)
            tally.add(result)
            if trip is not None:
                trip.add(result)
    for _, source in quality:
        if isinstance(source, ScoreFile):
            source.refuse_foreign()
    card = port.dataset.card
    report = {
        "version": __version__,
        "port": card.name,
        "folder": str(port.folder),
        "fingerprint": port.dataset.fingerprint,
        "source": port.source.card.name,
        "splits": list(port.splits),
        "languages": port.languages,
        "translators": [row["signature"] for row in card.provenance.get("translators", [])],
        "back_translators": [entry.signature for entry in back.plan.entries] if back else [],
        "signatures": {name: scores.signature(name) for name in ("chrF", "chrF++")} if back else {},
        **tally.summary(finders),
    }
    for name, source in quality:
        summary = report["qe"].get(name, {"levels": {}, "missing": 0, "worst": []})
        report["qe"][name] = {"signature": source.signature, **summary}
    return report


def write_report(report: dict[str, Any], gates: Sequence[Gate], folder: Path) -> None:
    """Apply the gates to a report, and write it to report.json and report.html in the folder."""
    report["gates"] = apply_gates(gates, report) if gates else None
    with atomic_file(folder / REPORT) as file:
        file.write(orjson.dumps(report, option=orjson.OPT_INDENT_2) + b"\n")
    values = read_opinions(folder, report["fingerprint"]) if any((folder / name).exists() for name in SAID) else {}
    with atomic_file(folder / PAGE) as file:
        file.write(template_environment().get_template("report.html.j2").render(report=report, **values).encode())


def read_report(port: AlignedPort) -> dict[str, Any]:
    """The report of the last check of this port. Raises BadInput where there is none, or the port has changed since."""
    path = port.folder / QA / REPORT
    if not path.exists():
        raise BadInput(f"{port.folder} has not been checked yet. Run `{port.write_audit_command('check')}` first.")
    again = f"Run `{port.write_audit_command('check')}` again."
    report: dict[str, Any] = read_json(path, {"fingerprint": str, "flags": dict}, again)
    if report["fingerprint"] != port.dataset.fingerprint:
        raise BadInput(f"{port.folder} has changed since it was checked. {again}")
    return report


_SEGMENT = {
    "kind": str, "id": str, "field": str, "segment": int, "source": str, "translation": str, "flags": {str: str},
    "chrF?": float, "qe?": {str: (float, None)},
}  # fmt: skip


def read_segments(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of qa/segments.jsonl of a port, in its order. Raises BadInput for a damaged line."""
    return read_jsonl(folder / QA / SEGMENTS, _SEGMENT, f"Run `{write_audit_command('check', folder)}` again.")

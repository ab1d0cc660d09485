"""The audit of a port: every segment checked, translated back and compared; the report as JSON and as an HTML page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Unpack

import orjson

from rusbeir import __version__
from rusbeir.audit import scores
from rusbeir.audit.aligned import QA, AlignedPort, open_port
from rusbeir.audit.gates import Gate, apply_gates, list_figures, refuse_unknown
from rusbeir.audit.measurement import BackTranslations, Measured, Measurer, keep_records, measure
from rusbeir.audit.pages import template_environment
from rusbeir.audit.reference import compare_port, open_reference
from rusbeir.audit.retrieval_round_trip import RoundTrip, open_round_trip
from rusbeir.audit.segment_checks import CHECKS, AuditCheck, CheckedTexts, prepare_checks
from rusbeir.audit.tally import Tally
from rusbeir.datasets.formats.records import read_json
from rusbeir.errors import BadInput
from rusbeir.storage import atomic_file
from rusbeir.translation.backends import TranslatorOptions
from rusbeir.translation.port.api import translate_texts
from rusbeir.translation.port.runner import Tell
from rusbeir.translation.translator import Translator
from rusbeir.types import Progress, silent

REPORT, PAGE, TEXTS, SEGMENTS = "report.json", "report.html", "texts.jsonl", "segments.jsonl"


def check_port(
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
    progress: Progress = silent,
    gates: Sequence[Gate] = (),
    tell: Tell = lambda line: None,
    **options: Unpack[TranslatorOptions],
) -> dict[str, Any]:
    """Audit the port in folder and return the report (docs/audit.md), also written to qa/report.json and .html.

    Without a back_translator there is no chrF and no round trip; the options are the back-translator's. Segments
    translated back before are not sent again. A reference is a human translation of the same dataset with the same
    ids. Raises BadInput for a folder that is not a port and for a reference of another dataset, and what rusbeir.port
    raises where the back-translator fails.

    >>> check_port("scifact-kk", back_translator="google")["levels"]["documents"]["chrF"]  # doctest: +SKIP
    61.7
    """
    if gates:
        known = list_figures(checks, translated_back=back_translator is not None, compared=reference is not None)
        refuse_unknown(gates, known)
    port = open_port(folder, source=source, language=language, split=split, progress=progress)
    other = open_reference(port, reference, progress) if reference is not None else None
    with ExitStack() as stack:
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
                progress=progress,
                tell=tell,
                **options,
            )
            plan, journal = stack.enter_context(translation)
            back = BackTranslations(journal=journal, plan=plan)
        texts = CheckedTexts(languages=port.languages, pairs=records.pairs, translated_back=back is not None)
        finders = prepare_checks(texts, checks)
        trip = stack.enter_context(open_round_trip(port)) if back and round_trip else None
        qa = port.folder / QA
        measured = measure(records, back, Measurer(texts.languages, finders), processes, progress)
        tally = write_measured(measured, qa, trip)
    if back is not None and back.n_missing:
        tell(f"{back.n_missing:,} of {tally.n_segments:,} segments have no back-translation; they count as they are.")
    report = {
        **describe_audit(port, back),
        **tally.summary(finders),
        "reference": compare_port(port, other, processes=processes, progress=progress) if other else None,
        "round_trip": trip.measure(progress) if trip else None,
    }
    report["gates"] = apply_gates(gates, report) if gates else None
    write_report(report, qa)
    return report


def write_measured(measured: Iterable[Measured], folder: Path, trip: RoundTrip | None = None) -> Tally:
    """Write what was found out about each record to texts.jsonl and segments.jsonl in the folder, and sum it up."""
    tally = Tally()
    with atomic_file(folder / TEXTS) as text_file, atomic_file(folder / SEGMENTS) as segment_file:
        for one in measured:
            text_file.write(one.row)
            segment_file.writelines(one.segment_rows)
            tally.add(one)
            if trip is not None:
                trip.add(one)
    return tally


def write_report(report: Mapping[str, Any], folder: Path) -> None:
    """Write a report to report.json and report.html in the folder."""
    with atomic_file(folder / REPORT) as file:
        file.write(orjson.dumps(report, option=orjson.OPT_INDENT_2) + b"\n")
    with atomic_file(folder / PAGE) as file:
        file.write(template_environment().get_template("report.html.j2").render(report=report).encode())


def describe_audit(port: AlignedPort, back: BackTranslations | None = None) -> dict[str, Any]:
    """The keys of a report that say what was audited."""
    card = port.dataset.card
    return {
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
    }


def read_report(port: AlignedPort) -> dict[str, Any]:
    """The report of the last check of this port. Raises BadInput where there is none, or the port has changed since."""
    path = port.folder / QA / REPORT
    if not path.exists():
        raise BadInput(f"{port.folder} has not been checked yet. Run `rusbeir audit check {port.folder}` first.")
    again = f"Run `rusbeir audit check {port.folder}` again."
    report: dict[str, Any] = read_json(path, {"fingerprint": str, "flags": dict}, again)
    if report["fingerprint"] != port.dataset.fingerprint:
        raise BadInput(f"{port.folder} has changed since it was checked. {again}")
    return report

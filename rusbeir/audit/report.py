"""The audit of a port: every segment checked, translated back and compared, and the report of it written."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, Any

import orjson

from rusbeir import __version__
from rusbeir.audit import scores, segment_checks
from rusbeir.audit.aligned import Port, open_port, segments
from rusbeir.audit.back_translation import answers, back_translate
from rusbeir.audit.gates import LEVELS, Gate, failed_gates, figure_names, figures, refuse_unknown
from rusbeir.audit.page import write_page
from rusbeir.audit.reference import compare_port, open_reference
from rusbeir.audit.retrieval_round_trip import Trip, back_corpus
from rusbeir.audit.scores import Level
from rusbeir.audit.segment_checks import Measured, Measurer, Task
from rusbeir.errors import BadInput
from rusbeir.processes import cpu_count, in_order
from rusbeir.storage import atomic_file
from rusbeir.translation.checks.checks import CHECKS
from rusbeir.translation.port.job import Tell
from rusbeir.translation.port.output import paged
from rusbeir.translation.translator import Translator
from rusbeir.types import Progress, silent

QA = "qa"
BACK = "back"
REPORT, TEXTS, SEGMENTS = "report.json", "texts.jsonl", "segments.jsonl"
FLAGS = (*CHECKS, "length")
"""All that a segment can be flagged with."""
BATCH_RECORDS = 100
WORST = 20
EXAMPLES = 5
_SHOWN_MIN_CHARS = 20
"""The worst segments are looked for among sources from this length on: a word alone is easily 0."""


def check_port(
    folder: str | Path,
    *,
    source: str | Path | None = None,
    back_translator: str | Translator | None = None,
    reference: str | Path | None = None,
    language: str | None = None,
    split: str | None = None,
    round_trip: bool = True,
    processes: int | None = None,
    budget_chars: int | None = None,
    budget_cost: float | None = None,
    progress: Progress = silent,
    gates: Sequence[Gate] = (),
    tell: Tell = lambda line: None,
    **options: Any,
) -> dict[str, Any]:
    """The report of the port in folder (docs/audit.md); also written to qa/report.json and qa/report.html in it.

    Without a back_translator no chrF and no round trip are made. What was translated back before is not sent again.
    The options are the back-translator's. A reference is the same dataset as people translated it, texts having the
    same ids. Raises BadInput for a folder that is no port and for a reference of something else, and as rusbeir.port
    where the back-translator fails.

    >>> check_port("scifact-kk", back_translator="google")["levels"]["documents"]["chrF"]  # doctest: +SKIP
    61.7
    """
    refuse_unknown(
        gates, figure_names(FLAGS, translated_back=back_translator is not None, compared=reference is not None)
    )
    port = open_port(folder, source=source, language=language, split=split, progress=progress)
    other = open_reference(port, reference, progress) if reference is not None else None
    n_segments = 0

    def pairs() -> Iterator[tuple[str, str]]:
        nonlocal n_segments
        for part in segments(port.records()):
            n_segments += 1
            yield part.source, part.translation

    bounds = segment_checks.bounds(pairs())
    qa = port.folder / QA
    if back_translator is not None:
        back_translate(
            port,
            qa / BACK,
            back_translator,
            n_segments=n_segments,
            budget_chars=budget_chars,
            budget_cost=budget_cost,
            progress=progress,
            tell=tell,
            **options,
        )
    measurer = Measurer(languages=port.languages, bounds=bounds)
    tally = Tally()
    trip: Trip | None = None
    with ExitStack() as stack:
        files = [stack.enter_context(atomic_file(qa / name)) for name in (TEXTS, SEGMENTS)]
        batches = _tasks(port, None)
        signatures: list[str] = []
        if back_translator is not None:
            found = stack.enter_context(answers(port, qa / BACK))
            batches, signatures = _tasks(port, found.of), found.signatures
        measured = _measured(measurer, batches, n_segments, processes, progress)
        if back_translator is not None and round_trip:
            trip = back_corpus(port, qa, tally.watched(measured, *files), progress)
        else:
            for _ in tally.watched(measured, *files):
                pass
    report: dict[str, Any] = {
        "version": __version__,
        "port": port.dataset.card.name,
        "folder": str(port.folder),
        "fingerprint": port.dataset.fingerprint,
        "source": port.source.card.name,
        "languages": port.languages,
        "translators": [row["signature"] for row in port.dataset.card.provenance.get("translators", [])],
        "back_translators": signatures,
        "signatures": {name: scores.signature(name) for name in ("chrF", "chrF++")} if signatures else {},
        **tally.summary(),
        "length": bounds._asdict() if bounds else None,
        "reference": compare_port(port, other, processes=processes, progress=progress) if other else None,
        "round_trip": trip.measured(progress) if trip else None,
    }
    asked = ", ".join(gate.text for gate in gates)
    report["gates"] = {"asked": asked, "failed": failed_gates(gates, figures(report))} if gates else None
    with atomic_file(qa / REPORT) as file:
        file.write(orjson.dumps(report, option=orjson.OPT_INDENT_2) + b"\n")
    write_page(qa / "report.html", report)
    return report


def _tasks(port: Port, translate: Any) -> Iterator[list[Task]]:
    for page in paged(port.records(), BATCH_RECORDS):
        if translate is None:
            yield [Task(record, None) for record in page]
            continue
        texts = [part.translation for part in segments(iter(page))]
        back = iter(translate(texts))
        yield [
            Task(record, tuple(islice(back, sum(len(field.segments) for field in record.fields)))) for record in page
        ]


def _measured(
    measurer: Measurer, batches: Iterable[Sequence[Task]], total: int, processes: int | None, progress: Progress
) -> Iterator[Measured]:
    done = 0
    for batch in in_order(measurer, batches, cpu_count() if processes is None else processes):
        yield from batch
        done += sum(len(one.flags) for one in batch)
        progress("check segments", done, total)


@dataclass(kw_only=True)
class Tally:
    """What is known of the segments so far."""

    levels: dict[str, Level] = field(default_factory=lambda: {name: Level() for name in LEVELS})
    n_segments: int = 0
    n_records: Counter[str] = field(default_factory=Counter)
    flagged: Counter[str] = field(default_factory=Counter)
    flagged_records: Counter[tuple[str, str]] = field(default_factory=Counter)
    n_flagged: int = 0
    worst: list[tuple[float, int, bytes]] = field(default_factory=list)
    examples: dict[str, list[bytes]] = field(default_factory=dict)

    def watched(self, measured: Iterable[Measured], texts: IO[bytes], rows: IO[bytes]) -> Iterator[Measured]:
        """What is measured, written to the files and taken in on the way."""
        for one in measured:
            texts.write(one.row)
            rows.writelines(one.segment_rows)
            self._add(one)
            yield one

    def _add(self, one: Measured) -> None:
        self.n_records[one.kind] += 1
        for n, names in enumerate(one.flags):
            self.flagged.update(names)
            self.n_flagged += bool(names)
            for name in names:
                if len(shown := self.examples.setdefault(name, [])) < EXAMPLES:
                    shown.append(one.segment_rows[n])
        self.flagged_records.update((name, one.kind) for name in {name for names in one.flags for name in names})
        level = "documents" if one.kind == "document" else "queries"
        self.levels[level].add(one.scores, one.counts)
        self.levels["segments"].add(one.segment_scores, one.segment_counts)
        for n, score in enumerate(one.segment_scores):
            # A heap of the lowest: its root, negated, is the best of them.
            entry = (-score, -(self.n_segments + n), one.segment_rows[n])
            if len(self.worst) == WORST and entry < self.worst[0]:
                continue
            if len(orjson.loads(entry[2])["source"]) >= _SHOWN_MIN_CHARS:
                (heapq.heappush if len(self.worst) < WORST else heapq.heapreplace)(self.worst, entry)
        self.n_segments += len(one.flags)

    def summary(self) -> dict[str, Any]:
        """counts, levels, flags by check, the worst segments and examples of each flag."""
        n = max(self.n_segments, 1)
        return {
            "n_segments": self.n_segments,
            "n_documents": self.n_records["document"],
            "n_queries": self.n_records["query"],
            "levels": {name: found for name, level in self.levels.items() if (found := level.summary())},
            "flagged": {"segments": self.n_flagged, "share": self.n_flagged / n},
            "flags": {
                name: {
                    "segments": self.flagged[name],
                    "share": self.flagged[name] / n,
                    "documents": self.flagged_records[name, "document"],
                    "queries": self.flagged_records[name, "query"],
                }
                for name in FLAGS
            },
            "worst": [orjson.loads(row) for _, _, row in sorted(self.worst, reverse=True)],
            "examples": {name: [*map(orjson.loads, rows)] for name, rows in sorted(self.examples.items())},
        }


def read_report(port: Port) -> dict[str, Any]:
    """The last report of check_port on this port. Raises BadInput where there is none of its present state."""
    path = port.folder / QA / REPORT
    if not path.exists():
        raise BadInput(f"{port.folder} was not checked yet: run `rusbeir audit check {port.folder}` first.")
    report: dict[str, Any] = orjson.loads(path.read_bytes())
    if report["fingerprint"] != port.dataset.fingerprint:
        raise BadInput(
            f"{port.folder} has changed since it was checked: run `rusbeir audit check {port.folder}` again."
        )
    return report

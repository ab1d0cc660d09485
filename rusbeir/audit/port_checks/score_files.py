"""Translations in plain files with one segment on each line, scored against references and checked against sources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rusbeir.audit.port_checks import scores
from rusbeir.audit.port_checks.segment_checks import CheckedSegment, CheckedTexts, Finder, find_flags, prepare_checks
from rusbeir.datasets import Place, not_utf8, open_file
from rusbeir.errors import BadInput, option
from rusbeir.processes import cpu_count, in_order
from rusbeir.text import batched
from rusbeir.translation import Flag, Segment
from rusbeir.types import Progress, silent

BATCH_LINES = 200
EXAMPLES = 3


class _Batch(NamedTuple):
    sources: list[str] | None
    hypotheses: list[str]
    references: list[str] | None


class _Found(NamedTuple):
    compared: scores.Compared
    flags: list[list[Flag]]


@dataclass(frozen=True, kw_only=True)
class _Worker:
    languages: tuple[str, str]
    finders: Mapping[str, Finder]

    def __call__(self, batch: _Batch) -> _Found:
        compared = scores.Compared({}, [])
        if batch.references is not None:
            compared = scores.compare(batch.hypotheses, batch.references, self.languages[1])
        lines = zip(batch.sources or (), batch.hypotheses, strict=False)
        segments = [CheckedSegment(Segment(*line, *self.languages), None) for line in lines]
        return _Found(compared, find_flags(self.finders, segments))


def score_lines(
    hypothesis: str | Path,
    *,
    source: str | Path | None = None,
    reference: str | Path | None = None,
    language: str,
    source_language: str = "en",
    processes: int | None = None,
    progress: Progress = silent,
) -> dict[str, Any]:
    """The scores against the reference and the flags against the source of a file with one translation on each line.

    BLEU, chrF, chrF++ and TER are those of the whole file, with their signatures; chrF_mean is the mean over lines.
    Raises BadInput where the files differ in their number of lines, and where neither source nor reference is given.
    """
    if source is None and reference is None:
        raise BadInput(
            f"There is nothing to compare with. Give {option('ref', python='reference=')} to score, "
            f"{option('source')} to check, or both."
        )
    paths = [Path(path) for path in (hypothesis, source, reference) if path is not None]
    n_of = {path: sum(1 for _ in read_lines(path)) for path in paths}
    n_lines = n_of[paths[0]]
    for path, n in n_of.items():
        if n != n_lines or not n:
            raise BadInput(
                f"{path} has {n:,} lines and {paths[0]} {n_lines:,}; the files must have the same number of lines."
            )
    languages = (source_language, language)
    finders: Mapping[str, Finder] = {}
    if source is not None:
        files = [Path(source), Path(hypothesis)]
        finders = prepare_checks(
            CheckedTexts(languages=languages, pairs=lambda: zip(*map(read_lines, files), strict=True))
        )
    worker = _Worker(languages=languages, finders=finders)
    sums: dict[str, Any] = {}
    chrf_sum = 0.0
    tally: Counter[str] = Counter()
    examples: dict[str, list[dict[str, Any]]] = {}
    n_flagged = done = 0
    batches = _read_batches(*(None if path is None else Path(path) for path in (hypothesis, source, reference)))
    for (counts, chrf), flags in in_order(worker, batches, cpu_count() if processes is None else processes):
        for name, part in counts.items():
            sums[name] = sums[name] + part if name in sums else part
        chrf_sum += sum(chrf)
        for n, line_flags in enumerate(flags):
            n_flagged += bool(line_flags)
            for name, detail in line_flags:
                tally[name] += 1
                if len(rows := examples.setdefault(name, [])) < EXAMPLES:
                    rows.append({"line": done + n + 1, "detail": detail})
        done += max(len(chrf), len(flags))
        progress("score lines", done, n_lines)
    report: dict[str, Any] = {"hypothesis": str(hypothesis), "n_lines": n_lines}
    if reference is not None:
        report["scores"] = {
            **scores.score_compared(sums, language),
            "chrF_mean": chrf_sum / n_lines,
        }
        report["signatures"] = {name: scores.signature(name, language) for name in scores.NAMES}
    if source is not None:
        report["flagged"] = {"segments": n_flagged, "share": n_flagged / n_lines}
        report["flags"] = {name: {"segments": tally[name], "share": tally[name] / n_lines} for name in finders}
        report["examples"] = examples
    return report


def read_lines(path: Path) -> Iterator[str]:
    """The lines of a file without white space at their ends, as sacrebleu reads them. Raises BadInput unless UTF-8."""
    with open_file(path) as file:
        for number, line in enumerate(file, 1):
            if problem := not_utf8(place := Place(str(path), number), line):
                raise BadInput(f"{place}: {problem[2]}.")
            yield line.decode().rstrip()


def _read_batches(hypothesis: Path | None, source: Path | None, reference: Path | None) -> Iterator[_Batch]:
    pages: list[Iterator[Sequence[str]] | None] = [
        batched(read_lines(path), BATCH_LINES) if path is not None else None for path in (source, hypothesis, reference)
    ]
    sources, hypotheses, references = pages
    assert hypotheses is not None
    for page in hypotheses:
        yield _Batch(
            list(next(sources)) if sources else None, list(page), list(next(references)) if references else None
        )

"""Translations in plain files with one segment on each line, scored against references and checked against sources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
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


class PairBatch(NamedTuple):
    """Translations of one level, with what they are compared with."""

    level: str
    """"documents", "queries" or "lines"."""
    translations: Sequence[str]
    references: Sequence[str | None] | None = None
    """None where nothing is scored; None for a text that the reference lacks."""
    sources: Sequence[str] | None = None
    """None where nothing is checked."""


class PairResult(NamedTuple):
    """The scores and the flags of a batch."""

    level: str
    lacking: int
    """How many texts the reference lacks; they are not scored."""
    compared: scores.Compared
    flags: list[list[Flag]]
    """The flags of each translation; [] where nothing is checked."""


@dataclass(frozen=True, kw_only=True)
class PairScorer:
    """Scores and checks batches; sent to worker processes."""

    languages: tuple[str, str]
    """The languages of the sources and of the translations."""
    finders: Mapping[str, Finder] = field(default_factory=dict)
    ter_words: float = inf
    """A batch with a text of more words has no TER."""

    def __call__(self, batch: PairBatch) -> PairResult:
        references = batch.references or ()
        pairs = [
            (translation, reference)
            for translation, reference in zip(batch.translations, references, strict=False)
            if reference is not None
        ]
        compared = scores.Compared({}, [])
        if pairs:
            translations, known = ([*side] for side in zip(*pairs, strict=True))
            ter = all(len(text.split()) <= self.ter_words for text in (*translations, *known))
            compared = scores.compare(translations, known, self.languages[1], ter=ter)
        lines = zip(batch.sources or (), batch.translations, strict=False)
        segments = [CheckedSegment(Segment(*line, *self.languages), None) for line in lines]
        return PairResult(batch.level, len(references) - len(pairs), compared, find_flags(self.finders, segments))


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
    """Score a file with one translation on each line against a reference, and check it against its source.

    Args:
        hypothesis: The translations.
        source: The sources to check against.
        reference: The references to score against.
        language: The language of the translations (BCP 47).
        source_language: The language of the sources.
        processes: The number of processes; by default one for each processor.
        progress: Receives what is being done.

    Returns:
        With a reference `scores`, those of the whole file and `chrF_mean`, the mean over lines, with `signatures`;
        with a source `flagged`, and `flags` and `examples` by check (docs/json.md).

    Raises:
        BadInput: The files differ in their number of lines, or there is neither a source nor a reference.
    """
    if source is None and reference is None:
        raise BadInput(
            f"There is nothing to compare with. Give {option('ref', python='reference=')} to score, "
            f"{option('source')} to check, or both."
        )
    n_lines = _count_lines([Path(path) for path in (hypothesis, source, reference) if path is not None])
    languages = (source_language, language)
    finders: Mapping[str, Finder] = {}
    if source is not None:
        files = [Path(source), Path(hypothesis)]
        finders = prepare_checks(
            CheckedTexts(languages=languages, pairs=lambda: zip(*map(read_lines, files), strict=True))
        )
    sums: dict[str, Any] = {}
    chrf_sum = 0.0
    tally: Counter[str] = Counter()
    examples: dict[str, list[dict[str, Any]]] = {}
    n_flagged = done = 0
    scorer = PairScorer(languages=languages, finders=finders)
    batches = _read_batches(*(None if path is None else Path(path) for path in (hypothesis, source, reference)))
    for result in in_order(scorer, batches, processes or cpu_count()):
        scores.add_counts(sums, result.compared.counts)
        chrf_sum += sum(result.compared.chrf)
        for n, line_flags in enumerate(result.flags, done + 1):
            n_flagged += bool(line_flags)
            for name, detail in line_flags:
                tally[name] += 1
                if len(rows := examples.setdefault(name, [])) < EXAMPLES:
                    rows.append({"line": n, "detail": detail})
        done += max(len(result.compared.chrf), len(result.flags))
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


def _count_lines(paths: Sequence[Path]) -> int:
    """Count the lines of each of the files. Raises BadInput where they differ."""
    counts = {path: sum(1 for _ in read_lines(path)) for path in paths}
    n_lines = counts[paths[0]]
    for path, n in counts.items():
        if n != n_lines or not n:
            raise BadInput(
                f"{path} has {n:,} lines and {paths[0]} {n_lines:,}; the files must have the same number of lines."
            )
    return n_lines


def read_lines(path: Path) -> Iterator[str]:
    """The lines of a file without white space at their ends, as sacrebleu reads them. Raises BadInput unless UTF-8."""
    with open_file(path) as file:
        for number, line in enumerate(file, 1):
            if problem := not_utf8(position := Place(str(path), number), line):
                raise BadInput(f"{position}: {problem[2]}.")
            yield line.decode().rstrip()


def _read_batches(hypothesis: Path | None, source: Path | None, reference: Path | None) -> Iterator[PairBatch]:
    pages: list[Iterator[Sequence[str]] | None] = [
        batched(read_lines(path), BATCH_LINES) if path is not None else None for path in (source, hypothesis, reference)
    ]
    sources, hypotheses, references = pages
    assert hypotheses is not None
    for page in hypotheses:
        yield PairBatch("lines", page, next(references) if references else None, next(sources) if sources else None)

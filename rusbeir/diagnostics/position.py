"""Position bias: whether a system finds answers less well by where in their documents they are.

As PosIR (Zeng et al., 2026) measures it: queries are sorted into 20 bins by the middle of the span that answers them,
as a share of the document's length, and into buckets by that length in tokens. PSI is 1 - min/max of the mean nDCG@10
over bins: 0 for a system that does not care, 1 for one that finds nothing in some bin. Queries of several datasets,
such as PosIR's domains, are pooled. What the paper lacks is added: a least number of queries a bin, intervals, the PSI
of shuffled positions, averages over datasets, and how the curve correlates with the position.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, Unpack

import numpy as np

from rusbeir import __version__
from rusbeir.datasets import TOKENS, Span, label_dataset, load, read_json
from rusbeir.diagnostics.position_curve import ALL, BINS, MIN_COUNT, PositionCurve, make_curve
from rusbeir.diagnostics.position_statistics import Places, compute_psi
from rusbeir.diagnostics.spans import load_spans
from rusbeir.errors import BadInput, option
from rusbeir.evaluation import FEW_PERMUTATIONS, FEW_SAMPLES, Floats
from rusbeir.experiment import MeasuringOptions, SystemLike, bench
from rusbeir.ledger import ResultRow
from rusbeir.text import digest
from rusbeir.types import Dataset, silent

KIND = "position"
MEASURE = "nDCG@10"
BUCKETS = ("up to 512", "513 to 1,024", "1,025 to 1,536", "over 1,536")
_BUCKET_ENDS = (512, 1024, 1536)


@dataclass(frozen=True, kw_only=True)
class PositionDomain:
    """One of several datasets alone."""

    dataset: str
    n_queries: int
    ndcg: float
    psi: float | None
    """PSI as it is published: with few queries a bin it is large by chance."""


@dataclass(frozen=True, kw_only=True)
class PositionBias:
    """One system on the queries of one or several datasets."""

    dataset: str
    language: str
    query_language: str
    system: str
    engine: str
    signature: str
    fingerprint: str
    seed: int
    samples: int
    permutations: int
    min_count: int
    tokens: str
    """How lengths are counted."""
    curves: tuple[PositionCurve, ...]
    """The curve over all lengths, then that of each bucket that has queries."""
    domains: tuple[PositionDomain, ...]
    """Each dataset alone, where there are several."""
    macro_ndcg: float | None
    """The unweighted means over domains; None for one dataset."""
    macro_psi: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return the document that `rusbeir diagnose` prints and `rusbeir report` reads."""
        return {"kind": KIND, "version": __version__, **asdict(self)}


def diagnose_position(
    datasets: str | Path | Dataset | Sequence[str | Path | Dataset],
    system: SystemLike = "bm25",
    *,
    language: str | None = None,
    split: str | None = None,
    query_language: str | None = None,
    spans: str | Path | None = None,
    min_count: int = MIN_COUNT,
    samples: int = FEW_SAMPLES,
    permutations: int = FEW_PERMUTATIONS,
    seed: int = 0,
    **options: Unpack[MeasuringOptions],
) -> PositionBias:
    """Return whether a system finds answers less well by where in their documents they are.

    Of several datasets the queries are pooled. spans is a list of spans for a dataset that has none of its own. With a
    query_language the queries are those of the parallel dataset, and the spans those of the documents. The options are
    those of `bench`, which keeps rows and runs in out. Raises BadInput where no query has a span.

    >>> diagnose_position("xquad/ru", "bm25").curves[0].psi  # doctest: +SKIP
    """
    names = [datasets] if isinstance(datasets, (str, Path, Dataset)) else list(datasets)
    if spans and len(names) > 1:
        raise BadInput(f"{option('spans')} is the list of one dataset, not of {len(names)}.")
    progress = options.get("progress", silent)
    rows: list[ResultRow] = []
    answers: list[_Answer] = []
    for number, name in enumerate(names):
        dataset = name if isinstance(name, Dataset) else load(name, language=language, split=split, progress=progress)
        spans_by_query = load_spans(
            name, dataset, Path(spans) if spans else None, language=language, split=split, progress=progress
        )
        row = bench(dataset, system, measures=[MEASURE], query_language=query_language, **options)
        rows.append(row)
        scores = read_json(Path(row["per_query"]), {str: {str: float}}, f"Repeat it with {option('force', True)}.")
        for query_id, span in spans_by_query.items():
            if query_id in scores and span.chars:
                relevant = dataset.qrels[query_id]
                document = span.doc_id or max(relevant, key=relevant.__getitem__)
                answers.append(_Answer(number, document, scores[query_id][MEASURE], span))
    if not answers:
        raise BadInput(f"{rows[0]['dataset']}: no query has a span in a document with a text.")
    draws: _Draws = {"min_count": min_count, "samples": samples, "permutations": permutations, "seed": seed}
    return _describe(rows, _sort_answers(answers), draws)


class _Answer(NamedTuple):
    """A query with a span: the number of its dataset, its relevant document, and its score."""

    domain: int
    document: str
    score: float
    span: Span


class _Draws(TypedDict):
    """The settings by which intervals and chance are computed."""

    min_count: int
    samples: int
    permutations: int
    seed: int


class _Sorted(NamedTuple):
    """Answers as arrays, all of one length."""

    scores: Floats
    domains: Places
    """The numbers of their datasets."""
    bins: Places
    buckets: Places
    documents: Places
    """The numbers of their documents."""
    tokens: str
    """How lengths are counted."""


def _sort_answers(answers: Sequence[_Answer]) -> _Sorted:
    """Sort answers into bins by their relative position, and into buckets by the length of their documents."""
    # As pandas' cut makes them: bins hold their right ends, the first also its left one.
    relative = np.array([(answer.span.start + answer.span.end) / 2 / answer.span.chars for answer in answers])
    numbers: dict[tuple[int, str], int] = {}
    return _Sorted(
        scores=np.array([answer.score for answer in answers]),
        domains=np.array([answer.domain for answer in answers]),
        bins=np.clip(np.searchsorted(np.linspace(0, 1, BINS + 1), relative) - 1, 0, BINS - 1),
        buckets=np.searchsorted(_BUCKET_ENDS, np.array([answer.span.tokens for answer in answers])),
        documents=np.array([numbers.setdefault((answer.domain, answer.document), len(numbers)) for answer in answers]),
        tokens=TOKENS if any(answer.span.doc_id for answer in answers) else "as the dataset counts them",
    )


def _describe(rows: Sequence[ResultRow], answers: _Sorted, draws: _Draws) -> PositionBias:
    labels = [label_dataset(row["dataset"], row["language"], row["query_language"]) for row in rows]
    domains = _describe_domains(labels, answers) if len(labels) > 1 else ()
    psis = [domain.psi for domain in domains if domain.psi is not None]
    first = rows[0]
    return PositionBias(
        dataset=labels[0] if len(labels) == 1 else f"{labels[0]} and {len(labels) - 1} more",
        language=first["language"],
        query_language=first["query_language"],
        system=first["system"],
        engine=first["engine"],
        signature=first["signature"],
        fingerprint=first["fingerprint"] if len(rows) == 1 else digest(*(row["fingerprint"] for row in rows)),
        tokens=answers.tokens,
        curves=tuple(_make_curves(answers, draws)),
        domains=tuple(domains),
        macro_ndcg=float(np.mean([domain.ndcg for domain in domains])) if domains else None,
        macro_psi=float(np.mean(psis)) if psis else None,
        **draws,
    )


def _make_curves(answers: _Sorted, draws: _Draws) -> Iterator[PositionCurve]:
    """Make the curve over all lengths, then that of each bucket that has queries."""
    strata = answers.domains * len(BUCKETS) + answers.buckets
    chosen = {ALL: np.ones(len(strata), dtype=bool)}
    chosen |= {name: answers.buckets == number for number, name in enumerate(BUCKETS)}
    for name, mask in chosen.items():
        if mask.any():
            yield make_curve(
                name, answers.scores[mask], answers.bins[mask], answers.documents[mask], strata[mask], **draws
            )


def _describe_domains(labels: Sequence[str], answers: _Sorted) -> list[PositionDomain]:
    """Describe each dataset that has answers, alone."""
    domains = []
    for number, label in enumerate(labels):
        mask = answers.domains == number
        if mask.any():
            scores = answers.scores[mask]
            psi = compute_psi(_mean_by_bin(scores, answers.bins[mask]))
            domains.append(PositionDomain(dataset=label, n_queries=int(mask.sum()), ndcg=float(scores.mean()), psi=psi))
    return domains


def _mean_by_bin(scores: Floats, bins: Places) -> Floats:
    """Return the means of the bins that have queries."""
    counts = np.bincount(bins)
    means: Floats = np.bincount(bins, weights=scores)[counts > 0] / counts[counts > 0]
    return means

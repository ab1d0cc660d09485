"""Position bias: whether a system finds answers less well by where in their documents they are.

As PosIR (Zeng et al., 2026) measures it: queries are sorted into 20 bins by the middle of the span that answers them,
as a share of the document's length, and into buckets by that length in tokens. PSI is 1 - min/max of the mean nDCG@10
over bins: 0 for a system that does not care, 1 for one that finds nothing in some bin. Queries of several datasets,
such as PosIR's domains, are pooled. What the paper lacks is added: a least number of queries a bin, intervals, the PSI
of shuffled positions, averages over datasets, and how the curve correlates with the position.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rusbeir import __version__
from rusbeir.datasets import TOKENS, Span, label_dataset, load, read_json
from rusbeir.diagnostics.position_curve import ALL, BINS, MIN_COUNT, PositionCurve, make_curve
from rusbeir.diagnostics.position_statistics import Places, compute_psi
from rusbeir.diagnostics.spans import load_spans
from rusbeir.errors import BadInput, option
from rusbeir.evaluation import FEW_PERMUTATIONS, FEW_SAMPLES, Floats
from rusbeir.experiment import SystemLike, bench
from rusbeir.ledger import ResultRow
from rusbeir.text import digest
from rusbeir.types import Dataset, Progress, silent

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
        """The document that `rusbeir diagnose` prints and `rusbeir report` reads."""
        return {"kind": KIND, "version": __version__, **asdict(self)}


def diagnose_position(
    datasets: str | Path | Dataset | Sequence[str | Path | Dataset],
    system: SystemLike = "bm25",
    *,
    engine: str = "auto",
    language: str | None = None,
    split: str | None = None,
    query_language: str | None = None,
    spans: str | Path | None = None,
    min_count: int = MIN_COUNT,
    k: int = 100,
    samples: int = FEW_SAMPLES,
    permutations: int = FEW_PERMUTATIONS,
    seed: int = 0,
    out: str | Path = "results",
    force: bool = False,
    budget_chars: int | None = None,
    progress: Progress = silent,
) -> PositionBias:
    """Whether a system finds answers less well by where in their documents they are.

    Of several datasets the queries are pooled. spans is a list of spans for a dataset that has none of its own. With a
    query_language the queries are those of the parallel dataset, and the spans those of the documents. Rows and runs
    are kept in out, as `bench` does; a row that is there is not measured again. Raises BadInput where there is no span.

    >>> diagnose_position("xquad/ru", "bm25").curves[0].psi  # doctest: +SKIP
    """
    names = [datasets] if isinstance(datasets, (str, Path, Dataset)) else list(datasets)
    if spans and len(names) > 1:
        raise BadInput(f"{option('spans')} is the list of one dataset, not of {len(names)}.")
    rows: list[ResultRow] = []
    answers: list[_Answer] = []
    for number, name in enumerate(names):
        dataset = name if isinstance(name, Dataset) else load(name, language=language, split=split, progress=progress)
        spans_by_query = load_spans(
            name, dataset, Path(spans) if spans else None, language=language, split=split, progress=progress
        )
        row = bench(
            dataset, system, engine=engine, k=k, measures=[MEASURE], out=out, force=force, budget_chars=budget_chars,
            query_language=query_language, progress=progress,
        )  # fmt: skip
        rows.append(row)
        scores = read_json(Path(row["per_query"]), {str: {str: float}}, f"Repeat it with {option('force', True)}.")
        for query_id, span in spans_by_query.items():
            if query_id in scores and span.chars:
                relevant = dataset.qrels[query_id]
                document = span.doc_id or max(relevant, key=relevant.__getitem__)
                answers.append(_Answer(number, document, scores[query_id][MEASURE], span))
    if not answers:
        raise BadInput(f"{rows[0]['dataset']}: no query has a span in a document with a text.")
    return _describe(rows, answers, min_count=min_count, samples=samples, permutations=permutations, seed=seed)


class _Answer(NamedTuple):
    """A query with a span: the number of its dataset, its relevant document, and its score."""

    domain: int
    document: str
    score: float
    span: Span


def _describe(
    rows: Sequence[ResultRow],
    answers: Sequence[_Answer],
    *,
    min_count: int,
    samples: int,
    permutations: int,
    seed: int,
) -> PositionBias:
    domain_numbers = np.array([answer.domain for answer in answers])
    scores = np.array([answer.score for answer in answers])
    # As pandas' cut makes them: bins hold their right ends, the first also its left one.
    relative = np.array([(answer.span.start + answer.span.end) / 2 / answer.span.chars for answer in answers])
    bins = np.clip(np.searchsorted(np.linspace(0, 1, BINS + 1), relative) - 1, 0, BINS - 1)
    buckets = np.searchsorted(_BUCKET_ENDS, np.array([answer.span.tokens for answer in answers]))
    numbers: dict[tuple[int, str], int] = {}
    documents = np.array([numbers.setdefault((answer.domain, answer.document), len(numbers)) for answer in answers])
    strata = domain_numbers * len(BUCKETS) + buckets
    chosen = {ALL: np.ones(len(answers), dtype=bool), **{name: buckets == i for i, name in enumerate(BUCKETS)}}
    curves = [
        make_curve(
            name,
            scores[mask],
            bins[mask],
            documents[mask],
            strata[mask],
            min_count=min_count,
            samples=samples,
            permutations=permutations,
            seed=seed,
        )
        for name, mask in chosen.items()
        if mask.any()
    ]
    labels = [label_dataset(row["dataset"], row["language"], row["query_language"]) for row in rows]
    domains = [
        PositionDomain(
            dataset=label,
            n_queries=int(mask.sum()),
            ndcg=float(scores[mask].mean()),
            psi=compute_psi(_mean_by_bin(scores[mask], bins[mask])),
        )
        for label, mask in ((label, domain_numbers == i) for i, label in enumerate(labels))
        if len(labels) > 1 and mask.any()
    ]
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
        tokens=TOKENS if any(answer.span.doc_id for answer in answers) else "as the dataset counts them",
        curves=tuple(curves),
        domains=tuple(domains),
        macro_ndcg=float(np.mean([domain.ndcg for domain in domains])) if domains else None,
        macro_psi=float(np.mean(psis)) if psis else None,
        min_count=min_count,
        samples=samples,
        permutations=permutations,
        seed=seed,
    )


def _mean_by_bin(scores: Floats, bins: Places) -> Floats:
    """The means of the bins that have queries."""
    counts = np.bincount(bins)
    means: Floats = np.bincount(bins, weights=scores)[counts > 0] / counts[counts > 0]
    return means

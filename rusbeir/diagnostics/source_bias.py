"""Source bias: whether a system prefers the copies of one source, such as texts that a language model rewrote.

As Cocktail (Dai et al., Findings of ACL 2024) measures it: one ranking of a corpus that mixes all sources is judged
once per source; copies of the other sources stay in it as documents that are not relevant, and the ideal ranking is of
the one source. Relative Delta is the difference of two sources' mean nDCG in percent of their mean, from -200 to 200;
above 0 the first source is preferred. To this are added what depends on the order of equal scores, and intervals.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from rusbeir import __version__
from rusbeir.diagnostics.collections import SourceCollection, load_collection
from rusbeir.diagnostics.tie_orders import EXPECTED, HIGHEST, LOWEST, ORDERS, REVERSED, TREC_EVAL, score_tie_orders
from rusbeir.errors import BadInput, option
from rusbeir.evaluation import Evaluation, evaluate
from rusbeir.evaluation.significance import ALPHA, SAMPLES, Floats, bca_interval, resample_means
from rusbeir.experiment import SystemLike, bench_run
from rusbeir.text import digest
from rusbeir.types import Progress, Qrels, Run, silent

logger = logging.getLogger(__name__)

KIND = "source-bias"
CUTOFFS = (1, 3, 5)
Draws: TypeAlias = dict[tuple[int, str, str], Floats]
"""(k, source, against) -> Relative Delta in each bootstrap sample, float64 [published and expected, samples]."""
ALL = "all"
"""Stands for all sources: their copies are all relevant."""


@dataclass(frozen=True, kw_only=True)
class SourceScore:
    """nDCG@k by the judgements of one source, as fractions: means over all judged queries but for *_answered."""

    k: int
    source: str
    """Or "all"."""
    ndcg: float
    """In trec_eval's order of equal scores; so is ndcg_answered, over queries with hits, as papers print it."""
    ndcg_answered: float
    reversed: float
    expected: float
    lowest: float
    highest: float
    share: float
    """Of this source among the hits in the top k of a query, on average over queries with hits and orders of ties."""
    alone: float | None
    """Of the same system on the corpus of this source alone; None if that was not measured, or for all sources."""
    alone_answered: float | None


@dataclass(frozen=True, kw_only=True)
class RelativeDelta:
    """Relative Delta of two sources, in percent; above 0 where the first is preferred. None where both score 0."""

    k: int
    source: str
    against: str
    published: float | None
    """As papers print it: in trec_eval's order of equal scores."""
    published_low: float | None
    """The ends of its 95 % bootstrap interval over queries."""
    published_high: float | None
    reversed: float | None
    """With equal scores in the reverse of trec_eval's order."""
    expected: float | None
    """Of the means that nDCG has over all orders of equal scores."""
    low: float | None
    """The ends of its 95 % bootstrap interval over queries."""
    high: float | None
    lowest: float | None
    """In the order of equal scores that is worst for the first source."""
    highest: float | None
    safe: bool
    """Whether the sign is the same in all of the interval and in every order of equal scores."""
    sentence: str


@dataclass(frozen=True, kw_only=True)
class QuerySet:
    """The queries of one split."""

    split: str
    n_queries: int
    n_answered: int
    n_tied: int
    """Queries for which the nDCG of some source depends on the order of equal scores."""
    scores: tuple[SourceScore, ...]
    deltas: tuple[RelativeDelta, ...]


@dataclass(frozen=True, kw_only=True)
class SourceBias:
    """One system on one collection, or on average over several."""

    dataset: str
    language: str
    system: str
    engine: str
    signature: str
    fingerprint: str
    depth: int
    """Hits per query."""
    seed: int
    samples: int
    sources: tuple[str, ...]
    query_sets: tuple[QuerySet, ...]
    deltas: tuple[RelativeDelta, ...]
    """Unweighted means over the query sets, or over datasets."""
    draws: Draws = field(repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """The document that `rusbeir diagnose` prints and `rusbeir report` reads."""
        document = asdict(self)
        del document["draws"]
        return {"kind": KIND, "version": __version__, **document}


def diagnose_source_bias(
    dataset: str | Path | SourceCollection,
    system: SystemLike = "bm25",
    *,
    engine: str = "auto",
    language: str | None = None,
    split: str | None = None,
    k: int = 100,
    cutoffs: Sequence[int] = CUTOFFS,
    alone: bool = True,
    samples: int = SAMPLES,
    seed: int = 0,
    out: str | Path = "results",
    force: bool = False,
    budget_chars: int | None = None,
    progress: Progress = silent,
) -> SourceBias:
    """Whether a system prefers the copies of one source of a collection in Cocktail's layout.

    The first source (human, where there is one) is compared with each of the others. Rows and runs are kept in out, as
    `bench` does. With split "all" each split is a set of queries, and the dataset's Relative Delta is their mean. alone
    also measures the system on the corpus of each source alone.

    >>> diagnose_source_bias("cocktail/nfcorpus", "bm25").deltas[0].sentence  # doctest: +SKIP
    'The sign of Relative Δ@1 is not safe: …'
    """
    cutoffs = tuple(sorted(set(cutoffs)))
    if not cutoffs or cutoffs[0] < 1 or cutoffs[-1] > k:
        raise BadInput(f"The cut-offs are {', '.join(map(str, cutoffs)) or 'none'}; give numbers from 1 to {k}.")
    if not isinstance(dataset, SourceCollection):
        dataset = load_collection(dataset, language=language, split=split, progress=progress)
    options: dict[str, Any] = {
        "engine": engine, "k": k, "out": Path(out), "force": force, "budget_chars": budget_chars, "progress": progress,
    }  # fmt: skip
    row, run = bench_run(dataset.mixed, system, **options)
    runs_alone = {}
    for source in dataset.sources if alone else ():
        runs_alone[source] = bench_run(dataset.load_alone(source, progress), system, **options)[1]
    found = [
        _diagnose_queries(dataset, name, run, runs_alone, cutoffs, row["depth"], samples, seed)
        for name in dataset.qrels
    ]
    card = dataset.mixed.card
    deltas, draws = _average([(query_set.deltas, drawn) for query_set, drawn in found])
    return SourceBias(
        dataset=card.name, language=card.language, system=row["system"], engine=row["engine"],
        signature=row["signature"], fingerprint=row["fingerprint"], depth=row["depth"], seed=seed, samples=samples,
        sources=dataset.sources, query_sets=tuple(query_set for query_set, _ in found), deltas=deltas, draws=draws,
    )  # fmt: skip


def average_source_bias(found: Sequence[SourceBias]) -> SourceBias:
    """The unweighted mean of Relative Delta over the datasets on which one system was diagnosed.

    Only pairs of sources and cut-offs that all have are in it. Intervals speak of other queries of these datasets.
    """
    deltas, draws = _average([(one.deltas, one.draws) for one in found])
    names = [one.dataset for one in found]
    return SourceBias(
        dataset=f"mean over {len(found)} datasets: {', '.join(names)}",
        language="+".join(dict.fromkeys(one.language for one in found)),
        system=found[0].system,
        engine="+".join(dict.fromkeys(one.engine for one in found)),
        signature=digest(*(one.signature for one in found)),
        fingerprint=digest(*(one.fingerprint for one in found)),
        depth=min(one.depth for one in found),
        seed=found[0].seed,
        samples=found[0].samples,
        sources=tuple(dict.fromkeys(name for one in deltas for name in (one.source, one.against))),
        query_sets=(),
        deltas=deltas,
        draws=draws,
    )


def _diagnose_queries(
    collection: SourceCollection,
    split: str,
    run: Run,
    runs_alone: Mapping[str, Run],
    cutoffs: Sequence[int],
    depth: int,
    samples: int,
    seed: int,
) -> tuple[QuerySet, Draws]:
    """The scores and the Relative Deltas of one set of queries, and its bootstrap samples."""
    sources, qrels = collection.sources, collection.qrels[split]
    ndcg = np.zeros((len(ORDERS), len(sources) + 1, len(cutoffs), len(qrels)))
    shares = np.zeros((len(sources), len(cutoffs), len(qrels)))
    n_cut = 0
    for n, (query_id, grades) in enumerate(qrels.items()):
        judgements = [*_split_by_source(collection, grades), grades]
        one = score_tie_orders(
            run.get(query_id, {}), judgements, cutoffs,
            group_of=collection.number_of, n_groups=len(sources), depth=depth,
        )  # fmt: skip
        ndcg[..., n], shares[..., n] = one.ndcg, one.shares[EXPECTED]
        n_cut += one.is_cut
    if n_cut:
        logger.warning(
            "%s: for %d queries, hits that tie with the last of the top %d may be missing from the run of %d hits. "
            "Raise %s.", collection.mixed.card.name, n_cut, cutoffs[-1], depth, option("k"),
        )  # fmt: skip
    answered = np.array([bool(run.get(query_id)) for query_id in qrels])
    n_answered = max(int(answered.sum()), 1)
    scores = []
    for c, k in enumerate(cutoffs):
        for s, source in enumerate((*sources, ALL)):
            means = ndcg[:, s, c].mean(axis=1).tolist()
            over_answered = float(ndcg[TREC_EVAL, s, c].sum()) / n_answered
            alone = _evaluate_alone(collection, source, qrels, runs_alone, k)
            scores.append(
                SourceScore(
                    k=k, source=source, ndcg=means[TREC_EVAL], ndcg_answered=over_answered,
                    reversed=means[REVERSED], expected=means[EXPECTED], lowest=means[LOWEST], highest=means[HIGHEST],
                    share=float(shares[s, c].sum()) / n_answered if source != ALL else 1.0,
                    alone=alone.measures[f"nDCG@{k}"] if alone else None,
                    alone_answered=alone.measures_answered.get(f"nDCG@{k}", 0.0) if alone else None,
                )
            )  # fmt: skip
    rows = ndcg[[TREC_EVAL, EXPECTED], : len(sources)]
    drawn = resample_means(rows.reshape(-1, len(qrels)), samples=samples, seed=seed).T.reshape(*rows.shape[:3], -1)
    deltas, draws = [], {}
    for c, k in enumerate(cutoffs):
        for s, other in enumerate(sources[1:], 1):
            first, second = ndcg[:, 0, c], ndcg[:, s, c]
            points = relative_delta(first.mean(axis=1), second.mean(axis=1))
            bounds = relative_delta(first[[LOWEST, HIGHEST]].mean(axis=1), second[[HIGHEST, LOWEST]].mean(axis=1))
            of_draws = relative_delta(drawn[:, 0, c], drawn[:, s, c])
            intervals = [
                _interval(of_draws[place], float(points[order]), first[order], second[order])
                for place, order in enumerate((TREC_EVAL, EXPECTED))
            ]
            names = (k, sources[0], other)
            draws[names] = of_draws
            deltas.append(_conclude(names, [*points[[TREC_EVAL, REVERSED, EXPECTED]], *bounds], intervals))
    tied = (ndcg[LOWEST] != ndcg[HIGHEST]).any(axis=(0, 1))
    return QuerySet(
        split=split, n_queries=len(qrels), n_answered=int(answered.sum()), n_tied=int(tied.sum()),
        scores=tuple(scores), deltas=tuple(deltas),
    ), draws  # fmt: skip


def relative_delta(first: Floats, second: Floats) -> Floats:
    """The differences of mean scores in percent of their mean; NaN where both are 0.

    >>> relative_delta(np.array([0.3, 0.0]), np.array([0.1, 0.0]))
    array([100.,  nan])
    """
    total = first + second
    return np.divide(200 * (first - second), total, out=np.full_like(total, np.nan), where=total > 0)


def _interval(drawn: Floats, observed: float, first: Floats, second: Floats) -> tuple[float, float]:
    """The bootstrap interval of a Relative Delta, from samples of it and the scores of the queries."""
    defined = np.sort(drawn[~np.isnan(drawn)])
    if math.isnan(observed) or not len(defined):
        return math.nan, math.nan
    one, other = first.mean(), second.mean()
    influence = 400 * (other * first - one * second) / (one + other) ** 2
    return bca_interval(defined, observed, observed + influence)


def _split_by_source(collection: SourceCollection, grades: Mapping[str, int]) -> list[dict[str, int]]:
    """The grades of the copies of each source."""
    parts: list[dict[str, int]] = [{} for _ in collection.sources]
    for doc_id, grade in grades.items():
        parts[collection.number_of(doc_id)][doc_id] = grade
    return parts


def _evaluate_alone(
    collection: SourceCollection, source: str, qrels: Qrels, runs: Mapping[str, Run], k: int
) -> Evaluation | None:
    """The scores on the corpus of one source alone, where it was searched."""
    if source not in runs:
        return None
    place = collection.sources.index(source)
    judged = {
        query_id: {
            one.removesuffix(f"-{source}"): grade for one, grade in _split_by_source(collection, grades)[place].items()
        }
        for query_id, grades in qrels.items()
    }
    return evaluate(judged, runs[source], [f"nDCG@{k}"])


def _average(sets: Sequence[tuple[Sequence[RelativeDelta], Draws]]) -> tuple[tuple[RelativeDelta, ...], Draws]:
    """The unweighted means over these sets of queries, of what all of them have; one set stays as it is."""
    if len(sets) == 1:
        return tuple(sets[0][0]), sets[0][1]
    by_names = [{(one.k, one.source, one.against): one for one in deltas} for deltas, _ in sets]
    shared = [names for names in by_names[0] if all(names in one for one in by_names)]
    means, draws = [], {}
    for names in shared:
        draws[names] = np.mean([drawn[names] for _, drawn in sets], axis=0)
        points = [
            float(np.mean([_number(getattr(one[names], key)) for one in by_names]))
            for key in ("published", "reversed", "expected", "lowest", "highest")
        ]
        intervals = [
            tuple(np.quantile(defined, [ALPHA / 2, 1 - ALPHA / 2]).tolist())
            if len(defined := row[~np.isnan(row)]) and not math.isnan(points[0]) else (math.nan, math.nan)
            for row in draws[names]
        ]  # fmt: skip
        means.append(_conclude(names, points, intervals))
    return tuple(means), draws


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _conclude(
    names: tuple[int, str, str],
    points: Sequence[float],
    intervals: Sequence[tuple[float, float]],
) -> RelativeDelta:
    """The numbers of one Relative Delta with a sentence that says whether its sign can be relied on.

    points: published, reversed, expected, lowest and highest; intervals: of the published and of the expected one.
    """
    k, source, against = names
    published, reverse, expected, lowest, highest = points
    (published_low, published_high), (low, high) = intervals
    name = f"Relative Δ@{k} of {source} and {against}"
    doubts = []
    if lowest <= 0 <= highest and lowest < highest:
        doubts.append(
            f"it depends on the order of equal scores ({published:+.1f} in trec_eval's order, {reverse:+.1f} in the "
            f"reverse, {lowest:+.1f} to {highest:+.1f} over all orders)"
        )
    if low <= 0 <= high:
        doubts.append(f"the 95 % interval over queries includes 0 ({low:+.1f} to {high:+.1f})")
    undefined = math.isnan(expected)
    preferred = source if expected > 0 else against
    if undefined:
        sentence = f"{name} is undefined: no copy of either source is found in the top {k}."
    elif doubts:
        sentence = f"The sign of {name} is not safe: {', and '.join(doubts)}."
    else:
        sentence = (
            f"The sign of {name} is safe: {expected:+.1f} ({low:+.1f} to {high:+.1f}) prefers {preferred} in every "
            "order of equal scores."
        )
    numbers = {
        "published": published, "published_low": published_low, "published_high": published_high, "reversed": reverse,
        "expected": expected, "low": low, "high": high, "lowest": lowest, "highest": highest,
    }  # fmt: skip
    return RelativeDelta(
        k=k, source=source, against=against, safe=not undefined and not doubts, sentence=sentence,
        **{key: None if math.isnan(value) else float(value) for key, value in numbers.items()},
    )  # fmt: skip

"""Source bias: whether a system prefers the copies of one source, such as texts that a language model rewrote.

As Cocktail (Dai et al., Findings of ACL 2024) measures it: one ranking of a corpus that mixes all sources is judged
once per source; copies of the other sources stay in it as documents that are not relevant, and the ideal ranking is of
the one source. To this are added what depends on the order of equal scores, and intervals.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from rusbeir import __version__
from rusbeir.diagnostics.collections import SourceCollection, load_collection
from rusbeir.diagnostics.relative_delta import (
    Draws,
    RelativeDelta,
    average_deltas,
    measure_delta,
    relative_delta,
)
from rusbeir.diagnostics.tie_orders import EXPECTED, HIGHEST, LOWEST, ORDERS, REVERSED, TREC_EVAL, score_tie_orders
from rusbeir.errors import BadInput, option
from rusbeir.evaluation import SAMPLES, Units, cluster_queries, evaluate
from rusbeir.experiment import MeasuringOptions, Request, SystemLike, bench_run
from rusbeir.text import digest
from rusbeir.types import Run

logger = logging.getLogger(__name__)

KIND = "source-bias"
CUTOFFS = (1, 3, 5)
ALL = "all"
"""Stands for all sources: their copies are all relevant."""


@dataclass(frozen=True, kw_only=True)
class SourceScore:
    """nDCG@k by the judgements of one source, as fractions: means over all judged queries but for *_answered."""

    k: int
    source: str
    """Or "all"."""
    ndcg: float
    """The mean in trec_eval's order of equal scores; so is ndcg_answered, over queries with hits, as in papers."""
    ndcg_answered: float
    reversed: float
    expected: float
    lowest: float
    highest: float
    share: float
    """The share of this source among a query's top k hits, on average over queries with hits and orders of ties."""
    alone: float | None
    """nDCG of the system on the corpus of this source alone; None if that was not measured, or for all sources."""
    alone_answered: float | None


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
        """Return the document that `rusbeir diagnose` prints and `rusbeir report` reads."""
        document = asdict(self)
        del document["draws"]
        return {"kind": KIND, "version": __version__, **document}


def diagnose_source_bias(
    dataset: str | Path | SourceCollection,
    system: SystemLike = "bm25",
    *,
    language: str | None = None,
    split: str | None = None,
    cutoffs: Sequence[int] = CUTOFFS,
    alone: bool = True,
    samples: int = SAMPLES,
    seed: int = 0,
    **options: Unpack[MeasuringOptions],
) -> SourceBias:
    """Return whether a system prefers the copies of one source of a collection in Cocktail's layout.

    The first source (human, where there is one) is compared with each of the others. The options are those of `bench`,
    which keeps rows and runs in out. With split "all" each split is a set of queries, and the dataset's Relative Delta
    is their mean. alone also measures the system on the corpus of each source alone.

    >>> diagnose_source_bias("cocktail/nfcorpus", "bm25").deltas[0].sentence  # doctest: +SKIP
    'Relative Δ@1 of human and llama-2-7b-chat-tmp0.2 is -29.4 (…); its sign is not safe: …'
    """
    fields: dict[str, Any] = {**options, "out": Path(options.get("out", "results"))}
    request = Request(**fields)
    cutoffs = tuple(sorted(set(cutoffs)))
    if not cutoffs or cutoffs[0] < 1 or cutoffs[-1] > request.k:
        numbers = ", ".join(map(str, cutoffs)) or "none"
        raise BadInput(f"The cut-offs are {numbers}; give numbers from 1 to {request.k}.")
    if not isinstance(dataset, SourceCollection):
        dataset = load_collection(dataset, language=language, split=split, progress=request.progress)
    row, run = bench_run(dataset.mixed, system, request)
    runs_alone = {}
    for source in dataset.sources if alone else ():
        runs_alone[source] = bench_run(dataset.load_alone(source, request.progress), system, request)[1]
    query_sets = [
        _diagnose_queries(dataset, name, run, runs_alone, cutoffs, row["depth"], samples, seed)
        for name in dataset.qrels
    ]
    card = dataset.mixed.card
    deltas, draws = average_deltas([(query_set.deltas, drawn) for query_set, drawn in query_sets])
    return SourceBias(
        dataset=card.name, language=card.language, system=row["system"], engine=row["engine"],
        signature=row["signature"], fingerprint=row["fingerprint"], depth=row["depth"], seed=seed, samples=samples,
        sources=dataset.sources, query_sets=tuple(query_set for query_set, _ in query_sets), deltas=deltas, draws=draws,
    )  # fmt: skip


def average_source_bias(diagnoses: Sequence[SourceBias]) -> SourceBias:
    """Return the unweighted mean of Relative Delta over the datasets on which one system was diagnosed.

    Only pairs of sources and cut-offs that all have are in it. Intervals speak of other queries of these datasets.
    """
    deltas, draws = average_deltas([(diagnosis.deltas, diagnosis.draws) for diagnosis in diagnoses])
    names = [diagnosis.dataset for diagnosis in diagnoses]
    return SourceBias(
        dataset=f"mean over {len(diagnoses)} datasets: {', '.join(names)}",
        language="+".join(dict.fromkeys(diagnosis.language for diagnosis in diagnoses)),
        system=diagnoses[0].system,
        engine="+".join(dict.fromkeys(diagnosis.engine for diagnosis in diagnoses)),
        signature=digest(*(diagnosis.signature for diagnosis in diagnoses)),
        fingerprint=digest(*(diagnosis.fingerprint for diagnosis in diagnoses)),
        depth=min(diagnosis.depth for diagnosis in diagnoses),
        seed=diagnoses[0].seed,
        samples=diagnoses[0].samples,
        sources=tuple(dict.fromkeys(name for delta in deltas for name in (delta.source, delta.against))),
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
    """Return the scores and the Relative Deltas of one set of queries, and its bootstrap samples."""
    sources, qrels = collection.sources, collection.qrels[split]
    by_source = {query_id: _split_by_source(collection, grades) for query_id, grades in qrels.items()}
    ndcg = np.zeros((len(ORDERS), len(sources) + 1, len(cutoffs), len(qrels)))
    shares = np.zeros((len(sources), len(cutoffs), len(qrels)))
    n_cut = 0
    for n, (query_id, grades) in enumerate(qrels.items()):
        scored = score_tie_orders(
            run.get(query_id, {}), [*by_source[query_id], grades], cutoffs,
            group_of=collection.number_of, n_groups=len(sources), depth=depth,
        )  # fmt: skip
        ndcg[..., n], shares[..., n] = scored.ndcg, scored.shares[EXPECTED]
        n_cut += scored.is_cut
    if n_cut:
        logger.warning(
            "%s: for %d queries, hits that tie with the last of the top %d may be missing from the run of %d hits. "
            "Raise %s.", collection.mixed.card.name, n_cut, cutoffs[-1], depth, option("k"),
        )  # fmt: skip
    n_answered = sum(bool(run.get(query_id)) for query_id in qrels)
    scores = []
    for s, source in enumerate((*sources, ALL)):
        alone = None
        if source in runs_alone:
            judged = {query_id: _strip(parts[s], source) for query_id, parts in by_source.items()}
            alone = evaluate(judged, runs_alone[source], [f"nDCG@{k}" for k in cutoffs])
        for c, k in enumerate(cutoffs):
            means = ndcg[:, s, c].mean(axis=1).tolist()
            scores.append(
                SourceScore(
                    k=k, source=source, ndcg=means[TREC_EVAL],
                    ndcg_answered=means[TREC_EVAL] * len(qrels) / max(n_answered, 1),
                    reversed=means[REVERSED], expected=means[EXPECTED], lowest=means[LOWEST], highest=means[HIGHEST],
                    share=float(shares[s, c].sum()) / max(n_answered, 1) if source != ALL else 1.0,
                    alone=alone.measures[f"nDCG@{k}"] if alone else None,
                    alone_answered=alone.measures_answered.get(f"nDCG@{k}", 0.0) if alone else None,
                )
            )  # fmt: skip
    rows = ndcg[[TREC_EVAL, EXPECTED], :-1]
    units = Units.from_clusters(list(qrels), cluster_queries(qrels))
    drawn = units.resample(rows.reshape(-1, len(qrels)), samples=samples, seed=seed).T.reshape(*rows.shape[:3], -1)
    draws, deltas = {}, []
    for c, k in enumerate(cutoffs):
        for s, other in enumerate(sources[1:], 1):
            names = (k, sources[0], other)
            draws[names] = relative_delta(drawn[:, 0, c], drawn[:, s, c])
            deltas.append(measure_delta(names, ndcg[:, 0, c], ndcg[:, s, c], draws[names], units))
    n_tied = int((ndcg[LOWEST] != ndcg[HIGHEST]).any(axis=(0, 1)).sum())
    return QuerySet(
        split=split, n_queries=len(qrels), n_answered=n_answered, n_tied=n_tied,
        scores=tuple(sorted(scores, key=lambda score: score.k)), deltas=tuple(deltas),
    ), draws  # fmt: skip


def _split_by_source(collection: SourceCollection, grades: Mapping[str, int]) -> list[dict[str, int]]:
    """Split the grades of the copies of each source."""
    parts: list[dict[str, int]] = [{} for _ in collection.sources]
    for doc_id, grade in grades.items():
        parts[collection.number_of(doc_id)][doc_id] = grade
    return parts


def _strip(grades: Mapping[str, int], source: str) -> dict[str, int]:
    """Return the grades by the ids that the documents have in the corpus of the source alone."""
    return {doc_id.removesuffix(f"-{source}"): grade for doc_id, grade in grades.items()}

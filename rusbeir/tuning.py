"""Choose the weights of a fusion by cross-validation on a development split, never on test queries."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

from rusbeir.datasets import load
from rusbeir.errors import BadInput
from rusbeir.evaluation import Units, check_measures, cluster_queries, evaluate
from rusbeir.jobs import CharBudget
from rusbeir.retrieval import FusedSystem, RunSettings, Spec, as_spec, fuse, resolve
from rusbeir.types import Dataset, Progress, silent

SPLITS = ("dev", "train", "validation")
FOLDS = 5
STEPS = 10
"""Weights are tried in tenths that add up to one."""


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """The result of a cross-validation."""

    system: str
    """The fusion with the weights that are best on all queries, as a spec."""
    weights: tuple[float, ...]
    measure: str
    held_out: float
    """Mean over the queries, each scored with weights chosen without its fold: what to expect of other queries."""
    equal: float
    """The held-out mean with equal weights."""
    folds: tuple[tuple[float, ...], ...]
    """The weights chosen for each fold; large differences say that there are too few queries."""
    n_queries: int
    n_clusters: int
    """The independent units among the queries, none of which two folds share: queries, or clusters of them."""


def tune(
    dataset: str | Path | Dataset,
    system: str | Spec,
    *,
    engine: str = "auto",
    language: str | None = None,
    split: str | None = None,
    measure: str = "nDCG@10",
    folds: int = FOLDS,
    out: str | Path = "results",
    budget_chars: int | None = None,
    progress: Progress = silent,
) -> Tuned:
    """The weights of a fusion for which the measure is highest on a development split.

    Raises BadInput for a test split, for a system that is not a fusion, and for fewer queries than folds.
    budget_chars is how many characters may be sent to endpoints, counted in out with what `bench` sends for that out;
    BudgetReached is raised before more are sent, and what was answered is kept.
    """
    (measure,) = check_measures([measure])
    if not isinstance(dataset, Dataset):
        dataset = load(dataset, language=language, split=split, progress=progress)
    card = dataset.card
    if card.split not in SPLITS:
        raise BadInput(
            f"{card.name} is a {card.split!r} split: weights are tuned only on {', '.join(SPLITS)}, "
            "and then measured on the test queries with `rusbeir bench`."
        )
    spec = as_spec(system)
    fusion = resolve(spec, language=card.language, engine=engine, self_suffixes=card.self_suffixes)
    if not isinstance(fusion, FusedSystem):
        raise BadInput(f"{fusion.name} is not a fusion: only rrf, minmax and zscore have weights.")
    clusters = cluster_queries(dataset)
    units = Units.from_clusters(list(dataset.qrels), clusters)
    if not 2 <= folds <= units.n_clusters:
        raise BadInput(f"{units} cannot be split into {folds} folds.")
    budget = CharBudget(Path(out), budget_chars) if budget_chars is not None else None
    settings = RunSettings(progress=progress, budget=budget)
    runs = [
        source.prepare(dataset.corpus, dataset.fingerprint, settings).retriever.search(dataset.queries, fusion.depth)
        for source in fusion.sources
    ]
    scores: dict[tuple[float, ...], dict[str, float]] = {}
    candidates = [(1.0,) * len(runs), *_list_weights(len(runs))]
    for weights in candidates:
        run = fuse(runs, fusion.method, weights, rrf_k=fusion.rrf_k)
        per_query = evaluate(dataset.qrels, run, [measure]).per_query
        scores[weights] = {query_id: values[measure] for query_id, values in per_query.items()}
        progress("weights", len(scores), len(candidates))
    queries = list(scores[candidates[0]])
    # By a hash of the id: the same folds whatever the order of the file. A cluster goes with its first query.
    members: dict[int, list[str]] = {}
    for query_id in sorted(queries, key=lambda query_id: hashlib.sha256(query_id.encode()).digest()):
        members.setdefault(clusters[query_id], []).append(query_id)
    parts = [list(itertools.chain(*list(members.values())[fold::folds])) for fold in range(folds)]
    chosen, held_out = [], []
    for part in parts:
        best = _best(scores, [query_id for query_id in queries if query_id not in set(part)])
        chosen.append(best)
        held_out += [scores[best][query_id] for query_id in part]
    weights = _best(scores, queries)
    return Tuned(
        system=_with_weights(spec, weights),
        weights=weights,
        measure=measure,
        held_out=fmean(held_out),
        equal=fmean(scores[candidates[0]].values()),
        folds=tuple(chosen),
        n_queries=units.n_queries,
        n_clusters=units.n_clusters,
    )


def _best(scores: dict[tuple[float, ...], dict[str, float]], queries: Sequence[str]) -> tuple[float, ...]:
    """Find the weights with the highest mean over these queries; the first of equal ones, which is the most even."""
    return max(scores, key=lambda weights: fmean(scores[weights][query_id] for query_id in queries))


def _list_weights(n: int) -> Iterator[tuple[float, ...]]:
    """List all weights of n systems in steps that add up to one, none of them 0; even ones first."""
    # Where n - 1 of the gaps between the steps are cut.
    cuts = ((0, *cut, STEPS) for cut in itertools.combinations(range(1, STEPS), n - 1))
    whole = [tuple(end - start for start, end in itertools.pairwise(cut)) for cut in cuts]
    for parts in sorted(whole, key=lambda parts: (max(parts) - min(parts), parts)):
        yield tuple(part / STEPS for part in parts)


def _with_weights(system: Spec, weights: Sequence[float]) -> str:
    stage = system.stages[-1]
    options = tuple(pair for pair in stage.options if pair[0] != "weights")
    text = ":".join(f"{weight:g}" for weight in weights)
    return str(Spec((replace(stage, options=(*options, ("weights", text))),)))

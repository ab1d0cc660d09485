"""Choose a fusion's weights, or k1, b and weights of fields, by cross-validation on development queries alone."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import TypeAlias

from rusbeir.datasets import load
from rusbeir.errors import BadInput
from rusbeir.evaluation import Units, check_measures, cluster_queries, deepest, evaluate
from rusbeir.jobs import CharBudget
from rusbeir.retrieval import (
    Bm25System,
    FusedSystem,
    RunSettings,
    Spec,
    System,
    Value,
    as_spec,
    fuse,
    resolve,
    search_without_self,
)
from rusbeir.storage import temporary_cache
from rusbeir.types import Dataset, Progress, Run, silent

SPLITS = ("dev", "train", "validation")
FOLDS = 5
STEPS = 10
"""Weights of a fusion are tried in tenths that add up to one."""
K1 = (0.6, 0.9, 1.2, 1.6, 2.0)
B = (0.3, 0.4, 0.6, 0.75, 0.9)
"""The values of k1 and b that are tried, each with each, Lucene's (1.2, 0.75) and Anserini's (0.9, 0.4) among them."""
FIELD_WEIGHTS = ("1:1", "2:1", "4:1", "1:2", "1:4")
"""The weights of title and text that are tried with the best k1 and b."""
UNCUT_DEPTH = 1000
"""The hits per query for a measure without a cut-off."""

Settings: TypeAlias = Mapping[str, Value]
"""Options of a stage, such as {"k1": 0.9, "b": 0.4}."""


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """The result of a cross-validation."""

    system: str
    """The system with the options that are best on all queries, as a spec."""
    weights: tuple[float, ...]
    """The weights among these options: of a fusion's systems, or of title and text; () where none were tuned."""
    measure: str
    held_out: float
    """Mean over the queries, each scored with options chosen without its fold: what to expect of other queries."""
    equal: float
    """The mean with equal weights, for BM25 with the options that the system had."""
    folds: tuple[tuple[float, ...], ...]
    """The weights chosen for each fold; large differences say that there are too few queries."""
    n_queries: int
    n_clusters: int
    """The independent units among the queries, none of which two folds share: queries, or clusters of them."""
    options: Settings
    """The options that were chosen, such as {"k1": 0.9, "b": 0.4}."""
    fold_options: tuple[Settings, ...]
    """The options chosen for each fold."""


@dataclass
class _Trials:
    """The settings that are tried, and the scores of each, which are computed when they are asked for."""

    axes: Sequence[Sequence[Settings]]
    """Groups of settings. The best of a group is kept while those of the next are tried; the first are the baseline."""
    search: Callable[[Settings], Run]
    dataset: Dataset
    measure: str
    progress: Progress
    _scores: dict[str, dict[str, float]] = field(default_factory=dict)

    def score(self, settings: Settings) -> dict[str, float]:
        """Score every query with these settings."""
        key = repr(sorted(settings.items()))
        if key not in self._scores:
            per_query = evaluate(self.dataset.qrels, self.search(settings), [self.measure]).per_query
            self._scores[key] = {query_id: values[self.measure] for query_id, values in per_query.items()}
            n_done = len(self._scores)
            self.progress("options", n_done, max(n_done, sum(map(len, self.axes))))
        return self._scores[key]

    def choose(self, queries: Sequence[str]) -> Settings:
        """Find the settings with the highest mean over these queries; of equal ones the first."""
        chosen: Settings = {}
        for axis in self.axes:
            candidates: list[Settings] = [{**chosen, **step} for step in axis]
            chosen = max(candidates, key=lambda settings: fmean(self.score(settings)[query] for query in queries))
        return chosen

    def validate(self, parts: Sequence[Sequence[str]]) -> tuple[list[Settings], float]:
        """Choose settings without each part of the queries, and take the mean of all with what was chosen for them."""
        chosen, held_out = [], []
        for part in parts:
            others = [query_id for other in parts if other is not part for query_id in other]
            best = self.choose(others)
            chosen.append(best)
            held_out += [self.score(best)[query_id] for query_id in part]
        return chosen, fmean(held_out)


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
    """Choose the options of a system for which a measure is highest on a development split.

    Args:
        dataset: A registered name, a path or a loaded dataset; of its splits a development split.
        system: A fusion, whose weights are chosen, or `bm25(…)`, whose k1 and b are chosen, and the weights of title
            and text where fields=best_fields or fields=sum.
        engine: As in `bench`.
        language: The language of a path without a card.
        split: The split of a path.
        measure: What to raise, by its ir-measures name.
        folds: Parts for cross-validation. Queries that share relevant documents are in the same one.
        out: The folder in which budget_chars is counted.
        budget_chars: How many characters may be sent to endpoints, together with what `bench` sends for that out.
            BudgetReached is raised before more are sent, and what was answered is kept.
        progress: Called with the number of settings that were tried.

    Returns:
        The system with the options that are best on all queries, and the mean over held-out ones.

    Raises:
        BadInput: The split is a test split, the system has nothing to tune, or there are fewer queries than folds.

    Examples:
        >>> tune("miracl/ru/dev", "minmax(bm25,dense(bge-m3))").system  # doctest: +SKIP
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

    def resolve_with(settings: Settings) -> System:
        changed = _with_options(spec, settings)
        return resolve(
            changed,
            language=card.language,
            engine=engine,
            self_suffixes=card.self_suffixes,
            languages=dataset.languages,
        )

    resolved = resolve_with({})
    if not isinstance(resolved, (FusedSystem, Bm25System)):
        raise BadInput(
            f"{resolved.name} has nothing to tune: rrf, minmax and zscore have weights, bm25 has k1, b and the weights "
            "of fields."
        )
    clusters = cluster_queries(dataset)
    units = Units.from_clusters(list(dataset.qrels), clusters)
    if not 2 <= folds <= units.n_clusters:
        raise BadInput(f"{units} cannot be split into {folds} folds.")
    budget = CharBudget(Path(out), budget_chars) if budget_chars is not None else None
    settings = RunSettings(progress=progress, budget=budget)
    # Indexes for each k1 and b would fill the cache.
    cache = temporary_cache("lemmas") if isinstance(resolved, Bm25System) else contextlib.nullcontext()
    with cache:
        if isinstance(resolved, FusedSystem):
            axes, search = _try_weights(resolved, dataset, settings)
        else:
            axes, search = _try_bm25(resolved, dataset, deepest([measure]) or UNCUT_DEPTH, resolve_with)
        trials = _Trials(axes=axes, search=search, dataset=dataset, measure=measure, progress=progress)
        baseline = trials.score({name: value for axis in axes for name, value in axis[0].items()})
        chosen, held_out = trials.validate(_split_queries(list(baseline), clusters, folds))
        options = trials.choose(list(baseline))
    return Tuned(
        system=str(_with_options(spec, options)),
        weights=_read_weights(options),
        measure=measure,
        held_out=held_out,
        equal=fmean(baseline.values()),
        folds=tuple(map(_read_weights, chosen)),
        n_queries=units.n_queries,
        n_clusters=units.n_clusters,
        options=options,
        fold_options=tuple(chosen),
    )


Tried: TypeAlias = tuple[Sequence[Sequence[Settings]], Callable[[Settings], Run]]
"""Groups of settings, and the search with some of them."""


def _try_weights(fusion: FusedSystem, dataset: Dataset, settings: RunSettings) -> Tried:
    """Try all weights of a fusion on the runs of its systems, which are searched once."""
    runs = [
        source.prepare(dataset.corpus, dataset.fingerprint, settings).retriever.search(dataset.queries, fusion.depth)
        for source in fusion.sources
    ]
    candidates = [(1.0,) * len(runs), *_list_weights(len(runs))]

    def search(settings: Settings) -> Run:
        return fuse(runs, fusion.method, _read_weights(settings), rrf_k=fusion.rrf_k)

    return [[{"weights": ":".join(f"{weight:g}" for weight in weights)} for weights in candidates]], search


def _try_bm25(system: Bm25System, dataset: Dataset, depth: int, resolve_with: Callable[[Settings], System]) -> Tried:
    """Try k1 and b, each pair with an index of its own, and then weights of title and text."""
    current = (system.bm25.k1, system.bm25.b)
    pairs: list[Settings] = [{"k1": k1, "b": b} for k1, b in itertools.product(K1, B) if (k1, b) != current]
    axes: list[list[Settings]] = [[{}, *pairs]]
    if system.bm25.fields != "flat":
        axes.append([{}, *({"weights": weights} for weights in FIELD_WEIGHTS)])

    def search(settings: Settings) -> Run:
        changed = resolve_with(settings)
        # Which engine computes which k1 and b is said by `bench`.
        quiet = replace(changed, note=None) if isinstance(changed, Bm25System) else changed
        retriever = quiet.prepare(dataset.corpus, dataset.fingerprint, RunSettings()).retriever
        return search_without_self(retriever, dataset.queries, depth, dataset.card.self_suffixes)

    return axes, search


def _split_queries(queries: Sequence[str], clusters: Mapping[str, int], folds: int) -> list[list[str]]:
    """Split queries by a hash of the id, so that the folds are the same whatever the order of the file.

    A cluster goes with its first query.
    """
    members: dict[int, list[str]] = {}
    for query_id in sorted(queries, key=lambda query_id: hashlib.sha256(query_id.encode()).digest()):
        members.setdefault(clusters[query_id], []).append(query_id)
    return [list(itertools.chain(*list(members.values())[fold::folds])) for fold in range(folds)]


def _read_weights(settings: Settings) -> tuple[float, ...]:
    """Read the weights among the options; () where there are none."""
    text = str(settings.get("weights", ""))
    return tuple(map(float, text.split(":"))) if text else ()


def _list_weights(n: int) -> Iterator[tuple[float, ...]]:
    """List all weights of n systems in steps that add up to one, none of them 0; even ones first."""
    # Where n - 1 of the gaps between the steps are cut.
    cuts = ((0, *cut, STEPS) for cut in itertools.combinations(range(1, STEPS), n - 1))
    whole = [tuple(end - start for start, end in itertools.pairwise(cut)) for cut in cuts]
    for parts in sorted(whole, key=lambda parts: (max(parts) - min(parts), parts)):
        yield tuple(part / STEPS for part in parts)


def _with_options(system: Spec, settings: Settings) -> Spec:
    """Set options of the last stage."""
    *stages, stage = system.stages
    options = tuple(pair for pair in stage.options if pair[0] not in settings)
    return replace(system, stages=(*stages, replace(stage, options=(*options, *settings.items()))))

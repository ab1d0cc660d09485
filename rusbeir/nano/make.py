"""Make a small version of a dataset: its queries, hard negatives of lexical and dense systems, all grades."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np

from rusbeir import __version__
from rusbeir.datasets import describe_source, write_beir
from rusbeir.errors import BadInput, option
from rusbeir.evaluation import check_measures, cluster_queries, deepest, evaluate
from rusbeir.experiment import UNCUT_DEPTH, resolve_on
from rusbeir.jobs import CharBudget
from rusbeir.nano.choice import choose_queries, find_relevant, keep_queries
from rusbeir.nano.fidelity import Agreement, list_parts, measure_agreement
from rusbeir.retrieval import CachedSystem, RunSettings, System, check_available, check_names
from rusbeir.types import Dataset, Progress, Run, silent

POOL = ("bm25", "bm25(profile=raw)", "dense(multilingual-e5-small)")
HELD_OUT = (
    "bm25(profile=grams)",
    "bm25(profile=grams,k1=8.0,b=1.0)",
    "bm25(profile=grams,k1=0.1,b=0.0)",
    "bm25(profile=blend)",
    "bm25(profile=raw,k1=0.1,b=0.0)",
    "bm25(k1=8.0,b=1.0)",
)
MIN_QUERIES = 2
"""A single query cannot be resampled."""
MIN_SYSTEMS = 4
"""The fewest systems whose order means anything."""
TWIN = 0.9
"""From this share of the first ten hits in common on, a system is a twin of one that chose."""
_FIRST = 10
_LEAST_DEPTH = 100
"""Hits that are searched for, as `bench` does: of equal scores at a cut-off the same ones count."""


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Systems on one dataset, searched once, with the measure that they are compared by."""

    dataset: Dataset
    measure: str
    settings: RunSettings

    def search(self, system: System, depth: int) -> Run:
        """Return the run of the dataset's queries, from the cache where it has one."""
        suffixes = self.dataset.card.self_suffixes
        cached = CachedSystem(system=system, self_suffixes=suffixes)
        ready = cached.prepare(self.dataset.corpus, self.dataset.fingerprint, self.settings)
        return ready.retriever.search(self.dataset.queries, depth)

    def score(self, run: Run) -> dict[str, float]:
        """Return query id -> value of the measure."""
        per_query = evaluate(self.dataset.qrels, run, self.measure).per_query
        return {query_id: row[self.measure] for query_id, row in per_query.items()}


class NanoOptions(TypedDict, total=False):
    """The options of a small version: the fields of Recipe."""

    systems: Sequence[str]
    held_out: Sequence[str]
    queries: int
    depth: int
    others: int
    measure: str
    seed: int


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The settings that decide a small version. Raises BadInput for numbers that are too small."""

    systems: Sequence[str] = POOL
    held_out: Sequence[str] = HELD_OUT
    queries: int = 200
    depth: int = 20
    others: int = 500
    measure: str = "nDCG@10"
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("queries", MIN_QUERIES), ("depth", 1), ("others", 0)):
            if (value := getattr(self, name)) < least:
                raise BadInput(f"{option(name, value)}: give at least {least}.")


def make_nano(
    dataset: str | Path | Dataset,
    *,
    to: str | Path,
    engine: str = "auto",
    language: str | None = None,
    split: str | None = None,
    out: str | Path = "results",
    budget_chars: int | None = None,
    progress: Progress = silent,
    **choice: Unpack[NanoOptions],
) -> dict[str, Any]:
    """Write a small version of the dataset into the new folder to, and return a report (docs/json.md).

    systems choose: queries are a random sample whose mean scores by them are those of all queries; documents are the
    judged ones of these queries, the first `depth` hits of every system, and others at random. held_out systems did
    not choose; they are searched on both sides and give the agreement, which the folder's card repeats. A held-out
    system that finds the same documents as one that chose is named as its twin and left out.
    budget_chars is counted in out with what `bench` sends for that out.
    Raises BadInput for a folder that holds something, too few queries with a relevant document, and fewer than four
    held-out systems that are not twins.

    Examples:
        >>> make_nano("scifact", to="nano-scifact", queries=150)["agreement"]["kendall"]["value"]  # doctest: +SKIP
    """
    to = Path(to)
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise BadInput(f"{to} holds something else. Choose a new folder, or empty it.")
    recipe = Recipe(**choice)
    (compared,) = check_measures([recipe.measure])
    pool, held = _read_systems(recipe.systems, recipe.held_out)
    deep = max(recipe.depth, deepest([compared]) or UNCUT_DEPTH, _LEAST_DEPTH)
    source, resolved = resolve_on(dataset, [*pool, *held], deep, engine, language, split, progress)
    source.refuse_spaced_ids()
    whole = _keep_relevant(source, recipe.queries)
    for system in resolved:
        check_available(system)
    budget = CharBudget(Path(out), budget_chars) if budget_chars is not None else None
    full = Bench(dataset=whole, measure=compared, settings=RunSettings(progress=progress, budget=budget))
    runs = {system.name: full.search(system, deep) for system in resolved}
    scores = {system: full.score(run) for system, run in runs.items()}
    chose = [system.name for system in resolved[: len(pool)]]
    left, twins = _leave_out_twins(resolved[len(pool) :], chose, runs)
    drawing = {"depth": recipe.depth, "others": recipe.others, "seed": recipe.seed}
    query_ids = _choose(whole, [scores[name] for name in chose], recipe.queries, recipe.seed)
    small = keep_queries(whole, query_ids, [runs[name] for name in chose], **drawing)
    nano = replace(full, dataset=small)
    agreement = measure_agreement(
        compared,
        {system.name: scores[system.name] for system in left},
        {system.name: nano.score(nano.search(system, deep)) for system in left},
        clusters=cluster_queries(whole),
        seed=recipe.seed,
    )
    return _write(small, source, to, {"systems": chose, **drawing}, agreement, twins)


def _leave_out_twins(
    held: Sequence[System], chose: Sequence[str], runs: Mapping[str, Run]
) -> tuple[list[System], dict[str, str]]:
    """Return the held-out systems that are not twins, and the twins with the systems whose twins they are.

    Raises BadInput where too few are left.
    """
    twins = dict(_find_twins([system.name for system in held], chose, runs))
    left = [system for system in held if system.name not in twins]
    if len(left) < MIN_SYSTEMS:
        raise BadInput(
            f"{len(left)} held-out systems are left, and an order needs {MIN_SYSTEMS}. Name others with "
            f"{option('held_out')}" + (f"; twins of systems that chose: {', '.join(twins)}." if twins else ".")
        )
    return left, twins


def _read_systems(systems: Sequence[str], held_out: Sequence[str]) -> tuple[list[Any], list[Any]]:
    """Read the specs of both. Raises BadInput for no system, one given twice, and one held out that chose."""
    if not systems:
        raise BadInput(f"No system chooses: name one with {option('system')}.")
    pool, held = (list(map(check_names, part)) for part in (systems, held_out))
    names = [str(spec) for spec in (*pool, *held)]
    if twice := next((spec for spec in names if names.count(spec) > 1), None):
        raise BadInput(f"{twice} is given twice; a system chooses or is held out, once.")
    chose = {part for spec in pool for part in list_parts(spec)}
    if mixed := next((spec for spec in held if list_parts(spec) <= chose), None):
        raise BadInput(f"{mixed} is made of systems that choose, so it cannot be held out.")
    return pool, held


def _keep_relevant(source: Dataset, queries: int) -> Dataset:
    """Return the dataset with the queries that have a relevant document in the corpus."""
    qrels = find_relevant(source)
    if not qrels:
        raise BadInput(f"{source.card.name}: no query has a relevant document in the corpus.")
    if len(qrels) <= queries:
        raise BadInput(
            f"{source.card.name} has {len(qrels):,} queries with a relevant document, so {queries:,} do not make it "
            f"smaller. Ask for fewer with {option('queries')}."
        )
    return replace(source, queries={query_id: source.queries[query_id] for query_id in qrels}, qrels=qrels)


def _choose(whole: Dataset, scores: Sequence[Mapping[str, float]], n: int, seed: int) -> list[str]:
    """The ids of n queries that are like all in their scores by each system and in how many documents are judged."""
    sizes = [np.log(len(grades)) for grades in whole.qrels.values()]
    query_ids = list(whole.qrels)
    variables = np.array([*([by_query[query_id] for query_id in query_ids] for by_query in scores), sizes])
    return [query_ids[row] for row in choose_queries(variables, n, seed)]


def _find_twins(judges: Sequence[str], chose: Sequence[str], runs: Mapping[str, Run]) -> Iterator[tuple[str, str]]:
    """Held-out systems, each with one that chose and shares TWIN or more of its first ten hits."""
    first = {name: {query_id: set(list(hits)[:_FIRST]) for query_id, hits in run.items()} for name, run in runs.items()}
    for judge in judges:
        for chosen in chose:
            shares = [
                len(hits & first[chosen][query_id]) / len(hits) for query_id, hits in first[judge].items() if hits
            ]
            if shares and sum(shares) / len(shares) >= TWIN:
                yield judge, chosen
                break


def _write(
    small: Dataset, source: Dataset, to: Path, recipe: dict[str, Any], agreement: Agreement, twins: dict[str, str]
) -> dict[str, Any]:
    measured = {**agreement.to_dict(), "twins": twins}
    card = replace(
        source.card,
        name=f"{source.card.name}@nano",
        revision="",
        provenance={
            "made_by": f"rusbeir {__version__}, nano",
            "source": describe_source(source.card, source.fingerprint),
            "recipe": recipe,
            "agreement": measured,
        },
    )
    small = replace(small, card=card)
    write_beir(small, to)
    return {
        "version": __version__,
        "dataset": card.name,
        "language": card.language,
        "fingerprint": small.fingerprint,
        "documents": {"full": len(source.corpus), "nano": len(small.corpus)},
        "queries": {"full": len(source.queries), "nano": len(small.queries)},
        "judgements": {"full": sum(map(len, source.qrels.values())), "nano": sum(map(len, small.qrels.values()))},
        **recipe,
        "agreement": measured,
        "to": str(to),
    }

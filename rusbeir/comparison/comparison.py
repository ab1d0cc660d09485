"""Systems compared on the same queries: means with intervals, tests of every difference, and what follows from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from rusbeir.comparison.filters import filter_results
from rusbeir.comparison.matrix import LanguageMatrix, build_matrices
from rusbeir.comparison.paper_values import published_value
from rusbeir.comparison.results import Result, pick, read_results
from rusbeir.errors import BadInput, require
from rusbeir.evaluation import (
    ALPHA,
    PERMUTATIONS,
    SAMPLES,
    Floats,
    PairTests,
    bootstrap_intervals,
    check_measures,
    cluster_scores,
    hierarchical_intervals,
    minimum_detectable_effect,
    rank_intervals,
    sign_flip_tests,
)

if TYPE_CHECKING:
    from pandas import DataFrame

Interval = tuple[float, float]
Verdict: TypeAlias = Literal["better", "worse", "inconclusive"]
_MARKS: Mapping[Verdict, str] = {"better": "▲", "worse": "▼", "inconclusive": "="}


@dataclass(frozen=True, kw_only=True)
class SystemScore:
    """One system on one dataset, or on average over the datasets of a language."""

    system: str
    mean: float
    interval: Interval
    """The 95 % interval over other queries of this kind; that of an average is over other datasets, too."""
    rank: int
    rank_interval: Interval | None
    """The ranks that the tests leave open; None for an average over datasets."""
    best_group: bool | None
    """Whether no other system was shown to be better; None with a baseline, where not all pairs are tested."""
    n_zero_hit: int
    n_tied: int
    seconds: Mapping[str, float]
    bytes: Mapping[str, int]
    cost: float | None = None
    """The money that was paid to measure it; None where nothing was paid, or no price was named."""
    published: float | None = None
    """What a paper printed for this system on this dataset, as a fraction; None where nothing is known."""
    versus_baseline: Verdict | None = None
    """What the test of its difference to the baseline shows; None without a baseline, and of the baseline itself."""

    @property
    def mark(self) -> str:
        """`*` in the best group; with a baseline ▲, ▼ or =."""
        return _MARKS[self.versus_baseline] if self.versus_baseline else "*" if self.best_group else ""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """The difference between two systems on one dataset: the first one's scores minus the second one's."""

    first: str
    second: str
    difference: float
    interval: Interval
    effect: float
    """The difference in standard deviations of the per-query differences; infinite where all are equal, and not 0."""
    p: float
    p_maxt: float
    p_holm: float
    wins: int
    ties: int
    losses: int
    minimum_detectable: float
    """The true difference that 80 % of such experiments, with this many independent queries, would find.

    Infinite for so few that no test can reject, NaN where the differences have no spread.
    """


@dataclass(frozen=True, kw_only=True)
class DatasetComparison:
    """All systems on one dataset."""

    dataset: str
    """Its name, with the language of the queries where it is another: 'xquad/ru asked in en'."""
    language: str
    query_language: str
    n_queries: int
    n_clusters: int
    """The independent parts of the sample, which tests and intervals draw: queries, or clusters of them."""
    depth: int
    systems: tuple[SystemScore, ...]
    """The best mean first."""
    pairs: tuple[Pair, ...]
    clusters_known: bool = True
    """Whether a row says which queries are independent; those of older versions do not, and all are taken to be."""

    @property
    def sample(self) -> str:
        """The size of the sample: '1,190 queries, 240 independent'."""
        words = f"{self.n_queries:,} queries"
        return words if self.n_clusters == self.n_queries else f"{words}, {self.n_clusters:,} independent"


@dataclass(frozen=True, kw_only=True)
class LanguageComparison:
    """The systems that were measured on every dataset of one language, asked in one: unweighted means over them."""

    language: str
    query_language: str
    datasets: tuple[str, ...]
    systems: tuple[SystemScore, ...]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What result rows say of the systems in them."""

    measure: str
    baseline: str | None
    conclusion: tuple[str, ...]
    """One plain sentence for each dataset: what can be concluded, and what cannot."""
    datasets: tuple[DatasetComparison, ...]
    languages: tuple[LanguageComparison, ...]
    matrices: tuple[LanguageMatrix, ...]
    """A matrix for each system that was asked in another language than that of the documents."""
    permutations: int
    samples: int

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain lists and dicts, as `rusbeir compare --json` prints it."""
        return asdict(self)

    def to_pandas(self) -> DataFrame:
        """A row for each dataset and system: mean, interval, rank, rank interval, whether in the best group."""
        pandas = require("pandas", "to_pandas", "report")
        rows = [
            {
                "dataset": one.dataset,
                "language": one.language,
                "query_language": one.query_language,
                "n_queries": one.n_queries,
                **asdict(score),
            }
            for one in self.datasets
            for score in one.systems
        ]
        frame: DataFrame = pandas.DataFrame(rows)
        return frame


def compare(
    results: str | Path | Iterable[str | Path],
    *,
    measure: str = "nDCG@10",
    baseline: str | None = None,
    where: str | None = None,
    data: Sequence[str | Path] = (),
    against_paper: str | None = None,
    permutations: int = PERMUTATIONS,
    samples: int = SAMPLES,
    seed: int = 0,
) -> Comparison:
    """Compare all systems of these result folders, dataset by dataset and on average per language.

    With a baseline, only the differences to it are tested: a smaller family, and so more power. where keeps only the
    queries for which a filter holds (rusbeir.comparison.filters), and data names folders of datasets that it needs.
    against_paper puts a paper's values next to ours. Raises BadInput for rows that cannot be compared (see
    read_results) and for fewer than two systems on every dataset, UnknownName for a baseline that was not measured.

    >>> compare("results", baseline="bm25").conclusion  # doctest: +SKIP
    """
    (measure,) = check_measures([measure])
    folders = [results] if isinstance(results, str | Path) else list(results)
    found = read_results(folders, measure)
    if where is not None:
        found = filter_results(found, where, [Path(folder) for folder in data])
    return compare_results(
        found,
        measure=measure,
        baseline=baseline,
        against_paper=against_paper,
        permutations=permutations,
        samples=samples,
        seed=seed,
    )


def compare_results(
    found: Sequence[Result],
    *,
    measure: str,
    baseline: str | None = None,
    against_paper: str | None = None,
    permutations: int = PERMUTATIONS,
    samples: int = SAMPLES,
    seed: int = 0,
    lone: bool = False,
) -> Comparison:
    """Compare results that were read already; with lone, they may be those of one system, or none."""
    if baseline is not None:
        pick(baseline, found)
    groups: dict[str, list[Result]] = {}
    for one in found:
        groups.setdefault(one.dataset, []).append(one)
    datasets = tuple(
        _compare_dataset(group, measure, baseline, against_paper, permutations, samples, seed)
        for group in groups.values()
    )
    matrices = build_matrices(found, samples, seed)
    if not lone and not matrices and all(len(one.systems) < 2 for one in datasets):
        raise BadInput(f"{found[0].folder}: only one system was measured on each dataset; a comparison needs two.")
    return Comparison(
        measure=measure,
        baseline=baseline,
        conclusion=tuple(_conclude(one, measure, baseline) for one in datasets),
        datasets=datasets,
        languages=_average(list(groups.values()), samples, seed, baseline),
        matrices=matrices,
        permutations=permutations,
        samples=samples,
    )


def _compare_dataset(
    group: Sequence[Result],
    measure: str,
    baseline: str | None,
    paper: str | None,
    permutations: int,
    samples: int,
    seed: int,
) -> DatasetComparison:
    group = sorted(group, key=lambda one: -sum(one.scores.values()))
    per_query = _matrix(group)
    scores = _cluster(per_query, group)
    places = range(len(group))
    pairs = [(i, j) for i in places for j in places if i < j and (baseline in (None, group[i].label, group[j].label))]
    if baseline is not None:
        # The baseline is subtracted from the others, whichever is better.
        pairs = [(j, i) if group[i].label == baseline else (i, j) for i, j in pairs]
    # A mean of scores is within their range, which an interval of equal arms need not be.
    bounds = per_query.min(axis=1)[:, None], per_query.max(axis=1)[:, None]
    intervals = np.clip(bootstrap_intervals(scores, samples=samples, seed=seed), *bounds)
    differences = np.array([scores[i] - scores[j] for i, j in pairs]).reshape(len(pairs), scores.shape[1])
    tests = sign_flip_tests(differences, permutations=permutations, seed=seed)
    spans = bootstrap_intervals(differences, samples=samples, seed=seed)
    detectable = minimum_detectable_effect(differences)
    ranks = rank_intervals(len(group), pairs, tests) if baseline is None else None
    verdicts = {} if baseline is None else {i: _judge(tests, n) for n, (i, _) in enumerate(pairs)}
    return DatasetComparison(
        dataset=group[0].dataset,
        language=group[0].language,
        query_language=group[0].query_language,
        n_queries=per_query.shape[1],
        n_clusters=scores.shape[1],
        depth=group[0].depth,
        systems=tuple(
            SystemScore(
                system=one.label,
                mean=float(per_query[place].mean()),
                interval=_span(intervals[place]),
                rank=place + 1,
                rank_interval=ranks[place] if ranks else None,
                best_group=ranks[place][0] == 1 if ranks else None,
                versus_baseline=verdicts.get(place),
                n_zero_hit=int(one.row["n_zero_hit"]),
                n_tied=int(one.row["n_tied"]),
                seconds=dict(one.row["seconds"]),
                bytes=dict(one.row["bytes"]),
                cost=one.row.get("cost"),
                published=published_value(paper, measure, one.dataset, str(one.row["system"])) if paper else None,
            )
            for place, one in enumerate(group)
        ),
        pairs=tuple(
            Pair(
                first=group[i].label,
                second=group[j].label,
                difference=float(tests.mean[n]),
                interval=_span(spans[n]),
                effect=float(tests.effect[n]),
                p=float(tests.p[n]),
                p_maxt=float(tests.p_maxt[n]),
                p_holm=float(tests.p_holm[n]),
                wins=int((per_query[i] > per_query[j]).sum()),
                ties=int((per_query[i] == per_query[j]).sum()),
                losses=int((per_query[i] < per_query[j]).sum()),
                minimum_detectable=float(detectable[n]),
            )
            for n, (i, j) in enumerate(pairs)
        ),
        clusters_known=any("n_clusters" in one.row for one in group),
    )


def _judge(tests: PairTests, pair: int) -> Verdict:
    if tests.p_maxt[pair] > ALPHA or tests.mean[pair] == 0:
        return "inconclusive"
    return "better" if tests.mean[pair] > 0 else "worse"


def _matrix(group: Sequence[Result]) -> Floats:
    """float64 [systems, queries], queries in one order."""
    queries = list(group[0].scores)
    return np.array([[one.scores[query_id] for query_id in queries] for one in group])


def _cluster(scores: Floats, group: Sequence[Result]) -> Floats:
    """Scores on clusters of queries, in place of queries, where these are not independent."""
    # Rows of older versions do not have them; the judgements of all are the same.
    clusters = next((result.clusters for result in group if result.clusters), None)
    return scores if clusters is None else cluster_scores(scores, [clusters[query_id] for query_id in group[0].scores])


def _average(
    groups: Sequence[Sequence[Result]], samples: int, seed: int, baseline: str | None
) -> tuple[LanguageComparison, ...]:
    by_language: dict[tuple[str, str], list[Sequence[Result]]] = {}
    for group in groups:
        by_language.setdefault((group[0].language, group[0].query_language), []).append(group)
    found = []
    for (language, asked_in), members in sorted(by_language.items()):
        everywhere = [
            one.label for one in members[0] if all(one.label in {two.label for two in group} for group in members)
        ]
        if not everywhere:
            continue
        picked = [[next(one for one in group if one.label == label) for label in everywhere] for group in members]
        matrices = [_cluster(_matrix(group), group) for group in picked]
        means = np.mean([matrix.mean(axis=1) for matrix in matrices], axis=0)
        intervals = hierarchical_intervals(matrices, samples=samples, seed=seed)
        order = sorted(range(len(everywhere)), key=lambda place: -means[place])
        best = order[0] if baseline is None else everywhere.index(baseline) if baseline in everywhere else None
        # A system stays in the best group, and the baseline is not beaten, unless the interval of the distance to it
        # excludes zero.
        distances = [(matrix[[0 if best is None else best]] - matrix) for matrix in matrices]
        spans = hierarchical_intervals(distances, samples=samples, seed=seed)
        found.append(
            LanguageComparison(
                language=language,
                query_language=asked_in,
                datasets=tuple(group[0].dataset for group in members),
                systems=tuple(
                    SystemScore(
                        system=everywhere[place],
                        mean=float(means[place]),
                        interval=_span(intervals[place]),
                        rank=rank,
                        rank_interval=None,
                        best_group=bool(place == best or spans[place, 0] <= 0) if baseline is None else None,
                        versus_baseline=None
                        if baseline is None or best is None or place == best
                        else "worse"
                        if spans[place, 0] > 0
                        else "better"
                        if spans[place, 1] < 0
                        else "inconclusive",
                        n_zero_hit=sum(int(group[place].row["n_zero_hit"]) for group in picked),
                        n_tied=sum(int(group[place].row["n_tied"]) for group in picked),
                        seconds=_sum([group[place].row["seconds"] for group in picked]),
                        bytes=_largest([group[place].row["bytes"] for group in picked]),
                        cost=sum(group[place].row.get("cost", 0) for group in picked) or None,
                    )
                    for rank, place in enumerate(order, 1)
                ),
            )
        )
    return tuple(found)


def _conclude(one: DatasetComparison, measure: str, baseline: str | None) -> str:
    """What can be said of this dataset, and what cannot, in one sentence."""
    where = f"{one.dataset} ({one.sample}, {measure})"
    if len(one.systems) < 2:
        return f"{where}: only {one.systems[0].system} was measured, so there is nothing to compare."
    power = _describe_power(one)
    if baseline is not None:
        parts = []
        for words, verdict in (
            ("better than", "better"),
            ("worse than", "worse"),
            ("not told apart from", "inconclusive"),
        ):
            if names := [score.system for score in one.systems if score.versus_baseline == verdict]:
                parts.append(f"{words} {baseline}: {', '.join(names)}")
        return f"{where}: {'; '.join(parts)}{power}."
    best, group = one.systems[0], [s.system for s in one.systems if s.best_group]
    if len(group) == len(one.systems):
        return f"{where}: no system was shown to be the best{power}."
    if len(group) == 1:
        others = one.systems[1].system if len(one.systems) == 2 else f"each of the {len(one.systems) - 1} others"
        return f"{where}: {best.system} is better than {others}{power}."
    return f"{where}: the best is one of {', '.join(group)}, which cannot be told apart{power}."


def _describe_power(one: DatasetComparison) -> str:
    """What true difference such an experiment finds, behind a semicolon; empty where the scores do not say it."""
    detectable = [pair.minimum_detectable for pair in one.pairs]
    if np.isinf(detectable).any():
        independent = "" if one.n_clusters == one.n_queries else "independent "
        return (
            f"; {one.n_clusters} {independent}{'queries' if one.n_clusters > 1 else 'query'} cannot show any difference"
        )
    if not np.isfinite(detectable).any():
        return ""
    points = f"{100 * float(np.nanmedian(detectable)):.1f} points"
    return f"; a difference of {points} would be found in 4 of 5 such experiments"


def _span(ends: Floats) -> Interval:
    return float(ends[0]), float(ends[1])


def _sum(tables: Sequence[Mapping[str, float]]) -> dict[str, float]:
    common = [key for key in tables[0] if all(key in table for table in tables)]
    return {key: sum(table[key] for table in tables) for key in common}


def _largest(tables: Sequence[Mapping[str, int]]) -> dict[str, int]:
    # A row may lack peak_rss.
    common = [key for key in tables[0] if all(key in table for table in tables)]
    return {key: max(table[key] for table in tables) for key in common}

"""Compare systems on the same queries: dataset by dataset, and on average over the datasets of a language."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from rusbeir.comparison.filters import filter_results
from rusbeir.comparison.judged_runs import QrelsLike, RunLike, open_judged, score_runs
from rusbeir.comparison.matrix import Interval, build_matrices
from rusbeir.comparison.outcome import (
    Comparison,
    DatasetComparison,
    LanguageComparison,
    Pair,
    SystemScore,
    Verdict,
    conclude,
)
from rusbeir.comparison.paper_values import published_value
from rusbeir.comparison.pools import split_results
from rusbeir.comparison.results import Result, check_results, pick, read_results
from rusbeir.errors import BadInput, option
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


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The questions of a comparison, and how much it draws; `compare` says what the options mean."""

    measure: str = "nDCG@10"
    baseline: str | None = None
    against_paper: str | None = None
    permutations: int = PERMUTATIONS
    samples: int = SAMPLES
    seed: int = 0


def compare(
    results: str | Path | Iterable[str | Path] | Mapping[str, RunLike],
    *,
    qrels: QrelsLike | None = None,
    corpus: str | Path | None = None,
    language: str | None = None,
    measure: str = "nDCG@10",
    baseline: str | None = None,
    where: str | None = None,
    by_language: str | None = None,
    data: Sequence[str | Path] = (),
    against_paper: str | None = None,
    permutations: int = PERMUTATIONS,
    samples: int = SAMPLES,
    seed: int = 0,
) -> Comparison:
    """Compare all systems of result folders, or runs of any program, dataset by dataset and on average per language.

    Args:
        results: One or several folders that `bench` wrote into. With qrels also runs: files in TREC's format, JSON or
            CSV, or a mapping of the names of systems to such files or to runs (query_id -> {doc_id: score}).
        qrels: The judgements of the runs: a file, a mapping, or a dataset, its name or its folder.
        corpus: The dataset whose texts the judgements in a file are about, for a filter on queries.
        language: The language of that dataset, where its card does not name it.
        measure: The measure to compare by, as ir-measures names it.
        baseline: Test only the differences to this system: a smaller family, and so more power.
        where: Keep only the queries for which a filter holds, such as "query.words<=4 and language==ru".
        by_language: Split the results on a pool of several languages: "queries" by the language of the queries, with
            all documents; "pairs" by that of the documents, too, each alone.
        data: Folders of datasets without a registered name, which a filter on queries and a split by language need.
        against_paper: A paper whose values are put next to ours, such as "rusbeir".
        permutations: How many sign flips a test draws.
        samples: How many resamples an interval draws.
        seed: Seeds all draws; the same rows and seed give the same numbers.

    Returns:
        The means with their intervals, the tests and a sentence for each dataset.

    Raises:
        BadInput: Rows cannot be compared, or no dataset has two systems.
        UnknownName: The baseline was not measured.

    Examples:
        >>> compare("results", baseline="bm25").conclusion  # doctest: +SKIP
        >>> compare({"ours": "ours.run", "theirs": run}, qrels="qrels.tsv").conclusion  # doctest: +SKIP
    """
    (measure,) = check_measures([measure])
    rows = gather_results(results, measure, qrels=qrels, corpus=corpus, language=language)
    if by_language is not None:
        rows = split_results(rows, by_language, measure, [Path(folder) for folder in data])
    if where is not None:
        rows = filter_results(rows, where, [Path(folder) for folder in data])
    plan = Plan(
        measure=measure, baseline=baseline, against_paper=against_paper, permutations=permutations, samples=samples,
        seed=seed,
    )  # fmt: skip
    return compare_results(rows, plan, allow_single=by_language is not None)


def gather_results(
    results: str | Path | Iterable[str | Path] | Mapping[str, RunLike],
    measure: str,
    *,
    qrels: QrelsLike | None = None,
    corpus: str | Path | None = None,
    language: str | None = None,
) -> list[Result]:
    """Read result folders and, with qrels, score the runs among them."""
    if isinstance(results, str | Path):
        results = [results]
    if qrels is None:
        if isinstance(results, Mapping):
            raise BadInput(f"Runs need the judgements that score them: {option('qrels')}.")
        return read_results(results, measure)
    judged = open_judged(qrels, corpus=corpus, language=language)
    if isinstance(results, Mapping):
        return check_results([scored.to_result(measure) for scored in score_runs(results, judged, [measure])])
    paths = [Path(path) for path in results]
    scored = score_runs([path for path in paths if not path.is_dir()], judged, [measure])
    rows = read_results([path for path in paths if path.is_dir()], measure)
    return check_results([*rows, *(run.to_result(measure) for run in scored)])


def compare_results(results: Sequence[Result], plan: Plan, *, allow_single: bool = False) -> Comparison:
    """Compare results that were read already; with allow_single, they may be those of one system, or none."""
    if plan.baseline is not None:
        plan = replace(plan, baseline=pick(plan.baseline, results))
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(result.dataset, []).append(result)
    datasets = tuple(_compare_dataset(group, plan) for group in groups.values())
    matrices = build_matrices(results, plan.samples, plan.seed)
    if not allow_single and not matrices and all(len(compared.systems) < 2 for compared in datasets):
        raise BadInput(f"{results[0].folder}: only one system was measured on each dataset; a comparison needs two.")
    return Comparison(
        measure=plan.measure,
        baseline=plan.baseline,
        conclusion=tuple(conclude(compared, plan.measure, plan.baseline) for compared in datasets),
        datasets=datasets,
        languages=_average_languages(list(groups.values()), plan),
        matrices=matrices,
        permutations=plan.permutations,
        samples=plan.samples,
    )


def _compare_dataset(group: Sequence[Result], plan: Plan) -> DatasetComparison:
    group = sorted(group, key=lambda result: -sum(result.scores.values()))
    per_query = _stack_scores(group)
    scores = _cluster(per_query, group)
    pairs = _list_pairs([result.label for result in group], plan.baseline)
    differences = np.array([scores[i] - scores[j] for i, j in pairs]).reshape(len(pairs), scores.shape[1])
    tests = sign_flip_tests(differences, permutations=plan.permutations, seed=plan.seed)
    return DatasetComparison(
        dataset=group[0].dataset,
        language=group[0].language,
        query_language=group[0].query_language,
        n_queries=per_query.shape[1],
        n_clusters=scores.shape[1],
        depth=group[0].depth,
        systems=_score_systems(group, per_query, scores, _Tested(pairs, tests), plan),
        pairs=_describe_pairs([result.label for result in group], per_query, differences, _Tested(pairs, tests), plan),
        clusters_known=any("n_clusters" in result.row for result in group),
    )


@dataclass(frozen=True)
class _Tested:
    """Pairs of systems, by their indexes in a group, and the tests of their differences."""

    pairs: list[tuple[int, int]]
    tests: PairTests

    def judge(self, number: int) -> Verdict:
        """Judge what the test of a pair shows about its first system."""
        if self.tests.p_maxt[number] > ALPHA or self.tests.mean[number] == 0:
            return "inconclusive"
        return "better" if self.tests.mean[number] > 0 else "worse"


def _list_pairs(labels: Sequence[str], baseline: str | None) -> list[tuple[int, int]]:
    """List all pairs of systems, or each system with the baseline, which is subtracted whichever is better."""
    n_systems = len(labels)
    if baseline is None:
        return [(i, j) for i in range(n_systems) for j in range(i + 1, n_systems)]
    return [(i, j) for j in range(n_systems) if labels[j] == baseline for i in range(n_systems) if i != j]


def _score_systems(
    group: Sequence[Result], per_query: Floats, scores: Floats, tested: _Tested, plan: Plan
) -> tuple[SystemScore, ...]:
    # A mean of scores is within their range, which an interval of equal arms need not be.
    bounds = per_query.min(axis=1)[:, None], per_query.max(axis=1)[:, None]
    intervals = np.clip(bootstrap_intervals(scores, samples=plan.samples, seed=plan.seed), *bounds)
    ranks = rank_intervals(len(group), tested.pairs, tested.tests) if plan.baseline is None else None
    verdicts = {} if ranks else {first: tested.judge(number) for number, (first, _) in enumerate(tested.pairs)}
    paper, measure = plan.against_paper, plan.measure
    return tuple(
        SystemScore(
            system=result.label,
            spec=str(result.row["system"]),
            mean=float(per_query[index].mean()),
            interval=_to_interval(intervals[index]),
            rank=index + 1,
            rank_interval=ranks[index] if ranks else None,
            best_group=ranks[index][0] == 1 if ranks else None,
            versus_baseline=verdicts.get(index),
            n_zero_hit=int(result.row["n_zero_hit"]),
            n_tied=int(result.row["n_tied"]),
            seconds=dict(result.row["seconds"]),
            bytes=dict(result.row["bytes"]),
            cost=result.row.get("cost"),
            published=published_value(paper, measure, result.dataset, str(result.row["system"])) if paper else None,
        )
        for index, result in enumerate(group)
    )


def _describe_pairs(
    labels: Sequence[str], per_query: Floats, differences: Floats, tested: _Tested, plan: Plan
) -> tuple[Pair, ...]:
    tests = tested.tests
    pair_intervals = bootstrap_intervals(differences, samples=plan.samples, seed=plan.seed)
    detectable = minimum_detectable_effect(differences)
    return tuple(
        Pair(
            first=labels[i],
            second=labels[j],
            difference=float(tests.mean[number]),
            interval=_to_interval(pair_intervals[number]),
            effect=float(tests.effect[number]),
            p=float(tests.p[number]),
            p_maxt=float(tests.p_maxt[number]),
            p_holm=float(tests.p_holm[number]),
            wins=int((per_query[i] > per_query[j]).sum()),
            ties=int((per_query[i] == per_query[j]).sum()),
            losses=int((per_query[i] < per_query[j]).sum()),
            minimum_detectable=float(detectable[number]),
        )
        for number, (i, j) in enumerate(tested.pairs)
    )


def _stack_scores(group: Sequence[Result]) -> Floats:
    """The scores of results on the same queries in one order, float64 [systems, queries]."""
    queries = list(group[0].scores)
    return np.array([[result.scores[query_id] for query_id in queries] for result in group])


def _cluster(scores: Floats, group: Sequence[Result]) -> Floats:
    """Scores on clusters of queries, in place of queries, where these are not independent."""
    # Rows of older versions do not have them; the judgements of all are the same.
    clusters = next((result.clusters for result in group if result.clusters), None)
    return scores if clusters is None else cluster_scores(scores, [clusters[query_id] for query_id in group[0].scores])


def _average_languages(groups: Sequence[Sequence[Result]], plan: Plan) -> tuple[LanguageComparison, ...]:
    """Average the systems that were measured on all datasets of a language, asked in one language."""
    by_language: dict[tuple[str, str], list[Mapping[str, Result]]] = {}
    for group in groups:
        key = group[0].language, group[0].query_language
        by_language.setdefault(key, []).append({result.label: result for result in group})
    averages = []
    for (language, asked_in), datasets in sorted(by_language.items()):
        common = [label for label in datasets[0] if all(label in results for results in datasets)]
        if common:
            groups_of_common = [[results[label] for label in common] for results in datasets]
            averages.append(
                LanguageComparison(
                    language=language,
                    query_language=asked_in,
                    datasets=tuple(group[0].dataset for group in groups_of_common),
                    systems=_average_systems(common, groups_of_common, plan),
                )
            )
    return tuple(averages)


def _average_systems(labels: Sequence[str], groups: Sequence[Sequence[Result]], plan: Plan) -> tuple[SystemScore, ...]:
    """The unweighted mean of each system over datasets; the groups have the systems in the order of the labels."""
    scores = [_cluster(_stack_scores(group), group) for group in groups]
    means = np.mean([values.mean(axis=1) for values in scores], axis=0)
    intervals = hierarchical_intervals(scores, samples=plan.samples, seed=plan.seed)
    order = sorted(range(len(labels)), key=lambda index: -means[index])
    # The system that the others are compared with: the best, or the baseline, which may not be among them.
    reference: int | None = order[0]
    if plan.baseline is not None:
        reference = labels.index(plan.baseline) if plan.baseline in labels else None
    # The best group ends, and the baseline is beaten, where the interval of the distance excludes zero.
    distances = [values[[reference or 0]] - values for values in scores]
    distance_intervals = hierarchical_intervals(distances, samples=plan.samples, seed=plan.seed)

    def judge(index: int) -> Verdict | None:
        low, high = distance_intervals[index]
        if plan.baseline is None or reference in (None, index):
            return None
        return "worse" if low > 0 else "better" if high < 0 else "inconclusive"

    averages = []
    for rank, index in enumerate(order, 1):
        rows = [group[index].row for group in groups]
        leads = bool(index == reference or distance_intervals[index, 0] <= 0)
        averages.append(
            SystemScore(
                system=labels[index],
                spec=str(rows[0]["system"]),
                mean=float(means[index]),
                interval=_to_interval(intervals[index]),
                rank=rank,
                rank_interval=None,
                best_group=leads if plan.baseline is None else None,
                versus_baseline=judge(index),
                n_zero_hit=sum(int(row["n_zero_hit"]) for row in rows),
                n_tied=sum(int(row["n_tied"]) for row in rows),
                seconds=_sum([row["seconds"] for row in rows]),
                bytes=_find_largest([row["bytes"] for row in rows]),
                cost=sum(row.get("cost", 0) for row in rows) or None,
            )
        )
    return tuple(averages)


def _to_interval(ends: Floats) -> Interval:
    return float(ends[0]), float(ends[1])


def _sum(tables: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The sums of the entries that all tables have."""
    return {key: sum(table[key] for table in tables) for key in tables[0] if all(key in table for table in tables)}


def _find_largest(tables: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """The largest of each entry that all tables have; a row may lack peak_rss."""
    return {key: max(table[key] for table in tables) for key in tables[0] if all(key in table for table in tables)}

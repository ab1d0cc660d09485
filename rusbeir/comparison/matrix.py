"""Languages of queries against languages of documents: a system's means in every pair, and their averages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rusbeir.comparison.results import Result
from rusbeir.datasets import name_family
from rusbeir.evaluation import Floats, bootstrap_intervals, cluster_scores
from rusbeir.types import MULTILINGUAL

Interval = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class MatrixMean:
    """A system's mean on one pair of languages, or over several pairs."""

    mean: float
    interval: Interval
    """The 95 % interval over other queries of this kind."""
    n_pairs: int = 1
    dataset: str = ""
    """The name of the pair; "" for an average."""


@dataclass(frozen=True, kw_only=True)
class LanguageMatrix:
    """One system on the parallel datasets of a family, such as xquad/*, asked in several languages."""

    family: str
    system: str
    n_queries: int
    """The queries of every pair; 0 where the pairs differ."""
    query_languages: tuple[str, ...]
    languages: tuple[str, ...]
    """The languages of the documents."""
    cells: tuple[tuple[MatrixMean | None, ...], ...]
    """A row for each language of queries, a column for each of documents; None for what was not measured."""
    by_queries: tuple[MatrixMean, ...]
    """The mean of each row; this and the other averages are empty or None where `note` says why."""
    by_documents: tuple[MatrixMean, ...]
    same: MatrixMean | None
    """The mean over the pairs in which queries and documents are in one language; None where there is none."""
    across: MatrixMean | None
    """The mean over the other pairs."""
    loss: MatrixMean | None
    """`same` minus `across`."""
    note: str
    """Why there are no averages; "" where there are."""


def build_matrices(results: Sequence[Result], samples: int, seed: int) -> tuple[LanguageMatrix, ...]:
    """Build a matrix for each system of each family that was asked in another language than that of its documents.

    There is none for documents in several languages at once. An average is computed only if every pair was measured on
    the same queries.
    """
    groups: dict[tuple[str, str, str], dict[tuple[str, str], Result]] = {}
    for result in results:
        if result.language == MULTILINGUAL:
            continue
        family = name_family(str(result.row["dataset"]), result.language)
        key = (family, str(result.row["split"]), result.label)
        groups.setdefault(key, {})[result.query_language, result.language] = result
    return tuple(
        _build(family, system, by_pair, samples, seed)
        for (family, _, system), by_pair in groups.items()
        if any(asked_in != language for asked_in, language in by_pair)
    )


def _build(
    family: str, system: str, results: Mapping[tuple[str, str], Result], samples: int, seed: int
) -> LanguageMatrix:
    documents = tuple(dict.fromkeys(language for _, language in results))
    # The languages of the documents come first, in their order, so that equal languages meet on the diagonal.
    both = [language for language in documents if (language, language) in results]
    queries = tuple(dict.fromkeys([*both, *(asked_in for asked_in, _ in results)]))
    pairs = [(asked_in, language) for asked_in in queries for language in documents]
    sets = {frozenset(result.scores) for result in results.values()}
    means = {
        pair: _mean(
            _cluster(np.array([list(result.scores.values())]), result, result), samples, seed, dataset=result.dataset
        )
        for pair, result in results.items()
    }
    note = ""
    if lacking := [pair for pair in pairs if pair not in results]:
        note = f"{len(lacking)} of {len(pairs)} pairs are missing, such as {' asked in '.join(lacking[0][::-1])}"
    elif len(sets) > 1:
        note = f"the pairs were measured on different queries, {min(map(len, sets)):,} to {max(map(len, sets)):,}"

    def average(chosen: Sequence[tuple[str, str]], less: Sequence[tuple[str, str]] = ()) -> MatrixMean | None:
        if note or not chosen:
            return None
        scores = _stack(results, chosen) - (_stack(results, less) if less else 0)
        first = next(iter(results.values()))
        clustered = next((result for result in results.values() if result.clusters), first)
        return _mean(_cluster(scores[None], first, clustered), samples, seed, n_pairs=len(chosen))

    same = [pair for pair in pairs if pair[0] == pair[1]]
    across = [pair for pair in pairs if pair[0] != pair[1]]
    rows = [average([pair for pair in pairs if pair[0] == language]) for language in queries]
    columns = [average([pair for pair in pairs if pair[1] == language]) for language in documents]
    return LanguageMatrix(
        family=family,
        system=system,
        n_queries=len(next(iter(sets))) if len(sets) == 1 else 0,
        query_languages=queries,
        languages=documents,
        cells=tuple(tuple(means.get((asked_in, language)) for language in documents) for asked_in in queries),
        by_queries=tuple(mean for mean in rows if mean),
        by_documents=tuple(mean for mean in columns if mean),
        same=average(same),
        across=average(across),
        loss=average(same, across) if same else None,
        note=note,
    )


def _stack(results: Mapping[tuple[str, str], Result], pairs: Sequence[tuple[str, str]]) -> Floats:
    """The mean of each query over these pairs, float64 [queries], in one order of queries."""
    order = list(next(iter(results.values())).scores)
    scores = np.array([[results[pair].scores[query_id] for query_id in order] for pair in pairs])
    means: Floats = scores.mean(axis=0)
    return means


def _cluster(scores: Floats, result: Result, clustered: Result) -> Floats:
    """Scores on clusters of queries, in place of those on queries in the order of the result."""
    clusters = clustered.clusters
    return cluster_scores(scores, [clusters[query_id] for query_id in result.scores]) if clusters else scores


def _mean(scores: Floats, samples: int, seed: int, *, n_pairs: int = 1, dataset: str = "") -> MatrixMean:
    low, high = bootstrap_intervals(scores, samples=samples, seed=seed)[0]
    return MatrixMean(mean=float(scores.mean()), interval=(float(low), float(high)), n_pairs=n_pairs, dataset=dataset)


def matrix_table(matrix: LanguageMatrix) -> tuple[list[str], list[list[str]]]:
    """Header and cells of a matrix for a terminal; measures x100."""
    header = ["queries in", *matrix.languages, *(["mean"] if matrix.by_queries else [])]
    rows = [
        [asked_in, *("–" if cell is None else f"{100 * cell.mean:.2f}" for cell in cells)]
        for asked_in, cells in zip(matrix.query_languages, matrix.cells, strict=True)
    ]
    for row, average in zip(rows, matrix.by_queries, strict=False):
        row.append(f"{100 * average.mean:.2f}")
    if matrix.by_documents:
        rows.append(["mean", *(f"{100 * average.mean:.2f}" for average in matrix.by_documents), ""])
    return header, rows


def describe_averages(matrix: LanguageMatrix) -> str:
    """The averages of a matrix in a sentence, or why there are none.

    >>> describe_averages(matrix)  # doctest: +SKIP
    'In one language 95.95 (95.10 to 96.80, 4 pairs), across languages 90.00 (…, 12 pairs), 5.95 less (…).'
    """
    if matrix.note:
        return f"No averages: {matrix.note}."
    parts = [
        f"{words} {100 * mean.mean:.2f} ({100 * mean.interval[0]:.2f} to {100 * mean.interval[1]:.2f}, "
        f"{mean.n_pairs} {'pairs' if mean.n_pairs > 1 else 'pair'})"
        for words, mean in (("in one language", matrix.same), ("across languages", matrix.across))
        if mean
    ]
    if matrix.loss:
        low, high = matrix.loss.interval
        parts.append(f"a loss of {100 * matrix.loss.mean:.2f} ({100 * low:.2f} to {100 * high:.2f})")
    text = ", ".join(parts)
    return f"{text[0].upper()}{text[1:]}."

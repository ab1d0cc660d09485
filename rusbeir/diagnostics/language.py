"""Language preference: whether a system ranks passages of some languages above their equals in others.

In a pool of parallel datasets a query has equally relevant passages in several languages. Which of them comes first
says nothing about relevance, and all about languages: a system may prefer the language of the query, or one, such as
English, whatever is asked. LAReQA (Roy et al., 2020) calls the first language bias, and MLAIRE (Jang et al., 2026)
measures how often it decides. Added here are intervals over independent queries, what shuffled languages give, and each
language against third languages, so that a preference for the query's language is not taken for one against the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import numpy as np

from rusbeir import __version__
from rusbeir.datasets import load, read_run
from rusbeir.diagnostics.language_rates import OWN, LanguageRate, conclude, describe_rate
from rusbeir.diagnostics.language_statistics import Equals, Numbers, compare_equals, shuffle_languages
from rusbeir.errors import BadInput
from rusbeir.evaluation import (
    FEW_PERMUTATIONS,
    FEW_SAMPLES,
    Floats,
    Units,
    cluster_queries,
    evaluate,
    label_documents,
    label_queries,
    split_by_pair,
    split_by_query,
)
from rusbeir.experiment import MeasuringOptions, SystemLike, bench
from rusbeir.ledger import ResultRow
from rusbeir.types import Dataset, Run, silent

KIND = "language"
MEASURE = "nDCG@10"
CUTOFF = 10


@dataclass(frozen=True, kw_only=True)
class LanguagePair:
    """Queries in one language and documents in one."""

    query_language: str
    language: str
    n_queries: int
    """Queries with a relevant document in the language."""
    rate: float | None
    """How often the passages in that language are ranked above their equals in all others; None without equals."""
    ndcg: float
    """nDCG@10 of the ranking that is left without documents in other languages."""
    recall: float
    """The share of the relevant documents in the language that is among the hits in all languages."""
    n_cut: int
    """Queries whose hits end before ten documents in the language: of these nDCG may be too low."""


@dataclass(frozen=True, kw_only=True)
class QueryLanguage:
    """Queries in one language, against the documents of the whole pool."""

    query_language: str
    n_queries: int
    ndcg: float
    ap: float
    recall: float


@dataclass(frozen=True, kw_only=True)
class LanguagePreference:
    """One system on one pool."""

    dataset: str
    language: str
    system: str
    engine: str
    signature: str
    fingerprint: str
    seed: int
    samples: int
    permutations: int
    depth: int
    n_queries: int
    ndcg: float
    """The mean nDCG@10 over documents in all languages."""
    ap: float
    """The mean average precision over documents in all languages (LAReQA's mAP), of the hits down to the depth."""
    ap_at_most: float
    """What it is at most with a complete ranking: if every relevant document that is missing came next."""
    unseen: float
    """The share of comparisons of two passages neither of which is among the hits; each counts as 1/2."""
    own_language: LanguageRate | None
    """None where no query has equals in its own language and in another."""
    languages: tuple[LanguageRate, ...]
    """Each language of documents against third languages; empty in a pool of two."""
    queries: tuple[QueryLanguage, ...]
    pairs: tuple[LanguagePair, ...]
    sentences: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the document that `rusbeir diagnose` prints and `rusbeir report` reads."""
        return {"kind": KIND, "version": __version__, **asdict(self)}


def diagnose_language(
    dataset: str | Path | Dataset,
    system: SystemLike = "bm25",
    *,
    language: str | None = None,
    split: str | None = None,
    samples: int = FEW_SAMPLES,
    permutations: int = FEW_PERMUTATIONS,
    seed: int = 0,
    **options: Unpack[MeasuringOptions],
) -> LanguagePreference:
    """Return whether a system ranks passages of some languages above equally relevant ones of others.

    The dataset is a pool (`rusbeir datasets pool`). The options are those of `bench`, which keeps rows and runs in out.
    Raises BadInput where documents are in one language, or no query has equally relevant ones in two.

    >>> diagnose_language("pool", "bm25").own.rate  # doctest: +SKIP
    """
    progress = options.get("progress", silent)
    if not isinstance(dataset, Dataset):
        dataset = load(dataset, language=language, split=split, progress=progress)
    row = bench(dataset, system, measures=[MEASURE], **options)
    run = read_run(row["run"])
    pairs = _describe_pairs(dataset, run, row["depth"])
    answers = _compare(dataset, run, [pair.language for pair in pairs])
    own_chance, chances = shuffle_languages(
        answers.equals, answers.numbers, answers.units, permutations=permutations, seed=seed
    )
    own_rate = describe_rate(OWN, *_take_own(answers), answers.units, own_chance, samples, seed)
    described = [
        describe_rate(
            spoken, answers.equals.third_rates[:, number], answers.equals.first[:, number], answers.units, chance,
            samples, seed,
        )
        for number, (spoken, chance) in enumerate(zip(answers.languages, chances, strict=True))
    ]  # fmt: skip
    languages = tuple(rate for rate in described if rate)
    whole = evaluate(dataset.qrels, run, ["AP"])
    equals = answers.equals
    return LanguagePreference(
        **_identify(row),
        seed=seed,
        samples=samples,
        permutations=permutations,
        n_queries=row["n_queries"],
        ndcg=row["measures"][MEASURE],
        ap=whole.measures["AP"],
        ap_at_most=whole.measures["AP"] + _bound_missing(dataset, run, row["depth"]),
        unseen=equals.n_unseen / equals.n_comparisons,
        own_language=own_rate,
        languages=languages,
        queries=tuple(_describe_queries(dataset, run, row["depth"])),
        pairs=tuple(replace(pair, rate=_average_rate(answers, pair)) for pair in pairs),
        sentences=tuple(conclude(own_rate, languages, answers.asked_in)),
    )


class _Answers(NamedTuple):
    """The comparisons of all judged queries, in the order of the qrels."""

    equals: Equals
    languages: list[str]
    """The languages of documents, in the order of the columns."""
    asked_in: list[str]
    numbers: Numbers
    """The number of each query's language among those of documents; -1 where it is none of them."""
    units: Units


def _compare(dataset: Dataset, run: Run, spoken: Sequence[str]) -> _Answers:
    """Compare the equals of every judged query. Raises BadInput where there are none."""
    languages = sorted(set(spoken))
    numbers = {language: number for number, language in enumerate(languages)}
    judged = label_documents(dataset, {doc_id for grades in dataset.qrels.values() for doc_id in grades})
    asked_in = list(label_queries(dataset).values())
    numbers_of_queries = [numbers.get(language, -1) for language in asked_in]
    equals = compare_equals(
        [run.get(query_id, {}) for query_id in dataset.qrels],
        list(dataset.qrels.values()),
        {doc_id: numbers[language] for doc_id, language in judged.items() if language in numbers},
        numbers_of_queries,
        len(languages),
    )
    if not equals.n_comparisons:
        raise BadInput(
            f"{dataset.card.name}: no query has equally relevant documents in two languages, so none can be preferred. "
            "`rusbeir datasets pool --relevant any` judges the translations of a relevant document as relevant."
        )
    units = Units.from_clusters(list(dataset.qrels), cluster_queries(dataset))
    return _Answers(equals, languages, asked_in, np.array(numbers_of_queries), units)


def _average_rate(answers: _Answers, pair: LanguagePair) -> float | None:
    """Average the rates of the queries of a pair; None where they have no equals in its language."""
    chosen = np.array([language == pair.query_language for language in answers.asked_in])
    rates = answers.equals.rates[chosen, answers.languages.index(pair.language)]
    return None if np.isnan(rates).all() else float(np.nanmean(rates))


def _identify(row: ResultRow) -> dict[str, Any]:
    keys = ("dataset", "language", "system", "engine", "signature", "fingerprint", "depth")
    return {key: row[key] for key in keys}


def _take_own(answers: _Answers) -> tuple[Floats, Floats]:
    """Take of each query the rate of its own language, and whether that is first: float64 [queries]; NaN without it."""
    rows = np.arange(len(answers.numbers))
    lacking = answers.numbers < 0
    rates, first = (
        np.where(lacking, np.nan, values[rows, answers.numbers])
        for values in (answers.equals.rates, answers.equals.first)
    )
    return rates, first


def _describe_pairs(dataset: Dataset, run: Run, depth: int) -> list[LanguagePair]:
    """Describe each pair of languages, without rates."""
    pairs = []
    for part in split_by_pair(dataset, run):
        result = evaluate(part.qrels, part.run, [MEASURE, f"R@{depth}"])
        cut = sum(len(hits) < CUTOFF and len(run.get(query_id, {})) >= depth for query_id, hits in part.run.items())
        pairs.append(
            LanguagePair(
                query_language=part.query_language, language=part.language, n_queries=result.n_queries, rate=None,
                ndcg=result.measures[MEASURE], recall=result.measures[f"R@{depth}"], n_cut=cut,
            )
        )  # fmt: skip
    return pairs


def _describe_queries(dataset: Dataset, run: Run, depth: int) -> Iterator[QueryLanguage]:
    """Describe the queries of each language, against all documents."""
    for part in split_by_query(dataset, run):
        result = evaluate(part.qrels, part.run, [MEASURE, "AP", f"R@{depth}"])
        means = result.measures
        yield QueryLanguage(
            query_language=part.query_language, n_queries=result.n_queries, ndcg=means[MEASURE], ap=means["AP"],
            recall=means[f"R@{depth}"],
        )  # fmt: skip


def _bound_missing(dataset: Dataset, run: Run, depth: int) -> float:
    """Return what relevant documents below the depth add to the mean average precision at most.

    A run that ends before the depth is complete but for documents that its system cannot find; they count, too.
    """
    total = 0.0
    for query_id, grades in dataset.qrels.items():
        relevant = {doc_id for doc_id, grade in grades.items() if grade > 0}
        hits = run.get(query_id, {})
        n_hit = len(relevant & hits.keys())
        ranks = len(hits) + np.arange(1, len(relevant) - n_hit + 1)
        total += float(((n_hit + np.arange(1, len(ranks) + 1)) / ranks).sum()) / max(len(relevant), 1)
    return total / len(dataset.qrels)

"""Join datasets of several languages into one pool: documents, queries and judgements, under distinct ids.

The id of a document is its own, @, and its language; that of a query, its own, @, and the language that it is asked in.
Which of the documents that are judged in each language count for a query is chosen by the caller.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, SupportsIndex, TypeAlias, overload

from rusbeir import __version__
from rusbeir.datasets.detection import detect_queries
from rusbeir.datasets.folder import write_beir
from rusbeir.datasets.formats.beir import describe_source
from rusbeir.datasets.licences import UNKNOWN
from rusbeir.datasets.parallel import name_family
from rusbeir.errors import BadInput, option, unknown
from rusbeir.notebook import BrowsableCorpus, place_in
from rusbeir.types import (
    MULTILINGUAL,
    Card,
    Corpus,
    Dataset,
    Doc,
    MultilingualQueries,
    Qrels,
    Queries,
    count_languages,
    query_language,
)

logger = logging.getLogger(__name__)

RULES = ("any", "own", "other")
"""The languages in which a judged document counts for a query: all, that of the query, or all but that of the query."""

_SEPARATOR = "@"


class PooledCorpus(BrowsableCorpus):
    """The documents of corpora in several languages, each corpus in its order; they stay where they are."""

    def __init__(self, corpora: Mapping[str, Corpus]) -> None:
        """Take language -> the corpus in it."""
        self.corpora = corpora
        self.languages: Mapping[str, int] = {language: len(corpus) for language, corpus in corpora.items()}

    def __len__(self) -> int:
        return sum(self.languages.values())

    def __iter__(self) -> Iterator[Doc]:
        return (_pool(doc, language) for language, corpus in self.corpora.items() for doc in corpus)

    @overload
    def __getitem__(self, key: str | SupportsIndex) -> Doc: ...

    @overload
    def __getitem__(self, key: slice) -> list[Doc]: ...

    def __getitem__(self, key: str | SupportsIndex | slice) -> Doc | list[Doc]:
        if isinstance(key, str):
            doc_id, _, language = key.rpartition(_SEPARATOR)
            if language not in self.corpora:
                raise KeyError(key)
            return _pool(self.corpora[language][doc_id], language)
        if isinstance(key, slice):
            return list(self)[key]
        return next(islice(self, place_in(len(self), key), None))


def join_datasets(
    datasets: Sequence[Dataset],
    *,
    relevant: str = "any",
    queries: Queries | None = None,
    qrels: Qrels | None = None,
    name: str = "",
) -> Dataset:
    """Join datasets, each in one language, into a pool; their documents are not copied.

    Queries of the same id in several datasets are translations of one another, and what is judged for one is judged
    for all. Queries of the same id, language and text are one query. What is left out is counted in a warning.

    Args:
        datasets: The datasets, in the order of the pool.
        relevant: Which of the judged documents count for a query: those in "any" language, as in LAReQA, those in its
            "own", or those in an "other".
        queries: One set of queries for all the datasets, in place of theirs; they keep their ids, and the languages of
            those that name none are detected.
        qrels: The judgements of these queries, which name documents by the ids that they have in the datasets. A
            document that several datasets have is judged in each.
        name: What result rows call the pool; by default, the common name of the datasets.

    Returns:
        The pool, whose card has the language "mul" and the list of languages.

    Raises:
        BadInput: There are fewer than two datasets, two in the same language, or ids that collide.
        UnknownName: There is no such rule.

    Examples:
        >>> from rusbeir.datasets import load
        >>> pool = join_datasets([load("mini/ru"), load("mini/en")])
        >>> pool.card.languages, list(pool.qrels["q-animals-01@en"])[3:5]
        (('ru', 'en'), ['animals-09@ru', 'animals-01@en'])
    """
    if relevant not in RULES:
        raise unknown("rule", relevant, RULES, owner=option("relevant"))
    by_language = _index_by_language(datasets)
    card = _join_cards(datasets, relevant, name)
    if queries is None:
        entries, judged = _join_queries(datasets), _join_judgements(by_language)
        is_judged = any(dataset.qrels for dataset in datasets)
    else:
        queries, _ = detect_queries(queries, card, card.languages)
        entries = {key: PoolQuery(key, query_language(queries, key, ""), queries[key]) for key in queries}
        judged, is_judged = _find_judged(by_language, qrels or {}), bool(qrels)
    chosen = {key: _choose(judged.get(query.query_id, {}), query.language, relevant) for key, query in entries.items()}
    pooled = {key: grades for key, grades in chosen.items() if grades}
    if is_judged and not pooled:
        raise BadInput(f"{option('relevant', relevant)} leaves no query with a judged document; choose another rule.")
    left = {key: query for key, query in entries.items() if key in pooled or not is_judged}
    _warn(card, entries, left, judged)
    return Dataset(
        corpus=PooledCorpus({language: dataset.corpus for language, dataset in by_language.items()}),
        queries=MultilingualQueries(
            {key: query.text for key, query in left.items()},
            {key: query.language for key, query in left.items() if query.language},
        ),
        qrels=pooled,
        card=card,
    )


class PoolQuery(NamedTuple):
    """A query of a pool, as its dataset has it."""

    query_id: str
    language: str
    text: str


Judged: TypeAlias = dict[str, dict[str, Mapping[str, int]]]
"""query_id -> language -> {doc_id: grade}, under the ids that the datasets have."""


def _pool_id(record_id: str, language: str) -> str:
    return f"{record_id}{_SEPARATOR}{language}"


def _pool(doc: Doc, language: str) -> Doc:
    return doc._replace(doc_id=_pool_id(doc.doc_id, language), language=language)


def _index_by_language(datasets: Sequence[Dataset]) -> dict[str, Dataset]:
    """Return language -> dataset. Raises BadInput for one dataset alone, several in a language, and one in several."""
    if len(datasets) < 2:
        raise BadInput("A pool is made of two datasets or more, each in another language; name another.")
    by_language: dict[str, Dataset] = {}
    for dataset in datasets:
        card = dataset.card
        if card.language == MULTILINGUAL:
            raise BadInput(f"{card.name} is in several languages already: pool the datasets that it was made of.")
        if other := by_language.get(card.language):
            raise BadInput(
                f"{other.card.name} and {card.name} are both in {card.language!r}, so that their ids would collide: "
                "pool one dataset for each language."
            )
        dataset.refuse_spaced_ids()
        by_language[card.language] = dataset
    return by_language


def _join_queries(datasets: Sequence[Dataset]) -> dict[str, PoolQuery]:
    """Join the queries of datasets under their ids in the pool. Raises BadInput where ids collide."""
    joined: dict[str, PoolQuery] = {}
    for dataset in datasets:
        for query_id, text in dataset.queries.items():
            query = PoolQuery(query_id, query_language(dataset.queries, query_id, dataset.card.asked_in), text)
            if joined.setdefault(_pool_id(query_id, query.language), query) != query:
                raise BadInput(
                    f"{dataset.card.name}: another dataset asks the query {query_id!r} in {query.language!r} with "
                    "another text, so that their ids collide. Rename one of them."
                )
    return joined


def _join_judgements(by_language: Mapping[str, Dataset]) -> Judged:
    judged: Judged = {}
    for language, dataset in by_language.items():
        for query_id, grades in dataset.qrels.items():
            judged.setdefault(query_id, {})[language] = grades
        lacking = sum(not _has(dataset, doc_id) for grades in dataset.qrels.values() for doc_id in grades)
        if lacking:
            logger.warning(
                "%s: %s judgements are of documents that it lacks; the pool has them, too.",
                dataset.card.name, f"{lacking:,}",
            )  # fmt: skip
    return judged


def _find_judged(by_language: Mapping[str, Dataset], qrels: Qrels) -> Judged:
    """Find the languages of documents that one set of judgements names; those in none are counted and left out."""
    judged: dict[str, dict[str, dict[str, int]]] = {}
    lacking: list[str] = []
    for query_id, grades in qrels.items():
        for doc_id, grade in grades.items():
            languages = [language for language, dataset in by_language.items() if _has(dataset, doc_id)]
            for language in languages:
                judged.setdefault(query_id, {}).setdefault(language, {})[doc_id] = grade
            lacking += [] if languages else [doc_id]
    if lacking:
        logger.warning(
            "%s judgements are left out, of documents in no language of the pool, such as %r.",
            f"{len(lacking):,}", lacking[0],
        )  # fmt: skip
    return {query_id: dict(grades) for query_id, grades in judged.items()}


def _has(dataset: Dataset, doc_id: str) -> bool:
    try:
        dataset.corpus[doc_id]
    except KeyError:
        return False
    return True


def _choose(judged: Mapping[str, Mapping[str, int]], asked_in: str, relevant: str) -> dict[str, int]:
    """Choose the judgements of a query that count, by language -> {doc_id: grade} and the language it is asked in."""
    return {
        _pool_id(doc_id, language): grade
        for language, grades in judged.items()
        if relevant == "any" or (language == asked_in) == (relevant == "own")
        for doc_id, grade in grades.items()
    }


def _join_cards(datasets: Sequence[Dataset], relevant: str, name: str) -> Card:
    cards = [dataset.card for dataset in datasets]
    languages = tuple(card.language for card in cards)
    families = dict.fromkeys(name_family(card.name, card.language) for card in cards)
    together = "+".join(family.replace("*", "+".join(languages)) for family in families)
    licences, sources, splits = (
        dict.fromkeys(getattr(card, key) for card in cards) for key in ("licence", "source", "split")
    )
    return Card(
        name=name or together,
        language=MULTILINGUAL,
        languages=languages,
        split=next(iter(splits)) if len(splits) == 1 else "test",
        # One that is not known stays in sight, and keeps the pool from being published.
        licence=" AND ".join(licence if licence not in UNKNOWN else "not stated" for licence in licences),
        source=", ".join(filter(None, sources)),
        provenance={
            "made_by": f"rusbeir {__version__}, datasets pool",
            "settings": {"relevant": relevant},
            "sources": [describe_source(dataset.card, dataset.fingerprint) for dataset in datasets],
        },
    )


def _warn(card: Card, entries: Mapping[str, PoolQuery], left: Mapping[str, PoolQuery], judged: Judged) -> None:
    """Warn of queries that are left out, that are asked in a language without documents, or are judged in one alone."""
    if dropped := len(entries) - len(left):
        logger.warning("%s: %s queries are left out, as no document is judged for them.", card.name, f"{dropped:,}")
    foreign = Counter(query.language for query in left.values() if query.language not in card.languages)
    for language, n in foreign.items():
        logger.warning(
            "%s: %s queries are in %s, in which the pool has no documents.",
            card.name, f"{n:,}", repr(language) if language else "no known language",
        )  # fmt: skip
    alone = sum(len(judged.get(query.query_id, ())) == 1 for query in left.values())
    if alone:
        logger.warning("%s: for %s queries documents of one language alone are judged.", card.name, f"{alone:,}")


def pool(
    datasets: Sequence[Dataset],
    out: str | Path,
    *,
    relevant: str = "any",
    queries: Queries | None = None,
    qrels: Qrels | None = None,
    name: str = "",
) -> dict[str, Any]:
    """Join datasets as join_datasets does, and write the pool to a new folder, which appears when it is complete.

    Args:
        datasets: The datasets, each in another language.
        out: The folder, which `load` reads.
        relevant: As for join_datasets, as all that follows.
        queries: One set of queries for all the datasets.
        qrels: Its judgements.
        name: What result rows call the pool.

    Returns:
        The name, the languages and the counts, as `rusbeir datasets pool --json` prints them.

    Raises:
        BadInput: The folder exists and is not empty, or as for join_datasets.
        BackendError: The folder cannot be written.

    Examples:
        >>> pool([load("xquad/ru"), load("xquad/en")], "xquad-pool")["n_docs"]  # doctest: +SKIP
        480
    """
    joined = join_datasets(datasets, relevant=relevant, queries=queries, qrels=qrels, name=name)
    write_beir(joined, out)
    card, asked_in = joined.card, Counter(query_language(joined.queries, key, "") for key in joined.queries)
    return {
        "dataset": card.name,
        "languages": list(card.languages),
        "relevant": relevant,
        "licence": card.licence,
        "documents": dict(count_languages(joined.corpus)),
        "queries": dict(asked_in),
        "n_docs": len(joined.corpus),
        "n_queries": len(joined.queries),
        "n_qrels": sum(map(len, joined.qrels.values())),
        "out": str(out),
    }

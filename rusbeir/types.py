"""The types that all rooms share. Functions treat their arguments as read-only."""

from __future__ import annotations

import contextlib
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NamedTuple, Protocol, SupportsIndex, TypeAlias, overload, runtime_checkable

import orjson

from rusbeir.errors import BadInput
from rusbeir.notebook import BrowsableCorpus, dataset_html, describe_dataset, place_in
from rusbeir.text import has_control, shorten

Queries: TypeAlias = Mapping[str, str]
"""query_id -> text."""

Qrels: TypeAlias = Mapping[str, Mapping[str, int]]
"""query_id -> {doc_id: grade}; grade 0 is judged and not relevant."""

MAX_GRADE = 1000
"""The bound of a grade and of its negative: trec_eval keeps a count for every grade up to a query's highest."""

MAX_QUERY_CHARS = 1_000_000
"""The longest query that is searched for: one of 800,000 characters with no word twice takes seven seconds."""

Run: TypeAlias = Mapping[str, Mapping[str, float]]
"""query_id -> {doc_id: score}; higher is better; every query is present, one without results with {}."""

Progress: TypeAlias = Callable[[str, int, int | None], None]
"""Called as progress(stage, done, total); total is None if it is not known."""


def silent(stage: str, done: int, total: int | None) -> None:
    """Report nothing: the Progress of callers that do not want any."""


SELF_RETRIEVAL_REMEDY = (
    "They find themselves first. BEIR's evaluation leaves such hits out; "
    'to do so here, put "self_retrieval": true into the dataset\'s card.json.'
)
"""What is said of queries that are documents."""


class Doc(NamedTuple):
    """One document of a corpus."""

    doc_id: str
    text: str
    title: str = ""
    language: str = ""
    """Its BCP 47 tag; "" where it is that of the dataset's card."""

    @property
    def full_text(self) -> str:
        """The title, if there is one, and the text: what rerankers and indexes of one field read."""
        return join_title(self.title, self.text)

    def repeats(self, query: str) -> bool:
        """Return whether its text, with the title or without, is that of the query but for white space."""
        return query.split() in (self.text.split(), self.full_text.split())


def join_title(title: str, text: str, separator: str = " ") -> str:
    """Join a title, if there is one, and a text.

    Examples:
        >>> join_title("Water", "It boils."), join_title("", "It boils.")
        ('Water It boils.', 'It boils.')
    """
    return f"{title}{separator}{text}" if title else text


class Corpus(Protocol):
    """Documents in file order, streamed; never required to fit in memory."""

    def __iter__(self) -> Iterator[Doc]: ...

    def __len__(self) -> int: ...

    def __getitem__(self, doc_id: str) -> Doc:
        """Return the document of that id; KeyError if there is none."""
        ...


@runtime_checkable
class HashedCorpus(Corpus, Protocol):
    """A corpus that knows the hash of its content."""

    @property
    def sha256(self) -> str:
        """The sha256 (hex) over the canonical_line of each document (id, title, text, language), in corpus order."""
        ...


@runtime_checkable
class SpacedIds(Protocol):
    """A corpus that knows whether its ids can be words of a TREC file."""

    @property
    def spaced_id(self) -> str:
        """The first document id that has white space; "" if there is none."""
        ...


@runtime_checkable
class CountsLanguages(Protocol):
    """A corpus that knows how many of its documents are in which language."""

    @property
    def languages(self) -> Mapping[str, int]:
        """Language -> the number of its documents, the tag "" counting those that name none."""
        ...


def count_languages(corpus: Corpus) -> Mapping[str, int]:
    """Count the documents of each language, under "" those that are in the language of the dataset's card."""
    return corpus.languages if isinstance(corpus, CountsLanguages) else Counter(doc.language for doc in corpus)


MULTILINGUAL = "mul"
"""The language of a card whose documents are in several: ISO 639's code for that."""


class MultilingualQueries(dict[str, str]):
    """Queries in several languages: query_id -> text, with the language of each that names one.

    Examples:
        >>> MultilingualQueries({"q1": "кот", "q2": "cat"}, {"q1": "ru", "q2": "en"}).languages["q1"]
        'ru'
    """

    def __init__(self, texts: Mapping[str, str], languages: Mapping[str, str]) -> None:
        """Take query_id -> text, and query_id -> BCP 47 tag of those whose language is known."""
        super().__init__(texts)
        self.languages: Mapping[str, str] = {key: languages[key] for key in self if key in languages}


def query_language(queries: Queries, query_id: str, default: str) -> str:
    """Return the language of a query, the default where it names none.

    >>> query_language({"q1": "кот"}, "q1", "ru")
    'ru'
    """
    return queries.languages.get(query_id, default) if isinstance(queries, MultilingualQueries) else default


def select_queries(queries: Queries, query_ids: Iterable[str]) -> dict[str, str]:
    """Select queries by their ids, with the languages that they name."""
    texts = {query_id: queries[query_id] for query_id in query_ids}
    return MultilingualQueries(texts, queries.languages) if isinstance(queries, MultilingualQueries) else texts


def needs_judgements(dataset: str) -> BadInput:
    """Return the error for a dataset without judgements, where something is to be measured on it."""
    return BadInput(
        f"{dataset} has no judgements, so nothing can be measured on it. Add qrels/test.tsv (query-id, corpus-id, "
        "score), or let a model write queries about its documents with `rusbeir synth queries` and people check them "
        "with `rusbeir audit sheet`. Indexing and searching need none."
    )


def _call(room: str, function: str, *arguments: Any) -> Any:
    """Call a function of a room that is imported only now."""
    return resolve_name(f"{room}:{function}")(*arguments)


def canonical_line(*fields: str | int, language: str = "") -> bytes:
    """Return one record as the line of JSON that a fingerprint hashes, with its language if it names one."""
    return orjson.dumps((*fields, language) if language else fields) + b"\n"


class MemoryCorpus(BrowsableCorpus):
    """Documents held in memory, in the order in which they were given."""

    def __init__(self, records: Iterable[Doc | Mapping[str, Any]]) -> None:
        """Take documents, or dicts with `_id` or `doc_id`, `text` and perhaps `title` and `lang`.

        Raises BadInput for an unusable or repeated id, a text that is not a string, and an empty corpus.
        """
        self._docs: dict[str, Doc] = {}
        digest = hashlib.sha256()
        for number, record in enumerate(records, 1):
            doc = _read_document(record, number)
            if doc.doc_id in self._docs:
                raise BadInput(f"Document {number} of the corpus repeats the id {doc.doc_id!r}; ids must be unique.")
            self._docs[doc.doc_id] = doc
            digest.update(canonical_line(doc.doc_id, doc.title, doc.text, language=doc.language))
        if not self._docs:
            raise BadInput("The corpus is empty; a dataset needs at least one document.")
        self.sha256 = digest.hexdigest()
        self.languages: Mapping[str, int] = Counter(doc.language for doc in self)

    @property
    def spaced_id(self) -> str:
        """The first document id that has white space; "" if there is none."""
        return next((doc_id for doc_id in self._docs if doc_id.split() != [doc_id]), "")

    def __iter__(self) -> Iterator[Doc]:
        return iter(self._docs.values())

    def __len__(self) -> int:
        return len(self._docs)

    @overload
    def __getitem__(self, key: str | SupportsIndex) -> Doc: ...

    @overload
    def __getitem__(self, key: slice) -> list[Doc]: ...

    def __getitem__(self, key: str | SupportsIndex | slice) -> Doc | list[Doc]:
        if isinstance(key, str):
            return self._docs[key]
        docs = list(self._docs.values())
        return docs[key] if isinstance(key, slice) else docs[place_in(len(docs), key)]


@dataclass(frozen=True, kw_only=True)
class Card:
    """The facts about a dataset in addition to its content: its name, its source, how it is read."""

    name: str
    language: str
    split: str
    licence: str = ""
    source: str = ""
    revision: str = ""
    ignore_titles: bool = False
    self_suffixes: tuple[str, ...] = ()
    """A hit with the id query_id + one of these is the query itself, and is removed before the cut-off."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    query_language: str = ""
    """The language of the queries, where it is another than that of the documents, which is `language`."""
    author: str = ""
    citation: str = ""
    """How the dataset wants to be cited, such as BibTeX."""
    languages: tuple[str, ...] = ()
    """The languages of the documents where they are in several, and `language` is MULTILINGUAL."""

    @property
    def asked_in(self) -> str:
        """The language of the queries."""
        return self.query_language or self.language


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A benchmark: documents, the judged queries of one split, their judgements, and a card."""

    corpus: Corpus
    queries: Queries
    qrels: Qrels
    card: Card

    @classmethod
    def of(
        cls,
        corpus: HashedCorpus | Iterable[Doc | Mapping[str, Any]] | str | Path,
        queries: Queries | Iterable[Any] | str | Path | None = None,
        qrels: Qrels | Iterable[Any] | str | Path | None = None,
        *,
        language: str = "",
        columns: str | Mapping[str, str | Sequence[str]] | None = None,
        name: str = "in-memory",
        split: str = "test",
        licence: str = "",
        source: str = "",
        revision: str = "",
        self_suffixes: tuple[str, ...] = (),
        provenance: Mapping[str, Any] | None = None,
    ) -> Dataset:
        """Make a dataset of documents and, as far as there are any, queries and judgements.

        Tables are data frames of pandas or polars, Arrow tables, datasets of the Hugging Face library, lists of dicts,
        and paths to .csv, .tsv, .jsonl and .parquet files (.gz and .zst, too). Columns are recognised by obvious names.

        Args:
            corpus: A table, documents (`Doc`), or a HashedCorpus, which is used as it is. A file is streamed and stays
                on disk; everything else is in memory.
            queries: A table, query_id -> text, or a list of texts, whose ids are then q1, q2 and so on. Queries that
                are not judged are left out, unless nothing is judged.
            qrels: A table, query_id -> {doc_id: grade}, query_id -> [doc_id], triples (query id, document id, grade),
                or a file of TREC's. Without judgements the dataset can be indexed and searched, not measured.
            language: The BCP 47 tag of the documents, such as "ru". Several, as in "ru,en", are those of a dataset in
                several languages: a document or a query that does not name its own ("lang") has the one of these that
                is detected. "mul" is for documents that all name theirs.
            columns: Columns with other names: {"id": "sku", "text": ["name", "description"]}, or
                "id=sku,text=name+description"; several are joined. Queries have query_id and query, judgements
                query_id, doc_id and grade.
            name: What result rows call the dataset.
            split: The split of the judgements.
            licence: The licence of the documents, for the card.
            source: Where they are from, for the card.
            revision: Which version they are, for the card.
            self_suffixes: A hit with the id query_id + one of these is the query itself and is left out.
            provenance: How it was made, for the card.

        Returns:
            The dataset.

        Raises:
            BadInput: An id, a text, a grade or a column cannot be right, or a judged query has no text.
            MissingExtra: A package is missing that reads a file or a table.

        Examples:
            >>> docs = [{"_id": "d1", "text": "Кошка спит."}, {"_id": "d2", "text": "Собака лает."}]
            >>> cats = Dataset.of(docs, {"q1": "кошка"}, {"q1": {"d1": 1}}, language="ru")
            >>> cats.fingerprint[:8]
            '1e6e9463'
        """
        if not language:
            raise BadInput("The language of the documents is missing. Name it, such as language='ru'.")
        # What people have is read by a room of a floor above, which is asked by name.
        documents, texts, judged = _call("rusbeir.datasets", "make_parts", corpus, queries, qrels, columns, language)
        languages = tuple(tag.strip() for tag in language.split(",")) if "," in language else ()
        card = Card(
            name=name,
            language=MULTILINGUAL if languages else language,
            languages=languages,
            split=split,
            licence=licence,
            source=source,
            revision=revision,
            self_suffixes=self_suffixes,
            provenance=provenance or {},
        )
        dataset = cls(corpus=documents, queries=texts, qrels=judged, card=card)
        if card.language == MULTILINGUAL or count_languages(documents).keys() - {"", language}:
            dataset = _call("rusbeir.datasets", "name_languages", dataset)
        return dataset

    __repr__ = describe_dataset
    _repr_html_ = dataset_html

    def to_hf(self) -> Any:
        """Give the dataset to the Hugging Face library, under the column names that BEIR and MTEB have.

        Returns:
            A `datasets.DatasetDict` with corpus (_id, title, text), queries (_id, text) and qrels (query-id, corpus-id,
            score). Its tables are files in the cache, which are read when asked for.

        Raises:
            MissingExtra: The package datasets is not installed.

        Examples:
            >>> rusbeir.load("mini/ru").to_hf()["corpus"][0]["_id"]  # doctest: +SKIP
            'd1'
        """
        return _call("rusbeir.datasets", "export_tables", self)

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages of a pool: those of its card, or else those that its documents name; () in one language."""
        card = self.card
        if card.language != MULTILINGUAL or card.languages:
            return card.languages
        return tuple(sorted(language for language in count_languages(self.corpus) if language))

    def refuse_spaced_ids(self) -> None:
        """Raise BadInput for an id that runs and qrels in TREC's formats cannot hold.

        That is one with white space, or one of a query that begins with #, as TREC's comments do.
        """
        spaced = next((query_id for query_id in self.queries if query_id.split() != [query_id]), "")
        if not spaced and isinstance(self.corpus, SpacedIds):
            spaced = self.corpus.spaced_id
        if spaced:
            raise BadInput(
                f"{self.card.name}: the id {shorten(repr(spaced))} has white space, which TREC's formats cannot hold. "
                "Replace it in the corpus, the queries and the qrels."
            )
        if comment := next((query_id for query_id in self.queries if query_id.startswith("#")), ""):
            raise BadInput(
                f"{self.card.name}: the query id {shorten(repr(comment))} begins with #, as comments do in TREC's "
                "formats. Replace it in the queries and the qrels."
            )

    def find_self_queries(self) -> list[str]:
        """List the queries that are documents and would find themselves, as in BEIR's ArguAna and Quora.

        There are none where the card says that such hits are left out.
        """
        self_queries = []
        for query_id, text in self.queries.items() if not self.card.self_suffixes else ():
            with contextlib.suppress(KeyError):
                if self.corpus[query_id].repeats(text):
                    self_queries.append(query_id)
        return self_queries

    @property
    def fingerprint(self) -> str:
        """The sha256 (hex) of the content, equal for the same content in any format.

        Computed whenever it is read, so that it is right even if queries or qrels were changed in place.
        """
        sha256 = self.corpus.sha256 if isinstance(self.corpus, HashedCorpus) else self._corpus_sha256
        return fingerprint(sha256, self.queries, self.qrels)

    @cached_property
    def _corpus_sha256(self) -> str:
        digest = hashlib.sha256()
        for doc in self.corpus:
            digest.update(canonical_line(doc.doc_id, doc.title, doc.text, language=doc.language))
        return digest.hexdigest()


def fingerprint(corpus_sha256: str, queries: Queries, qrels: Qrels) -> str:
    """Return the sha256 (hex) of what a dataset holds, equal for the same content in any format.

    Over JSON lines: the sha256 over [id, title, text] of each document in corpus order, then
    [query id, text] sorted by id, then [query id, document id, grade] sorted by both ids. The language of a document
    or a query that names one follows its text.
    """
    digest = hashlib.sha256(canonical_line(corpus_sha256))
    languages = queries.languages if isinstance(queries, MultilingualQueries) else {}
    for query_id in sorted(queries):
        digest.update(canonical_line(query_id, queries[query_id], language=languages.get(query_id, "")))
    for query_id in sorted(qrels):
        for doc_id in sorted(qrels[query_id]):
            digest.update(canonical_line(query_id, doc_id, qrels[query_id][doc_id]))
    return digest.hexdigest()


def _read_document(record: Doc | Mapping[str, Any], number: int) -> Doc:
    if not isinstance(record, Doc):
        if not isinstance(record, Mapping):
            raise BadInput(
                f"Document {number} of the corpus is a {type(record).__name__}; expected a Doc or a dict with `_id`, "
                "`text` and `title`."
            )
        values = record.get("_id", record.get("doc_id")), record.get("text"), *map(record.get, ("title", "lang"))
        record = Doc._make((*values[:2], *(value or "" for value in values[2:])))
    require_id(record.doc_id, "Document {} of the corpus", number)
    require_string(record.text, "text", "Document {} of the corpus ({!r})", number, record.doc_id)
    require_string(record.title, "title", "Document {} of the corpus ({!r})", number, record.doc_id)
    require_string(record.language, "language", "Document {} of the corpus ({!r})", number, record.doc_id)
    return record


def require_id(value: object, where: str, *names: object) -> None:
    """Raise BadInput for what cannot be an id; where is formatted with the names, and only for the message."""
    require_string(value, "id", where, *names)
    if not str(value).strip() or has_control(str(value)):
        raise BadInput(
            f"{where.format(*names)}: the id is {shorten(repr(value))}; it must not be empty or have a control "
            "character."
        )


def require_string(value: object, what: str, where: str, *names: object) -> None:
    """Raise BadInput for what is no string, or none of UTF-8; as require_id does."""
    if not isinstance(value, str):
        raise BadInput(f"{where.format(*names)}: the {what} is {shorten(repr(value))}; it must be a string.")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise BadInput(
            f"{where.format(*names)}: character {error.start + 1} of the {what} is an unpaired surrogate, which UTF-8 "
            "cannot encode."
        ) from error


class TextAnalyzer(Protocol):
    """Turns a text into the terms that an engine indexes."""

    @property
    def signature(self) -> str:
        """Return everything that decides the result, without white space."""
        ...

    def analyze(self, text: str) -> list[str]:
        """Return the terms of the text in order; [] if nothing is left."""
        ...


class Retriever(Protocol):
    """Answers queries from one corpus."""

    @property
    def signature(self) -> str:
        """Return everything that decides the result, without white space."""
        ...

    def search(self, queries: Queries, k: int) -> Run:
        """Find at most k hits a query, ordered by falling score; a query without hits has {}."""
        ...

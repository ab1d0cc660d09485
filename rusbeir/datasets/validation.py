"""Validate a dataset: every problem is reported with file and line."""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from rusbeir.datasets.corpus import Array, hash_id
from rusbeir.datasets.formats.reader import DatasetReader, GivesSpans
from rusbeir.datasets.formats.records import Place
from rusbeir.datasets.opening import COUNTS, Expected, open_reader
from rusbeir.errors import BadInput
from rusbeir.text import make_line
from rusbeir.types import (
    MAX_QUERY_CHARS,
    SELF_RETRIEVAL_REMEDY,
    Card,
    MultilingualQueries,
    Progress,
    canonical_line,
    fingerprint,
    silent,
)

SHOWN_PER_KIND = 20
_REPORT_EVERY = 10_000

Level: TypeAlias = Literal["error", "warning"]


class Finding(NamedTuple):
    """One problem, or, as a warning, something suspicious. line is None if the format has no lines.

    n is how many problems it tells of: 1, or more for the last of a kind of which not all are listed.
    """

    level: Level
    file: str
    line: int | None
    message: str
    n: int = 1

    def __str__(self) -> str:
        location = self.file if self.line is None else f"{self.file}:{self.line}"
        return make_line(f"{self.level}: {location}: {self.message}")


def validate(
    name_or_path: str | Path,
    *,
    language: str | None = None,
    split: str | None = None,
    progress: Progress = silent,
) -> list[Finding]:
    """Return all findings about a dataset, [] for a valid one; at most 20 of a kind, then "and 7 more like this".

    Takes the arguments of `load` and reads every record without stopping at a bad one. Raises as `load` only if there
    is nothing to read: an unknown name, a missing file, no such split.

    Examples:
        >>> validate("xquad/ru")  # doctest: +SKIP
        []
    """
    reader, card, expected = open_reader(name_or_path, language=language, split=split, progress=progress)
    return _Validation(reader, card, expected, progress).run()


class _Notes:
    """Findings as they are made, at most SHOWN_PER_KIND of a kind and file; the others are counted."""

    def __init__(self) -> None:
        self._found: list[Finding] = []
        self._n: Counter[tuple[Level, str, str]] = Counter()

    def error(self, kind: str, location: Place, message: str) -> None:
        self._add("error", kind, location, message)

    def warning(self, kind: str, location: Place, message: str) -> None:
        self._add("warning", kind, location, message)

    def error_uncounted(self, kind: str, file: str, n: int) -> None:
        """Count n errors of a kind that has reached its limit."""
        self._n["error", file, kind] += n

    @property
    def has_error(self) -> bool:
        return any(level == "error" for level, _, _ in self._n)

    def findings(self) -> list[Finding]:
        more = [
            Finding(level, file, None, f"and {n - SHOWN_PER_KIND:,} more like this ({kind})", n - SHOWN_PER_KIND)
            for (level, file, kind), n in self._n.items()
            if n > SHOWN_PER_KIND
        ]
        return self._found + more

    def _add(self, level: Level, kind: str, location: Place, message: str) -> None:
        self._n[level, location.file, kind] += 1
        if self._n[level, location.file, kind] <= SHOWN_PER_KIND:
            message = f"{location.within}: {message}" if location.within else message
            self._found.append(Finding(level, location.file, location.line, make_line(message)))


class _Validation:
    """One validation: what has been read so far, and the notes on it."""

    def __init__(self, reader: DatasetReader, card: Card, expected: Expected, progress: Progress) -> None:
        self._reader = reader
        self._card = card
        self._expected = expected
        self._judged = expected.get("judged", True)
        self._progress = progress
        self._notes = _Notes()
        self._doc_hashes: Array | None = None
        self._corpus_sha256 = ""
        self._queries: dict[str, str] = {}
        self._languages: dict[str, str] = {}
        self._qrels: dict[str, dict[str, int]] = {}

    @property
    def _documents_file(self) -> Place:
        """The first file of the documents; the name of the dataset where its reader does not know them."""
        return Place(str(next(iter(self._reader.corpus_files), self._card.name)))

    def run(self) -> list[Finding]:
        """Return all findings; each step can use what the steps before it have read."""
        complete = True
        for read in (self._read_documents, self._read_queries, self._note_self_queries, self._read_judgements):
            try:
                read()
            except BadInput as error:
                # The rest of this file cannot be read, but the other files can.
                complete = False
                self._notes.error("file", self._documents_file, str(error))
        if complete:
            if isinstance(self._reader, GivesSpans):
                # Only `rusbeir diagnose position` needs them.
                for _ in self._reader.spans(self._notes.warning):
                    pass
            self._compare_with_expected()
        return self._notes.findings()

    def _read_documents(self) -> None:
        hashes = array("Q")
        digest = hashlib.sha256()
        for n, (location, doc, _) in enumerate(self._reader.documents(self._notes.error), 1):
            hashes.append(hash_id(doc.doc_id))
            title = "" if self._card.ignore_titles else doc.title
            digest.update(canonical_line(doc.doc_id, title, doc.text, language=doc.language))
            self._note_space("document", doc.doc_id, location)
            if not doc.text.strip():
                self._notes.warning("blank text", location, f"document {doc.doc_id!r} has no text")
            if n % _REPORT_EVERY == 0:
                self._progress("validating documents", n, None)
        if not hashes:
            self._notes.error("empty", self._documents_file, "the corpus is empty")
        by_row = np.frombuffer(hashes, dtype=np.uint64)
        order = np.argsort(by_row, kind="stable")
        self._doc_hashes = by_row[order]
        self._corpus_sha256 = digest.hexdigest()
        self._note_repeats(self._doc_hashes, order)

    def _note_repeats(self, ordered: Array, order: Array) -> None:
        """Note every repeated id: the arrays show the rows, and a second reading the places."""
        later = np.flatnonzero(ordered[1:] == ordered[:-1]) + 1
        if not len(later):
            return
        firsts = order[np.searchsorted(ordered, ordered[later])]
        pairs = sorted(zip(order[later].tolist(), firsts.tolist(), strict=True))
        shown = dict(pairs[:SHOWN_PER_KIND])
        rows_shown = {*shown, *shown.values()}
        locations = {
            row: (location, doc.doc_id)
            for row, (location, doc, _) in enumerate(self._reader.documents(lambda *_: None))
            if row in rows_shown
        }
        for row, first in shown.items():
            location, doc_id = locations[row]
            message = f"the document id {doc_id!r} is used already at {locations[first][0]}"
            self._notes.error("repeated id", location, message)
        file = locations[min(shown)][0].file
        self._notes.error_uncounted("repeated id", file, len(pairs) - len(shown))

    def _read_queries(self) -> None:
        for location, (query_id, text, language), _ in self._reader.queries(self._notes.error):
            self._note_space("query", query_id, location)
            if query_id in self._queries:
                self._notes.error("repeated id", location, f"the query id {query_id!r} is repeated")
            if not text.strip():
                self._notes.error("blank text", location, f"query {query_id!r} has no text")
            if len(text) > MAX_QUERY_CHARS:
                message = (
                    f"query {query_id!r} has {len(text):,} characters; at most {MAX_QUERY_CHARS:,} are searched for"
                )
                self._notes.error("long query", location, message)
            self._queries[query_id] = text
            if language:
                self._languages[query_id] = language

    def _note_self_queries(self) -> None:
        """Note the queries that are documents; where ids of both are equal, the documents are read a second time."""
        if self._doc_hashes is None:
            return
        same = {query_id for query_id in self._queries if self._has_document(query_id)}
        if not same or self._card.self_suffixes:
            return
        self_queries = [
            doc.doc_id
            for _, doc, _ in self._reader.documents(lambda *_: None)
            if doc.doc_id in same and doc.repeats(self._queries[doc.doc_id])
        ]
        if self_queries:
            n, first = len(self_queries), self_queries[0]
            message = f"{n:,} queries are documents of the corpus, such as {first!r}. {SELF_RETRIEVAL_REMEDY}"
            self._notes.warning("self-retrieval", self._documents_file, message)

    def _read_judgements(self) -> None:
        location = self._documents_file
        for location, (query_id, doc_id, grade) in self._reader.judgements(self._notes.error):
            docs = self._qrels.setdefault(query_id, {})
            if doc_id in docs:
                message = f"query {query_id!r} and document {doc_id!r} are paired a second time"
                self._notes.error("repeated pair", location, message)
            if not docs and query_id not in self._queries:
                self._notes.error("query without text", location, f"query {query_id!r} is judged but has no text")
            if not self._has_document(doc_id):
                message = f"document {doc_id!r}, judged for query {query_id!r}, is not in the corpus"
                self._notes.error("missing document", location, message)
            if grade < 0:
                self._notes.warning("negative grade", location, f"the grade {grade} counts as not relevant")
            docs[doc_id] = grade
        file = Place(location.file)
        if self._judged and not self._qrels.keys() & self._queries.keys():
            self._notes.error("none judged", file, f"no query is judged in the split {self._reader.split!r}")
        for query_id, docs in self._qrels.items():
            if max(docs.values()) <= 0:
                self._notes.warning("nothing relevant", file, f"query {query_id!r} has no relevant document")

    def _has_document(self, doc_id: str) -> bool:
        if self._doc_hashes is None:
            return True
        id_hash = np.uint64(hash_id(doc_id))
        row = int(np.searchsorted(self._doc_hashes, id_hash))
        return row < len(self._doc_hashes) and bool(self._doc_hashes[row] == id_hash)

    def _note_space(self, what: str, record_id: str, location: Place) -> None:
        if record_id.split() != [record_id]:
            message = f"the {what} id {record_id!r} has white space, which TREC's formats cannot hold"
            self._notes.error("white space in id", location, message)

    def _compare_with_expected(self) -> None:
        expected = self._expected
        query_ids = self._qrels if self._judged else self._queries
        judged = {query_id: self._queries[query_id] for query_id in query_ids if query_id in self._queries}
        n_docs = 0 if self._doc_hashes is None else len(self._doc_hashes)
        counts = dict(zip(COUNTS, (n_docs, len(judged), sum(map(len, self._qrels.values()))), strict=True))
        location = Place(self._card.name)
        for key, n in counts.items():
            if key in expected and expected[key] != n:
                self._notes.error("count", location, f"{key} is {n:,}, expected {expected[key]:,}")
        if "fingerprint" in expected and not self._notes.has_error:
            queries = MultilingualQueries(judged, self._languages)
            content = fingerprint(self._corpus_sha256, queries, self._qrels)
            if content != expected["fingerprint"]:
                message = f"the fingerprint is {content}, but the card says {expected['fingerprint']}"
                self._notes.error("fingerprint", location, message)

"""BM25 on tantivy: Lucene's formula and one-byte lengths, k1 1.2 and b 0.75 built in.

Lucene counts only documents that have a field (the N of its idf and its average length); tantivy counts all.
Where documents lack a field, two things make the scores Lucene's (tests compare them to 1e-5): each term is
boosted by the quotient of the two idfs, and documents of filler tokens, which no query can hold, are added so
that tantivy's average length is the field's own.
"""

from __future__ import annotations

import contextlib
import math
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson
import tantivy

from rusbeir.errors import BackendError
from rusbeir.retrieval.lexical.bm25 import Bm25
from rusbeir.retrieval.lexical.engines import LUCENE_ONLY, SERVER_ONLY, Hits, Terms

TANTIVY_K1 = 1.2
TANTIVY_B = 0.75
ROW = "row"
FILLER = "\ufdd0"
"""A noncharacter: Unicode promises that no text holds it."""
MAX_TERM_CHARS = 16_000
"""Terms are cut here, in documents and queries: tantivy silently drops one of more than 65,530 bytes."""
_COMMON = 0.1
"""A term in more than this share of the documents is common; measured on Zipf streams of 0.2 and 1 million."""
_HEAP_BYTES = 400_000_000
"""The size of a piece of the index, about 2 million passages of 50 words: fewer pieces are searched faster."""
_FILLER_DOC_TOKENS = 1_000_000
_MAX_FILLERS = 100_000
_STATS = "fields.json"


@dataclass(frozen=True, kw_only=True)
class TantivyEngine:
    """The embedded default."""

    name: str = "tantivy"

    def signature(self, bm25: Bm25) -> str:
        return f"tantivy-{version('tantivy')}|len:lucene"

    def refusal(self, bm25: Bm25) -> str | None:
        if bm25.server_language:
            return SERVER_ONLY.format(self.name)
        if bm25.lengths == "exact":
            return LUCENE_ONLY.format(self.name)
        if (bm25.k1, bm25.b) == (TANTIVY_K1, TANTIVY_B):
            return None
        return f"tantivy has k1 {TANTIVY_K1} and b {TANTIVY_B} built in and cannot do k1 {bm25.k1}, b {bm25.b}."

    def build(self, folder: Path, rows: Iterator[Terms], bm25: Bm25) -> None:
        """Write the index with one thread, so that documents keep their order."""
        names = bm25.field_names
        documents = [0] * len(names)
        tokens = [0] * len(names)
        row = -1
        with _writing(folder, names) as add:
            for row, (_, lines) in enumerate(rows):
                for number, line in enumerate(lines):
                    if line:
                        documents[number] += 1
                        tokens[number] += line.count(" ") + 1
                add(row, lines)
            lacking = any(0 < having <= row for having in documents)
            fillers = _fillers(row + 1, documents, tokens) if lacking else []
            for row_number, counts in enumerate(fillers, start=row + 1):
                add(row_number, [" ".join([FILLER] * count) for count in counts])
        stats = {
            "documents": documents,
            "total": row + 1 + len(fillers),
            "first_rows": _put_in_row_order(folder),
        }
        (folder / _STATS).write_bytes(orjson.dumps(stats))

    def open(self, folder: Path, bm25: Bm25) -> TantivySearcher:
        try:
            index = tantivy.Index.open(str(folder))
            searcher = index.searcher()
        except ValueError:
            if os.access(folder, os.W_OK):
                raise
            index, searcher = _open_read_only(folder)
        stats = orjson.loads((folder / _STATS).read_bytes())
        return TantivySearcher(
            schema=index.schema,
            searcher=searcher,
            bm25=bm25,
            documents=tuple(stats["documents"]),
            total=stats["total"],
            first_rows=stats["first_rows"],
        )


def _open_read_only(folder: Path) -> tuple[tantivy.Index, tantivy.Searcher]:
    """Open an index and a searcher in a folder that cannot be written."""
    # tantivy locks a file in the folder while it opens the others, which it then has mapped.
    # A thread of its own may still make the lock while the folder is removed, which then stays with that file alone.
    with tempfile.TemporaryDirectory(prefix="rusbeir-index-", ignore_cleanup_errors=True) as name:
        for path in folder.iterdir():
            Path(name, path.name).symlink_to(path.absolute())
        for path in Path(name).glob(".*.lock"):
            path.unlink()
        index = tantivy.Index.open(name)
        return index, index.searcher()


@contextlib.contextmanager
def _writing(folder: Path, names: Sequence[str]) -> Iterator[Callable[[int, Iterable[str]], None]]:
    """Create a tantivy index and yield a function that adds a row's lines.

    Raises BackendError, such as for a full disk.
    """
    builder = tantivy.SchemaBuilder().add_unsigned_field(ROW, fast=True)
    for name in names:
        builder = builder.add_text_field(name, tokenizer_name="whitespace", index_option="freq")
    with _reporting(folder):
        index = tantivy.Index(builder.build(), str(folder), sort_by_field=ROW)
        writer = index.writer(heap_size=_HEAP_BYTES, num_threads=1)

    def add(row: int, lines: Iterable[str]) -> None:
        document = tantivy.Document()
        document.add_unsigned(ROW, row)
        for name, line in zip(names, lines, strict=True):
            if line:
                document.add_text(name, line if len(line) <= MAX_TERM_CHARS else _cut(line))
        try:
            writer.add_document(document)
        except ValueError:
            # Entered for a failure alone: a context manager for each document would take as long as adding it.
            with _reporting(folder):
                raise

    try:
        yield add
    except BaseException:
        # Threads may still write into the folder, which is about to be removed.
        with contextlib.suppress(ValueError):
            writer.wait_merging_threads()
        raise
    with _reporting(folder):
        writer.commit()
        writer.wait_merging_threads()


@contextlib.contextmanager
def _reporting(folder: Path) -> Iterator[None]:
    try:
        yield
    except (ValueError, OSError) as error:
        line = " ".join(str(error).split())
        raise BackendError(
            f"Cannot write the index {folder}: {line} "
            "Free some space or choose a writable folder (RUSBEIR_CACHE sets the cache's)."
        ) from error


def _cut(line: str) -> str:
    return " ".join([term[:MAX_TERM_CHARS] for term in line.split(" ")])


def _fillers(rows: int, documents: Sequence[int], tokens: Sequence[int]) -> list[list[int]]:
    """Count the tokens by field of each filler document, where some documents lack a field.

    With F fillers the index holds rows + F documents; tokens * (rows + F) / documents tokens of a field make
    its average length the field's own. F is the first that needs no fraction of a token worth mentioning.
    """
    # Fields that every document has count as well: fillers without tokens of them would shorten their average.
    present = [having > 0 for having in documents]
    lengths = np.array(tokens, dtype=np.float64)[present] / np.array(documents)[present]
    candidates = np.arange(1, _MAX_FILLERS + 1)
    totals = np.outer(lengths, rows + candidates)
    error = np.abs(np.rint(totals) / totals - 1).max(axis=0)
    fillers = int(candidates[np.argmax(error <= max(1e-8, error.min()))])
    missing = [
        round(count * (rows + fillers) / having) - count if having else 0
        for count, having in zip(tokens, documents, strict=True)
    ]
    return [[_share(count, number, fillers) for count in missing] for number in range(fillers)]


def _share(total: int, number: int, n_fillers: int) -> int:
    """The tokens of one filler document, where all go to as few documents as their size allows."""
    parts = min(n_fillers, -(-total // _FILLER_DOC_TOKENS))
    return total // parts + (number < total % parts) if number < parts else 0


def _put_in_row_order(folder: Path) -> list[int] | None:
    """Put the segments in row order, and return the first row of each; None where merged ones interleave.

    The index itself sorts by row within a segment.
    """
    meta = folder / "meta.json"
    layout = orjson.loads(meta.read_bytes())
    segments = layout["segments"]
    ends = [
        tantivy.DocAddress(number, doc)
        for number, segment in enumerate(segments)
        for doc in (0, segment["max_doc"] - 1)
    ]
    rows: list[Any] = tantivy.Index.open(str(folder)).searcher().fast_field_values(ROW, ends)
    order = sorted(range(len(segments)), key=lambda number: rows[2 * number])
    if [rows[2 * number + end] for number in order for end in (0, 1)] != sorted(rows):
        return None
    layout["segments"] = [segments[number] for number in order]
    meta.write_bytes(orjson.dumps(layout))
    return [rows[2 * number] for number in order]


class _Clause(NamedTuple):
    """A term of a query in one field."""

    query: tantivy.Query
    most: float
    """The most that a document can score for it."""
    common: bool


@dataclass(frozen=True, kw_only=True)
class TantivySearcher:
    """An open tantivy index."""

    schema: tantivy.Schema
    searcher: tantivy.Searcher
    bm25: Bm25
    documents: tuple[int, ...]
    """Documents that have the field, by field."""
    total: int
    """Documents in the index, fillers included."""
    first_rows: list[int] | None
    """The first row of each segment, where rows are in order and without gaps; None elsewhere.

    Documents of equal score, which tantivy orders by their position in the index, are then in row order."""

    def search(self, queries: Sequence[Sequence[str]], k: int) -> list[Hits]:
        documents = dict(zip(self.bm25.field_names, self.documents, strict=True))
        ranked: list[Hits] = []
        for terms in queries:
            counts = Counter(term[:MAX_TERM_CHARS] for term in terms)
            del counts[FILLER]
            parts = [
                [
                    self._clauses(name, documents[name], counts, weight * factor)
                    for name, factor in fields.items()
                    if documents[name]
                ]
                for fields, weight in self.bm25.parts
            ]
            # Which documents of equal score are in at the cut-off must not depend on the layout of the index.
            limit = k if self.first_rows is not None else k + 1
            rows, scores = self._hits(parts, limit)
            if self.first_rows is None:
                while len(rows) == limit and scores[-1] == scores[k - 1]:
                    limit *= 4
                    rows, scores = self._hits(parts, limit)
                order = np.lexsort((rows, np.negative(scores)))[:k].tolist()
                rows, scores = [rows[number] for number in order], [scores[number] for number in order]
            ranked.append((rows, scores))
        return ranked

    def _clauses(self, name: str, present: int, counts: Counter[str], weight: float) -> list[_Clause]:
        clauses = []
        for term, count in counts.items():
            having = self.searcher.doc_freq(name, term)
            if not having:
                continue
            query = tantivy.Query.term_query(self.schema, name, term, index_option="freq")
            # Lucene counts the documents that have the field, tantivy all.
            idf, tantivy_idf = (math.log1p((n - having + 0.5) / (having + 0.5)) for n in (present, self.total))
            boost = weight * count * idf / tantivy_idf
            if boost != 1.0:
                query = tantivy.Query.boost_query(query, boost)
            clauses.append(_Clause(query, weight * count * idf * (TANTIVY_K1 + 1), having > _COMMON * self.total))
        return clauses

    def _hits(self, parts: list[list[list[_Clause]]], limit: int) -> tuple[list[Any], list[float]]:
        if self.bm25.fields == "best_fields" and any(len(fields) > 1 for fields in parts):
            best = [
                tantivy.Query.disjunction_max_query(list(map(_any_of, fields)), self.bm25.tie_breaker)
                for fields in parts
            ]
            query = tantivy.Query.boolean_query([(tantivy.Occur.Should, part) for part in best])
            hits = self.searcher.search(query if len(best) > 1 else best[0], limit, count=False).hits
        else:
            hits = self._best([clause for fields in parts for clauses in fields for clause in clauses], limit)
        scores = [score for score, _ in hits]
        if self.first_rows is None:
            return self.searcher.fast_field_values(ROW, [address for _, address in hits]), scores
        if len(self.first_rows) == 1:
            return [address.doc for _, address in hits], scores
        return [self.first_rows[address.segment_ord] + address.doc for _, address in hits], scores

    def _best(self, clauses: list[_Clause], limit: int) -> list[tuple[Any, tantivy.DocAddress]]:
        """The best documents by the sum of the clauses.

        Common terms add little to a score and most of the work. So only documents that hold a rarer term are
        scored, unless it turns out that common terms alone could have got a document among the best
        (MaxScore: Turtle and Flood, 1995). Both ways add in the same order, so scores do not depend on the limit.
        """
        rarer = [clause for clause in clauses if not clause.common]
        common = [clause for clause in clauses if clause.common]
        if not common or not rarer:
            return self.searcher.search(_any_of(clauses), limit, count=False).hits
        hits = self.searcher.search(_any_of(rarer, common, tantivy.Occur.Must), limit, count=False).hits
        if len(hits) == limit and hits[-1][0] > sum(clause.most for clause in common) * (1 + 1e-6):
            return hits
        return self.searcher.search(_any_of(rarer, common), limit, count=False).hits


def _any_of(
    rarer: list[_Clause], common: Sequence[_Clause] = (), occur: tantivy.Occur = tantivy.Occur.Should
) -> tantivy.Query:
    """Match the documents of any clause (Should), or of any rarer one (Must); the score is the sum of all clauses."""
    query = tantivy.Query.boolean_query([(tantivy.Occur.Should, clause.query) for clause in rarer])
    for clause in common:
        query = tantivy.Query.boolean_query([(occur, query), (tantivy.Occur.Should, clause.query)])
    return query

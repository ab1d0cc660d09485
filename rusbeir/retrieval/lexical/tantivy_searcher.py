"""Queries against a tantivy index that rusbeir made."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import tantivy

from rusbeir.retrieval.lexical.bm25 import Bm25
from rusbeir.retrieval.lexical.engines import Hits

TANTIVY_K1 = 1.2
TANTIVY_B = 0.75
ROW = "row"
FILLER = "\ufdd0"
"""A noncharacter: Unicode promises that no text holds it."""
MAX_TERM_CHARS = 16_000
"""Terms are cut here, in documents and queries: tantivy silently drops one of more than 65,530 bytes."""
_COMMON = 0.1
"""The share of documents from which on a term is common; measured on Zipf streams of 0.2 and 1 million."""


class _Clause(NamedTuple):
    """A term of a query in one field."""

    query: tantivy.Query
    most: float
    """No document gets more than this for it."""
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
    """The first row of each segment, where rows come in order and one by one; documents of equal score,
    which tantivy gives by their place in the index, then come by row."""

    def search(self, queries: Sequence[Sequence[str]], k: int) -> list[Hits]:
        return [self._ranking(terms, k) for terms in queries]

    def _ranking(self, terms: Sequence[str], k: int) -> Hits:
        counts = Counter(term[:MAX_TERM_CHARS] for term in terms)
        del counts[FILLER]
        fields = [
            self._clauses(name, present, counts)
            for name, present in zip(self.bm25.field_names, self.documents, strict=True)
            if present
        ]
        if self.first_rows is not None:
            return self._hits(fields, k)
        # Which documents of equal score are in at the cut-off must not depend on the layout of the index.
        limit = k + 1
        rows, scores = self._hits(fields, limit)
        while len(rows) == limit and scores[-1] == scores[k - 1]:
            limit *= 4
            rows, scores = self._hits(fields, limit)
        order = np.lexsort((rows, np.negative(scores)))[:k].tolist()
        return [rows[place] for place in order], [scores[place] for place in order]

    def _clauses(self, name: str, present: int, counts: Counter[str]) -> list[_Clause]:
        clauses = []
        for term, count in counts.items():
            having = self.searcher.doc_freq(name, term)
            if not having:
                continue
            query = tantivy.Query.term_query(self.schema, name, term, index_option="freq")
            idf = _idf(present, having)
            boost = count * idf / _idf(self.total, having)
            if boost != 1.0:
                query = tantivy.Query.boost_query(query, boost)
            clauses.append(_Clause(query, count * idf * (TANTIVY_K1 + 1), having > _COMMON * self.total))
        return clauses

    def _hits(self, fields: list[list[_Clause]], limit: int) -> tuple[list[Any], list[float]]:
        if self.bm25.fields == "best_fields" and len(fields) > 1:
            query = tantivy.Query.disjunction_max_query(list(map(_any_of, fields)), self.bm25.tie_breaker)
            found = self._found(query, limit)
        else:
            found = self._best([clause for clauses in fields for clause in clauses], limit)
        scores = [score for score, _ in found]
        if self.first_rows is None:
            return self.searcher.fast_field_values(ROW, [address for _, address in found]), scores
        if len(self.first_rows) == 1:
            return [address.doc for _, address in found], scores
        return [self.first_rows[address.segment_ord] + address.doc for _, address in found], scores

    def _best(self, clauses: list[_Clause], limit: int) -> list[tuple[Any, tantivy.DocAddress]]:
        """The best documents by the sum of the clauses.

        Common terms add little to a score and most of the work. So only documents that hold a rarer term are
        scored, unless it turns out that common terms alone could have got a document among the best
        (MaxScore: Turtle and Flood, 1995). Both ways add in the same order, so scores do not depend on the limit.
        """
        rarer = [clause for clause in clauses if not clause.common]
        common = [clause for clause in clauses if clause.common]
        if not common or not rarer:
            return self._found(_any_of(clauses), limit)
        found = self._found(_plus(tantivy.Occur.Must, rarer, common), limit)
        if len(found) == limit and found[-1][0] > sum(clause.most for clause in common) * (1 + 1e-6):
            return found
        return self._found(_plus(tantivy.Occur.Should, rarer, common), limit)

    def _found(self, query: tantivy.Query, limit: int) -> list[tuple[Any, tantivy.DocAddress]]:
        return self.searcher.search(query, limit, count=False).hits


def _any_of(clauses: list[_Clause]) -> tantivy.Query:
    return tantivy.Query.boolean_query([(tantivy.Occur.Should, clause.query) for clause in clauses])


def _plus(occur: tantivy.Occur, rarer: list[_Clause], common: list[_Clause]) -> tantivy.Query:
    """The documents of any clause (Should), or of any rarer one (Must), scored by the sum of all."""
    query = _any_of(rarer)
    for clause in common:
        query = tantivy.Query.boolean_query([(occur, query), (tantivy.Occur.Should, clause.query)])
    return query


def _idf(documents: int, having: int) -> float:
    return math.log1p((documents - having + 0.5) / (having + 0.5))

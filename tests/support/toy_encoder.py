"""Encoders made of arithmetic: words hashed into a vector, every call counted. Also run as a program, to be killed."""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rusbeir.types import Doc, silent


class Toy:
    """Vectors of a text's words; texts that share words are close to each other."""

    def __init__(self, dim: int = 32, seconds: float = 0.0) -> None:
        self.dim = dim
        self.signature = f"toy|dim:{dim}"
        self.calls: list[int] = []
        self._seconds = seconds

    def encode_queries(self, texts: Sequence[str]):
        return self._encode(texts)

    def encode_documents(self, texts: Sequence[str]):
        return self._encode(texts)

    def _encode(self, texts: Sequence[str]):
        self.calls.append(len(texts))
        time.sleep(self._seconds)
        # As with padding on a real model, a vector depends a little on the batch that it was computed in.
        noise = 1e-6 * len(texts)
        vectors = np.array([sum(word_vector(word, self.dim) for word in text.split() or [""]) for text in texts])
        vectors = vectors + noise
        return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def word_vector(word: str, dim: int):
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "little")
    return np.random.default_rng(seed).standard_normal(dim)


class Docs(list[Doc]):
    """Documents as a Corpus."""

    def __getitem__(self, doc_id):
        return next(doc for doc in self if doc.doc_id == doc_id)


def documents(n: int) -> Docs:
    """Documents of eight words, every tenth a copy of the one before."""
    sources = [i - (i % 10 == 9) for i in range(n)]
    return Docs(
        Doc(f"d{i}", " ".join(f"w{source * 7 % (j + 11)}x{j}" for j in range(8)), f"t{source}")
        for i, source in enumerate(sources)
    )


def build(cache: Path, n: int, toy: Toy, dtype: str = "float32"):
    """The store and the folder of a corpus of n documents."""
    from rusbeir.retrieval.dense import encoded_corpus
    from rusbeir.retrieval.dense.embedding_store import EmbeddingStore

    store = EmbeddingStore(cache / "store", dtype)
    encoded_corpus.encode(
        cache / "corpus", documents(n), store, toy, lambda doc: [f"{doc.title} {doc.text}"], silent, name="toy"
    )
    return store


if __name__ == "__main__":
    build(Path(sys.argv[1]), int(sys.argv[2]), Toy(seconds=0.02))

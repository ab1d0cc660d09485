"""Encoders made of arithmetic: words hashed into a vector, every call counted. Also run as a program, to be killed."""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from rusbeir.retrieval.models.batches import plan_batches
from rusbeir.types import Doc


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


class ToyPools(Toy):
    """The same, in batches of its own choice; also what a text's batch does to its vector."""

    def __init__(self, seconds: float = 0.0, *, batch_words: int = 400) -> None:
        super().__init__(seconds=seconds)
        self.pools: list[int] = []
        self._batch_words = batch_words

    truncation = "cut at 11 words"

    def count_truncated(self, texts: Sequence[str]) -> int:
        return sum(len(text.split()) > 11 for text in texts)

    def tokenize(self, texts: Iterable[str], *, queries: bool):
        read = list(texts)
        self.pools.append(len(read))
        return SimpleNamespace(texts=read, over_length=[self.count_truncated([text]) == 1 for text in read])

    def encode_tokens(self, tokens, done, keep) -> None:
        lengths = np.array([len(text.split()) for text in tokens.texts], np.int64)
        for indices in plan_batches(lengths, self._batch_words):
            if not done >= set(indices.tolist()):
                keep(indices, self._encode([tokens.texts[index] for index in indices]))


def word_vector(word: str, dim: int):
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "little")
    return np.random.default_rng(seed).standard_normal(dim)


class Docs(list[Doc]):
    """Documents as a Corpus."""

    def __getitem__(self, doc_id):
        return next(doc for doc in self if doc.doc_id == doc_id)


def uneven(n: int) -> Docs:
    """Documents of two to twenty words, every tenth a copy of the one before."""
    sources = [i - (i % 10 == 9) for i in range(n)]
    return Docs(
        Doc(f"d{i}", " ".join(f"w{source}x{j}" for j in range(1 + source * 7 % 19)), "t")
        for i, source in enumerate(sources)
    )


def documents(n: int) -> Docs:
    """Documents of eight words, every tenth a copy of the one before."""
    sources = [i - (i % 10 == 9) for i in range(n)]
    return Docs(
        Doc(f"d{i}", " ".join(f"w{source * 7 % (j + 11)}x{j}" for j in range(8)), f"t{source}")
        for i, source in enumerate(sources)
    )


def add(store, texts: Sequence[str], encoder) -> list[int]:
    """The rows of those texts, encoded at once where they are missing."""
    return store.find_or_add(texts, lambda new: [store.check(encoder.encode_documents(new), new, "toy")])


def build(cache: Path, n: int, toy: Toy, dtype: str = "float32"):
    """The store of a corpus of n documents, which is encoded in a folder next to it."""
    from rusbeir.retrieval.encoding import encoded_corpus
    from rusbeir.retrieval.encoding.embedding_store import EmbeddingStore
    from rusbeir.retrieval.encoding.pools import Encoding

    store = EmbeddingStore(cache / "store", dtype)
    docs = uneven(n) if isinstance(toy, ToyPools) else documents(n)
    encoding = Encoding(store=store, encoder=toy, name="toy")
    encoded_corpus.encode(cache / "corpus", docs, encoding, lambda doc: [f"{doc.title} {doc.text}"])
    return store


if __name__ == "__main__":
    from rusbeir.retrieval.encoding import pools

    # Every block is written at once, however slow the disk is.
    pools.KEEP_SECONDS = 0.0
    if "pools" in sys.argv:
        pools.POOL_TEXTS = 300
    build(Path(sys.argv[1]), int(sys.argv[2]), (ToyPools if "pools" in sys.argv else Toy)(seconds=0.02))

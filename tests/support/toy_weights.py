"""A sparse encoder made of arithmetic: words hashed into terms, texts noted. Also run as a program, to be killed."""

from __future__ import annotations

import hashlib
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy import sparse

from rusbeir.types import Doc

TERMS = 5000


class ToyWeights:
    """The more often a term occurs in the text, the more it weighs."""

    signature = "toy-weights"
    truncation = "cut at 9 words"

    def __init__(self, seconds: float = 0.0) -> None:
        self.texts: list[str] = []
        self._seconds = seconds

    def encode_queries(self, texts: Sequence[str]):
        return self._encode(texts)

    def encode_documents(self, texts: Sequence[str]):
        return self._encode(texts)

    def count_truncated(self, texts: Sequence[str]) -> int:
        return sum(len(text.split()) > 9 for text in texts)

    def _encode(self, texts: Sequence[str]):
        self.texts += texts
        time.sleep(self._seconds)
        rows = sparse.lil_array((len(texts), TERMS), dtype=np.float32)
        for row, text in enumerate(texts):
            for word, count in Counter(text.split()[:9]).items():
                # As with padding on a real model, a weight depends a little on the batch that it was computed in.
                rows[row, term(word)] = np.log1p(count) + 1e-6 * len(texts)
        return rows.tocsr()


def term(word: str) -> int:
    return int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "little") % TERMS


def documents(n: int) -> list[Doc]:
    """Documents of eight words at most, every tenth a copy of the one before."""
    sources = [i - (i % 10 == 9) for i in range(n)]
    texts = [" ".join(f"w{source * 7 % (j + 11)}x{j}" for j in range(source % 9)) for source in sources]
    return [Doc(f"d{i}", text) for i, text in enumerate(texts)]


def distinct(docs: list[Doc]) -> list[Doc]:
    """The documents, each with one distinct word."""
    return [doc._replace(text=f"{doc.text} own{number}") for number, doc in enumerate(docs)]


def build(cache: Path, docs: list[Doc], toy: ToyWeights, corpus: str = "corpus"):
    """The store and the collection of a corpus."""
    from rusbeir.retrieval.encoding import encoded_corpus
    from rusbeir.retrieval.encoding.pools import Encoding
    from rusbeir.retrieval.sparse.weight_store import WeightStore

    store = WeightStore(cache / "store")
    encoding = Encoding(store=store, encoder=toy, name="toy")
    encoded, _ = encoded_corpus.open_or_encode(cache / corpus, docs, encoding, lambda doc: [doc.text], model="toy")
    return store, encoded


if __name__ == "__main__":
    from rusbeir.retrieval.encoding import pools

    # Every block is written at once, however slow the disk is.
    pools.KEEP_SECONDS = 0.0
    build(Path(sys.argv[1]), distinct(documents(int(sys.argv[2]))), ToyWeights(seconds=0.02))

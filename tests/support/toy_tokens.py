"""A late encoder made of arithmetic: a vector for each word, in batches of its own choice. Also run, to be killed."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from rusbeir.retrieval.encoding.encoder import collect
from rusbeir.retrieval.encoding.token_vectors import TokenVectors
from rusbeir.retrieval.models.batches import plan_batches
from tests.support.toy_encoder import uneven, word_vector

DIM = 8


class ToyTokens:
    """Vectors of the words of a text, a few of which differ with the batch, as they do with padding on a real model."""

    signature = "toy-tokens"

    def __init__(self, seconds: float = 0.0) -> None:
        self.calls: list[int] = []
        self._seconds = seconds

    def encode_queries(self, texts: Sequence[str]):
        return collect(self, self.tokenize(texts, queries=True))

    def encode_documents(self, texts: Sequence[str]):
        return collect(self, self.tokenize(texts, queries=False))

    def tokenize(self, texts: Iterable[str], *, queries: bool):
        read = list(texts)
        return SimpleNamespace(texts=read, over_length=[False] * len(read))

    def encode_tokens(self, tokens, done, keep) -> None:
        lengths = np.array([len(text.split()) for text in tokens.texts], np.int64)
        for indices in plan_batches(lengths, 100):
            if not done >= set(indices.tolist()):
                self.calls.append(len(indices))
                time.sleep(self._seconds)
                keep(indices, token_vectors([tokens.texts[index] for index in indices]))


def token_vectors(texts: Sequence[str]) -> TokenVectors:
    """Vectors of the words."""
    rows = [[word_vector(word, DIM) / 8 + 1e-3 * len(texts) for word in text.split()] for text in texts]
    vectors = np.array([vector for row in rows for vector in row], np.float32).reshape(-1, DIM)
    return TokenVectors(vectors=vectors, borders=np.concatenate([[0], np.cumsum([len(row) for row in rows])]))


def build(cache: Path, n: int, toy: ToyTokens) -> None:
    """The store of a corpus of n documents."""
    from rusbeir.retrieval.encoding import encoded_corpus
    from rusbeir.retrieval.encoding.pools import Encoding
    from rusbeir.retrieval.late.token_store import TokenStore

    encoding = Encoding(store=TokenStore(cache / "store", "float16"), encoder=toy, name="toy")
    encoded_corpus.open_or_encode(cache / "corpus", uneven(n), encoding, lambda doc: [doc.text], model="toy")


if __name__ == "__main__":
    from rusbeir.retrieval.encoding import pools

    pools.KEEP_SECONDS = 0.0
    build(Path(sys.argv[1]), int(sys.argv[2]), ToyTokens(seconds=0.01))

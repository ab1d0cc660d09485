"""Models for a cluster's workers. Workers inherit the environment of their node, so they can tell where they are."""

from __future__ import annotations

import os

from rusbeir.errors import require
from tests.support.toy_encoder import Toy

HERE = "TEST_PROCESS"
"""Set where the tests run, and not on the nodes."""


class Away:
    """An encoder and reranker that refuses to compute where the tests run; scores are the words in common."""

    pointwise = True
    truncation = "cut at 8 words"

    def __init__(self):
        self._toy = Toy()
        self.signature = self._toy.signature

    def encode_queries(self, texts):
        return self._encode(texts)

    def encode_documents(self, texts):
        return self._encode(texts)

    def count_truncated(self, texts):
        return sum(len(text.split()) > 8 for text in texts)

    def score(self, query, documents):
        self._refuse()
        return [len({*query.split()} & {*text.split()}) for text in documents]

    def are_truncated(self, query, documents):
        return [len(text.split()) > 8 for text in documents]

    def _encode(self, texts):
        self._refuse()
        # One by one, as a vector of Toy depends a little on its batch.
        return self._toy.encode_documents(texts) if len(texts) == 1 else [self._encode([text])[0] for text in texts]

    def _refuse(self):
        if HERE in os.environ:
            raise AssertionError("this should have been computed by a worker")


class Near(Away):
    """The same, computed anywhere."""

    def _refuse(self):
        pass


def of_this_process():
    """An encoder of another version of its model on workers."""
    made = Near()
    made.signature = f"toy|revision:{'1' if HERE in os.environ else '2'}"
    return made


def lacking_an_extra():
    """An encoder whose package is installed where the tests run only."""
    if HERE not in os.environ:
        require("a_package_that_is_not_there", "The toy encoder", "toy")
    return Near()


def deadly():
    """An encoder that ends the process of a worker."""
    made = Near()
    made.encode_documents = lambda texts: os._exit(1)
    return made

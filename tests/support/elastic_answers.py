"""Answers of Elasticsearch: compared with those of another engine, and made up."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import orjson
import pytest

from tests.support import local_server

RELATIVE = 2e-6


def agree(one: dict[str, float], other: dict[str, float]) -> int:
    """How many ranks were compared; each has equal scores, and the same document unless the score is tied."""
    assert len(one) == len(other)
    last = min(one.values(), default=0.0)
    for (one_id, one_score), (other_id, other_score) in zip(one.items(), other.items(), strict=True):
        assert one_score == pytest.approx(other_score, rel=RELATIVE)
        if one_id != other_id:
            # A tie at the cut-off may leave its document out of the other run.
            assert one.get(other_id, last) == pytest.approx(one_score, rel=RELATIVE)
    return len(one)


@contextlib.contextmanager
def answering(status: int, document: object, product: str = "Elasticsearch") -> Iterator[str]:
    """A server that answers everything so: for what cannot be run here. Yields its address."""

    class Answering(local_server.Handler):
        def do_GET(self) -> None:
            self.body()
            headers = {"Content-Type": "application/json"} | ({"X-Elastic-Product": product} if product else {})
            self.answer(status, headers, orjson.dumps(document))

        do_POST = do_GET

    with local_server.serving(Answering) as url:
        yield url

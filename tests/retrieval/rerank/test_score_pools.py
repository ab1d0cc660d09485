"""Pairs of many queries scored together: kept while they are computed, each once."""

from __future__ import annotations

import pytest

from rusbeir.errors import BackendError
from rusbeir.retrieval.rerank import score_cache
from rusbeir.retrieval.rerank.flagembedding import TextPairs
from rusbeir.retrieval.rerank.score_cache import ScoreCache


class Lengths:
    """A document's score is its length; fails after some batches."""

    signature, pointwise, truncation = "lengths-1", True, "cut at 3 letters"

    def __init__(self, batches: int = 1_000) -> None:
        self.pairs: list[tuple[str, str]] = []
        self._batches = batches

    def score(self, query, documents):
        raise AssertionError("all pairs are scored together")

    def are_truncated(self, query, documents):
        raise AssertionError("whether a pair was cut comes with its score")

    def tokenize_pairs(self, pairs):
        listed = list(pairs)
        return TextPairs(pairs=listed, over_length=[len(text) > 3 for _, text in listed])

    def score_tokens(self, tokens, keep):
        for start in range(0, len(tokens.pairs), 4):
            if self._batches == 0:
                raise BackendError("no more")
            self._batches -= 1
            part = tokens.pairs[start : start + 4]
            self.pairs += part
            keep(range(start, start + len(part)), [len(text) for _, text in part])


LISTS = [(f"q{number}", ["a" * length for length in range(1, 2 + number)]) for number in range(6)]


def test_a_failed_pool_is_resumed_and_each_pair_scored_once(tmp_path, monkeypatch):
    monkeypatch.setattr(score_cache, "KEEP_SECONDS", 0.0)
    cache = ScoreCache(tmp_path / "scores.sqlite")
    failing, done = Lengths(3), []
    pool = cache.tokenize(failing, LISTS)
    with pytest.raises(BackendError, match="no more"):
        cache.fill(failing, cache.tokenize(failing, LISTS), "lengths", done.append)
    rest = Lengths()
    cache.fill(rest, pool, "lengths", done.append)
    assert sorted(failing.pairs + rest.pairs) == sorted((query, text) for query, texts in LISTS for text in texts)
    assert len(failing.pairs) == 12
    assert done[-1] == 1
    for query, texts in LISTS:
        scored = cache.score(rest, query, texts, "lengths")
        assert scored.scores == [len(text) for text in texts]
        assert scored.truncated == sum(len(text) > 3 for text in texts)
    assert cache.tokenize(rest, LISTS) is None
    again = Lengths()
    cache.fill(again, pool, "lengths", done.append)
    assert again.pairs == [], "another process may have scored them after they were tokenised"


def test_a_score_that_is_not_finite_is_refused(tmp_path):
    class Broken(Lengths):
        def score_tokens(self, tokens, keep):
            keep([0], [float("nan")])

    cache = ScoreCache(tmp_path / "scores.sqlite")
    with pytest.raises(BackendError, match="lengths returned the score nan"):
        cache.fill(Broken(), cache.tokenize(Broken(), LISTS), "lengths", lambda _: None)

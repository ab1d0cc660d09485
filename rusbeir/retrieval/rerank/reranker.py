"""The Protocol of a reranker, its optional abilities, and the check of its scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set, Sized
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from rusbeir.errors import BackendError
from rusbeir.retrieval.encoding.encoder import gather
from rusbeir.retrieval.models.batches import Places, Tokens
from rusbeir.text import shorten


class Reranker(Protocol):
    """Scores the documents that a first stage found for a query.

    A class of yours with these two members is used as `bm25 >> rerank(python:package.module.factory)`. Scores are kept
    in the cache under the signature: of each document with `pointwise = True` (see Pointwise), else of whole lists.

    >>> class Overlap:
    ...     signature, pointwise = "overlap-1", True
    ...     def score(self, query, documents): return [len({*query} & {*text}) for text in documents]
    """

    @property
    def signature(self) -> str:
        """Everything that decides the scores: model and revision, runtime, prompt, maximum length."""
        ...

    def score(self, query: str, documents: Sequence[str]) -> Sequence[float]:
        """One finite number per document, in their order; higher is better.

        documents come in the first stage's order, best first; each is a title and its text.
        """
        ...


@runtime_checkable
class Pointwise(Protocol):
    """An optional ability: a document's score does not depend on the others, so it is reused in every later list."""

    @property
    def pointwise(self) -> bool: ...


@runtime_checkable
class ReportsTruncation(Protocol):
    """An optional ability: to report the pairs that are not read whole."""

    @property
    def truncation(self) -> str:
        """What happens to a longer pair, as a phrase: "cut at 512 tokens"."""
        ...

    def are_truncated(self, query: str, documents: Sequence[str]) -> Sequence[bool]:
        """For each document, whether it and the query are longer than the model reads at once."""
        ...


@runtime_checkable
class ScoresEach(Pointwise, Protocol):
    """An optional ability: to hand over each score as soon as it is there, so that a kill loses none."""

    def score_each(self, query: str, documents: Sequence[str], keep: Callable[[int, float | None], None]) -> None:
        """Call keep(place, score) for each document, in any order; None is no judgement and counts as 0."""
        ...


@runtime_checkable
class ScoresPools(Pointwise, Protocol):
    """An optional ability: to score the pairs of many queries together, in batches of similar length."""

    def tokenize_pairs(self, pairs: Iterable[tuple[str, str]]) -> Any:
        """Queries with a document each as the model reads them, with what Tokens have; runs in another thread."""
        ...

    def score_tokens(self, tokens: Any, keep: Callable[[Any, Any], None]) -> None:
        """Call keep(places, scores) for each batch of pairs, in any order."""
        ...


def score_alone(reranker: ScoresPools, query: str, documents: Sequence[str]) -> list[float]:
    """The scores of one query's documents."""
    if not documents:
        return []
    tokens = reranker.tokenize_pairs((query, document) for document in documents)
    scores: list[float] = gather(partial(reranker.score_tokens, tokens)).tolist()
    return scores


@dataclass(frozen=True, kw_only=True)
class PairTokens:
    """Queries and documents that a model reads apart; a query is read once."""

    queries: Tokens
    documents: Tokens
    query_of: npt.NDArray[np.int64]
    """The place of each document's query."""

    @property
    def over_length(self) -> Sequence[bool]:
        """Which pairs have a side that was cut."""
        of_queries, of_documents = np.array(self.queries.over_length), np.array(self.documents.over_length)
        found: list[bool] = (of_documents | of_queries[self.query_of]).tolist()
        return found

    def batches(self) -> Iterator[Places]:
        """The places of each batch of documents."""
        return self.documents.batches()

    def take(self, places: Places) -> PairTokens:
        """Those pairs alone."""
        queries, query_of = np.unique(self.query_of[places], return_inverse=True)
        return PairTokens(queries=self.queries.take(queries), documents=self.documents.take(places), query_of=query_of)

    @classmethod
    def join(cls, parts: Sequence[PairTokens]) -> PairTokens:
        """The pairs of several parts as one."""
        before = np.cumsum([0, *(len(part.queries.over_length) for part in parts[:-1])])
        return cls(
            queries=Tokens.join([part.queries for part in parts]),
            documents=Tokens.join([part.documents for part in parts]),
            query_of=np.concatenate([part.query_of + first for part, first in zip(parts, before, strict=True)]),
        )


@runtime_checkable
class SortsWindows(Reranker, Protocol):
    """An optional ability: to sort `window` documents at a time, from the end of a list to its start."""

    @property
    def window(self) -> int:
        """Documents in a window."""
        ...

    @property
    def step(self) -> int:
        """Documents from the start of one window to that of the next."""
        ...


@runtime_checkable
class ReportsUnjudged(Protocol):
    """An optional ability: to say what becomes of documents, or lists, that the model did not judge."""

    def describe_unjudged(self, count: int) -> str:
        """A phrase about that many of them: "said neither yes nor no of 3 documents: they score 0."."""
        ...


class Unjudged(BackendError):
    """The model answered without judging the list; its answer is not worth keeping."""


class Scored(NamedTuple):
    """The scores of a list of documents, and how many of them were truncated or not judged."""

    scores: list[float]
    truncated: int
    unjudged: int = 0
    """Documents, or lists, of this call only."""


def check_scores(scores: Any, documents: Sized, reranker: str) -> list[float]:
    """The scores as floats. Raises BackendError unless there is one finite number per document."""
    try:
        if isinstance(scores, Mapping | Set | str | bytes):
            raise TypeError("it has no order of the documents")
        numbers = [float(score) for score in scores]
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        raise BackendError(
            f"{reranker} returned a {type(scores).__name__}, which is not a list of numbers ({shorten(str(error))}). "
            f"Return one number for each of the {len(documents)} documents."
        ) from error
    if len(numbers) != len(documents):
        raise BackendError(f"{reranker} returned {len(numbers)} scores for {len(documents)} documents.")
    if wrong := [number for number in numbers if not math.isfinite(number)]:
        raise BackendError(f"{reranker} returned the score {wrong[0]}. Scores must be finite to be sorted.")
    return numbers

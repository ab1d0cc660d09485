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
from rusbeir.retrieval.models.batches import Indices, Tokens
from rusbeir.text import shorten


class Reranker(Protocol):
    """Scores the documents that a first stage finds for a query.

    A class of yours with these two members is used as `bm25 >> rerank(python:package.module.factory)`. Scores are kept
    in the cache under the signature: of each document with `pointwise = True` (see Pointwise), else of whole lists.

    Examples:
        >>> class Overlap:
        ...     signature, pointwise = "overlap-1", True
        ...     def score(self, query, documents): return [len({*query} & {*text}) for text in documents]
    """

    @property
    def signature(self) -> str:
        """Everything that decides the scores: model and revision, runtime, prompt, maximum length."""
        ...

    def score(self, query: str, documents: Sequence[str]) -> Sequence[float]:
        """Return one finite number per document, in their order; higher is better.

        documents come in the first stage's order, best first; each is a title and its text.
        """
        ...


@runtime_checkable
class Pointwise(Protocol):
    """An optional ability: with `pointwise = True`, a document's score does not depend on the others in its list.

    The score is then reused in every later list.
    """

    @property
    def pointwise(self) -> bool:
        """Tell whether the score of a document does not depend on the others of its list."""
        ...


@runtime_checkable
class ReportsTruncation(Protocol):
    """An optional ability: to report the pairs that are not read whole."""

    @property
    def truncation(self) -> str:
        """The treatment of a longer pair, as a phrase: "cut at 512 tokens"."""
        ...

    def are_truncated(self, query: str, documents: Sequence[str]) -> Sequence[bool]:
        """Return for each document whether it and the query are longer than the model reads at once."""
        ...


@runtime_checkable
class ScoresEach(Pointwise, Protocol):
    """An optional ability: to hand over each score as soon as it is known, so that a kill loses none."""

    def score_each(self, query: str, documents: Sequence[str], keep: Callable[[int, float | None], None]) -> None:
        """Call keep(index, score) for each document, in any order; None means no judgement and counts as 0."""
        ...


@runtime_checkable
class ScoresPools(Pointwise, Protocol):
    """An optional ability: to score the pairs of many queries together, in batches of similar length."""

    def tokenize_pairs(self, pairs: Iterable[tuple[str, str]]) -> Any:
        """Return pairs of a query and a document as the model reads them, with the members of Tokens.

        This runs in another thread.
        """
        ...

    def score_tokens(self, tokens: Any, keep: Callable[[Any, Any], None]) -> None:
        """Call keep(indices, scores) for each batch of pairs, in any order."""
        ...


@runtime_checkable
class WaitsForBatches(ScoresPools, Protocol):
    """An optional ability: to score so many pairs together that a provider's batch is full."""

    @property
    def pool_pairs(self) -> int:
        """Return how many pairs are scored together at most."""
        ...


def score_alone(reranker: ScoresPools, query: str, documents: Sequence[str]) -> list[float]:
    """Score one query's documents without those of other queries."""
    if not documents:
        return []
    tokens = reranker.tokenize_pairs((query, document) for document in documents)
    scores: list[float] = gather(partial(reranker.score_tokens, tokens)).tolist()
    return scores


@dataclass(frozen=True, kw_only=True)
class PairTokens:
    """Queries and documents that a model reads separately, each query once."""

    queries: Tokens
    documents: Tokens
    query_of: npt.NDArray[np.int64]
    """The index of each document's query."""

    @classmethod
    def read(cls, pairs: Iterable[tuple[str, str]], tokenize: Callable[..., Tokens]) -> PairTokens:
        """Tokenize each document and, once, each query; tokenize is called with texts and `queries=`."""
        number: dict[str, int] = {}
        query_of: list[int] = []

        def read_documents() -> Iterator[str]:
            for query, document in pairs:
                query_of.append(number.setdefault(query, len(number)))
                yield document

        # The queries are known when the documents have been read.
        documents = tokenize(read_documents(), queries=False)
        queries = tokenize(number, queries=True)
        return cls(queries=queries, documents=documents, query_of=np.array(query_of, np.int64))

    @property
    def over_length(self) -> Sequence[bool]:
        """True for each pair that has a side that was cut."""
        queries, documents = np.array(self.queries.over_length), np.array(self.documents.over_length)
        over_length: list[bool] = (documents | queries[self.query_of]).tolist()
        return over_length

    def batches(self) -> Iterator[Indices]:
        """Yield the indices of each batch of documents."""
        return self.documents.batches()

    def take(self, indices: Indices) -> PairTokens:
        """Return those pairs alone."""
        queries, query_of = np.unique(self.query_of[indices], return_inverse=True)
        return PairTokens(queries=self.queries.take(queries), documents=self.documents.take(indices), query_of=query_of)

    @classmethod
    def join(cls, parts: Sequence[PairTokens]) -> PairTokens:
        """Join the pairs of several parts."""
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
        """The number of documents in a window."""
        ...

    @property
    def step(self) -> int:
        """The number of documents from the start of one window to that of the next."""
        ...


@runtime_checkable
class ReportsUnjudged(Protocol):
    """An optional ability: to say what becomes of documents, or lists, that the model did not judge."""

    def describe_unjudged(self, count: int) -> str:
        """Return a phrase about so many of them: "said neither yes nor no of 3 documents: they score 0."."""
        ...


class Unjudged(BackendError):
    """A model answered without judging the list; its answer is not worth keeping."""


class Scored(NamedTuple):
    """The scores of a list of documents, and how many of them were truncated or not judged."""

    scores: list[float]
    truncated: int
    unjudged: int = 0
    """How many documents, or lists, this call left without a judgement."""


def check_scores(scores: Any, documents: Sized, reranker: str) -> list[float]:
    """Convert scores to floats. Raises BackendError unless there is one finite number per document."""
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

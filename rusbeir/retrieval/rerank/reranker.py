"""The seam for whatever scores documents against a query, and the check of every answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from rusbeir.errors import BackendError


class Reranker(Protocol):
    """ScoreCache the documents that a first stage found for a query."""

    @property
    def signature(self) -> str:
        """Everything that decides the scores: model and revision, runtime, prompt, maximum length."""
        ...

    def score(self, query: str, documents: Sequence[str]) -> Sequence[float]:
        """One number a document, higher is better; title and text were joined before, the best hit comes first."""
        ...


@runtime_checkable
class Pointwise(Protocol):
    """A second ability: a document's score does not depend on the others, so it is kept for every later list."""

    @property
    def pointwise(self) -> bool: ...


@runtime_checkable
class ScoresEach(Pointwise, Protocol):
    """Another ability: to hand over each score when it is there, so that a kill loses none that was paid for."""

    def score_each(self, query: str, documents: Sequence[str], keep: Callable[[int, float | None], None]) -> None:
        """Call keep with the place and the score of each document, in any order; None is no judgement and scores 0."""
        ...


@runtime_checkable
class SortsWindows(Reranker, Protocol):
    """Another ability: to sort so many documents at a time, of a list from its end to its beginning."""

    @property
    def window(self) -> int:
        """Documents of a window."""
        ...

    @property
    def step(self) -> int:
        """From the beginning of one window to that of the next."""
        ...


@runtime_checkable
class ReportsTruncation(Protocol):
    """Another ability: to say what is not read whole."""

    @property
    def truncation(self) -> str:
        """What happens to a longer pair: "cut at 512 tokens"."""
        ...

    def are_truncated(self, query: str, documents: Sequence[str]) -> Sequence[bool]:
        """For each document, whether it and the query are longer than is read at once."""
        ...


class Unjudged(BackendError):
    """The model answered, but gave no judgement of the list; what it said is not worth keeping."""


@runtime_checkable
class ReportsUnjudged(Protocol):
    """Another ability: to say what becomes of what the model gives no judgement of."""

    def unjudged(self, count: int) -> str:
        """Of so many documents, or lists: "said neither yes nor no of 3 documents: they score 0."."""
        ...


class Scored(NamedTuple):
    """The scores of a list of documents, how many of them were not read whole, and what the model did not judge."""

    scores: list[float]
    truncated: int
    unjudged: int = 0
    """Documents, or lists, by this call alone."""


def check_scores(scores: Any, documents: Sequence[str], reranker: str) -> list[float]:
    """The answer as floats, once there is a number for each document. BackendError where there is not."""
    try:
        numbers = [float(score) for score in scores]
    except (TypeError, ValueError, RuntimeError) as error:
        raise BackendError(
            f"{reranker} answered a {type(scores).__name__} that is no list of numbers: answer one number for each of "
            f"the {len(documents)} documents ({' '.join(str(error).split())})."
        ) from error
    if len(numbers) != len(documents):
        raise BackendError(f"{reranker} answered {len(numbers)} scores for {len(documents)} documents.")
    if not all(map(math.isfinite, numbers)):
        wrong = next(number for number in numbers if not math.isfinite(number))
        raise BackendError(f"{reranker} answered the score {wrong}: only numbers can be sorted.")
    return numbers

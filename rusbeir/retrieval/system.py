"""What every retrieval system offers: a name, a signature, and preparation on a corpus."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self, TypeVar, runtime_checkable

from rusbeir.jobs import CharBudget
from rusbeir.types import Corpus, Progress, Retriever, silent

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A system ready to search one corpus, and what it cost to get there when its index was built."""

    retriever: Retriever
    path: Path
    analyse_seconds: float = 0.0
    index_seconds: float = 0.0
    index_bytes: int = 0
    reused: bool = False
    """Whether the index was there already; the seconds are then those of its build."""


@runtime_checkable
class Metered(Protocol):
    """An optional ability of encoders and rerankers: to count what they send to an endpoint."""

    def with_budget(self, budget: CharBudget) -> Self:
        """The same model, which spends from the budget before it sends a text."""
        ...


@runtime_checkable
class LimitsDepth(Protocol):
    """An optional ability of systems: to return at most `depth` hits per query, whatever k is."""

    @property
    def depth(self) -> int: ...


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """How a caller wants a system prepared and searched; none of it changes a score."""

    progress: Progress = silent
    force: bool = False
    """Whether stages search again although the cache holds their runs."""
    budget: CharBudget | None = None
    """Bounds what encoders and rerankers may send to endpoints."""

    def metered(self, model: T) -> T:
        """The encoder or reranker, bound to the budget where there is one and the model can be metered."""
        return model.with_budget(self.budget) if self.budget and isinstance(model, Metered) else model


DEFAULTS = RunSettings()


class System(Protocol):
    """What a spec names: not yet tied to a corpus."""

    @property
    def name(self) -> str:
        """The spec in its canonical spelling."""
        ...

    @property
    def signature(self) -> str:
        """Everything that decides the scores, the corpus excepted."""
        ...

    @property
    def engine(self) -> str: ...

    def prepare(self, corpus: Corpus, fingerprint: str, settings: RunSettings = ...) -> Prepared:
        """The system on that corpus; opens the index in the cache, or builds it."""
        ...

"""What every retrieval system offers: a name, a signature, and preparation on a corpus."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from rusbeir.types import Corpus, Progress, Retriever, silent


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A system ready to search one corpus, and what it cost to get there when its index was built."""

    retriever: Retriever
    path: Path
    analyse_seconds: float
    index_seconds: float
    index_bytes: int
    reused: bool
    """Whether the index was there already; the seconds are then those of its build."""


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """How a caller wants a system prepared and searched; none of it changes a score."""

    progress: Progress = silent
    force: bool = False
    """Whether stages search again although the cache holds their runs."""


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

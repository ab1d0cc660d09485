"""From the name of a system to one that can be prepared on a corpus and searched."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

from rusbeir.errors import BadInput, unknown
from rusbeir.retrieval.spec import Spec, Stage, parse
from rusbeir.types import Corpus, Progress, Retriever

STAGES = {
    "bm25": "rusbeir.retrieval.lexical.system:from_stage",
}
"""Name of a stage -> "module:function" that makes it, imported on use."""


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

    @property
    def note(self) -> str | None:
        """Why `auto` took this engine, where it could not take its first choice."""
        ...

    def prepare(self, corpus: Corpus, fingerprint: str, progress: Progress) -> Prepared:
        """The system on that corpus; opens the index in the cache, or builds it."""
        ...


StageMaker: TypeAlias = Callable[[Stage, str, str, System | None], System]
"""Called with a stage, language, engine, and the system whose hits the stage works on (None if first)."""


def resolve(spec: Spec | str, *, language: str, engine: str = "auto") -> System:
    """The system that the spec names, for texts of that language.

    Raises UnknownName for a name nobody registered and BadInput for what the engine cannot do.

    >>> resolve("bm25( k1=0.9 )", language="ru").name
    'bm25(k1=0.9)'
    """
    if isinstance(spec, str):
        spec = parse(spec)
    system: System | None = None
    for stage in spec.stages:
        if stage.name not in STAGES:
            raise unknown("system", stage.name, STAGES)
        module, attribute = STAGES[stage.name].split(":")
        make: StageMaker = getattr(importlib.import_module(module), attribute)
        system = make(stage, language, engine, system)
    if system is None:
        raise BadInput("A system has at least one stage, such as bm25.")
    return system

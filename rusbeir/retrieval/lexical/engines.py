"""Which engines there are, what each can do, and the one to take for a BM25."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias

from rusbeir.errors import BadInput, unknown
from rusbeir.retrieval.lexical.bm25 import Bm25

ENGINES = {
    "tantivy": "rusbeir.retrieval.lexical.tantivy_engine:TantivyEngine",
    "bm25s": "rusbeir.retrieval.lexical.bm25s_engine:Bm25sEngine",
}
"""Name -> "module:class", imported on use."""

Hits: TypeAlias = tuple[Sequence[int], Sequence[float]]
"""Corpus rows and their scores, by falling score and then by row."""


class Searcher(Protocol):
    """An open index. Threads may share it."""

    def search(self, terms: Sequence[str], k: int) -> Hits:
        """At most k documents that hold any of the terms; a term that comes twice counts twice."""
        ...


class LexicalEngine(Protocol):
    """Builds and opens inverted indexes of analysed text."""

    @property
    def name(self) -> str: ...

    @property
    def signature(self) -> str:
        """Engine, version and how it keeps lengths: `tantivy-0.27.0|len:lucene`."""
        ...

    def refusal(self, bm25: Bm25) -> str | None:
        """Why this engine cannot compute that BM25; None where it can."""
        ...

    def build(self, folder: Path, rows: Iterator[tuple[str, ...]], bm25: Bm25) -> None:
        """Fill the folder from documents in row order, each one line of terms a field of bm25.field_names."""
        ...

    def open(self, folder: Path, bm25: Bm25) -> Searcher: ...


def load(name: str) -> LexicalEngine:
    """The engine of that name; UnknownName where there is none."""
    if name not in ENGINES:
        raise unknown("engine", name, ["auto", *ENGINES])
    module, attribute = ENGINES[name].split(":")
    engine: LexicalEngine = getattr(importlib.import_module(module), attribute)()
    return engine


def choose(engine: str, bm25: Bm25) -> tuple[LexicalEngine, str | None]:
    """The engine to use and, where `auto` could not take its first choice, why.

    Raises BadInput where the engine asked for cannot compute this BM25.
    """
    if engine != "auto":
        chosen = load(engine)
        if reason := chosen.refusal(bm25):
            able = [name for name in ENGINES if load(name).refusal(bm25) is None]
            raise BadInput(f"{reason} Use --engine {' or '.join(['auto', *able])}.")
        return chosen, None
    first = load("tantivy")
    reason = first.refusal(bm25)
    return (first, None) if reason is None else (load("bm25s"), f"{reason} Using bm25s.")

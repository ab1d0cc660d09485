"""The engines, what each can do, and the choice of one for a BM25."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias, cast, runtime_checkable

from rusbeir.errors import BadInput, option, unknown
from rusbeir.text import digest, slug
from rusbeir.user_sources import find_entry_point, find_entry_points, load_entry_point

if TYPE_CHECKING:
    from rusbeir.retrieval.lexical.bm25 import Bm25

ENGINES = {
    "tantivy": "rusbeir.retrieval.lexical.tantivy_engine:TantivyEngine",
    "bm25s": "rusbeir.retrieval.lexical.bm25s_engine:Bm25sEngine",
    "elasticsearch": "rusbeir.retrieval.elasticsearch.engine:ElasticEngine",
    "opensearch": "rusbeir.retrieval.elasticsearch.engine:opensearch",
}
"""Name -> "module:class", imported on use; `auto` takes the first that can compute the BM25."""
SERVERS = ("elasticsearch", "opensearch")
"""Engines that keep their indexes on a server."""
ENTRY_POINTS = "rusbeir.engines"
"""The group in which an installed package names further engines."""

_ENGINE_PARTS = ("name", "signature", "refusal", "open")

AT = "@"
"""Separates the name of an engine from the address of its server: `elasticsearch@http://127.0.0.1:9200`."""

Terms: TypeAlias = tuple[str, tuple[str, ...]]
"""A document's id, and for each field a line of terms separated by spaces."""

Hits: TypeAlias = tuple[Sequence[int], Sequence[float]]
"""Corpus rows and their scores, by falling score and then by row."""

SERVER_ONLY = "{} gets terms and cannot leave the analysis to a server."
LUCENE_ONLY = "{} keeps document lengths in one byte, as Lucene does, and cannot keep them exact."


@dataclass(frozen=True, kw_only=True)
class IndexKey:
    """Everything that decides the content of an index: the system's signature and the corpus's fingerprint."""

    signature: str
    fingerprint: str

    def name(self, start: str) -> str:
        """Name a file or an index by a readable start and a digest of the key: `bm25-profile-raw-1f3a…`."""
        return f"{slug(start, 60)}-{digest(self.signature, self.fingerprint, chars=12)}"


class Searcher(Protocol):
    """An open index. Threads may share it."""

    def search(self, queries: Sequence[Sequence[str]], k: int) -> Sequence[Hits]:
        """For each query at most k documents that hold any of its terms; a term that comes twice counts twice."""
        ...


class _Engine(Protocol):
    @property
    def name(self) -> str: ...

    def signature(self, bm25: Bm25) -> str:
        """Name the engine, its version and how it keeps lengths for that BM25: `tantivy-0.27.0|len:lucene`."""
        ...

    def refusal(self, bm25: Bm25) -> str | None:
        """Say why this engine cannot compute that BM25; None where it can."""
        ...

    def open(self, folder: Path, bm25: Bm25) -> Searcher: ...


class EmbeddedEngine(_Engine, Protocol):
    """Builds and opens inverted indexes of analysed text in a folder."""

    def build(self, folder: Path, rows: Iterator[Terms], bm25: Bm25) -> None:
        """Fill the folder from documents in row order, with a line for each of bm25.field_names."""
        ...


@runtime_checkable
class RemoteEngine(_Engine, Protocol):
    """An engine that keeps its indexes on a server; the folder says where. Its class takes an `address`."""

    def load(self, folder: Path, rows: Iterator[Terms], bm25: Bm25, key: IndexKey) -> int:
        """Load documents, which come as for EmbeddedEngine.build, under a name of the key; return their bytes there."""
        ...

    def is_loaded(self, folder: Path) -> bool:
        """Return whether the index that the folder names is still on the server."""
        ...


LexicalEngine: TypeAlias = EmbeddedEngine | RemoteEngine


def load(name: str) -> LexicalEngine:
    """Make the engine of that name, which may be followed by @ and the address of its server.

    Raises UnknownName where there is none, and BadInput for an address of an engine that has no server.
    """
    name, sign, address = name.partition(AT)
    if name in ENGINES:
        make = pkgutil.resolve_name(ENGINES[name])
    elif entry := find_entry_point(ENTRY_POINTS, name):
        make, _ = load_entry_point("engine", entry)
    else:
        raise unknown("engine", name, ["auto", *ENGINES, *find_entry_points(ENTRY_POINTS).names])
    if sign and "address" not in inspect.signature(make).parameters:
        raise BadInput(f"The engine {name} runs on this machine and has no address.")
    engine = make(address=address) if sign else make()
    if missing := [part for part in _ENGINE_PARTS if not hasattr(engine, part)]:
        raise BadInput(f"The engine {name} made a {type(engine).__name__} that lacks {', '.join(missing)}.")
    return cast(LexicalEngine, engine)


def choose(engine: str, bm25: Bm25) -> tuple[LexicalEngine, str | None]:
    """Choose the engine and, where `auto` could not take its first choice, say why.

    Raises BadInput where the engine asked for cannot compute this BM25.
    """
    first = next(iter(ENGINES)) if engine == "auto" else engine
    chosen = load(first)
    reason = chosen.refusal(bm25)
    if reason is None:
        return chosen, None
    able = [loaded for loaded in map(load, ENGINES) if loaded.refusal(bm25) is None]
    if not able:
        reasons = [load(name).refusal(bm25) for name in ENGINES]
        raise BadInput(f"No engine computes this BM25. {' '.join(reason for reason in reasons if reason)}")
    if engine != "auto":
        names = ["auto", *(loaded.name for loaded in able)]
        raise BadInput(f"{reason} Use {option('engine', ', '.join(names[:-1]))} or {names[-1]}.")
    return able[0], f"{reason} Using {able[0].name}."

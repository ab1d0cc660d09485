"""A system as a stage of another: its hits without the query itself, and kept, so that nothing is searched twice."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import orjson

from rusbeir.errors import BackendError
from rusbeir.retrieval.system import DEFAULTS, Prepared, RunSettings, System
from rusbeir.storage import atomic_file, cache_folder
from rusbeir.types import Corpus, Queries, Retriever, Run


@dataclass(frozen=True, kw_only=True)
class Source:
    """A system whose runs are kept in the cache, under everything that decides them."""

    system: System
    self_suffixes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.system.name

    @property
    def signature(self) -> str:
        return self.system.signature

    @property
    def engine(self) -> str:
        return self.system.engine

    def prepare(self, corpus: Corpus, fingerprint: str, settings: RunSettings = DEFAULTS) -> Prepared:
        """The system on that corpus, with a retriever that searches only what no run in the cache holds."""
        prepared = self.system.prepare(corpus, fingerprint, settings)
        kept = KeptRuns(signature=self.signature, fingerprint=fingerprint, self_suffixes=self.self_suffixes)
        return replace(prepared, retriever=_Keeping(retriever=prepared.retriever, kept=kept, force=settings.force))


@dataclass(frozen=True, kw_only=True)
class KeptRuns:
    """The runs of one system on one dataset in the cache: a file for each depth and set of queries."""

    signature: str
    fingerprint: str
    self_suffixes: tuple[str, ...] = ()

    def get(self, queries: Queries, k: int) -> Run | None:
        """The run of these queries at that depth, hits in order; None where it was not kept.

        Raises BackendError where the file is damaged.
        """
        path = self._path(queries, k)
        if not path.exists():
            return None
        try:
            with path.open("rb") as file:
                return dict(orjson.loads(line) for line in file)
        except (OSError, ValueError) as error:
            raise BackendError(
                f"The run {path} is damaged ({error}). Remove it: `rusbeir cache clear runs`."
            ) from error

    def put(self, queries: Queries, k: int, run: Run) -> None:
        """Keep a run."""
        with atomic_file(self._path(queries, k)) as file:
            file.writelines(orjson.dumps((query_id, hits)) + b"\n" for query_id, hits in run.items())

    def _path(self, queries: Queries, k: int) -> Path:
        recipe = [self.signature, self.fingerprint, self.self_suffixes, k, list(queries.items())]
        name = hashlib.sha256(orjson.dumps(recipe)).hexdigest()[:32]
        return cache_folder() / "runs" / f"{name}.jsonl"


@dataclass(frozen=True, kw_only=True)
class _Keeping:
    """Searches what is not kept, and keeps it."""

    retriever: Retriever
    kept: KeptRuns
    force: bool

    @property
    def signature(self) -> str:
        return self.retriever.signature

    def search(self, queries: Queries, k: int) -> Run:
        run = None if self.force else self.kept.get(queries, k)
        if run is None:
            run = search_without_self(self.retriever, queries, k, self.kept.self_suffixes)
            self.kept.put(queries, k, run)
        return run


def search_without_self(retriever: Retriever, queries: Queries, k: int, suffixes: Sequence[str]) -> Run:
    """A run of at most k hits a query from which the queries' own documents were taken before the cut-off."""
    run = retriever.search(queries, k + len(suffixes))
    if not suffixes:
        return run
    kept: dict[str, dict[str, float]] = {}
    for query_id, hits in run.items():
        own = {query_id + suffix for suffix in suffixes}
        others = [(doc_id, score) for doc_id, score in hits.items() if doc_id not in own]
        kept[query_id] = dict(others[:k])
    return kept

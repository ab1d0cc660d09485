"""A forecast of a bench in time, disk and memory: the first documents and queries are timed on this machine."""

from __future__ import annotations

import contextlib
import logging
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from rusbeir.errors import BadInput
from rusbeir.experiment import SystemLike, resolve_on
from rusbeir.jobs import BudgetReached, CharBudget
from rusbeir.processes import peak_rss
from rusbeir.retrieval import SERVERS, LimitsDepth, RerankSystem, RunSettings, System
from rusbeir.storage import cache_folder, temporary_cache
from rusbeir.types import Corpus, Dataset, MemoryCorpus, Progress, Queries, Retriever, silent

ENOUGH_SECONDS = 3.0
"""Samples grow until one of them takes this long to prepare."""
FIRST_SAMPLE = 16
"""Documents of the first sample, which is measured twice, as a model may be loaded the first time."""
GROWTH = 4
MOST_SAMPLED = 100_000
"""The documents of the largest sample, which are in memory."""
MOST_QUERIES = 256
"""The most queries that are timed together."""
BYTES_PER_HIT = 160
"""The memory of a hit, measured with 6,980 queries on 8.8 million documents at k=100 and k=1000."""


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """The needs of a system on a dataset of which the cache holds nothing."""

    dataset: str
    system: str
    n_docs: int
    n_queries: int
    sampled: int
    """Documents that were timed; 0 for a system that sends texts to an endpoint, which is not asked."""
    prepare_seconds: float | None
    search_seconds: float | None
    disk_bytes: int | None
    memory_bytes: int | None
    """The peak of the samples, and what grows with the corpus and with the hits of all queries."""


class _NothingSent(CharBudget):
    """A budget that ends the work before the first text is sent."""

    def reserve(self, chars: int, cost: float = 0.0) -> None:
        raise BudgetReached("A forecast sends nothing.")


class _Measured(NamedTuple):
    docs: int
    prepare_seconds: float
    search_seconds: float
    """Seconds per query, without reranking."""
    rerank_seconds: float
    disk_bytes: int
    resident_bytes: int


def forecast(
    dataset: str | Path | Dataset,
    systems: Sequence[SystemLike],
    *,
    engine: str = "auto",
    language: str | None = None,
    split: str | None = None,
    k: int = 100,
    progress: Progress = silent,
) -> list[Forecast]:
    """Time each system on growing samples of the dataset, and extend the last two in a straight line.

    The time that a model takes to load is left out. Systems use a temporary cache, with the lemmas of the real one.
    Endpoints are not asked. Raises what `bench` raises for what is missing, and BadInput for an index on a server,
    where samples would remain.
    """
    loaded, resolved = resolve_on(dataset, systems, k, engine, language, split, progress, judged=False)
    if remote := next((system for system in resolved if any(name in system.engine for name in SERVERS)), None):
        raise BadInput(f"{remote.name} has its index on a server; only systems on this machine are timed.")
    return [_forecast(loaded, system, k, progress) for system in resolved]


def refuse_full_disk(forecasts: Sequence[Forecast]) -> None:
    """Raise BadInput where all that was forecast does not fit on the disk of the cache."""
    folder = cache_folder()
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    need, free = sum(entry.disk_bytes or 0 for entry in forecasts), shutil.disk_usage(existing).free
    if need > free:
        raise BadInput(
            f"This would write {need / 1e9:,.1f} GB below {folder}, where {free / 1e9:,.1f} GB are free. "
            "Set RUSBEIR_CACHE to a folder on a larger disk."
        )


def _forecast(dataset: Dataset, system: System, k: int, progress: Progress) -> Forecast:
    n_docs, n_queries = len(dataset.corpus), len(dataset.queries)
    measured: list[_Measured] = []
    try:
        for sample in _samples(dataset.corpus):
            if not measured:
                _measure(dataset, sample, system, k)
            measured.append(_measure(dataset, sample, system, k))
            progress(f"time {system.name}", len(sample), n_docs)
            # One sample alone does not show what grows.
            if measured[-1].prepare_seconds > ENOUGH_SECONDS and len(measured) > 1:
                break
    except BudgetReached:
        measured.clear()

    def extended(field: str) -> float | None:
        return _extend([(sample.docs, getattr(sample, field)) for sample in measured], n_docs) if measured else None

    depth = min(k, n_docs, system.depth if isinstance(system, LimitsDepth) else k)
    search, disk, resident = extended("search_seconds"), extended("disk_bytes"), extended("resident_bytes")
    if search is not None:
        # Reranking does not grow with the corpus; a line through two measurements would multiply their error.
        last = measured[-1]
        search += last.rerank_seconds * depth / max(1, min(depth, last.docs))
    return Forecast(
        dataset=dataset.card.name,
        system=system.name,
        n_docs=n_docs,
        n_queries=n_queries,
        sampled=measured[-1].docs if measured else 0,
        prepare_seconds=extended("prepare_seconds"),
        search_seconds=None if search is None else search * n_queries,
        disk_bytes=None if disk is None else round(disk),
        memory_bytes=None if resident is None else peak_rss() + round(resident) + n_queries * depth * BYTES_PER_HIT,
    )


def _samples(corpus: Corpus) -> Iterator[MemoryCorpus]:
    """Yield the first documents of the corpus, then more of them, up to all or as many as memory should hold."""
    most, size = min(len(corpus), MOST_SAMPLED), FIRST_SAMPLE
    while size < most:
        yield MemoryCorpus(islice(corpus, size))
        size *= GROWTH
    yield MemoryCorpus(islice(corpus, most))


def _measure(dataset: Dataset, sample: MemoryCorpus, system: System, k: int) -> _Measured:
    with temporary_cache("lemmas") as folder, _without_warnings():
        settings = RunSettings(budget=_NothingSent(folder, 1))
        started = time.perf_counter()
        ready = system.prepare(sample, sample.sha256, settings)
        searched, depth = ready, k
        if isinstance(system, RerankSystem):
            searched, depth = system.source.prepare(sample, sample.sha256, settings), system.depth
        # Approximate indexes are built at the first search.
        searched.retriever.search(dict(islice(dataset.queries.items(), 1)), depth)
        prepare_seconds = time.perf_counter() - started
        disk = sum(path.stat().st_size for path in folder.rglob("*") if _stays(path))
        search_seconds = _time_queries(searched.retriever, dataset.queries, depth)
        # The hits of the reranker's source are in the cache.
        rerank_seconds = _time_queries(ready.retriever, dataset.queries, k) if searched is not ready else 0.0
    return _Measured(
        docs=len(sample),
        prepare_seconds=prepare_seconds,
        search_seconds=search_seconds,
        rerank_seconds=rerank_seconds,
        disk_bytes=disk,
        resident_bytes=ready.resident_bytes,
    )


def _stays(path: Path) -> bool:
    """Say whether it is a file that grows with the corpus; SQLite's journals do not."""
    return path.is_file() and not path.is_symlink() and not path.name.endswith(("-wal", "-shm"))


@contextlib.contextmanager
def _without_warnings() -> Iterator[None]:
    """Silence warnings about samples, such as their recall, which are not about the dataset."""
    logger = logging.getLogger("rusbeir")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def _time_queries(retriever: Retriever, queries: Queries, k: int) -> float:
    """Time queries, more and more of them while they take little time: the seconds per query of the last group."""
    rest, size, seconds = iter(queries.items()), 1, 0.0
    while part := dict(islice(rest, size)):
        started = time.perf_counter()
        retriever.search(part, k)
        seconds = (time.perf_counter() - started) / len(part)
        if size * seconds > ENOUGH_SECONDS / GROWTH or size > MOST_QUERIES / GROWTH:
            break
        size *= GROWTH
    return seconds


def _extend(points: Sequence[tuple[int, float]], n: int) -> float:
    """Extend the straight line through the last two points to n; it never falls.

    >>> _extend([(64, 3.0), (256, 5.0)], 448)
    7.0
    """
    (n_last, last), slope = points[-1], points[-1][1] / points[-1][0]
    if len(points) > 1:
        n_before, before = points[-2]
        slope = max(0.0, (last - before) / (n_last - n_before))
    return last + slope * (n - n_last)

"""Runs of a composition's stages, kept in the cache so that nothing is searched twice."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import orjson

from rusbeir.costs import CarriedSeconds
from rusbeir.errors import BackendError, BadInput
from rusbeir.retrieval.system import DEFAULTS, Prepared, RunSettings, WrappedSystem
from rusbeir.storage import atomic_file, cache_folder
from rusbeir.text import shorten
from rusbeir.types import MAX_QUERY_CHARS, Corpus, MultilingualQueries, Queries, Retriever, Run

_FORMAT = 3
"""Raised when the files change, so that those of an older version are not used."""


@dataclass(frozen=True, kw_only=True)
class CachedSystem(WrappedSystem):
    """A system as a stage of another: hits that are the query itself are removed, and runs are kept in the cache."""

    self_suffixes: tuple[str, ...] = ()

    def prepare(self, corpus: Corpus, fingerprint: str, settings: RunSettings = DEFAULTS) -> Prepared:
        """Prepare the system with a retriever that searches only where the cache has no run."""
        prepared = self.system.prepare(corpus, fingerprint, settings)
        retriever = CachedRetriever(
            system=self, retriever=prepared.retriever, fingerprint=fingerprint, force=settings.force,
            carried=settings.carried,
        )  # fmt: skip
        return replace(prepared, retriever=retriever)


@dataclass(frozen=True, kw_only=True)
class CachedRetriever:
    """A retriever that looks for its runs in the cache, unless force is set, and keeps what it searches.

    The cache has a file for each depth and set of queries.
    """

    system: CachedSystem
    retriever: Retriever
    fingerprint: str
    force: bool
    carried: CarriedSeconds

    @property
    def signature(self) -> str:
        return self.retriever.signature

    def search(self, queries: Queries, k: int) -> Run:
        """Read the run of these queries to that depth from the cache, hits in order, or search for it.

        Raises BackendError where the file in the cache is damaged.
        """
        suffixes = self.system.self_suffixes
        recipe = [_FORMAT, self.system.signature, self.fingerprint, suffixes, k, list(queries.items())]
        if isinstance(queries, MultilingualQueries):
            recipe.append(dict(queries.languages))
        path = cache_folder() / "runs" / f"{hashlib.sha256(orjson.dumps(recipe)).hexdigest()[:32]}.jsonl"
        if path.exists() and not self.force:
            try:
                check, _, lines = path.read_bytes().partition(b"\n")
                if hashlib.sha256(lines).hexdigest().encode() != check:
                    raise ValueError("it has changed since it was written")
                seconds, *hits = map(orjson.loads, lines.splitlines())
                self.carried.add(seconds)
                return dict(hits)
            except (OSError, ValueError) as error:
                raise BackendError(
                    f"The run {path} is damaged ({error}). Remove it: `rusbeir cache clear runs`."
                ) from error
        started, before = time.perf_counter(), replace(self.carried)
        run = search_without_self(self.retriever, queries, k, suffixes)
        seconds = time.perf_counter() - started + self.carried.seconds - before.seconds
        known = self.carried.n_unknown == before.n_unknown
        with atomic_file(path) as file:
            # A TREC file would lose the order of equal scores, and with it the ranks that rrf adds.
            lines = orjson.dumps(seconds if known else None) + b"\n"
            lines += b"".join(orjson.dumps((query_id, hits)) + b"\n" for query_id, hits in run.items())
            file.write(hashlib.sha256(lines).hexdigest().encode() + b"\n" + lines)
        return run


def search_without_self(retriever: Retriever, queries: Queries, k: int, suffixes: Sequence[str]) -> Run:
    """Find at most k hits per query; a hit with the query's id and one of the suffixes is removed before the cut-off.

    Raises BadInput for a query of more than MAX_QUERY_CHARS characters.
    """
    for query_id, text in queries.items():
        if len(text) > MAX_QUERY_CHARS:
            raise BadInput(
                f"Query {shorten(repr(query_id))} has {len(text):,} characters; at most {MAX_QUERY_CHARS:,} are "
                "searched for. Shorten it, or leave it out."
            )
    run = retriever.search(queries, k + len(suffixes))
    if not suffixes:
        return run
    return {query_id: dict(list(hits.items())[:k]) for query_id, hits in drop_self_hits(run, suffixes).items()}


def drop_self_hits(run: Run, suffixes: Sequence[str]) -> Run:
    """Leave out of a run the hits whose id is the query's with one of the suffixes; without suffixes there are none."""
    if not suffixes:
        return run
    self_ids = {query_id: {query_id + suffix for suffix in suffixes} for query_id in run}
    return {
        query_id: {doc_id: score for doc_id, score in hits.items() if doc_id not in self_ids[query_id]}
        for query_id, hits in run.items()
    }

"""Keep the scores of a reranker by query and document, with what was truncated; they survive a kill."""

from __future__ import annotations

import hashlib
import time
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from rusbeir.costs import CarriedSeconds, SecondsTable
from rusbeir.errors import BackendError
from rusbeir.retrieval.encoding.pools import KEEP_SECONDS, WhileWanted
from rusbeir.retrieval.rerank import reranker as protocols
from rusbeir.retrieval.rerank.reranker import Reranker, Scored, check_scores
from rusbeir.storage import (
    WRITE_AHEAD,
    cache_folder,
    cannot_write,
    hold_when_free,
    open_database,
    reporting_sqlite,
    select_by_keys,
)
from rusbeir.text import digest


@dataclass(frozen=True, kw_only=True)
class PairPool:
    """Pairs that have no score yet."""

    keys: list[bytes]
    tokens: Any
    """The pairs as the reranker reads them, in the order of the keys."""


class ScoreCache:
    """Keeps the scores of one reranker in one file, which processes may share."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._used: set[bytes] = set()
        self._new: set[bytes] = set()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise cannot_write(path, error) from error
        with reporting_sqlite(self.path, "scores", in_cache=True):
            self._db = open_database(path, WRITE_AHEAD)
            self._db.execute(
                "CREATE TABLE IF NOT EXISTS score"
                "(key BLOB PRIMARY KEY, value BLOB NOT NULL, cut INTEGER NOT NULL) WITHOUT ROWID"
            )
            self._seconds = SecondsTable(self._db)

    @classmethod
    def open(cls, reranker: Reranker) -> ScoreCache:
        """Open the scores of that reranker in rusbeir's cache."""
        return cls(cache_folder() / "scores" / f"scores-{digest(reranker.signature, chars=12)}.sqlite")

    def score(self, reranker: Reranker, query: str, documents: Sequence[str], name: str) -> Scored:
        """Return one score per document; those not in the cache are asked of the reranker, checked and kept.

        Where the reranker is not pointwise, the scores of the whole list, or of each window, are kept together.
        """
        if isinstance(reranker, protocols.Pointwise) and reranker.pointwise:
            return self._score_pairs(reranker, query, documents, name)
        if isinstance(reranker, protocols.SortsWindows):
            return self._sort_windows(reranker, query, documents, name)
        return self._score_list(reranker, query, documents, name)

    def settle(self, seconds: float, carried: CarriedSeconds) -> None:
        """Keep the seconds with the scores that were computed since the last call, and add those of the others."""
        with reporting_sqlite(self.path, "scores", in_cache=True):
            if self._new:
                self._seconds.keep(self._new, seconds)
            if before := self._used - self._new:
                carried.add(self._seconds.sum(before))
        self._used, self._new = set(), set()

    def tokenize(
        self,
        reranker: protocols.ScoresPools,
        lists: Iterable[tuple[str, Sequence[str]]],
        while_wanted: WhileWanted = iter,
    ) -> PairPool | None:
        """Tokenise the pairs of a query and a document whose scores the cache lacks; None where it has all scores."""
        pairs = {_hash(query, document): (query, document) for query, documents in lists for document in documents}
        cached = self._find(list(pairs))
        missing = {key: pair for key, pair in pairs.items() if key not in cached}
        if not missing:
            return None
        return PairPool(keys=list(missing), tokens=reranker.tokenize_pairs(while_wanted(missing.values())))

    def fill(self, reranker: protocols.ScoresPools, pool: PairPool, name: str, report: Callable[[float], None]) -> None:
        """Compute and keep the scores of the pairs.

        report is called with the share that is done. A kill loses at most KEEP_SECONDS of work.
        """
        with hold_when_free(self.path.with_suffix(".locks") / "pool", self.path):
            # Another process may have scored some meanwhile.
            cached = self._find(pool.keys)
            missing = [index for index, key in enumerate(pool.keys) if key not in cached]
            keys, tokens = [pool.keys[index] for index in missing], pool.tokens
            if cached:
                tokens = tokens.take(missing)
            over_length = tokens.over_length
            fresh: dict[bytes, Scored] = {}
            n_done, written = 0, time.monotonic()

            def keep(indices: Any, scores: Any) -> None:
                nonlocal n_done, written
                for index, score in zip(indices, check_scores(scores, indices, name), strict=True):
                    fresh[keys[index]] = Scored([score], int(over_length[index]))
                n_done += len(indices)
                report(n_done / len(keys))
                if time.monotonic() - written > KEEP_SECONDS:
                    self._keep(fresh)
                    fresh.clear()
                    written = time.monotonic()

            try:
                if missing:
                    reranker.score_tokens(tokens, keep)
            finally:
                self._keep(fresh)

    def close(self) -> None:
        self._db.close()

    def _lock(self, query: str) -> IO[bytes]:
        """Hold while a query's scores are asked for: nobody pays twice, and others may ask for other queries."""
        return hold_when_free(self.path.with_suffix(".locks") / _hash(query)[:1].hex(), self.path)

    def _score_list(self, reranker: Reranker, query: str, documents: Sequence[str], name: str) -> Scored:
        """Return the scores of the list; where the model did not judge it, scores in its order, which are not kept."""
        key = _hash(query, *documents)
        if cached := self._find([key]):
            return cached[key]
        with self._lock(query):
            # Another process may have asked meanwhile.
            if cached := self._find([key]):
                return cached[key]
            truncated = sum(_find_truncated(reranker, query, documents, name))
            try:
                scores = check_scores(reranker.score(query, documents), documents, name)
            except protocols.Unjudged:
                return Scored([float(behind) for behind in reversed(range(len(documents)))], truncated, unjudged=1)
            scored = Scored(scores, truncated)
            self._keep({key: scored})
        return scored

    def _sort_windows(
        self, reranker: protocols.SortsWindows, query: str, documents: Sequence[str], name: str
    ) -> Scored:
        """Sort one window after the other, and return how many documents ended up behind each."""
        order = list(range(len(documents)))
        unjudged = 0
        # From the last window to the first, each overlapping the one before; one document needs no sorting.
        last = max(0, len(documents) - reranker.window)
        for start in [*range(last, 0, -reranker.step), 0] if len(documents) > 1 else []:
            window = order[start : start + reranker.window]
            scored = self._score_list(reranker, query, [documents[index] for index in window], name)
            unjudged += scored.unjudged
            ranked = sorted(zip(window, scored.scores, strict=True), key=lambda hit: -hit[1])
            order[start : start + reranker.window] = [index for index, _ in ranked]
        behind = [0.0] * len(documents)
        for rank, index in enumerate(order):
            behind[index] = float(len(documents) - 1 - rank)
        return Scored(behind, sum(_find_truncated(reranker, query, documents, name)), unjudged)

    def _score_pairs(self, reranker: Reranker, query: str, documents: Sequence[str], name: str) -> Scored:
        texts = {_hash(query, document): document for document in documents}
        cached = self._find(list(texts))
        unjudged = 0
        if len(cached) < len(texts):
            with self._lock(query):
                cached = self._find(list(texts))
                missing = {key: text for key, text in texts.items() if key not in cached}
                if missing:
                    unjudged = self._ask(reranker, query, missing, name)
                    cached |= self._find(list(missing))
        pairs = [cached[_hash(query, document)] for document in documents]
        return Scored([pair.scores[0] for pair in pairs], sum(pair.truncated for pair in pairs), unjudged)

    def _ask(self, reranker: Reranker, query: str, missing: Mapping[bytes, str], name: str) -> int:
        """Ask for the scores of those documents, and keep them; return for how many the model gave no judgement."""
        keys, texts = list(missing), list(missing.values())
        truncated = _find_truncated(reranker, query, texts, name)
        unjudged = 0

        def keep(index: int, score: float | None) -> None:
            nonlocal unjudged
            unjudged += score is None
            scores = check_scores([score or 0.0], [texts[index]], name)
            self._keep({keys[index]: Scored(scores, truncated[index])})

        if isinstance(reranker, protocols.ScoresEach):
            reranker.score_each(query, texts, keep)
        else:
            scores = check_scores(reranker.score(query, texts), texts, name)
            self._keep({key: Scored([score], cut) for key, score, cut in zip(keys, scores, truncated, strict=True)})
        return unjudged

    def _find(self, keys: Sequence[bytes]) -> dict[bytes, Scored]:
        with reporting_sqlite(self.path, "scores", in_cache=True):
            rows = select_by_keys(self._db, "SELECT key, value, cut FROM score WHERE key IN", keys)
            cached = {key: Scored(array("d", value).tolist(), cut) for key, value, cut in rows}
        self._used.update(cached)
        return cached

    def _keep(self, scores: dict[bytes, Scored]) -> None:
        with reporting_sqlite(self.path, "scores", in_cache=True):
            self._db.execute("BEGIN IMMEDIATE")
            rows = [(key, array("d", scored.scores).tobytes(), scored.truncated) for key, scored in scores.items()]
            self._db.executemany("INSERT OR IGNORE INTO score VALUES (?, ?, ?)", rows)
            self._db.execute("COMMIT")
        self._new.update(scores)


def _find_truncated(reranker: Reranker, query: str, documents: Sequence[str], name: str) -> list[int]:
    """Return 1 for each document that is not read whole; 0 where the reranker does not report it."""
    if not isinstance(reranker, protocols.ReportsTruncation):
        return [0] * len(documents)
    truncated = [int(bool(cut)) for cut in reranker.are_truncated(query, documents)]
    if len(truncated) != len(documents):
        raise BackendError(f"{name}: are_truncated returned {len(truncated)} values for {len(documents)} documents.")
    return truncated


def _hash(*texts: str) -> bytes:
    hashed = hashlib.blake2b(digest_size=16)
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        hashed.update(len(data).to_bytes(8, "little") + data)
    return hashed.digest()

"""Scores of a reranker, kept by query and document together with what was truncated; they survive a kill."""

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
from rusbeir.storage import cache_folder, cannot_write, connect_shared, hold_when_free, reporting_sqlite
from rusbeir.text import batched, digest

MAX_KEYS_PER_QUERY = 500


@dataclass(frozen=True, kw_only=True)
class PairPool:
    """Pairs without a score."""

    keys: list[bytes]
    tokens: Any
    """The tokens as the reranker reads them, in the order of the keys."""


class ScoreCache:
    """The scores of one reranker in one file; processes may share it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._used: set[bytes] = set()
        self._new: set[bytes] = set()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise cannot_write(path, error) from error
        with reporting_sqlite(self.path, "scores"):
            self._db = connect_shared(path)
            self._db.execute(
                "CREATE TABLE IF NOT EXISTS score"
                "(key BLOB PRIMARY KEY, value BLOB NOT NULL, cut INTEGER NOT NULL) WITHOUT ROWID"
            )
            self._seconds = SecondsTable(self._db)

    @classmethod
    def of(cls, reranker: Reranker) -> ScoreCache:
        """The scores of that reranker in rusbeir's cache."""
        return cls(cache_folder() / "scores" / f"scores-{digest(reranker.signature, chars=12)}.sqlite")

    def score(self, reranker: Reranker, query: str, documents: Sequence[str], name: str) -> Scored:
        """One score per document; those not in the cache are asked of the reranker, checked, and kept.

        Where the reranker is not pointwise, the scores of the whole list, or of each window, are kept together.
        """
        if isinstance(reranker, protocols.Pointwise) and reranker.pointwise:
            return self._score_pairs(reranker, query, documents, name)
        if isinstance(reranker, protocols.SortsWindows):
            return self._sort_windows(reranker, query, documents, name)
        return self._score_list(reranker, query, documents, name)

    def settle(self, seconds: float, carried: CarriedSeconds) -> None:
        """Keep the seconds with the scores that were computed since the last call, and charge those of the others."""
        with reporting_sqlite(self.path, "scores"):
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
        """The pairs of a query and its documents whose scores the cache lacks; None where it has all."""
        pairs = {_hash(query, document): (query, document) for query, documents in lists for document in documents}
        found = self._find(list(pairs))
        missing = {key: pair for key, pair in pairs.items() if key not in found}
        if not missing:
            return None
        return PairPool(keys=list(missing), tokens=reranker.tokenize_pairs(while_wanted(missing.values())))

    def fill(self, reranker: protocols.ScoresPools, pool: PairPool, name: str, report: Callable[[float], None]) -> None:
        """Compute and keep the scores of the pairs.

        report is called with the share that is done. A kill loses at most KEEP_SECONDS of work.
        """
        with hold_when_free(self.path.with_suffix(".locks") / "pool", self.path):
            # Another process may have scored some meanwhile.
            found = self._find(pool.keys)
            left = [place for place, key in enumerate(pool.keys) if key not in found]
            keys, tokens = [pool.keys[place] for place in left], pool.tokens
            if found:
                tokens = tokens.take(left)
            over_length = tokens.over_length
            fresh: dict[bytes, Scored] = {}
            n_done, kept = 0, time.monotonic()

            def keep(places: Any, scores: Any) -> None:
                nonlocal n_done, kept
                for place, score in zip(places, check_scores(scores, places, name), strict=True):
                    fresh[keys[place]] = Scored([score], int(over_length[place]))
                n_done += len(places)
                report(n_done / len(keys))
                if time.monotonic() - kept > KEEP_SECONDS:
                    self._keep(fresh)
                    fresh.clear()
                    kept = time.monotonic()

            try:
                if left:
                    reranker.score_tokens(tokens, keep)
            finally:
                self._keep(fresh)

    def close(self) -> None:
        self._db.close()

    def _lock(self, query: str) -> IO[bytes]:
        """Hold while a query's scores are asked for: nobody pays twice, and others may ask for other queries."""
        return hold_when_free(self.path.with_suffix(".locks") / _hash(query)[:1].hex(), self.path)

    def _score_list(self, reranker: Reranker, query: str, documents: Sequence[str], name: str) -> Scored:
        """The scores of the list; where the model did not judge it, scores in its order, which are not kept."""
        key = _hash(query, *documents)
        if kept := self._find([key]):
            return kept[key]
        with self._lock(query):
            # Another process may have asked meanwhile.
            if kept := self._find([key]):
                return kept[key]
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
        """The number of documents that ended up behind each, after one window was sorted after the other."""
        order = list(range(len(documents)))
        unjudged = 0
        # From the last window to the first, each overlapping the one before; one document needs no sorting.
        last = max(0, len(documents) - reranker.window)
        for start in [*range(last, 0, -reranker.step), 0] if len(documents) > 1 else []:
            window = order[start : start + reranker.window]
            scored = self._score_list(reranker, query, [documents[place] for place in window], name)
            unjudged += scored.unjudged
            ranked = sorted(zip(window, scored.scores, strict=True), key=lambda hit: -hit[1])
            order[start : start + reranker.window] = [place for place, _ in ranked]
        behind = [0.0] * len(documents)
        for rank, place in enumerate(order):
            behind[place] = float(len(documents) - 1 - rank)
        return Scored(behind, sum(_find_truncated(reranker, query, documents, name)), unjudged)

    def _score_pairs(self, reranker: Reranker, query: str, documents: Sequence[str], name: str) -> Scored:
        texts = {_hash(query, document): document for document in documents}
        found = self._find(list(texts))
        unjudged = 0
        if len(found) < len(texts):
            with self._lock(query):
                found = self._find(list(texts))
                missing = {key: text for key, text in texts.items() if key not in found}
                if missing:
                    unjudged = self._ask(reranker, query, missing, name)
                    found |= self._find(list(missing))
        scored = [found[_hash(query, document)] for document in documents]
        return Scored([one.scores[0] for one in scored], sum(one.truncated for one in scored), unjudged)

    def _ask(self, reranker: Reranker, query: str, missing: Mapping[bytes, str], name: str) -> int:
        """Keep the scores of those documents by their keys; of how many the model gave no judgement."""
        keys, texts = list(missing), list(missing.values())
        truncated = _find_truncated(reranker, query, texts, name)
        unjudged = 0

        def keep(place: int, score: float | None) -> None:
            nonlocal unjudged
            unjudged += score is None
            scores = check_scores([score or 0.0], [texts[place]], name)
            self._keep({keys[place]: Scored(scores, truncated[place])})

        if isinstance(reranker, protocols.ScoresEach):
            reranker.score_each(query, texts, keep)
        else:
            scores = check_scores(reranker.score(query, texts), texts, name)
            self._keep({key: Scored([score], cut) for key, score, cut in zip(keys, scores, truncated, strict=True)})
        return unjudged

    def _find(self, keys: Sequence[bytes]) -> dict[bytes, Scored]:
        found: dict[bytes, Scored] = {}
        with reporting_sqlite(self.path, "scores"):
            for part in batched(keys, MAX_KEYS_PER_QUERY):
                marks = ",".join("?" * len(part))
                rows = self._db.execute(f"SELECT key, value, cut FROM score WHERE key IN ({marks})", part)
                found.update((key, Scored(array("d", value).tolist(), cut)) for key, value, cut in rows)
        self._used.update(found)
        return found

    def _keep(self, scores: dict[bytes, Scored]) -> None:
        with reporting_sqlite(self.path, "scores"):
            self._db.execute("BEGIN IMMEDIATE")
            rows = [(key, array("d", one.scores).tobytes(), one.truncated) for key, one in scores.items()]
            self._db.executemany("INSERT OR IGNORE INTO score VALUES (?, ?, ?)", rows)
            self._db.execute("COMMIT")
        self._new.update(scores)


def _find_truncated(reranker: Reranker, query: str, documents: Sequence[str], name: str) -> list[int]:
    """1 for each document that is not read whole; 0 where the reranker does not report it."""
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

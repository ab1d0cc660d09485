"""ScoreCache that a reranker gave, kept by query and document with what it cut; what was recorded survives any kill."""

from __future__ import annotations

import hashlib
import sqlite3
from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from rusbeir.errors import BackendError
from rusbeir.locks import hold_when_free
from rusbeir.retrieval.rerank.reranker import (
    Pointwise,
    ReportsTruncation,
    Reranker,
    Scored,
    ScoresEach,
    SortsWindows,
    Unjudged,
    check_scores,
)
from rusbeir.storage import cannot_write, reporting_sqlite

_KEYS_A_QUESTION = 500


class ScoreCache:
    """The scores of one reranker in one file; processes may share it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise cannot_write(path, error) from error
        with reporting_sqlite(self.path, "scores"):
            self._db = sqlite3.connect(path, isolation_level=None, timeout=60, check_same_thread=False)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute(
                "CREATE TABLE IF NOT EXISTS score"
                "(key BLOB PRIMARY KEY, value BLOB NOT NULL, cut INTEGER NOT NULL) WITHOUT ROWID"
            )

    def of(self, reranker: Reranker, query: str, documents: Sequence[str], name: str) -> Scored:
        """One score a document; what is not kept is asked of the reranker, checked, and kept.

        Where the reranker is not pointwise, the scores of the whole list, or of each window, are kept together.
        """
        if isinstance(reranker, Pointwise) and reranker.pointwise:
            return self._by_pair(reranker, query, documents, name)
        if isinstance(reranker, SortsWindows):
            return self._by_window(reranker, query, documents, name)
        return self._of_list(reranker, query, documents, name)

    def _alone(self, query: str) -> IO[bytes]:
        """Held while a query's scores are asked for: nobody pays twice, and others with queries of theirs go on."""
        return hold_when_free(self.path.with_suffix(".locks") / _key(query)[:1].hex(), self.path)

    def _of_list(self, reranker: Reranker, query: str, documents: Sequence[str], name: str) -> Scored:
        """In the order that they came, and not kept, where the model gave no judgement."""
        key = _key(query, *documents)
        if kept := self._find([key]):
            return kept[key]
        with self._alone(query):
            # Another process may have asked meanwhile.
            if kept := self._find([key]):
                return kept[key]
            cut = sum(_cut(reranker, query, documents, name))
            try:
                scores = check_scores(reranker.score(query, documents), documents, name)
            except Unjudged:
                return Scored([float(behind) for behind in reversed(range(len(documents)))], cut, unjudged=1)
            scored = Scored(scores, cut)
            self._keep({key: scored})
        return scored

    def _by_window(self, reranker: SortsWindows, query: str, documents: Sequence[str], name: str) -> Scored:
        """The number of documents that ended up behind each, after one window was sorted after the other."""
        order = list(range(len(documents)))
        unjudged = 0
        for start in _window_starts(len(documents), reranker.window, reranker.step):
            window = order[start : start + reranker.window]
            scored = self._of_list(reranker, query, [documents[place] for place in window], name)
            unjudged += scored.unjudged
            ranked = sorted(zip(window, scored.scores, strict=True), key=lambda hit: -hit[1])
            order[start : start + reranker.window] = [place for place, _ in ranked]
        behind = [0.0] * len(documents)
        for rank, place in enumerate(order):
            behind[place] = float(len(documents) - 1 - rank)
        return Scored(behind, sum(_cut(reranker, query, documents, name)), unjudged)

    def _by_pair(self, reranker: Reranker, query: str, documents: Sequence[str], name: str) -> Scored:
        texts = {_key(query, document): document for document in documents}
        found = self._find(list(texts))
        unjudged = 0
        if len(found) < len(texts):
            with self._alone(query):
                found = self._find(list(texts))
                missing = {key: text for key, text in texts.items() if key not in found}
                new, unjudged = self._ask(reranker, query, missing, name)
            found |= new
        scored = [found[_key(query, document)] for document in documents]
        return Scored([one.scores[0] for one in scored], sum(one.truncated for one in scored), unjudged)

    def _ask(
        self, reranker: Reranker, query: str, missing: Mapping[bytes, str], name: str
    ) -> tuple[dict[bytes, Scored], int]:
        """Each document's score, kept by its key; and of how many the model gave no judgement."""
        found: dict[bytes, Scored] = {}
        unjudged = 0
        wanted, texts = list(missing), list(missing.values())
        if not texts:
            return found, unjudged
        cut = _cut(reranker, query, texts, name)

        def keep(place: int, score: float | None) -> None:
            nonlocal unjudged
            unjudged += score is None
            found[wanted[place]] = Scored(check_scores([score or 0.0], [texts[place]], name), cut[place])
            self._keep({wanted[place]: found[wanted[place]]})

        if isinstance(reranker, ScoresEach):
            reranker.score_each(query, texts, keep)
        else:
            scores = check_scores(reranker.score(query, texts), texts, name)
            found |= {key: Scored([score], is_cut) for key, score, is_cut in zip(wanted, scores, cut, strict=True)}
            self._keep(found)
        return found, unjudged

    def close(self) -> None:
        self._db.close()

    def _find(self, keys: Sequence[bytes]) -> dict[bytes, Scored]:
        found: dict[bytes, Scored] = {}
        with reporting_sqlite(self.path, "scores"):
            for start in range(0, len(keys), _KEYS_A_QUESTION):
                part = keys[start : start + _KEYS_A_QUESTION]
                marks = ",".join("?" * len(part))
                rows = self._db.execute(f"SELECT key, value, cut FROM score WHERE key IN ({marks})", part)
                found.update((key, Scored(array("d", value).tolist(), cut)) for key, value, cut in rows)
        return found

    def _keep(self, scores: dict[bytes, Scored]) -> None:
        with reporting_sqlite(self.path, "scores"):
            self._db.execute("BEGIN IMMEDIATE")
            rows = [(key, array("d", one.scores).tobytes(), one.truncated) for key, one in scores.items()]
            self._db.executemany("INSERT OR IGNORE INTO score VALUES (?, ?, ?)", rows)
            self._db.execute("COMMIT")


def _window_starts(count: int, window: int, step: int) -> list[int]:
    """From the last window to the first, each overlapping the one before; one document needs no sorting."""
    last = max(0, count - window)
    return [*range(last, 0, -step), 0] if count > 1 else []


def _cut(reranker: Reranker, query: str, documents: Sequence[str], name: str) -> list[int]:
    """1 for each document that is not read whole; 0 where the reranker does not tell."""
    if not isinstance(reranker, ReportsTruncation):
        return [0] * len(documents)
    cut = [int(bool(longer)) for longer in reranker.are_truncated(query, documents)]
    if len(cut) != len(documents):
        raise BackendError(
            f"{name} says of {len(cut)} documents whether they are too long, but {len(documents)} were asked."
        )
    return cut


def _key(*texts: str) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.digest()

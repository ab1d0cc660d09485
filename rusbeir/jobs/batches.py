"""Requests to language models in batches: written to files or sent to a provider, their answers read back.

The work is done again and again as if it asked one by one. A request with an answer gets it; the others are collected,
and their tasks stay as they are until the answers are there. So every answer is checked, repeated and recorded by the
same code as one that comes at once.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import orjson

from rusbeir.errors import BackendError, Suspended, option
from rusbeir.jobs.batch_exchange import Postponed
from rusbeir.jobs.batch_lines import open_answers, read_replies, write_request
from rusbeir.jobs.batch_requests import Requests
from rusbeir.jobs.budget import Budget, Spent
from rusbeir.jobs.journal import Journal
from rusbeir.jobs.llm_answer import Price, Rejected
from rusbeir.jobs.workspace import Tell
from rusbeir.storage import atomic_file


@dataclass(kw_only=True)
class BatchRun:
    """One run of a job whose requests are answered in batches. For one event loop."""

    requests: Requests
    out: Path | None
    """Where requests without an answer are written."""
    answers: Sequence[Path]
    is_live: bool
    """Whether requests without an answer are sent one by one."""
    tell: Tell
    repeats: int = field(default=0, init=False)
    """Requests of this run that ask again for what an answered one did not bring."""
    _file: IO[bytes] | None = field(default=None, init=False)
    _part: int = field(default=0, init=False)
    _n_open: int = field(default=0, init=False)
    """Requests of this pass that have no answer."""
    _n_written: int = field(default=0, init=False)
    _bound: tuple[int, float] = field(default=(0, 0.0), init=False)
    """What the requests that are written take at most."""
    _beyond: list[tuple[int, float]] = field(default_factory=list, init=False)
    """What the first request takes that exceeds the budget."""
    _files: contextlib.ExitStack = field(default_factory=contextlib.ExitStack, init=False)

    @property
    def is_offline(self) -> bool:
        """Whether this run sends nothing."""
        return not self.is_live

    @property
    def spent(self) -> Spent:
        """What the answers that this run recorded took."""
        return self.requests.spent

    async def run(self, work: Callable[[], Awaitable[None]]) -> None:
        """Await work until each of its requests has an answer.

        Raises Suspended where the answers come later, BackendError where some are missing and nothing was to be done
        about it, and what work raises.
        """
        self._take_answers()
        self._n_open = 0
        with self._files:
            await work()
            self.requests.flush()
        if not self._n_open:
            self.requests.forget_answers()
            return
        self._suspend()

    def fetch(self, request: Mapping[str, Any], chars: int, cost: float, repeat: bool) -> tuple[int, str] | None:
        """Return the answer to a request, as jobs.Exchange has it."""
        try:
            body = orjson.dumps(request, option=orjson.OPT_SORT_KEYS)
        except orjson.JSONEncodeError as error:
            raise Rejected("rejected", f"the text cannot be encoded as UTF-8 ({error})") from None
        key = hashlib.blake2b(body, digest_size=16).digest()
        known = self.requests.find(key)
        if known is not None and known.status is not None and known.answer is not None:
            return known.status, known.answer
        if self.is_live:
            return None
        # Equal requests of a pass are one request.
        if known is None or not known.part >= self._part > 0:
            self._n_open += 1
            self._write(key, body, chars, cost, repeat)
        raise Postponed

    def _write(self, key: bytes, body: bytes, chars: int, cost: float, repeat: bool) -> None:
        if self.out is None:
            return
        bound = self._bound[0] + chars, self._bound[1] + cost
        if not self.requests.budget.fits(*bound):
            self._beyond = self._beyond or [(chars, cost)]
            return
        if self._file is None:
            self._part = self.requests.find_last_part() + 1
            self._file = self._files.enter_context(atomic_file(self.out))
        self._file.write(write_request(key, body))
        self.requests.add(key, chars, cost, self._part)
        self.repeats += repeat
        self._bound = bound
        self._n_written += 1

    def _take_answers(self) -> None:
        for path in self.answers:
            with open_answers(path) as file:
                self.requests.record(read_replies(file, str(path)))
        if self.answers:
            self.tell(self._describe_answers())

    def _describe_answers(self) -> str:
        """Write a line about the answers that were read."""
        requests = self.requests
        parts = [f"{requests.n_recorded:,} answers are recorded"]
        if requests.n_repeated:
            parts.append(f"{requests.n_repeated:,} are to requests that had one, which counts")
        if n_failed := requests.failures.total():
            reason, n = requests.failures.most_common(1)[0]
            parts.append(f"{n_failed:,} requests failed ({n:,} {reason})")
        return f"Batches: {'; '.join(parts)}."

    def _suspend(self) -> None:
        if self.out is None:
            raise BackendError(
                f"{self._n_open:,} requests have no answer yet. What is answered is kept. Write them to a file with "
                f"{option('batch_out', 'FILE')}, or leave {option('batch_in')} out to send them one by one."
            )
        if not self._n_written:
            for chars, cost in self._beyond:
                self.requests.budget.reserve(chars, cost)
        left = self._n_open - self._n_written
        rest = f" {left:,} more exceed the budget." if left else ""
        raise Suspended(
            f"{self._n_written:,} requests are written to {self.out}.{rest} Have them answered, in one file or in "
            f"several, then run the same again with {option('batch_in', 'ANSWERS')} in place of {option('batch_out')}."
        )


def open_batches(batching: Mapping[str, Any], journal: Journal, budget: Budget, price: Price, tell: Tell) -> BatchRun:
    """Open the run that these options ask for; without any, what has no answer is sent one by one."""
    answers = batching.get("batch_in", ())
    paths = [Path(answers)] if isinstance(answers, str | Path) else [Path(path) for path in answers]
    out = batching.get("batch_out")
    return BatchRun(
        requests=Requests(journal=journal, budget=budget, price=price),
        out=Path(out) if out else None,
        answers=paths,
        is_live=not batching,
        tell=tell,
    )

"""Requests to language models in batches: written to files or sent to a provider, their answers read back.

The work is done again and again as if it asked one by one. A request with an answer gets it; the others are collected,
and their tasks stay as they are until the answers are there. So every answer is checked, repeated and recorded by the
same code as one that comes at once.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

import orjson

from rusbeir.errors import BackendError, BadInput, Suspended, option
from rusbeir.jobs.batch_exchange import Postponed
from rusbeir.jobs.batch_lines import open_answers, read_replies, write_request
from rusbeir.jobs.batch_requests import Requests
from rusbeir.jobs.batch_sender import Sender, list_open
from rusbeir.jobs.batch_service import open_service
from rusbeir.jobs.budget import Budget, Spent
from rusbeir.jobs.journal import Journal
from rusbeir.jobs.llm import Llm
from rusbeir.jobs.llm_answer import Price, Rejected
from rusbeir.jobs.throttle import Limits, Throttle
from rusbeir.jobs.workspace import Tell
from rusbeir.storage import atomic_file
from rusbeir.types import Progress

_SHARE = "batch share"
"""The name in a journal under which it has what a batch costs of the usual price."""
_DIGEST = 16
"""The bytes of a request's digest."""
_TRANSFER_SECONDS = 3600.0
"""The time for a file of requests or answers to be sent."""


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
    sender: Sender | None = None
    """Sends requests without an answer as batches."""
    keeps_answers: bool = False
    """Whether answers stay in the journal at the end, where what was made of them is kept elsewhere."""
    is_cancelling: bool = False
    """Whether what is under way is cancelled, and nothing is sent."""
    repeats: int = field(default=0, init=False)
    """Requests of this run that ask again for what an answered one did not bring."""
    _file: IO[bytes] | None = field(default=None, init=False)
    _part: int = field(default=0, init=False)
    _parts: list[tuple[int, Path]] = field(default_factory=list, init=False)
    """The parts of this pass, and their files."""
    _size: tuple[int, int] = field(default=(0, 0), init=False)
    """(requests, bytes) of the last part."""
    _n_open: int = field(default=0, init=False)
    """Requests of this pass that have no answer."""
    _n_written: int = field(default=0, init=False)
    _bound: tuple[int, float] = field(default=(0, 0.0), init=False)
    """What the requests that are written take at most."""
    _used: bytearray = field(default_factory=bytearray, init=False)
    """The digests of the requests whose answers were fetched, one after the other: there may be millions."""
    _beyond: list[tuple[int, float]] = field(default_factory=list, init=False)
    """What the first request takes that exceeds the budget."""
    _files: contextlib.ExitStack = field(default_factory=contextlib.ExitStack, init=False)

    @property
    def is_offline(self) -> bool:
        """Whether this run sends nothing."""
        return not self.is_live and self.sender is None

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
        if self.sender is None:
            await self._pass(work)
            if self._n_open:
                self._suspend()
        else:
            await self._work_in_batches(self.sender, work)
        # Another job may share the journal, and has not used its answers yet.
        if not self.keeps_answers:
            used = bytes(self._used)
            self.requests.forget_answers(used[start : start + _DIGEST] for start in range(0, len(used), _DIGEST))

    async def _work_in_batches(self, sender: Sender, work: Callable[[], Awaitable[None]]) -> None:
        """Send what has no answer, wait, and work again, until no answer is missing."""
        try:
            if self.is_cancelling:
                n = await sender.cancel()
                raise Suspended(f"{n:,} batches are cancelled. What they answered is kept.")
            await sender.collect()
            while True:
                await self._pass(work)
                if not self._n_open:
                    self._tell_prices()
                    return
                self._refuse_nothing_to_send()
                n_before = self.requests.n_recorded
                for part, path in self._parts:
                    await sender.send(part, path)
                    path.unlink()
                await sender.collect()
                if self.requests.n_recorded == n_before:
                    raise BackendError(
                        f"{self._describe_answers()} None of {self._n_written:,} requests has an answer. Run the same "
                        f"command again to send them again, or leave {option('batch', True)} out."
                    )
        finally:
            await sender.service.close()

    async def _pass(self, work: Callable[[], Awaitable[None]]) -> None:
        """Work once, and collect the requests that have no answer."""
        self._part, self._file, self._parts, self._beyond = 0, None, [], []
        self._n_open = self._n_written = 0
        self._bound = 0, 0.0
        with self._files:
            await work()
            self.requests.flush()

    def _tell_prices(self) -> None:
        cost, share = self.requests.spent.cost, self.requests.share
        if cost and share < 1:
            self.tell(f"Batches: {cost:,.4f} USD paid in this run, {cost / share - cost:,.4f} less than one by one.")

    def fetch(self, request: Mapping[str, Any], chars: int, cost: float, repeat: bool) -> tuple[int, str] | None:
        """Return the answer to a request, as jobs.Exchange has it."""
        try:
            body = orjson.dumps(request, option=orjson.OPT_SORT_KEYS)
        except orjson.JSONEncodeError as error:
            raise Rejected("rejected", f"the text cannot be encoded as UTF-8 ({error})") from None
        key = hashlib.blake2b(body, digest_size=_DIGEST).digest()
        known = self.requests.find(key)
        if known is not None and known.status is not None and known.answer is not None:
            self._used += key
            return known.status, known.answer
        if self.is_live:
            return None
        # Equal requests of a pass are one request.
        if known is None or not known.part >= self._first_part > 0:
            self._n_open += 1
            self._write(key, body, chars, cost, repeat)
        raise Postponed

    def _write(self, key: bytes, body: bytes, chars: int, cost: float, repeat: bool) -> None:
        if self.out is None and self.sender is None:
            return
        cost *= self.requests.share
        bound = self._bound[0] + chars, self._bound[1] + cost
        if not self.requests.budget.fits(*bound):
            self._beyond = self._beyond or [(chars, cost)]
            return
        line = write_request(key, body)
        self._open_part(len(line)).write(line)
        self.requests.add(key, chars, cost, self._part)
        self.repeats += repeat
        self._bound = bound
        self._n_written += 1

    def _open_part(self, n_bytes: int) -> IO[bytes]:
        """Return the file to which a line of that length is to be written."""
        if self._file is not None and self.sender is not None:
            service, (n_requests, n_written) = self.sender.service, self._size
            if n_requests >= service.max_requests or n_written + n_bytes > service.max_bytes:
                self._files.close()
                self._file = None
        if self._file is None:
            self.requests.flush()
            self._part = self.requests.find_last_part() + 1
            path = self.out or self.requests.journal.path.with_name(f"batch-{self._part}-requests.jsonl")
            self._file = self._files.enter_context(atomic_file(path))
            self._parts.append((self._part, path))
            self._size = 0, 0
        self._size = self._size[0] + 1, self._size[1] + n_bytes
        return self._file

    @property
    def _first_part(self) -> int:
        """The first part of this pass; 0 where none was written."""
        return self._parts[0][0] if self._parts else 0

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
        self._refuse_nothing_to_send()
        left = self._n_open - self._n_written
        rest = f" {left:,} more exceed the budget." if left else ""
        raise Suspended(
            f"{self._n_written:,} requests are written to {self.out}.{rest} Have them answered, in one file or in "
            f"several, then run the same again with {option('batch_in', 'ANSWERS')} in place of {option('batch_out')}."
        )

    def _refuse_nothing_to_send(self) -> None:
        """Raise BudgetReached or BudgetTooSmall where the budget takes none of the requests."""
        if not self._n_written:
            for chars, cost in self._beyond:
                self.requests.budget.reserve(chars, cost)


def _find_share(batching: Mapping[str, Any], journal: Journal, price: Price) -> float:
    """Return what a batch costs of the usual price: as it is given or known, or as it was when batches were sent."""
    share = batching.get("batch")
    if share and (share is not True or (price.batch is not None and not journal.get_meta(_SHARE))):
        journal.set_meta({_SHARE: repr(float(price.batch if share is True and price.batch is not None else share))})
    return float(journal.get_meta(_SHARE) or 1.0)


def open_batches(
    batching: Mapping[str, Any],
    journal: Journal,
    budget: Budget,
    price: Price,
    tell: Tell,
    limits: Limits,
    progress: Progress,
) -> BatchRun:
    """Open the run that these options ask for; without any, what has no answer is sent one by one.

    Raises BadInput for options that contradict each other, and where batches are under way that this run would not
    wait for.
    """
    names = [name for name in ("batch", "batch_out", "cancel") if batching.get(name)]
    if len(names) > 1:
        raise BadInput(
            f"{option(names[0], True)} and {option(names[1], True)} contradict each other: give one of them."
        )
    answers = batching.get("batch_in", ())
    out = batching.get("batch_out")
    run = BatchRun(
        requests=Requests(journal=journal, budget=budget, price=price, share=_find_share(batching, journal, price)),
        out=Path(out) if out else None,
        answers=[Path(answers)] if isinstance(answers, str | Path) else [Path(path) for path in answers],
        is_live=not batching,
        tell=tell,
        is_cancelling=bool(batching.get("cancel")),
    )
    if batching.get("batch") or batching.get("cancel"):
        service = open_service(Llm.from_environment("batches", timeout_seconds=limits.timeout_seconds))
        patient = replace(limits, timeout_seconds=_TRANSFER_SECONDS, requests_per_second=None)
        run.sender = Sender(
            requests=run.requests, service=service, throttle=Throttle(patient), progress=progress, tell=tell
        )
    elif batches := list_open(run.requests):
        raise BadInput(
            f"{len(batches):,} batches of this job are under way at {batches[0].address}. Collect them with "
            f"{option('batch', True)}, or cancel them with {option('cancel', True)}."
        )
    return run

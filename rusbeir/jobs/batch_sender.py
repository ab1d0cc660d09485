"""Batches at a provider: sent, found again after a kill, waited for, and read into the journal."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from rusbeir.errors import BackendError, BadInput, name_command, option
from rusbeir.jobs.batch_lines import open_answers, read_replies
from rusbeir.jobs.batch_requests import USELESS, Requests
from rusbeir.jobs.batch_service import BatchService, BatchState, Unsettled, refusing_malformed
from rusbeir.jobs.budget import Spent
from rusbeir.jobs.journal import text_of
from rusbeir.jobs.llm_answer import Rejected
from rusbeir.jobs.throttle import Exhausted, Throttle
from rusbeir.jobs.workspace import Tell
from rusbeir.types import Progress

T = TypeVar("T")

NEW, SENT, OVER = "new", "sent", "over"
"""A batch that may be at its provider, one that is, and one whose answers are in the journal."""
_OPEN = f"SELECT number, label, address, remote, state FROM batch WHERE state != '{OVER}' ORDER BY number"
_UNANSWERED = f"batch = ? AND (status IS NULL OR status = {USELESS})"
_BACK_OFF = 1.5
_LOOKS = 2
"""How often a batch is looked for: what a killed process sent may still be on its way."""


class SentBatch(NamedTuple):
    """A batch as the journal knows it."""

    number: int
    label: str
    address: str
    remote: str
    """The provider's id; "" where it is not known."""
    state: str


def list_open(requests: Requests) -> list[SentBatch]:
    """The batches whose answers are not in the journal."""
    rows = requests.journal.read(_OPEN)
    return [SentBatch(row[0], *map(text_of, row[1:])) for row in rows]


@dataclass(kw_only=True)
class Sender:
    """Sends the requests of one job as batches. For one event loop.

    A batch is in the journal, and its cost is reserved, before it is at the provider. So a kill loses none: the
    provider is asked for a batch with its label, and where there is none, the reservation is given back.
    """

    requests: Requests
    service: BatchService
    throttle: Throttle
    progress: Progress
    tell: Tell

    async def send(self, part: int, path: Path) -> None:
        """Send the file of a part as a batch. Raises what the provider answers, such as BadInput for a wrong key."""
        batch = self._register(part)
        try:
            file = await self._call(lambda: self.service.upload(path, batch.label))
        except (BackendError, BadInput):
            # An uploaded file costs nothing.
            self._release(batch, 0)
            raise
        n_attempts = 0

        async def create() -> str:
            nonlocal n_attempts
            n_attempts += 1
            # An attempt that failed may have started it all the same.
            if n_attempts > 1 and (remote := await self.service.find(batch.label)):
                return remote
            return await self.service.create(file, batch.label)

        try:
            remote = await self._call(create)
        except Unsettled:
            # It is looked for when batches are collected.
            return
        except (BadInput, Rejected):
            # After an attempt that failed, it stays in the journal, and is looked for when batches are collected.
            if n_attempts == 1:
                self._release(batch, 0)
            raise
        self._note_sent(batch, remote)

    async def collect(self) -> None:
        """Wait for all batches that are under way, and record what they answered.

        Raises BackendError for a batch that the provider refused, whose answers are gone, or that somebody cancelled;
        the journal is right then, and the next run sends what has no answer. One that this key does not see stays under
        way.
        """
        batches = await self._adopt()
        try:
            for batch in batches:
                await self._wait(batch)
        except asyncio.CancelledError:
            self.tell(
                f"{len(list_open(self.requests)):,} batches go on at {self.service.address}. {name_command()} collects "
                f"them, and cancels them with {option('cancel', True)} in place of {option('batch', True)}."
            )
            raise

    async def cancel(self) -> int:
        """Cancel all batches that are under way, record what they answered, and return how many there were.

        Those that the provider does not know are given up, and count as spent.
        """
        batches = await self._adopt(gives_up=True)
        for batch in batches:
            state = await self._call(partial(self.service.look, batch.remote))
            # What is over cannot be cancelled, and is collected below.
            if state is not None and not state.is_over:
                await self._call(partial(self.service.cancel, batch.remote))
        for batch in batches:
            await self._wait(batch, is_cancelled=True)
        return len(batches)

    async def _call(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Ask the provider, again where it fails. Raises BackendError where it never answers as is documented."""

        async def ask_once() -> T:
            with refusing_malformed():
                return await ask()

        try:
            return await self.throttle.run(ask_once)
        except Exhausted as error:
            raise BackendError(f"{self.service.address}: {error}") from error

    def _register(self, part: int) -> SentBatch:
        """Put a batch of a part's requests into the journal, and reserve what it costs, in one step."""
        journal = self.requests.journal
        number = journal.read("SELECT coalesce(max(number), 0) + 1 FROM batch")[0][0]
        batch = SentBatch(number, _make_label(self.service), self.service.address, "", NEW)
        free = "part = ? AND batch IS NULL AND status IS NULL"
        n, chars, cost = journal.read(f"SELECT count(*), sum(chars), sum(cost) FROM request WHERE {free}", (part,))[0]
        self.requests.budget.correct(
            Spent(requests=n, chars=chars or 0, cost=cost or 0.0),
            [
                ("INSERT INTO batch VALUES (?, ?, ?, ?, ?)", [batch]),
                (f"UPDATE request SET batch = ? WHERE {free}", [(number, part)]),
            ],
        )
        return batch

    def _release(self, batch: SentBatch, n_lost: int) -> None:
        """Note that a batch is over, and give back what is reserved for those of its requests that have no answer."""
        journal = self.requests.journal
        n, chars, cost = journal.read(
            f"SELECT count(*), sum(chars), sum(cost) FROM request WHERE {_UNANSWERED}", (batch.number,)
        )[0]
        back = Spent(requests=-n, chars=-(chars or 0), cost=-(cost or 0.0))
        self.requests.budget.correct(
            Spent() if n_lost else back,
            [
                (f"UPDATE request SET batch = NULL, status = NULL WHERE {_UNANSWERED}", [(batch.number,)]),
                ("UPDATE batch SET state = ? WHERE number = ?", [(OVER, batch.number)]),
            ],
        )

    def _note_sent(self, batch: SentBatch, remote: str) -> SentBatch:
        row = (remote, SENT, batch.number)
        self.requests.journal.write("UPDATE batch SET remote = ?, state = ? WHERE number = ?", [row])
        return batch._replace(remote=remote, state=SENT)

    async def _adopt(self, *, gives_up: bool = False) -> list[SentBatch]:
        """The batches under way; those that never came to the provider are released.

        Raises BackendError for one that may be there and that only another key sees, unless it gives such ones up.
        """
        batches = []
        for batch in list_open(self.requests):
            if batch.address != self.service.address:
                raise BadInput(
                    f"A batch of this job is under way at {batch.address}, not at {self.service.address}: set "
                    "OPENAI_BASE_URL to that address to collect it."
                )
            if batch.state == SENT:
                batches.append(batch)
            elif (remote := await self._find(batch.label)) is not None:
                batches.append(self._note_sent(batch, remote))
            elif batch.label.endswith(self.service.key_mark):
                self._release(batch, 0)
            elif gives_up:
                self._release(batch, self._count(batch))
            else:
                raise self._refuse_unseen(batch)
        return batches

    async def _find(self, label: str) -> str | None:
        """The provider's id of a batch; None where it never came there."""
        limits = self.throttle.limits
        seconds, n_looks = limits.first_wait_seconds, 0
        while n_looks < _LOOKS:
            try:
                if (remote := await self._call(lambda: self.service.find(label))) is not None:
                    return remote
                n_looks += 1
            except Unsettled as batch:
                self.progress(f"batch {batch}: it may be of this job", 0, None)
            await asyncio.sleep(seconds)
            seconds = min(seconds * _BACK_OFF, limits.max_wait_seconds)
        return None

    async def _wait(self, batch: SentBatch, *, is_cancelled: bool = False) -> None:
        """Record what a batch answered, once it is over."""
        limits = self.throttle.limits
        seconds = limits.first_wait_seconds
        while True:
            state = await self._call(lambda: self.service.look(batch.remote))
            if state is None:
                if not is_cancelled:
                    raise self._refuse_unseen(batch)
                self._release(batch, self._count(batch))
                return
            if state.is_over:
                break
            self.progress(f"batch {batch.remote}: {state.word}", state.n_answered, self._count(batch))
            await asyncio.sleep(seconds)
            seconds = min(seconds * _BACK_OFF, limits.max_wait_seconds)
        is_whole = await self._read(batch, state)
        n_lost = 0 if is_whole else self._count(batch, _UNANSWERED)
        self._release(batch, n_lost)
        if n_lost:
            raise BackendError(
                f"The answers of the batch {batch.remote} are gone: {batch.address} keeps them for a time. Its "
                f"{n_lost:,} requests without an answer count as spent; run the same command again to ask in a new one."
            )
        if state.error:
            raise BackendError(f"{batch.address} refused the batch {batch.remote} ({state.error}). Nothing was billed.")
        if state.word == "cancelled" and not is_cancelled:
            raise BackendError(
                f"The batch {batch.remote} was cancelled. What it answered is recorded; run the same command again to "
                "send the rest."
            )

    async def _read(self, batch: SentBatch, state: BatchState) -> bool:
        """Record the answers in the files of a batch, and return whether none of the files is gone."""
        is_whole = True
        for file in state.files:
            path = self.requests.journal.path.with_name(f"batch-{batch.number}-answers.jsonl")
            if not await self._call(partial(self.service.download, file, path)):
                is_whole = False
                continue
            with open_answers(path) as answers:
                self.requests.record(read_replies(answers, f"{file} of the batch {batch.remote}"))
            path.unlink()
        return is_whole

    def _count(self, batch: SentBatch, condition: str = "batch = ?") -> int:
        rows = self.requests.journal.read(f"SELECT count(*) FROM request WHERE {condition}", (batch.number,))
        return int(rows[0][0])

    def _refuse_unseen(self, batch: SentBatch) -> BackendError:
        """Return the error of a batch that the provider does not show: it may belong to the project of another key."""
        what = f"the batch {batch.remote}" if batch.remote else "a batch that may have been sent"
        return BackendError(
            f"{batch.address} does not show {what} to this key. Set OPENAI_API_KEY to a key of the project that sent "
            f"it, and run the same command again; or give it up with {option('cancel', True)}: its "
            f"{self._count(batch):,} requests then count as spent, since they may have been billed."
        )


def _make_label(service: BatchService) -> str:
    """Return a new label for a batch. Its end says under which key it was sent."""
    return secrets.token_hex(12) + service.key_mark

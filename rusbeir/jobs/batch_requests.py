"""Requests that are answered in batches: what the journal of a job knows of each, and what they cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import NamedTuple

from rusbeir.errors import BadInput
from rusbeir.jobs.batch_lines import Reply
from rusbeir.jobs.budget import Budget, Spent
from rusbeir.jobs.journal import BATCHES, Change, Journal, text_of
from rusbeir.jobs.llm_answer import Price, Usage, parse_response, read_answer, read_error, read_usage
from rusbeir.jobs.throttle import Transient
from rusbeir.text import batched, shorten

_SCHEMA = (
    # A request by the digest of its body. part is the file to which it was last written; batch is the batch in which it
    # was last sent, NULL of a file. cost is the most that it costs. status is NULL until it is answered; the answer is
    # removed when nothing asks for it anymore.
    "CREATE TABLE IF NOT EXISTS request(id BLOB PRIMARY KEY, chars INTEGER NOT NULL, cost REAL NOT NULL,"
    " part INTEGER NOT NULL, batch INTEGER, status INTEGER, answer TEXT)",
    # What is under way is looked for at each start.
    "CREATE INDEX IF NOT EXISTS sent ON request(batch) WHERE status IS NULL",
    # label names a batch at its provider, and is here before the batch is there; remote is the provider's own id.
    "CREATE TABLE IF NOT EXISTS batch(number INTEGER PRIMARY KEY, label TEXT NOT NULL UNIQUE, address TEXT NOT NULL,"
    " remote TEXT NOT NULL, state TEXT NOT NULL)",
)
_CHUNK = 500
USELESS = -1
"""Takes the place of a status where an answer was billed and cannot be read."""
_FINAL = {HTTPStatus.OK, HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNPROCESSABLE_ENTITY}
"""Statuses that answer a request; after others the same request may succeed."""
_REASON_CHARS = 120


class Request(NamedTuple):
    """What is known of a request."""

    part: int
    batch: int | None
    status: int | None
    answer: str | None
    chars: int
    cost: float

    @property
    def is_forgotten(self) -> bool:
        """Whether its answer was removed, for it had been used."""
        return self.answer is None and self.status is not None and self.status != USELESS


@dataclass(kw_only=True)
class Requests:
    """The requests of one job, with its budget. What is answered and what is counted is changed together."""

    journal: Journal
    budget: Budget
    price: Price
    """What requests cost that are sent one by one."""
    share: float = 1.0
    """What a batch costs of that."""
    spent: Spent = field(default_factory=Spent, init=False)
    """What the answers that were recorded by this object took."""
    n_recorded: int = field(default=0, init=False)
    n_repeated: int = field(default=0, init=False)
    """Answers to what had been answered before."""
    failures: Counter[str] = field(default_factory=Counter, init=False)
    """Why requests have no answer -> how many."""
    _written: dict[bytes, tuple[int, float, int]] = field(default_factory=dict, init=False)
    """Requests that are not in the journal yet."""

    def __post_init__(self) -> None:
        for statement in _SCHEMA:
            self.journal.read(statement)
        self.journal.set_meta({BATCHES: "yes"})

    def find(self, key: bytes) -> Request | None:
        """Return what is known of the request with that digest."""
        if (row := self._written.get(key)) is not None:
            chars, cost, part = row
            return Request(part, None, None, None, chars, cost)
        rows = self.journal.read("SELECT part, batch, status, answer, chars, cost FROM request WHERE id = ?", (key,))
        if not rows:
            return None
        part, batch, status, answer, chars, cost = rows[0]
        return Request(part, batch, status, None if answer is None else text_of(answer), chars, cost)

    def add(self, key: bytes, chars: int, cost: float, part: int) -> None:
        """Note that a request was written to a part; flush makes it durable."""
        self._written[key] = chars, cost, part
        if len(self._written) >= _CHUNK:
            self.flush()

    def flush(self) -> None:
        """Write to the journal what was added."""
        self.journal.write(
            "INSERT INTO request(id, chars, cost, part) VALUES (?, ?, ?, ?) ON CONFLICT(id) DO UPDATE SET "
            "chars = excluded.chars, cost = excluded.cost, part = excluded.part, batch = NULL, status = NULL, "
            "answer = NULL",
            [(key, *row) for key, row in self._written.items()],
        )
        self._written.clear()

    def find_last_part(self) -> int:
        """Return the number of the part that was written last; 0 where none was."""
        return int(self.journal.read("SELECT coalesce(max(part), 0) FROM request")[0][0])

    def record(self, replies: Iterable[Reply]) -> None:
        """Keep each answer that can be read, and count what it cost.

        The first answer to a request counts. Raises BadInput for one to a request that this job never wrote; what
        comes before it is kept.
        """
        for chunk in batched(replies, _CHUNK):
            self._record(chunk)

    def forget_answers(self, keys: Iterable[bytes]) -> None:
        """Remove the answers to these requests, which are in the journal as what was made of them."""
        for chunk in batched(keys, _CHUNK):
            self.journal.write("UPDATE request SET answer = NULL WHERE id = ?", [(key,) for key in chunk])

    def _record(self, replies: Sequence[Reply]) -> None:
        changes: dict[bytes, tuple[int, str | None, bytes]] = {}
        spent, more = [self.spent], []
        stranger = None
        for reply in replies:
            request = self.find(reply.key)
            if request is None:
                stranger = reply
                break
            if request.is_forgotten:
                # It was counted when it came first.
                changes[reply.key] = reply.status, reply.body, reply.key
                continue
            if request.status is not None or reply.key in changes:
                self.n_repeated += 1
                continue
            status, took = self._judge(reply, request)
            if status is None:
                continue
            changes[reply.key] = status, None if status == USELESS else reply.body, reply.key
            spent.append(took)
            # What a batch takes was reserved when it was sent.
            more.append(took if request.batch is None else _subtract(took, request, is_kept=status != USELESS))
        rows = list(changes.values())
        together: list[Change] = [("UPDATE request SET status = ?, answer = ? WHERE id = ?", rows)]
        if rows:
            self.budget.correct(Spent.sum(more), together)
        self.spent = Spent.sum(spent)
        self.n_recorded += sum(answer is not None for _, answer, _ in rows)
        if stranger is not None:
            raise BadInput(
                f"{stranger.location} answers a request that this job never wrote: the file belongs to another job. "
                "What came before that line is kept."
            )

    def _judge(self, reply: Reply, request: Request) -> tuple[int | None, Spent]:
        """Return (the status to record, what the answer took); None where the request is to be sent again."""
        took = Spent(requests=1)
        if reply.status not in _FINAL:
            self._note_failure(f"{reply.status or ''} {_describe(reply.body)}")
            return None, took
        if reply.status != HTTPStatus.OK:
            return reply.status, took
        took.chars = request.chars
        try:
            response = parse_response(reply.body)
            usage = read_usage(response)
            took.input_tokens, took.output_tokens, took.cached_input_tokens = usage[:3]
            took.cost = self._price(usage, request)
            read_answer(response)
        except Transient as error:
            self._note_failure(error.detail)
            return USELESS, took
        return reply.status, took

    def _price(self, usage: Usage, request: Request) -> float:
        """Return what an answer cost; the most that it may have cost where its tokens were not counted."""
        if not any(usage):
            return request.cost
        return self.price.of(*usage) * (1.0 if request.batch is None else self.share)

    def _note_failure(self, reason: str) -> None:
        self.failures[shorten(reason.strip(), _REASON_CHARS)] += 1


def _subtract(took: Spent, request: Request, *, is_kept: bool) -> Spent:
    """Return what is counted in addition to the reservation, which stays where the answer is not kept."""
    chars, cost = (request.chars, request.cost) if is_kept else (0, 0.0)
    return Spent(
        requests=took.requests - is_kept,
        chars=took.chars - chars,
        input_tokens=took.input_tokens,
        output_tokens=took.output_tokens,
        cached_input_tokens=took.cached_input_tokens,
        cost=took.cost - cost,
    )


def _describe(body: str) -> str:
    error = read_error(body)
    if not isinstance(error, dict):
        return str(error)
    return str(error.get("message") or error.get("code") or error)

"""What all translators do with a request: what is not sent, what becomes of one text, what of one answer."""

from __future__ import annotations

import asyncio
import re
import weakref
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

from rusbeir.errors import BadInput
from rusbeir.jobs import Transient, retry_after_seconds
from rusbeir.translation.translator import Failure, Outcome

T = TypeVar("T")

SHOWN_CHARS = 120
_MASK = re.compile(r"<[^<>]*>|&#?\w+;")
_WORD = re.compile(r"[^\W\d_]+")
# Not a name: no capital. Nor an abbreviation: three letters at least.
_LOWER_WORD = re.compile(r"(?<!\w)[^\W\d_A-Z][^\W\d_]{2,}")
_COPIED_WORDS = 3


async def ask_sendable(texts: Sequence[str], ask: Callable[[list[str]], Awaitable[Sequence[Outcome]]]) -> list[Outcome]:
    """The outcomes of ask in the order of the texts, which it is given without those that nobody can send.

    A blank text is its own translation; one with a lone surrogate is unsupported. ask is not called for nothing.
    """
    outcomes: list[Outcome | None] = [_unsent(text) for text in texts]
    sent = [text for text, outcome in zip(texts, outcomes, strict=True) if outcome is None]
    answers = iter(await ask(sent) if sent else ())
    return [next(answers) if outcome is None else outcome for outcome in outcomes]


def _unsent(text: str) -> Outcome | None:
    if not text.strip():
        return text
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return Failure("unsupported", f"the text holds a lone surrogate at character {error.start + 1}", False)
    return None


async def one_by_one(texts: Sequence[str], ask: Callable[[str], Awaitable[Outcome]]) -> list[Outcome]:
    """The outcomes of ask, a request a text, where one failed request leaves the other texts their answers.

    Transient where none of the texts has an outcome of its own: there is nothing to lose then.
    """
    outcomes: list[Outcome] = []
    failed: Transient | None = None
    answered = False
    for text in texts:
        try:
            outcomes.append(await ask(text))
            answered = True
        except Transient as error:
            failed = error
            outcomes.append(Failure(error.reason, shown(error.detail or error.reason), True))
    if failed is not None and not answered:
        raise failed
    return outcomes


def judge_answer(text: str, answer: str) -> Outcome:
    """The answer, or why it is no translation of the text: empty, or the text itself with more than three words.

    Names alone may stay as they are.
    """
    if not answer.strip():
        return Failure("empty", "the answer is empty", True)
    if answer.strip() == text.strip():
        words = _MASK.sub(" ", text)
        if len(_WORD.findall(words)) > _COPIED_WORDS and _LOWER_WORD.search(words):
            return Failure("untranslated", "the source text came back", True)
    return answer


def judge_answers(texts: Sequence[str], answers: Sequence[str]) -> list[Outcome]:
    """The verdicts on the answers to one request; Transient where they are not as many as the texts."""
    if len(answers) != len(texts):
        raise Transient("malformed", detail=f"{len(texts)} texts were sent and {len(answers)} answers came back")
    return [judge_answer(text, answer) for text, answer in zip(texts, answers, strict=True)]


def forbid_retry(outcome: Outcome) -> Outcome:
    """The outcome of a translator that always answers the same: asking it again is of no use."""
    return outcome if isinstance(outcome, str) else outcome._replace(retry=False)


def shown(text: str) -> str:
    """One line for a message."""
    line = " ".join(text.split())
    return line if len(line) <= SHOWN_CHARS else line[: SHOWN_CHARS - 1] + "…"


class Flagged(str):
    """A translation that a reader should look at: flags says why, such as "fuzzy:0.93"."""

    flags: str

    def __new__(cls, text: str, flags: str) -> Flagged:
        flagged = super().__new__(cls, text)
        flagged.flags = flags
        return flagged


class PerLoop(Generic[T]):
    """One client for each event loop: what asyncio's sockets demand."""

    def __init__(self) -> None:
        self._clients: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, T] = weakref.WeakKeyDictionary()

    def get(self, make: Callable[[], T]) -> T:
        """The running loop's client; made where there is none."""
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            self._clients[loop] = make()
        return self._clients[loop]

    def take(self) -> T | None:
        """The running loop's client, which is then forgotten; None where there is none."""
        return self._clients.pop(asyncio.get_running_loop(), None)


TOO_LONG = frozenset({413, 414, 431})
"""Statuses of a request with more text than the server takes."""

_REPEATABLE = {408: "timeout", 425: "server", 429: "rate-limited", 529: "rate-limited"}


def transient(status: int, said: str, headers: Mapping[str, str]) -> Transient | None:
    """What to raise for a status that is worth repeating; None for any other."""
    # A redirection leads to a page for people: a login, a captcha, maintenance.
    reason = _REPEATABLE.get(status, "server" if status >= 500 or 300 <= status < 400 else "")
    if not reason:
        return None
    return Transient(
        reason, detail=shown(f"{status} {said}").strip(), retry_after=retry_after_seconds(headers.get("retry-after"))
    )


def address(value: str, what: str) -> str:
    """An address without a slash at its end; BadInput, naming what gave it, where it is none."""
    parts = urlsplit(value)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username or parts.password:
        raise BadInput(
            f"{what} is no address: it must begin with http:// or https://, name a host and hold no password."
        )
    return value.rstrip("/")


def redirected(httpx: Any, endpoint: str) -> Any:
    """An httpx transport that sends every request to another host, path and query unchanged."""
    base = httpx.URL(endpoint)

    class Redirected(httpx.AsyncHTTPTransport):  # type: ignore[misc]
        async def handle_async_request(self, request: Any) -> Any:
            request.url = request.url.copy_with(scheme=base.scheme, host=base.host, port=base.port)
            request.headers["Host"] = base.netloc.decode("ascii")
            return await super().handle_async_request(request)

    return Redirected()

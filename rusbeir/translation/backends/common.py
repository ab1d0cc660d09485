"""The parts that rusbeir's translators share: which texts are sent, judging answers, keys, clients, errors, codes."""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import os
import re
import weakref
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

from rusbeir.errors import BadInput
from rusbeir.jobs import Charge, Meter, Transient, find_passing_reason, retry_after_seconds
from rusbeir.languages import list_broader_tags
from rusbeir.text import shorten
from rusbeir.translation.translator import Capacity, Failure, Outcome

T = TypeVar("T")

_SURROGATE = re.compile(r"[\ud800-\udfff]")
_MASK = re.compile(r"<[^<>]*>|&#?\w+;")
_WORD = re.compile(r"[^\W\d_]+")
# Not a name: no capital. Nor an abbreviation: three letters at least.
_LOWER_WORD = re.compile(r"(?<!\w)[^\W\d_A-Z][^\W\d_]{2,}")
_COPIED_WORDS = 3
_MAX_CHARS, _MAX_CHARS_PER_CHAR = 1_000, 20
"""What a translation may have at most: so many characters, and so many more for each of the text."""


async def ask_sendable(texts: Sequence[str], ask: Callable[[list[str]], Awaitable[Sequence[Outcome]]]) -> list[Outcome]:
    """Ask for the texts that can be sent, and return the outcomes of all of them in order.

    A blank text is its own translation; one with an unpaired surrogate is unsupported. ask is not called with [].
    """
    settled: dict[int, Outcome] = {}
    for i, text in enumerate(texts):
        if not text.strip():
            settled[i] = text
        elif not text.isascii() and (unpaired := _SURROGATE.search(text)):
            detail = f"the text has an unpaired surrogate at character {unpaired.start() + 1}"
            settled[i] = Failure("unsupported", detail, False)
    sent = [text for i, text in enumerate(texts) if i not in settled]
    answers = iter(await ask(sent) if sent else ())
    return [settled[i] if i in settled else next(answers) for i in range(len(texts))]


async def one_by_one(texts: Sequence[str], ask: Callable[[str], Awaitable[Outcome]]) -> list[Outcome]:
    """Ask for each text in a request of its own, so that a failed request costs the other texts nothing.

    Raises Transient where every request failed: no answer is lost then.
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
            outcomes.append(Failure(error.reason, shorten(error.detail or error.reason), True))
    if failed is not None and not answered:
        raise failed
    return outcomes


def judge_answer(text: str, answer: str) -> Outcome:
    """Return the answer, or the Failure of one that is empty, far too long or broken, or that repeats the text.

    Names alone, and up to three words, may stay as they are.
    """
    if not answer.strip():
        return Failure("empty", "the answer is empty", True)
    if len(answer) > _MAX_CHARS + _MAX_CHARS_PER_CHAR * len(text):
        return Failure("malformed", f"the answer to {len(text):,} characters has {len(answer):,}", True)
    if not answer.isprintable() and _SURROGATE.search(answer):
        return Failure("malformed", "the answer has half a character (an unpaired surrogate)", True)
    if answer.strip() == text.strip():
        words = _MASK.sub(" ", text)
        if len(_WORD.findall(words)) > _COPIED_WORDS and _LOWER_WORD.search(words):
            return Failure("untranslated", "the source text came back", True)
    return answer


def judge_answers(texts: Sequence[str], answers: Sequence[Any]) -> list[Outcome]:
    """Judge the answers to one request. Raises Transient where they are not texts, or not as many."""
    if len(answers) != len(texts):
        raise Transient("malformed", detail=f"{len(texts)} texts were sent and {len(answers)} answers came back")
    if not all(isinstance(answer, str) for answer in answers):
        raise Transient("malformed", detail="not every answer is a text")
    return [judge_answer(text, answer) for text, answer in zip(texts, answers, strict=True)]


def forbid_retry(outcome: Outcome) -> Outcome:
    """Return the outcome for a translator that always gives the same answer, so that asking again cannot help."""
    return outcome._replace(retry=False) if isinstance(outcome, Failure) else outcome


def read_key(variable: str) -> str:
    """Read the API key in an environment variable; "" where it is not set. Raises BadInput for what cannot be a key."""
    key = os.environ.get(variable, "").strip()
    if not key.isascii() or not key.isprintable():
        raise BadInput(f"{variable} contains characters that no key has. Set it again, without quotes or line ends.")
    return key


class PerLoop(Generic[T]):
    """One client for each event loop, since asyncio's sockets belong to one."""

    def __init__(self) -> None:
        self._clients: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, T] = weakref.WeakKeyDictionary()

    def get(self, make: Callable[[], T]) -> T:
        """Return the running loop's client, made on first use."""
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            self._clients[loop] = make()
        return self._clients[loop]

    def take(self) -> T | None:
        """Remove and return the running loop's client; None where there is none."""
        return self._clients.pop(asyncio.get_running_loop(), None)


def charging(meter: Meter, texts: Sequence[str], capacity: Capacity) -> AbstractAsyncContextManager[Charge]:
    """Return the block in which a request with these texts is sent, at a price by the character."""
    chars = sum(map(len, texts))
    return meter.request(chars, chars * capacity.cost_per_million_chars / 1e6)


@contextlib.contextmanager
def reporting_failures(httpx: Any, server: str, seconds: float) -> Iterator[None]:
    """Raise Transient where a request of a client of httpx or httpx2 gets no whole answer."""
    try:
        yield
    except httpx.TimeoutException:
        raise Transient("timeout", detail=f"no answer within {seconds:g} seconds") from None
    except httpx.RequestError as error:
        # A server that hangs up in the middle of an answer has received the texts.
        billed = not isinstance(error, httpx.ConnectError)
        raise Transient("server", detail=shorten(f"no connection to {server}: {error}"), billed=billed) from None


TOO_LONG = frozenset({413, 414, 431})
"""HTTP statuses of a request with more text than the server takes."""


def transient(status: int, message: str, headers: Mapping[str, str]) -> Transient | None:
    """Return the error to raise for an HTTP status after which a retry may help; None for any other status."""
    # A redirection leads to a page for people: a login, a captcha, maintenance.
    reason = "server" if 300 <= status < 400 else find_passing_reason(status)
    if not reason:
        return None
    return Transient(
        reason,
        detail=shorten(f"{status} {message}").strip(),
        retry_after=retry_after_seconds(headers.get("retry-after")),
        billed=False,
    )


def address(value: str, what: str) -> str:
    """Strip a URL of its trailing slash. Raises BadInput, which begins with what, where it is not a usable URL."""
    parts = urlsplit(value)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username or parts.password:
        raise BadInput(
            f"{what} is not a URL: it must begin with http:// or https://, name a host and contain no password."
        )
    return value.rstrip("/")


def redirected(httpx: Any, endpoint: str) -> Any:
    """Return an httpx transport that sends every request to another host, path and query unchanged."""
    base = httpx.URL(endpoint)

    class Redirected(httpx.AsyncHTTPTransport):  # type: ignore[misc]
        async def handle_async_request(self, request: Any) -> Any:
            request.url = request.url.copy_with(scheme=base.scheme, host=base.host, port=base.port)
            request.headers["Host"] = base.netloc.decode("ascii")
            return await super().handle_async_request(request)

    return Redirected()


@dataclass(frozen=True, kw_only=True)
class Codes:
    """The languages of one translator, by its own codes."""

    translator: str
    codes: tuple[str, ...]
    aliases: Mapping[str, str]
    """BCP 47 in lower case -> the code, where they differ."""

    def among(self, codes: tuple[str, ...]) -> Codes:
        """Find the code for a model that says itself which codes it knows."""
        return replace(self, codes=codes)

    def source(self, tag: str) -> str:
        """Return the code of a language to translate from. Raises BadInput, listing the codes, where there is none."""
        return self._find(tag, "from", any_script=True)

    def target(self, tag: str) -> str:
        """Return the code of a language to translate into; never one in another script. BadInput as source."""
        return self._find(tag, "into", any_script=False)

    def pair(self, source: str, target: str) -> tuple[str, str]:
        """Return the codes of the languages to translate from and into. Raises BadInput as source and target do."""
        return self.source(source), self.target(target)

    @cached_property
    def _by_tag(self) -> dict[str, str]:
        return {code.lower().replace("_", "-"): code for code in self.codes}

    def _find(self, tag: str, direction: str, *, any_script: bool) -> str:
        for candidate in list_broader_tags(tag, any_script=any_script):
            if (alias := self.aliases.get(candidate)) in self.codes and alias is not None:
                return alias
            if candidate in self._by_tag:
                return self._by_tag[candidate]
        near = difflib.get_close_matches(tag.lower(), self._by_tag, n=1)
        raise BadInput(
            f"The translator {self.translator} does not translate {direction} {tag!r}."
            f"{f' Did you mean {self._by_tag[near[0]]!r}?' if near else ''} It has: {', '.join(sorted(self.codes))}."
        )

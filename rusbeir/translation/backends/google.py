"""The free endpoint behind translate.google.com, through googletrans: no key, no promises, low limits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from rusbeir.errors import BackendError, require
from rusbeir.jobs import Limits, Meter, Transient, bound_answers, retry_after_seconds
from rusbeir.text import shorten
from rusbeir.translation.backends import common
from rusbeir.translation.backends.common import PerLoop, ask_sendable, judge_answer, one_by_one
from rusbeir.translation.backends.registry import codes_of, preset
from rusbeir.translation.translator import Capacity, Failure, Outcome

_EXTRA = ("The translator google", "google")
_CAPTCHA = re.compile(r"/sorry/|captcha|unusual traffic", re.IGNORECASE)


class _Item(BackendError):
    """The server will not answer this one text."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.detail)
        self.failure = failure


@dataclass(frozen=True, kw_only=True)
class Google:
    """Google Translate without a key.

    googletrans's own traps are kept out: a status other than 200 never becomes the source text, captcha pages are
    rate limits, and the language codes are Google's own, not those of googletrans's table.
    """

    name: str = "google"
    endpoint: str = ""
    """Another address that answers like https://translate.googleapis.com; for tests and mirrors."""
    limits: Limits = field(default_factory=lambda: preset("google").limits)
    capacity: Capacity = field(default_factory=lambda: preset("google").capacity)
    meter: Meter = field(default_factory=Meter, repr=False, compare=False)
    _clients: PerLoop[Any] = field(default_factory=PerLoop, init=False, repr=False, compare=False)

    @property
    def signature(self) -> str:
        return "google|api:translate_a-gtx"

    def check(self, source: str, target: str) -> None:
        """BadInput for a language that Google has not, MissingExtra without googletrans."""
        if self.endpoint:
            common.address(self.endpoint, "The translator google's endpoint")
        codes_of("google", "google-languages").pair(source, target)
        require("googletrans", *_EXTRA)

    def with_meter(self, meter: Meter) -> Self:
        """Return the translator, which reserves each request at the meter before it sends it."""
        return replace(self, meter=meter)

    async def translate(self, texts: Sequence[str], source: str, target: str) -> list[Outcome]:
        """Translate the texts, one request each."""
        codes = codes_of("google", "google-languages").pair(source, target)
        translator = self._clients.get(self._open)
        return await ask_sendable(texts, lambda sent: one_by_one(sent, lambda text: self._ask(translator, text, codes)))

    async def close(self) -> None:
        """Close the connections of this event loop. Harmless when repeated."""
        if (translator := self._clients.take()) is not None:
            await translator.client.aclose()

    def _open(self) -> Any:
        httpx = require("httpx", *_EXTRA)
        translator = require("googletrans", *_EXTRA).Translator(
            service_urls=["translate.googleapis.com"], raise_exception=True, timeout=self.limits.timeout_seconds
        )
        client = translator.client
        if self.endpoint:
            client = translator.client = httpx.AsyncClient(
                transport=common.redirected(httpx, self.endpoint), headers=client.headers, timeout=client.timeout
            )
        bound_answers(client).event_hooks["response"].append(_inspect)
        return translator

    async def _ask(self, translator: Any, text: str, codes: tuple[str, str]) -> Outcome:
        source, target = codes
        httpx = require("httpx", *_EXTRA)
        try:
            # The parameters after dest and src replace those which googletrans would send: its table of languages
            # is not Google's ("ee" becomes Estonian), and of the ten kinds of data only the translation is wanted.
            async with self.meter.request(len(text)):
                with common.reporting_failures(httpx, "Google", self.limits.timeout_seconds):
                    answer = await translator.translate(
                        text, dest="en", src="auto", sl=source, tl=target, hl=target, dt=["t"]
                    )
        except _Item as item:
            return item.failure
        except httpx.InvalidURL:
            return Failure("too-long", f"the text has {len(text):,} characters, more than a URL can hold", False)
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise Transient("malformed", detail=shorten(f"the answer is not what Google sends: {error}")) from None
        return judge_answer(text, answer.text)


async def _inspect(response: Any) -> None:
    """Raise for every answer that is not a translation, before googletrans misreads it."""
    status, headers = response.status_code, response.headers
    if status == 200 and "html" not in headers.get("content-type", "").lower():
        await response.aread()
        if not _has_pieces(response):
            raise Transient("malformed", detail=shorten(f"the answer is not what Google sends: {response.text}"))
        return
    if 300 <= status < 400:
        raise _captcha(headers)  # to https://www.google.com/sorry/index
    body = (await response.aread()).decode("utf-8", "replace")
    if status in {200, 403} or (status == 429 and _CAPTCHA.search(body)):
        raise _captcha(headers)
    if (failure := common.transient(status, response.reason_phrase, headers)) is not None:
        raise failure
    reason = "too-long" if status in common.TOO_LONG else "unsupported"
    raise _Item(Failure(reason, f"Google answers {status} {response.reason_phrase}", False))


def _has_pieces(response: Any) -> bool:
    """Return whether the first entry lists pieces of a translation: googletrans makes a text of other JSON, too."""
    try:
        answer = response.json()
    except (ValueError, RecursionError):
        return False
    pieces = answer[0] if isinstance(answer, list) and answer else None
    return isinstance(pieces, list) and all(
        isinstance(piece, list) and piece and isinstance(piece[0], str | None) for piece in pieces
    )


def _captcha(headers: Any) -> Transient:
    return Transient(
        "rate-limited",
        detail="Google demands a captcha: too many requests came from this address",
        retry_after=retry_after_seconds(headers.get("retry-after")),
    )

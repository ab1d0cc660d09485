"""DeepL, through its official package."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from rusbeir.errors import BackendError, BadInput, require
from rusbeir.jobs import Limits, Transient, bound_answers
from rusbeir.text import shorten
from rusbeir.translation.backends import common
from rusbeir.translation.backends.common import PerLoop, ask_sendable, judge_answers, read_key
from rusbeir.translation.backends.registry import codes_of, preset
from rusbeir.translation.translator import Capacity, Failure, Outcome

KEY = "DEEPL_AUTH_KEY"
_EXTRA = ("The translator deepl", "deepl")
# Not allowed in XML in any form.
_ILLEGAL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


@dataclass(frozen=True, kw_only=True)
class DeepL:
    """DeepL. The texts go out as XML, in which it keeps the tags that are its placeholders."""

    name: str = "deepl"
    endpoint: str = ""
    """Another server than the key's own; for tests."""
    limits: Limits = field(default_factory=lambda: preset("deepl").limits)
    capacity: Capacity = field(default_factory=lambda: preset("deepl").capacity)
    _clients: PerLoop[Any] = field(default_factory=PerLoop, init=False, repr=False, compare=False)

    @property
    def signature(self) -> str:
        return "deepl|api:v2|tags:xml|split:nonewlines"

    def check(self, source: str, target: str) -> None:
        """BadInput for a language that DeepL has not and without a key, MissingExtra without the package deepl."""
        if self.endpoint:
            common.address(self.endpoint, "The translator deepl's endpoint")
        _codes(source, target)
        require("deepl", *_EXTRA)
        require("httpx", *_EXTRA)
        _key()

    async def translate(self, texts: Sequence[str], source: str, target: str) -> list[Outcome]:
        """One outcome a text, all in one request."""
        codes = _codes(source, target)
        return await ask_sendable(texts, lambda sent: self._ask(sent, codes))

    async def close(self) -> None:
        """Close the connections of this event loop. Harmless when repeated."""
        if (client := self._clients.take()) is not None:
            await client.aclose()

    async def _ask(self, texts: list[str], codes: tuple[str, str]) -> list[Outcome]:
        deepl, httpx = require("deepl", *_EXTRA), require("httpx", *_EXTRA)
        translator = deepl.Translator(_key(), server_url=self.endpoint or None, send_platform_info=False)
        translator.close()
        exchange = translator._client = _Exchange()
        translate = partial(
            translator.translate_text,
            [_ILLEGAL.sub(" ", text) for text in texts],
            source_lang=codes[0],
            target_lang=codes[1],
            tag_handling="xml",
            non_splitting_tags=["x"],
            split_sentences=deepl.SplitSentences.NO_NEWLINES,
            preserve_formatting=True,
        )
        with contextlib.suppress(_Unanswered):
            translate()
        seconds = self.limits.timeout_seconds
        client = self._clients.get(lambda: bound_answers(httpx.AsyncClient(timeout=seconds)))
        with common.reporting_failures(httpx, "DeepL", seconds):
            response = await client.request(**exchange.request)
        if (failed := common.transient(response.status_code, response.reason_phrase, response.headers)) is not None:
            raise failed
        exchange.answer = (response.status_code, response.text)
        try:
            rows = translate()
        except deepl.QuotaExceededException:
            raise BackendError(
                "DeepL's quota for this billing period is used up. Everything finished is saved; resume with "
                "another translator or next month."
            ) from None
        except deepl.AuthorizationException:
            raise BadInput(f"DeepL does not accept the key in {KEY}.") from None
        except deepl.DeepLException as error:
            failure = self._refused(error)
            if len(texts) == 1:
                return [failure]
            # Which of the texts it is that DeepL cannot read, only asking for fewer tells.
            middle = len(texts) // 2
            return [*await self._ask(texts[:middle], codes), *await self._ask(texts[middle:], codes)]
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            raise Transient("malformed", detail=shorten(f"the answer is not what DeepL sends: {error}")) from None
        return judge_answers(texts, [row.text for row in rows])

    def _refused(self, error: Any) -> Failure:
        """The failure of a text that DeepL will not translate; raises for what has nothing to do with the texts."""
        status = error.http_status_code or 0
        said = shorten(str(error).replace(_key(), "[key]"))
        if "_lang" in said:
            raise BadInput(f"DeepL does not support this pair of languages: {said}")
        reason = "too-long" if status in common.TOO_LONG else "unsupported"
        return Failure(reason, said, False)


class _Unanswered(Exception):
    """The request is known, and has no answer yet."""


@dataclass
class _Exchange:
    """Takes the place of the package's HTTP client, which reads on when nobody waits any more, however long the answer.

    It keeps the first request, for which it has no answer, and answers the next one, which is the same.
    """

    request: dict[str, Any] = field(default_factory=dict)
    answer: tuple[int, str] | None = None

    def request_with_backoff(self, method: str, url: str, *, headers: Any, json: Any = None, **_: Any) -> Any:
        self.request = {"method": method, "url": url, "headers": headers, "json": json}
        if self.answer is None:
            raise _Unanswered
        return self.answer

    def close(self) -> None: ...


def _codes(source: str, target: str) -> tuple[str, str]:
    codes = codes_of("deepl")
    found = codes.target(target)
    # DeepL reads every variant of a language, and writes only a named one of English and Portuguese.
    return codes.source(source.partition("-")[0]), {"EN": "EN-US", "PT": "PT-PT"}.get(found, found)


def _key() -> str:
    key = read_key(KEY)
    if not key:
        raise BadInput(f"{KEY} is not set. Set it to the key of a DeepL API account (free or pro).")
    return key

"""DeepL over its REST interface."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from rusbeir.errors import BackendError, BadInput, require
from rusbeir.jobs import Limits, Meter, Transient, bound_answers
from rusbeir.text import shorten
from rusbeir.translation.backends import common
from rusbeir.translation.backends.common import PerLoop, ask_sendable, judge_answers, read_key
from rusbeir.translation.backends.registry import codes_of, preset
from rusbeir.translation.translator import Capacity, Failure, Outcome

KEY = "DEEPL_AUTH_KEY"
_EXTRA = ("The translator deepl", "deepl")
_SERVER, _FREE_SERVER = "https://api.deepl.com", "https://api-free.deepl.com"
_FREE_ENDING = ":fx"
"""The end of the keys of free accounts."""
# The version of tag handling is named: its default depends on when an account first used tags.
_SETTINGS: Mapping[str, Any] = {
    "tag_handling": "xml",
    "tag_handling_version": "v2",
    "non_splitting_tags": ["x"],
    "split_sentences": "nonewlines",
    "preserve_formatting": True,
}
_QUOTA_EXCEEDED = 456
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
    meter: Meter = field(default_factory=Meter, repr=False, compare=False)
    _clients: PerLoop[Any] = field(default_factory=PerLoop, init=False, repr=False, compare=False)

    @property
    def signature(self) -> str:
        tags = f"{_SETTINGS['tag_handling']}-{_SETTINGS['tag_handling_version']}"
        return f"deepl|api:v2|tags:{tags}|split:{_SETTINGS['split_sentences']}"

    def check(self, source: str, target: str) -> None:
        """BadInput for a language that DeepL has not and without a key, MissingExtra without the package httpx2."""
        if self.endpoint:
            common.address(self.endpoint, "The translator deepl's endpoint")
        _codes(source, target)
        require("httpx2", *_EXTRA)
        _key()

    def with_meter(self, meter: Meter) -> Self:
        """Return the translator, which reserves each request at the meter before it sends it."""
        return replace(self, meter=meter)

    async def translate(self, texts: Sequence[str], source: str, target: str) -> list[Outcome]:
        """Translate the texts, all in one request."""
        codes = _codes(source, target)
        return await ask_sendable(texts, lambda sent: self._ask(sent, codes))

    async def close(self) -> None:
        """Close the connections of this event loop. Harmless when repeated."""
        if (client := self._clients.take()) is not None:
            await client.aclose()

    async def _ask(self, texts: list[str], codes: tuple[str, str]) -> list[Outcome]:
        httpx2 = require("httpx2", *_EXTRA)
        key, seconds = _key(), self.limits.timeout_seconds
        client = self._clients.get(lambda: bound_answers(httpx2.AsyncClient(timeout=seconds)))
        server = self.endpoint.rstrip("/") or (_FREE_SERVER if key.endswith(_FREE_ENDING) else _SERVER)
        body = {
            "text": [_ILLEGAL.sub(" ", text) for text in texts],
            "source_lang": codes[0],
            "target_lang": codes[1],
            **_SETTINGS,
        }
        async with common.charging(self.meter, texts, self.capacity) as charge:
            with common.reporting_failures(httpx2, "DeepL", seconds):
                response = await client.post(
                    f"{server}/v2/translate", json=body, headers={"Authorization": f"DeepL-Auth-Key {key}"}
                )
            if response.status_code != 200:
                charge.cancel()
        if response.status_code != 200:
            failure = _read_refusal(response, key)
            if len(texts) == 1:
                return [failure]
            # Which of the texts it is that DeepL cannot read, only asking for fewer tells.
            middle = len(texts) // 2
            return [*await self._ask(texts[:middle], codes), *await self._ask(texts[middle:], codes)]
        try:
            rows = response.json()["translations"]
            return judge_answers(texts, [row["text"] for row in rows])
        except (ValueError, TypeError, LookupError, RecursionError) as error:
            raise Transient("malformed", detail=shorten(f"the answer is not what DeepL sends: {error}")) from None


def _read_refusal(response: Any, key: str) -> Failure:
    """Read the failure of a text that DeepL will not translate; raises for what has nothing to do with the texts."""
    status = int(response.status_code)
    if (failed := common.transient(status, response.reason_phrase, response.headers)) is not None:
        raise failed
    if status == _QUOTA_EXCEEDED:
        raise BackendError(
            "DeepL's quota for this billing period is used up. Everything finished is saved; resume with "
            "another translator or next month."
        )
    if status in {401, 403}:
        raise BadInput(f"DeepL does not accept the key in {KEY}.")
    try:
        answer = response.json()
    except (ValueError, RecursionError):
        answer = None
    # Errors of tag handling have a capital letter.
    words = {str(name).lower(): value for name, value in answer.items()} if isinstance(answer, Mapping) else {}
    message = " ".join(str(words[name]) for name in ("message", "detail") if name in words) or response.reason_phrase
    message = shorten(f"{status} {message}".replace(key, "[key]"))
    if "_lang" in message:
        raise BadInput(f"DeepL does not support this pair of languages: {message}")
    return Failure("too-long" if status in common.TOO_LONG else "unsupported", message, False)


def _codes(source: str, target: str) -> tuple[str, str]:
    codes = codes_of("deepl")
    code = codes.target(target)
    # DeepL reads every variant of a language, and writes only a named one of English and Portuguese.
    return codes.source(source.partition("-")[0]), {"EN": "EN-US", "PT": "PT-PT"}.get(code, code)


def _key() -> str:
    key = read_key(KEY)
    if not key:
        raise BadInput(f"{KEY} is not set. Set it to the key of a DeepL API account (free or pro).")
    return key

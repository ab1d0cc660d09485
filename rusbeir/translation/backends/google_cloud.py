"""Cloud Translation v2 (Basic) over its REST interface: a key, or a service account."""

from __future__ import annotations

import asyncio
import os
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

KEY = "GOOGLE_API_KEY"
ACCOUNT = "GOOGLE_APPLICATION_CREDENTIALS"
SCOPE = "https://www.googleapis.com/auth/cloud-translation"

_EXTRA = ("The translator google-cloud", "google-cloud")
_RATE_LIMITS = frozenset({"rateLimitExceeded", "userRateLimitExceeded"})
_QUOTAS = frozenset({"dailyLimitExceeded", "quotaExceeded", "billingNotEnabled"})


@dataclass(frozen=True, kw_only=True)
class GoogleCloud:
    """Google's paid translator. The texts go out as HTML, in which it keeps the tags that are its placeholders."""

    name: str = "google-cloud"
    endpoint: str = "https://translation.googleapis.com"
    limits: Limits = field(default_factory=lambda: preset("google-cloud").limits)
    capacity: Capacity = field(default_factory=lambda: preset("google-cloud").capacity)
    meter: Meter = field(default_factory=Meter, repr=False, compare=False)
    _clients: PerLoop[Any] = field(default_factory=PerLoop, init=False, repr=False, compare=False)
    _accounts: list[Any] = field(default_factory=list, init=False, repr=False, compare=False)

    @property
    def signature(self) -> str:
        return "google-cloud|api:v2|model:nmt|format:html"

    def check(self, source: str, target: str) -> None:
        """BadInput for a language that Google has not and without credentials, MissingExtra without httpx2."""
        common.address(self.endpoint, "The translator google-cloud's endpoint")
        codes_of("google-cloud", "google-languages").pair(source, target)
        require("httpx2", *_EXTRA)
        if not read_key(KEY):
            self._account()

    def with_meter(self, meter: Meter) -> Self:
        """Return the translator, which reserves each request at the meter before it sends it."""
        return replace(self, meter=meter)

    async def translate(self, texts: Sequence[str], source: str, target: str) -> list[Outcome]:
        """Translate the texts, all in one request."""
        codes = codes_of("google-cloud", "google-languages").pair(source, target)
        return await ask_sendable(texts, lambda sent: self._ask(sent, codes))

    async def close(self) -> None:
        """Close the connections of this event loop. Harmless when repeated."""
        if (client := self._clients.take()) is not None:
            await client.aclose()

    async def _ask(self, texts: list[str], codes: tuple[str, str]) -> list[Outcome]:
        httpx2 = require("httpx2", *_EXTRA)
        seconds = self.limits.timeout_seconds
        client = self._clients.get(lambda: bound_answers(httpx2.AsyncClient(timeout=seconds)))
        # The key travels in a header: addresses are logged.
        headers = await self._credentials()
        body = {"q": texts, "source": codes[0], "target": codes[1], "format": "html", "model": "nmt"}
        address = f"{self.endpoint}/language/translate/v2"
        async with common.charging(self.meter, texts, self.capacity) as charge:
            with common.reporting_failures(httpx2, self.endpoint, seconds):
                response = await client.post(address, json=body, headers=headers)
            if response.status_code != 200:
                charge.cancel()
        try:
            answer = response.json()
        except (ValueError, RecursionError):
            answer = None
        if response.status_code != 200:
            failure = self._refused(response, answer)
            if len(texts) == 1:
                return [failure]
            # Which of the texts it is, only asking for fewer tells.
            middle = len(texts) // 2
            return [*await self._ask(texts[:middle], codes), *await self._ask(texts[middle:], codes)]
        try:
            return judge_answers(texts, [row["translatedText"] for row in answer["data"]["translations"]])
        except (TypeError, LookupError):
            raise Transient("malformed", detail="the answer is not what Cloud Translation sends") from None

    def _refused(self, response: Any, answer: Any) -> Failure:
        """Return the failure of a text that Google will not translate; raises for what is not about the texts."""
        status = int(response.status_code)
        error = answer.get("error") if isinstance(answer, Mapping) else None
        error = error if isinstance(error, Mapping) else {}
        message = self._hide_key(str(error.get("message") or response.reason_phrase))
        reasons = {str(entry.get("reason")) for entry in error.get("errors") or () if isinstance(entry, Mapping)}
        if status == 403 and reasons & _RATE_LIMITS:
            status = 429
        if (failure := common.transient(status, message, response.headers)) is not None:
            raise failure
        if status == 403 and reasons & _QUOTAS:
            raise BackendError(
                f"Google Cloud's quota is used up ({message}). Everything finished is saved; resume later."
            )
        if status in {401, 403} or "API key" in message:
            raise BadInput(f"Google Cloud does not accept the credentials in {KEY} or {ACCOUNT} ({status} {message}).")
        if "language" in message.lower():
            raise BadInput(f"Google Cloud does not support this pair of languages ({status} {message}).")
        reason = "too-long" if status in common.TOO_LONG or "too long" in message.lower() else "unsupported"
        return Failure(reason, f"{status} {message}", False)

    async def _credentials(self) -> dict[str, str]:
        """Return the header that says who pays."""
        if key := read_key(KEY):
            return {"X-Goog-Api-Key": key}
        account = self._account()
        if not account.valid:
            try:
                await asyncio.to_thread(account.refresh, require("google.auth.transport.requests", *_EXTRA).Request())
            except require("google.auth.exceptions", *_EXTRA).TransportError as error:
                raise Transient("server", detail=shorten(f"no token for the service account: {error}")) from None
            except require("google.auth.exceptions", *_EXTRA).GoogleAuthError as error:
                raise BadInput(f"The service account in {ACCOUNT} gets no token: {shorten(str(error))}") from None
        return {"Authorization": f"Bearer {account.token}"}

    def _account(self) -> Any:
        """Return the service account in the file that GOOGLE_APPLICATION_CREDENTIALS names, read once."""
        if not self._accounts:
            path = os.environ.get(ACCOUNT, "").strip()
            if not path:
                raise BadInput(
                    f"The translator google-cloud needs credentials: set {KEY} to an API key, "
                    f"or {ACCOUNT} to the JSON file of a service account."
                )
            try:
                self._accounts.append(
                    require("google.oauth2.service_account", *_EXTRA).Credentials.from_service_account_file(
                        path, scopes=[SCOPE]
                    )
                )
            except (OSError, ValueError) as error:
                raise BadInput(f"{ACCOUNT} names {path}, which is not the file of a service account: {error}") from None
        return self._accounts[0]

    def _hide_key(self, text: str) -> str:
        key = read_key(KEY)
        return shorten(text.replace(key, "[key]") if key else text)

"""A local server that speaks like Google's free endpoint, Cloud Translation, DeepL and OpenAI, with faults on demand.

Which request meets which fault depends on the seed, the text and how often that text was asked for, not on timing.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from tests.support.checkable import KEPT, LETTERS, known_pairs, russian
from tests.support.wire import HTML, JSON, Request, Response, read_request, written

__all__ = ["FAULTS", "HTML", "JSON", "LETTERS", "Response", "TranslationServer", "known_pairs", "russian"]

FAULTS = ("429", "500", "timeout", "truncated", "captcha", "empty", "refused")
GOOGLE_KEY = "AIza-secret-0123456789"
DEEPL_KEY = "0f3c-secret-deepl:fx"
OPENAI_KEY = "sk-secret-openai-abcdef"
TOKEN = "ya29.secret-token"
MODEL = "local-model"

_CAPTCHA = (
    "<html><head><title>https://translate.googleapis.com/</title></head><body>Our systems have detected unusual "
    "traffic from your computer network.<div id='recaptcha'></div></body></html>"
)
_REFUSAL = "I'm sorry, but I can't help with that request."


class TranslationServer:
    """Runs in a thread of its own while the context lasts. requests and served count what happened."""

    def __init__(
        self,
        *,
        faults: float = 0.0,
        kinds: Sequence[str] = FAULTS,
        seed: int = 0,
        slow_seconds: float = 1.0,
        translate: Callable[[str], str] | None = None,
    ) -> None:
        self.faults = faults
        self.kinds = tuple(kinds)
        self.seed = seed
        self.slow_seconds = slow_seconds
        self.requests = 0
        self.served: Counter[str] = Counter()
        """"fine", a fault's name or a refusal's status -> how often."""
        self.seen: list[Request] = []
        self.keep_requests = False
        self.broken: Callable[[Request], Response | None] = lambda request: None
        """An answer to give instead, for tests of a single one."""
        self.send: Callable[[asyncio.StreamWriter, Response], Awaitable[None]] = _send_whole
        """How an answer goes out."""
        pairs = known_pairs()
        self.translate = translate or (lambda text: russian(text, pairs))
        self._asked: Counter[str] = Counter()
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._routes = {
            "/translate_a/single": _google,
            "/language/translate/v2": _google_cloud,
            "/v2/translate": _deepl,
            "/v1/chat/completions": _openai,
            "/token": _token,
        }

    def __enter__(self) -> TranslationServer:
        self._thread.start()
        self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        self._connections: set[asyncio.Task[None]] = set()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)
        try:
            while (request := await read_request(reader)) is not None:
                await self.send(writer, await self._answer(request))
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _answer(self, request: Request) -> Response:
        self.requests += 1
        if self.keep_requests:
            self.seen.append(request)
        if (own := self.broken(request)) is not None:
            return own
        route = self._routes.get(request.path)
        if route is None:
            return Response(404, '{"error": {"message": "no such path"}}')
        fault = self._fault(request)
        if fault:
            # Counted before the wait, in which the caller may be done and leave.
            self.served[fault] += 1
        if fault == "timeout":
            await asyncio.sleep(self.slow_seconds)
        if fault in {"429", "500", "captcha"}:
            response = _failed(fault, self.requests)
        else:
            response = route(self, request, fault)
            if fault == "truncated" and response.status == 200 and '"finish_reason": "length"' not in response.body:
                response = response._replace(body=response.body[: len(response.body) * 2 // 3])
        if not fault:
            self.served["fine" if response.status == 200 else str(response.status)] += 1
        return response

    def _fault(self, request: Request) -> str:
        """The fault that this request meets; "" for none."""
        if request.path == "/v1/chat/completions":
            text = request.json()["messages"][-1]["content"]
        else:
            text = "".join(request.query.get("q", [])) + request.body.decode()
        self._asked[text] += 1
        digest = hashlib.blake2b(f"{self.seed}|{self._asked[text]}|{text}".encode(), digest_size=8).digest()
        number = int.from_bytes(digest, "little")
        if number % 10_000 >= self.faults * 10_000:
            return ""
        return self.kinds[number // 10_000 % len(self.kinds)]


async def _send_whole(writer: asyncio.StreamWriter, response: Response) -> None:
    writer.write(written(response))
    await writer.drain()


def _failed(fault: str, number: int) -> Response:
    if fault == "429":
        waits = {} if number % 2 else {"Retry-After": "0"}
        return Response(429, '{"error": {"code": 429, "message": "Too many requests"}}', JSON | waits)
    if fault == "500":
        return Response(500 if number % 2 else 503, "<html>backend error</html>", HTML)
    if number % 3 == 0:
        return Response(302, "", HTML | {"Location": "http://127.0.0.1:9/sorry/index?continue=x"})
    return Response(200 if number % 3 == 1 else 429, _CAPTCHA, HTML)


def _google(server: TranslationServer, request: Request, fault: str) -> Response:
    query = request.query
    if query.get("client") != ["gtx"] or "t" not in query.get("dt", []) or not query.get("sl") or not query.get("tl"):
        return Response(400, "<html>400</html>", HTML)
    text = query["q"][0]
    answer = server.translate(text)
    if fault in {"empty", "refused"}:
        # Google refuses by giving back the source text; nobody can tell that from a name that stays as it is.
        answer = text if fault == "refused" and text.count(" ") > 4 else ""
    middle = len(answer) // 2
    pieces = [[part, text, None, None, 10] for part in (answer[:middle], answer[middle:]) if part]
    body = [pieces or None, None, query["sl"][0], None, None, None, 1, [], [[query["sl"][0]], None, [1]]]
    return Response(200, json.dumps(body, ensure_ascii=False, separators=(",", ":")))


def _google_cloud(server: TranslationServer, request: Request, fault: str) -> Response:
    headers = request.headers
    if headers.get("x-goog-api-key") != GOOGLE_KEY and headers.get("authorization") != f"Bearer {TOKEN}":
        return Response(403, cloud_error(403, "The request is missing a valid API key.", "forbidden"))
    body = request.json()
    if len(body["q"]) > 128:
        return Response(400, cloud_error(400, "Too many text segments", "invalid"))
    if fault == "refused":
        return Response(403, cloud_error(403, "User Rate Limit Exceeded", "userRateLimitExceeded"))
    rows = [
        {"translatedText": "" if fault == "empty" else _escaped_quotes(server.translate(text)), "model": "nmt"}
        for text in body["q"]
    ]
    return Response(200, json.dumps({"data": {"translations": rows}}, ensure_ascii=False))


def _escaped_quotes(html: str) -> str:
    """As Google answers in HTML: an apostrophe outside of a tag is &#39;."""
    return "".join(part if i % 2 else part.replace("'", "&#39;") for i, part in enumerate(KEPT.split(html)))


def cloud_error(code: int, message: str, reason: str) -> str:
    """The body of an error as Google Cloud sends it."""
    errors = [{"message": message, "domain": "global", "reason": reason}]
    return json.dumps({"error": {"code": code, "message": message, "errors": errors}})


_DEEPL_PARAMETERS = {
    "text", "source_lang", "target_lang", "context", "show_billed_characters", "split_sentences",
    "preserve_formatting", "formality", "model_type", "glossary_id", "tag_handling", "tag_handling_version",
    "outline_detection", "enable_beta_languages", "non_splitting_tags", "splitting_tags", "ignore_tags",
}  # fmt: skip
"""The parameters of a request: developers.deepl.com/docs/api-reference/translate/openapi-spec-for-text-translation."""


def _deepl(server: TranslationServer, request: Request, fault: str) -> Response:
    if request.headers.get("authorization") != f"DeepL-Auth-Key {DEEPL_KEY}":
        return Response(403, '{"message": "Forbidden"}')
    body = request.json()
    if not set(body) <= _DEEPL_PARAMETERS:
        return Response(400, json.dumps({"message": f"Bad request. Unknown: {sorted(set(body) - _DEEPL_PARAMETERS)}"}))
    if body["target_lang"] == "XX":
        return Response(400, '{"message": "Value for \'target_lang\' not supported."}')
    if len(body["text"]) > 50 or len(request.body) > 128 * 1024:
        return Response(413, '{"message": "Request size exceeds limit."}')
    if fault == "refused":
        return Response(529, '{"message": "Too many requests. High load on the server."}')
    # An account of before December 2025 has v1 unless the request names a version.
    version = body.get("tag_handling_version", "v1")
    try:
        for text in body["text"] if body.get("tag_handling") == "xml" and version == "v2" else []:
            ElementTree.fromstring(f"<a>{text}</a>")
    except ElementTree.ParseError:
        return Response(400, '{"Message": "Tag handling parsing failed, please check input."}')
    rows = [
        {
            "detected_source_language": body.get("source_lang", "EN"),
            "text": "" if fault == "empty" else server.translate(text),
            "billed_characters": len(text),
            "tag_handling_version": version,
        }
        for text in body["text"]
    ]
    return Response(200, json.dumps({"translations": rows}, ensure_ascii=False))


def _openai(server: TranslationServer, request: Request, fault: str) -> Response:
    if request.headers.get("authorization") != f"Bearer {OPENAI_KEY}":
        key = request.headers.get("authorization", "")
        return Response(
            401, json.dumps({"error": {"message": f"Incorrect API key provided: {key}", "type": "invalid"}})
        )
    body = request.json()
    if body["model"] != MODEL:
        return Response(404, json.dumps({"error": {"message": f"The model {body['model']!r} does not exist"}}))
    text = body["messages"][-1]["content"]
    content = json.dumps({"translation": server.translate(text)}, ensure_ascii=False)
    finish, refusal = "stop", None
    if fault == "empty":
        content = ("", '{"translation": ""}')[server.requests % 2]
    elif fault == "refused":
        variant = server.requests % 4
        content = (_REFUSAL, json.dumps({"translation": _REFUSAL}), "", "")[variant]
        refusal = _REFUSAL if variant == 2 else None
        finish = "content_filter" if variant == 3 else "stop"
    elif fault == "truncated" and server.requests % 2:
        # The model's own answer is cut, in an answer of the server that is whole: what the fault does else.
        return _chat(body, content[: len(content) // 2], "length", None, text)
    return _chat(body, content, finish, refusal, text)


def _chat(body: Mapping[str, Any], content: str, finish: str, refusal: str | None, text: str) -> Response:
    used = {"prompt_tokens": 100 + len(text) // 4, "completion_tokens": max(len(content) // 3, 1)}
    message = {"role": "assistant", "content": content, "refusal": refusal}
    answer = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
        "usage": {**used, "total_tokens": sum(used.values())},
    }
    return Response(200, json.dumps(answer, ensure_ascii=False))


def _token(server: TranslationServer, request: Request, fault: str) -> Response:
    if b"grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=" not in request.body and (
        b"jwt-bearer" not in request.body
    ):
        return Response(400, '{"error": "invalid_grant"}')
    return Response(200, json.dumps({"access_token": TOKEN, "expires_in": 3600, "token_type": "Bearer"}))

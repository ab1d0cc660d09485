"""Servers that send what no translator sends: each request ends, in little memory, with one line."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable, Iterable
from itertools import repeat

import pytest

from rusbeir.jobs import MAX_ANSWER_BYTES, Exhausted, Throttle, Transient
from rusbeir.translation.porting.api import port
from rusbeir.translation.porting.job import Incomplete
from rusbeir.translation.translator import Failure, Translator
from tests.support import translation_servers as servers
from tests.support.asking import ask, close, make_one
from tests.support.small_port import dataset_bytes, translated, write_source

NAMES = ("google", "google-cloud", "deepl", "llm")
TEXT = "A cat sleeps on the sofa."
JSON = "200 OK\r\nContent-Type: application/json"
BOMB = gzip.compress(bytes(64 << 20))
DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.fixture
def make(server: servers.TranslationServer) -> Callable[..., Translator]:
    def made(name: str, **options: object) -> Translator:
        return make_one(name, **({"llm": servers.MODEL} if name == "llm" else {"endpoint": server.url}), **options)

    return made


def answer_with(
    server: servers.TranslationServer, head: str, blocks: Callable[[bytes], Iterable[bytes]], seconds: float = 0.0
) -> list[int]:
    """Let the server send this head and then what blocks makes of the right body, with a pause after each block.

    Returns a list that gets the number of bytes sent in each answer.
    """
    sent: list[int] = []

    async def send(writer: asyncio.StreamWriter, response: servers.Response) -> None:
        sent.append(0)
        writer.write(f"HTTP/1.1 {head}\r\nConnection: close\r\n\r\n".encode())
        for block in blocks(response.body.encode()):
            writer.write(block)
            await writer.drain()
            sent[-1] += len(block)
            await asyncio.sleep(seconds)
        raise ConnectionResetError

    server.send = send
    return sent


PACKED = f"{JSON}\r\nContent-Encoding: gzip"
ANSWERS = [
    # head, body made of the right one, part of the message, why
    (JSON, lambda body: repeat(b" " * 65_536), "longer than 8,388,608 bytes", "never ends"),
    (PACKED, lambda body: [BOMB], "longer than 8,388,608 bytes", "64 KB that unpack to 64 MB"),
    (f"{PACKED}, gzip", lambda body: [gzip.compress(BOMB)], "packed as gzip, gzip", "packed twice"),
    (f"{JSON}\r\nContent-Encoding: br", lambda body: [body], "packed as br", "a packer nobody asked for"),
    (PACKED, lambda body: [body], "cannot be unpacked", "not packed at all"),
    (PACKED, lambda body: [gzip.compress(body)[:-9]], "was cut", "gzip without its end"),
    (f"{JSON}\r\nContent-Length: 9999", lambda body: [body], "no connection", "less than was promised"),
    (JSON, lambda body: [DEEP], "malformed", "nested deeply"),
    (JSON, lambda body: [b'{"data":', DEEP, b"}"], "malformed", "nested deeply, inside"),
    (JSON, lambda body: [b"\xff\xfe" + body], "malformed", "bytes that are not UTF-8"),
    (JSON, lambda body: [b'{"translations": [{"text": null}]}'], "malformed|empty", "no text"),
    (JSON, lambda body: [b'{"data": {"translations": [{"translatedText": 1}]}}'], "malformed|empty", "a number"),
    ("500 Sorry", lambda body: repeat(b" " * 65_536), "longer than", "an error that never ends"),
    ("500 Sorry", lambda body: [DEEP], "server", "an error nested deeply"),
    ("404 No", lambda body: repeat(b" " * 65_536), "longer than", "a refusal that never ends"),
    ("HTTP/9", lambda body: [body], "no connection", "not HTTP"),
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("head", "blocks", "part", "why"), ANSWERS, ids=[row[3] for row in ANSWERS])
def test_what_is_not_a_translation_is_worth_another_try(name, head, blocks, part, why, server, make):
    sent = answer_with(server, head, blocks)
    with pytest.raises(Transient, match=part) as raised:
        ask(make(name), TEXT)
    assert str(raised.value).isprintable()
    assert len(str(raised.value)) < 400
    assert sum(sent) < 4 * MAX_ANSWER_BYTES


HEADS = [
    # head, body made of the right one, why
    ("200 OK\r\nContent-Type: application/json; charset=iso-8859-1", lambda body: [body], "JSON is UTF-8"),
    ("200 OK\r\nContent-Type: application/json; charset=no-such", lambda body: [body], "an unknown charset"),
    (PACKED, lambda body: [gzip.compress(body)], "packed"),
    (PACKED, lambda body: repeat(gzip.compress(body)), "bytes without an end follow what was packed"),
    (JSON, lambda body: (body[i : i + 1] for i in range(len(body))), "byte by byte"),
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("head", "blocks", "why"), HEADS, ids=[row[2] for row in HEADS])
def test_what_is_a_translation_after_all(name, head, blocks, why, server, make):
    sent = answer_with(server, head, blocks)
    assert ask(make(name), TEXT) == [server.translate(TEXT)]
    assert sum(sent) < 4 * MAX_ANSWER_BYTES


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("times", [140, 250_000], ids=["eighty times the text", "six megabytes"])
def test_no_text_has_such_a_long_translation(name, times, server, make):
    server.translate = lambda text: "Кот спит на. " * times
    [outcome] = ask(make(name), TEXT)
    assert isinstance(outcome, Failure)
    assert outcome.reason == "malformed"
    assert outcome.detail.startswith("the answer to 25 characters has ")


@pytest.mark.parametrize("name", ["google", "google-cloud", "deepl"])
def test_half_a_character_is_not_a_translation(name, server, make):
    answer_with(server, JSON, lambda body: [body.replace("А".encode(), rb"\ud83d")])
    [outcome] = ask(make(name), TEXT)
    assert (outcome.reason, "half a character" in outcome.detail) == ("malformed", True)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_nothing_is_sent_to_another_address(name, status, server, make):
    with servers.TranslationServer() as other:
        answer_with(server, f"{status} Moved\r\nLocation: {other.url}/v2/translate", lambda body: [])
        with pytest.raises(Transient):
            ask(make(name), TEXT)
    assert other.requests == 0


@pytest.mark.parametrize("name", NAMES)
def test_an_answer_that_drips_is_cut_off_in_time(name, server, make):
    sent = answer_with(server, JSON, lambda body: repeat(b" "), seconds=0.02)

    async def run() -> None:
        translator = make(name, timeout_seconds=0.3, retries=0)
        try:
            await Throttle(translator.limits).run(lambda: translator.translate([TEXT], "en", "ru"))
        finally:
            await close(translator)
        [before] = sent
        await asyncio.sleep(0.1)
        # A byte may be under way.
        assert sent[0] <= before + 1

    with pytest.raises(Exhausted, match="timeout: no answer within"):
        asyncio.run(run())


@pytest.mark.parametrize("name", NAMES)
def test_a_port_loses_nothing_to_a_hostile_server(name, server, make, tmp_path):
    source = write_source(tmp_path / "small")
    options = {"retries": 0, "breaker": 100, "timeout_seconds": 5.0}
    server.translate, good = translated, server.send
    port(source, to="ru", translator=make(name, **options), out=tmp_path / "whole")
    answer_with(server, JSON, lambda body: repeat(b" " * 65_536) if "Дождь".encode() in body else [body])
    with pytest.raises(Incomplete) as raised:
        port(source, to="ru", translator=make(name, **options), out=tmp_path / "out")
    assert "\n" not in str(raised.value)
    server.send = good
    port(source, to="ru", translator=make(name, **options), out=tmp_path / "out", retry_failed=True)
    assert dataset_bytes(tmp_path / "out") == dataset_bytes(tmp_path / "whole")

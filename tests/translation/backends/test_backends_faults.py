"""Texts through a server that fails a fifth of all requests: all are translated, and rightly."""

from __future__ import annotations

import asyncio
import html
import itertools
import logging
import sys
import time

import pytest

from rusbeir.errors import BackendError
from rusbeir.jobs import Throttle
from rusbeir.translation.segments.spans import STYLES
from rusbeir.translation.translator import Failure
from tests.support import translation_servers as servers
from tests.support.asking import close, make_one

TRIES = 5
IMPATIENT = {
    "requests_per_second": 100_000.0,
    "concurrency": 16,
    "retries": 8,
    "first_wait_seconds": 0.001,
    "max_wait_seconds": 0.02,
    "breaker": 100,
}
ROWS = {
    # name -> options, texts a request, texts
    "google": ({"timeout_seconds": 0.6}, 1, 600),
    "google-cloud": ({"timeout_seconds": 0.6}, 10, 2_000),
    "deepl": ({"timeout_seconds": 0.6}, 10, 2_000),
    "llm": ({"timeout_seconds": 3.0, "llm": servers.MODEL}, 1, 600),
}


def sentences(n_texts: int) -> tuple[list[str], list[str]]:
    """Different English texts and their Russian translations."""
    pairs = list(servers.known_pairs().items())
    chosen = [(n, *pairs[n % len(pairs)]) for n in range(n_texts)]
    return [f"{n}. {english}" for n, english, _ in chosen], [f"{n}. {russian}" for n, _, russian in chosen]


async def translate_all(translator, texts: list[str], size: int) -> tuple[list[object], Throttle, int]:
    """The outcomes, asked for as the pipeline asks, and how many texts were asked for again."""
    throttle = Throttle(translator.limits)
    again = 0

    async def ask(batch: list[str]) -> list[object]:
        return list(await throttle.run(lambda: translator.translate(batch, "en", "ru")))

    async def settle(batch: list[str]) -> list[object]:
        nonlocal again
        outcomes = await ask(batch)
        for i, text in enumerate(batch):
            for _ in range(TRIES):
                if not isinstance(outcomes[i], Failure) or not outcomes[i].retry:
                    break
                again += 1
                (outcomes[i],) = await ask([text])
        return outcomes

    try:
        batches = [texts[start : start + size] for start in range(0, len(texts), size)]
        settled = await asyncio.gather(*map(settle, batches))
    finally:
        await close(translator)
    return list(itertools.chain.from_iterable(settled)), throttle, again


@pytest.mark.parametrize("name", ROWS)
def test_a_fifth_of_faults_loses_nothing(name, monkeypatch):
    options, size, n_texts = ROWS[name]
    texts, expected = sentences(n_texts)
    with servers.TranslationServer(faults=0.2, seed=7, slow_seconds=1.0) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        endpoint = {} if name == "llm" else {"endpoint": server.url}
        translator = make_one(name, **IMPATIENT, **options, **endpoint)
        style = STYLES[translator.capacity.mask]
        started = time.monotonic()
        outcomes, throttle, again = asyncio.run(translate_all(translator, [style.escape(text) for text in texts], size))
        seconds = time.monotonic() - started
    if style.escape is not STYLES["none"].escape:
        outcomes = [html.unescape(outcome) if isinstance(outcome, str) else outcome for outcome in outcomes]
    assert outcomes == expected

    faults = {kind: server.served[kind] for kind in servers.FAULTS}
    assert min(faults.values()) > 0
    n_faults = sum(faults.values())
    assert 0.15 < n_faults / server.requests < 0.25
    # Every fault was followed by one more request: of the Throttle's, of the caller's for one text, of the model's.
    attempts = translator.meter.spent.requests if name == "llm" else 0
    assert throttle.requests == len(texts) // size + throttle.retries + again
    assert throttle.retries == sum(throttle.reasons.values())
    assert throttle.retries + again >= (0 if attempts else n_faults * 0.9)
    assert {"rate-limited", "server", "timeout", "malformed"} <= throttle.reasons.keys()
    sys.stdout.write(  # shown by pytest -s
        f"\n{name}: {len(texts)} texts, {server.requests} requests, {n_faults} faults {faults}, {throttle.retries} "
        f"retries {dict(throttle.reasons)}, {again} texts asked again, {seconds:.1f} s\n"
    )


@pytest.mark.parametrize("name", ROWS)
def test_no_log_line_holds_a_key(name, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG)
    options, size, _ = ROWS[name]
    with servers.TranslationServer(faults=0.4, kinds=("429", "500", "truncated", "captcha"), seed=1) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        endpoint = {} if name == "llm" else {"endpoint": server.url}
        asyncio.run(translate_all(make_one(name, **IMPATIENT, **options, **endpoint), sentences(50)[0], size))
    assert len(caplog.records) > 10
    logged = caplog.text + "".join(str(vars(record)) for record in caplog.records)
    assert not any(secret in logged for secret in (servers.GOOGLE_KEY, servers.DEEPL_KEY, servers.OPENAI_KEY))


def test_a_server_that_only_fails_stops_the_job_with_one_line():
    with servers.TranslationServer(faults=1.0, kinds=("429",)) as server:
        translator = make_one("google", endpoint=server.url, **(IMPATIENT | {"breaker": 3, "concurrency": 1}))
        with pytest.raises(BackendError, match=r"3 requests in a row failed \(rate-limited: 429 Too Many Requests\)"):
            asyncio.run(translate_all(translator, ["Water boils at sea level."] * 4, 1))
    assert server.requests == 3

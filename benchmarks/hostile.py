"""Memory of a translator whose server never ends its answer: python -m benchmarks.hostile

Each translator asks in a process of its own, with a time-out of 6 seconds and without retries; the server is this one.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from itertools import repeat
from typing import Any

from benchmarks import memory
from tests.support import translation_servers as servers

NAMES = ("google", "google-cloud", "deepl", "llm")
MAX_MEGABYTES = 200
"""What may be taken more than for importing; it was 2,100 (google), 2,693 (llm) and 23,700 (deepl)."""
KEYS = {
    "GOOGLE_API_KEY": servers.GOOGLE_KEY,
    "DEEPL_AUTH_KEY": servers.DEEPL_KEY,
    "OPENAI_API_KEY": servers.OPENAI_KEY,
}


async def _never_end(writer: asyncio.StreamWriter, response: servers.Response) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n")
    for block in repeat(b" " * 65_536):
        writer.write(block)
        await writer.drain()


def rows() -> list[dict[str, Any]]:
    """what, measure, value (above what importing takes), at_most, and said, how the request ended; by translator."""
    figures = []
    with servers.TranslationServer() as server:
        server.send = _never_end
        environment = {**os.environ, **KEYS, "OPENAI_BASE_URL": f"{server.url}/v1"}
        for name in NAMES:
            command = [sys.executable, "-m", "benchmarks.hostile", name, server.url]
            done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
            what = {"what": f"{name} and an answer without end", "measure": "peak MB", "at_most": MAX_MEGABYTES}
            figures.append({**what, **json.loads(done.stdout)})
    return figures


def _ask(name: str, url: str) -> dict[str, Any]:
    from rusbeir.jobs import Exhausted, Throttle
    from tests.support.asking import close, make_one

    where = {"llm": servers.MODEL} if name == "llm" else {"endpoint": url}
    translator = make_one(name, timeout_seconds=6.0, retries=0, **where)
    translator.check("en", "ru")
    before = memory.peak_bytes()

    async def ask() -> str:
        try:
            await Throttle(translator.limits).run(lambda: translator.translate(["A cat."], "en", "ru"))
        except Exhausted as error:
            return str(error)
        finally:
            await close(translator)
        raise AssertionError("an answer without end was read")

    answer = asyncio.run(ask())
    return {"value": (memory.peak_bytes() - before) / 2**20, "said": answer}


def main() -> None:
    if len(sys.argv) > 1:
        print(json.dumps(_ask(*sys.argv[1:])))
        return
    for row in rows():
        print(f"{row['what']}: {row['value']:.0f} MB (at most {row['at_most']}): {row['said']}")


if __name__ == "__main__":
    main()

"""A translator asked once and closed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from rusbeir.translation.backends import Backend, close
from rusbeir.translation.translator import Outcome


def ask(translator: Backend, *texts: str, source: str = "en", target: str = "ru") -> Sequence[Outcome]:
    async def run() -> Sequence[Outcome]:
        try:
            return await translator.translate(texts, source, target)
        finally:
            await close(translator)

    return asyncio.run(run())

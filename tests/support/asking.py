"""A translator made by its name, and one asked once and closed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from rusbeir.translation.backends import make
from rusbeir.translation.translator import Closes, Outcome, Translator


def make_one(name: str, **options: Any) -> Translator:
    (translator,) = make(name, **options)
    return translator


async def close(translator: Translator) -> None:
    if isinstance(translator, Closes):
        await translator.close()


def ask(translator: Translator, *texts: str, source: str = "en", target: str = "ru") -> Sequence[Outcome]:
    async def run() -> Sequence[Outcome]:
        try:
            return await translator.translate(texts, source, target)
        finally:
            await close(translator)

    return asyncio.run(run())

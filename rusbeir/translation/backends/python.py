"""A translator of the user's own: any Python function."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any

from rusbeir.errors import BadInput, RusbeirError
from rusbeir.jobs import Limits, Transient
from rusbeir.translation.backends.common import ask_sendable, judge_answer, shown
from rusbeir.translation.backends.presets import capacity_of, limits_of
from rusbeir.translation.translator import Capacity, Failure, Outcome

PREFIX = "python:"


@dataclass(frozen=True, kw_only=True)
class PythonFunction:
    """module.function(texts, source, target) -> one str, or Failure, a text; plain or async.

    It may raise jobs.Transient for a request worth repeating. Where it raises something else for several texts, each
    is tried alone. Its attribute `signature`, where it has one, is taken for what decides the text.
    """

    function: str
    """module.function, importable from where Python looks."""
    limits: Limits = field(default_factory=partial(limits_of, "python"))
    capacity: Capacity = field(default_factory=partial(capacity_of, "python"))

    @property
    def signature(self) -> str:
        own = str(getattr(self._load(), "signature", ""))
        return "|".join(filter(None, (f"{PREFIX}{self.function}", "".join(own.split()))))

    def check(self, source: str, target: str) -> None:
        """BadInput where there is no such function. Any pair of languages is its own affair."""
        self._load()

    async def translate(self, texts: Sequence[str], source: str, target: str) -> list[Outcome]:
        """One outcome a text, from one call."""
        call = partial(self._call, self._load(), source, target)
        return await ask_sendable(texts, partial(_all_or_each, call))

    async def _call(
        self, function: Callable[..., Any], source: str, target: str, texts: list[str]
    ) -> Sequence[Outcome]:
        # An async function only makes its coroutine there; it runs here, in the loop.
        answers = await asyncio.to_thread(function, list(texts), source, target)
        if inspect.isawaitable(answers):
            answers = await answers
        if isinstance(answers, str) or not isinstance(answers, Sequence) or len(answers) != len(texts):
            raise TypeError(f"{self.function} must give back a list of {len(texts)} for {len(texts)} texts")
        return [_outcome(text, answer) for text, answer in zip(texts, answers, strict=True)]

    def _load(self) -> Callable[..., Any]:
        module, _, name = self.function.rpartition(".")
        if not module or not all(part.isidentifier() for part in self.function.split(".")):
            raise BadInput(f"{PREFIX}{self.function} names no function: write python:module.function.")
        try:
            function = getattr(import_module(module), name, None)
        except ImportError as error:
            raise BadInput(f"{PREFIX}{self.function}: cannot import {module} ({error}).") from error
        if not callable(function):
            raise BadInput(f"{PREFIX}{self.function}: {module} has no function {name!r}.")
        return function  # type: ignore[no-any-return]


async def _all_or_each(ask: Callable[[list[str]], Awaitable[Sequence[Outcome]]], texts: list[str]) -> Sequence[Outcome]:
    """The outcomes of one call; where it raises, those of one call a text, so that one text spoils no other."""
    try:
        return await ask(texts)
    except (Transient, RusbeirError):
        raise
    except Exception as error:
        if len(texts) == 1:
            return [Failure("server", shown(f"{type(error).__name__}: {error}"), False)]
    return [outcome for text in texts for outcome in await _all_or_each(ask, [text])]


def _outcome(text: str, answer: object) -> Outcome:
    if isinstance(answer, Failure):
        return answer
    if isinstance(answer, str):
        return judge_answer(text, answer)
    return Failure("malformed", f"{type(answer).__name__} came where a str was expected", False)

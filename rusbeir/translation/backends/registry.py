"""The registered translators: their names, their rows in translation/backends.toml, and how one is made."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, TypedDict, Unpack, cast

from rusbeir.errors import BadInput, UnknownName, option, unknown
from rusbeir.jobs import Limits, read_backends
from rusbeir.translation.backends.common import Codes
from rusbeir.translation.backends.python import wrap
from rusbeir.translation.translator import Capacity, Translator
from rusbeir.user_sources import PYTHON, find_entry_point, find_entry_points, import_function, load_entry_point

TRANSLATORS = {
    "apertium": "rusbeir.translation.backends.apertium:Apertium",
    "deepl": "rusbeir.translation.backends.deepl:DeepL",
    "google": "rusbeir.translation.backends.google:Google",
    "google-cloud": "rusbeir.translation.backends.google_cloud:GoogleCloud",
    "llm": "rusbeir.translation.backends.llm:LlmTranslator",
    "madlad": "rusbeir.translation.backends.ctranslate2:Neural",
    "memory": "rusbeir.translation.backends.memory:Memory",
    "nllb": "rusbeir.translation.backends.ctranslate2:Neural",
    "opus-mt": "rusbeir.translation.backends.ctranslate2:Neural",
}
"""Name -> "module:class", imported on use. Each has a row in translation/backends.toml."""

GROUP = "rusbeir.translators"
"""The entry points by which an installed package adds translators."""
_LIMITS = frozenset(field.name for field in fields(Limits))
_PAIR = frozenset({"source", "target"})
_SET_HERE = frozenset(
    {"name", "function", "path", "limits", "capacity", "judge", "meter", "exchange", "description", "code"}
)


class TranslatorOptions(TypedDict, total=False):
    """The options of rusbeir's translators, and the fields of jobs.Limits; None leaves the default."""

    memory: str | Path | None
    fuzzy: float | None
    llm: str | None
    attempts: int | None
    retry_temperature: float | None
    context: int | None
    segments_per_request: int | None
    input_price: float | None
    output_price: float | None
    cached_price: float | None
    batch_share: float | None
    model: str | Path | None
    device: str | None
    compute_type: str | None
    beam_size: int | None
    batch_tokens: int | None
    threads: int | None
    modes: str | None
    endpoint: str | None
    requests_per_second: float | None
    concurrency: int | None
    retries: int | None
    timeout_seconds: float | None
    first_wait_seconds: float | None
    max_wait_seconds: float | None
    breaker: int | None


def names() -> tuple[str, ...]:
    """The names of rusbeir's translators and of those that installed packages add, sorted."""
    return tuple(sorted({*TRANSLATORS, *find_entry_points(GROUP).names}))


def make(
    chain: str, *, source: str | None = None, target: str | None = None, **options: Unpack[TranslatorOptions]
) -> tuple[Translator, ...]:
    """Make the translators of "one" or of "one,two,three", in that order.

    Each takes those of the options that it knows. source and target, the pair to translate, may always be given;
    translators of a single pair (opus-mt, apertium) need them. Nothing is sent yet. Raises UnknownName, and BadInput
    for an option that none of them takes.

    Examples:
        >>> make("google", requests_per_second=2.0)[0].signature
        'google|api:translate_a-gtx'
        >>> [type(translator).__name__ for translator in make("google,llm", llm="qwen3-30b")]
        ['Google', 'LlmTranslator']
    """
    chosen = {key: value for key, value in options.items() if value is not None}
    parts = [part.strip() for part in chain.split(",")]
    if len(set(parts)) < len(parts) or not all(parts):
        raise BadInput(f"The chain {chain!r} must name each translator once.")
    makers = {part: _find(part) for part in parts}
    known: set[str] = set().union(*(options_of(maker) for maker in makers.values()))
    if wrong := [key for key in chosen if key not in known]:
        takes = ", ".join(sorted(known)) or "none"
        raise BadInput(f"The translator {chain} does not take the option {wrong[0]!r}. Its options are: {takes}.")
    pair = {name: tag for name, tag in (("source", source), ("target", target)) if tag is not None}
    limits: dict[str, Any] = {key: value for key, value in chosen.items() if key in _LIMITS}
    translators = []
    for name, maker in makers.items():
        taken: dict[str, Any] = {"name": name, **chosen, **pair}
        if (row := find_preset(name)) is not None:
            taken |= {"limits": row.limits, "capacity": row.capacity}
        parameters = inspect.signature(maker).parameters
        needed = [key for key, parameter in parameters.items() if key in _PAIR and parameter.default is parameter.empty]
        if missing := [key for key in needed if key not in taken]:
            raise BadInput(f"The translator {name} handles a single language pair: pass {' and '.join(missing)}.")
        taken = {key: value for key, value in taken.items() if key in parameters}
        made = maker(**taken)
        if limits and "limits" in parameters:
            # The translator's own limits are known once it is made.
            made = maker(**{**taken, "limits": replace(made.limits, **limits)})
        translators.append(made)
    return tuple(translators)


def select_options(name: str, options: TranslatorOptions) -> TranslatorOptions:
    """Those of the options that the translator of that name takes."""
    known = options_of(_find(name))
    return cast(TranslatorOptions, {option: value for option, value in options.items() if option in known})


def options_of(maker: Callable[..., Translator]) -> set[str]:
    """The options of one translator: its parameters and, where limits are one of them, the fields of jobs.Limits."""
    parameters = inspect.signature(maker).parameters.keys()
    return {*(parameters - _SET_HERE - _PAIR), *(_LIMITS if "limits" in parameters else ())}


def _find(name: str) -> Callable[..., Translator]:
    """Find what makes the translator of that name: a class, or a function wrapped as one."""
    thing: Any
    if name in TRANSLATORS:
        return cast(Callable[..., Translator], pkgutil.resolve_name(TRANSLATORS[name]))
    if name.startswith(PYTHON):
        path = name.removeprefix(PYTHON)
        thing, module = import_function(name)
    elif entry := find_entry_point(GROUP, name):
        path = f"{entry.module}.{entry.attr}"
        thing, module = load_entry_point("translator", entry)
    else:
        listed = unknown("translator", name, [*names(), f"{PYTHON}module.function"])
        model = f"{option('translator', 'llm')} {option('llm', name)}"
        raise UnknownName(f"{listed} A language model is asked with {model}.")
    if inspect.isclass(thing):
        return cast(Callable[..., Translator], thing)
    row = preset("python")
    return wrap(thing, path, module, limits=row.limits, capacity=row.capacity, description=row.about)


@dataclass(frozen=True, kw_only=True)
class Preset:
    """One row: what to tell a user before anything is sent, and the defaults of a translator's fields."""

    name: str
    about: str
    sends: str
    """Who receives the texts; "" where they stay on this machine."""
    source: str
    """Where limits and prices are from, and as of when."""
    limits: Limits
    capacity: Capacity


@cache
def find_preset(name: str) -> Preset | None:
    """The row of that name; None where there is none.

    Examples:
        >>> find_preset("google").sends
        'Google'
    """
    row = read_backends().get(name, {})
    if "about" not in row:
        return None
    capacity = {**row["capacity"], "levels": tuple(row["capacity"].get("levels", ("segment",)))}
    return Preset(
        name=name,
        about=row["about"],
        sends=row["sends"],
        source=row["source"],
        limits=Limits(**row["limits"]),
        capacity=Capacity(**capacity),
    )


def preset(name: str) -> Preset:
    """The row of that name; UnknownName where there is none."""
    row = find_preset(name)
    if row is None:
        raise unknown("translator", name, [name for name, row in read_backends().items() if "about" in row])
    return row


@cache
def codes_of(translator: str, table: str = "") -> Codes:
    """The language codes that a row, or another table, gives a translator."""
    row = read_backends()[table or translator]
    return Codes(translator=translator, codes=tuple(row.get("codes", ())), aliases=row.get("aliases", {}))

"""The settings of a profile, as a language file and base.toml have them, checked and made a recipe."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from rusbeir.analysis import folding, lemmas, stemmers, tokenisers
from rusbeir.analysis.recipes import (
    APOSTROPHES,
    NO_STOP_WORDS,
    NUMBERS,
    STEM_INPUTS,
    STOP_MATCHES,
    TERMS,
    Recipe,
    StopList,
    read_stop_words,
)
from rusbeir.analysis.subwords import HF, resolve_subwords
from rusbeir.analysis.user_rules import (
    FILE,
    PATTERNS,
    SUFFIXES,
    Rules,
    read_function,
    read_lemmas,
    read_suffixes,
    read_synonyms,
)
from rusbeir.errors import BadInput
from rusbeir.storage import data_folder
from rusbeir.user_sources import PYTHON

NOTHING = "none"
NAMES = ("stopwords", "snowball", "stemmer", "lemmas", "synonyms")
"""Keys of a language file that replace {key} in profiles."""
_FILLED_BY = {
    "lemmas": ("lemmas",),
    "stop": ("stopwords",),
    "stemmer": ("stemmer", "snowball"),
    "synonyms": ("synonyms",),
}
"""Setting of a profile -> the keys of the language file that fill it."""


_AFTER_PREFIX = {PYTHON: "module.function", HF: "NAME"}


def _find_line(path: Path, key: str, profile: str) -> int:
    """The number of the line that sets the key in the profile, or before all profiles; 0 where there is none."""
    inside = not profile
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if line.strip().startswith("["):
            inside = line.strip("[] ").partition("]")[0] == f"profiles.{profile}"
        elif inside and line.partition("=")[0].strip() == key:
            return number
    return 0


def locate(path: Path, key: str, profile: str = "") -> str:
    """The line of a setting, for messages: that of the profile, else that of the key which fills it."""
    if number := _find_line(path, key, profile):
        return f"{path}:{number}" + (f", profile {profile!r}" if profile else "")
    for name in _FILLED_BY.get(key, ()):
        if number := _find_line(path, name, ""):
            return f"{path}:{number}"
    return f"{path}, profile {profile!r}"


def make_recipe(path: Path, profile: str, profiles: Mapping[str, dict[str, Any]], names: Mapping[str, str]) -> Recipe:
    """The recipe of one profile. Raises BadInput, with the line, for a wrong key or value."""
    settings = _fill_settings(path, profile, profiles, names)
    # Stop lists next to the language file come before rusbeir's own.
    folders = (data_folder("analyzers"), path.parent)
    stop_files = {file.stem: file for folder in folders for file in sorted(folder.glob("stopwords/*.txt"))}
    _check_values(path, profile, settings, stop_files)
    stop, settings["stop"] = settings["stop"], NO_STOP_WORDS
    if stop != NO_STOP_WORDS.name:
        file = _find_file(path, profile, "stop", stop) if stop.startswith(FILE) else stop_files[stop]
        settings["stop"] = StopList(file.stem, read_stop_words(file))
    if settings["tokens"].startswith(HF):
        settings["tokens"] = resolve_subwords(settings["tokens"], path.parent)
    named = [(key, name) for key in _RULE_READERS for name in settings[key].split("+")]
    prefixes = (FILE, SUFFIXES, PATTERNS, PYTHON)
    settings["rules"] = tuple(_read_rules(path, profile, key, name) for key, name in named if name.startswith(prefixes))
    return replace(Recipe(language=path.stem), **settings)


def _fill_settings(
    path: Path, profile: str, profiles: Mapping[str, dict[str, Any]], names: Mapping[str, str]
) -> dict[str, Any]:
    """Every setting of a recipe, its own or inherited, of the right type, with names in place of {names}."""
    settings = dict(profiles[profile])
    ancestors = [profile]
    while parent := settings.pop("inherits", ""):
        if parent not in profiles or parent in ancestors:
            others = ", ".join(sorted(profiles.keys() - set(ancestors)))
            raise BadInput(
                f"{locate(path, 'inherits', ancestors[-1])}: inherits cannot be {parent!r}. Values: {others}."
            )
        settings = {**profiles[parent], **settings}
        ancestors.append(parent)
    default = Recipe(language=path.stem)
    filled = {field.name: getattr(default, field.name) for field in fields(Recipe)}
    del filled["language"], filled["rules"]
    filled["stop"] = default.stop.name
    for key, value in settings.items():
        if key not in filled:
            raise BadInput(f"{locate(path, key, profile)}: unknown key {key!r}. Keys: inherits, {', '.join(filled)}.")
        typed = tuple(value) if isinstance(value, list) else value
        words = typed if isinstance(typed, tuple) else ()
        if type(typed) is not type(filled[key]) or not all(isinstance(word, str) for word in words):
            raise BadInput(
                f"{locate(path, key, profile)}: {key} cannot be {value!r}. An example: {key} = {filled[key]!r}."
            )
        if isinstance(typed, str):
            for name in NAMES:
                typed = typed.replace(f"{{{name}}}", names[name])
            typed = typed.replace(f"{stemmers.SNOWBALL}{NOTHING}", NOTHING)
        filled[key] = typed
    return filled


def _check_values(path: Path, profile: str, settings: Mapping[str, Any], stop_files: Collection[str]) -> None:
    """Raise BadInput for a value that a setting cannot have; files and functions are looked at later."""
    allowed: dict[str, Collection[str]] = {
        "tokens": tokenisers.TOKENISERS,
        "normalise": folding.NORMALISATIONS,
        "case": folding.CASES,
        "fold": folding.FOLDS,
        "apostrophe": APOSTROPHES,
        "numbers": NUMBERS,
        "lemmas": (NOTHING, *lemmas.LEXICONS),
        "stop": (NO_STOP_WORDS.name, *stop_files),
        "stop_match": STOP_MATCHES,
        "compounds": (NOTHING, "simplemma"),
        "stemmer": (NOTHING, *stemmers.STEMMERS),
        "stem": STEM_INPUTS,
        "term_fold": folding.FOLDS,
        "terms": TERMS,
        "synonyms": (NOTHING,),
    }
    users = {
        "tokens": (HF,),
        "lemmas": (FILE, PATTERNS, PYTHON),
        "stop": (FILE,),
        "stemmer": (SUFFIXES, PATTERNS, PYTHON),
        "synonyms": (FILE,),
    }
    for key, values in allowed.items():
        prefixes = users.get(key, ())
        listed = settings[key] if isinstance(settings[key], tuple) else (settings[key],)
        if key in ("lemmas", "synonyms"):
            listed = settings[key].split("+")
        for value in listed:
            if value not in values and not value.startswith(prefixes or ("\0",)):
                forms = [f"{prefix}{_AFTER_PREFIX.get(prefix, 'PATH')}" for prefix in prefixes]
                listing = ", ".join([*sorted(values), *forms])
                raise BadInput(f"{locate(path, key, profile)}: {key} cannot be {value!r}. Values: {listing}.")
    for name in settings["lemmas"].split("+")[:-1]:
        if name in allowed["lemmas"]:
            raise BadInput(
                f"{locate(path, 'lemmas', profile)}: {name} answers for every word, so what follows it is "
                "never asked. Put it last."
            )
    if settings["gram_chars"] < 1:
        raise BadInput(
            f"{locate(path, 'gram_chars', profile)}: gram_chars cannot be {settings['gram_chars']}. "
            "Write a number of characters, from 1."
        )


_RULE_READERS: Mapping[str, Callable[[str, Path], Rules]] = {
    "lemmas": read_lemmas, "stemmer": read_suffixes, "synonyms": read_synonyms
}  # fmt: skip
"""Settings that can name a user's files and functions -> what reads such a file."""


def _read_rules(path: Path, profile: str, key: str, name: str) -> Rules:
    """Read the rules of the file or the function that a setting names."""
    if name.startswith(PYTHON):
        try:
            return read_function(name, path.parent)
        except BadInput as error:
            raise BadInput(f"{locate(path, key, profile)}: {error}") from error
    file = _find_file(path, profile, key, name)
    status = file.stat()
    reader = _RULE_READERS[key]
    if name.startswith(PATTERNS):
        from rusbeir.analysis.patterns import read_patterns as reader  # for few languages
    return _read_once(reader, name, file, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=64)
def _read_once(read: Callable[[str, Path], Rules], name: str, file: Path, modified: int, size: int) -> Rules:
    """Read the file; the profiles of a language share the result until the file changes."""
    return read(name, file)


def _find_file(path: Path, profile: str, key: str, name: str) -> Path:
    """The file that a language file names; a relative path is relative to the language file, or to rusbeir's own."""
    relative = Path(name.partition(":")[2]).expanduser()
    file = path.parent / relative
    if not file.is_file() and (data_folder("analyzers") / relative).is_file():
        return data_folder("analyzers") / relative
    if not file.is_file():
        raise BadInput(
            f"{locate(path, key, profile)}: {name} names no file: there is no {file}. Write the path relative to the "
            "language file."
        )
    return file

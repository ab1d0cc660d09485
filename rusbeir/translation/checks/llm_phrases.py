"""What language models say instead of a translation or around it, from translation/llm_phrases/<language>.toml."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import NamedTuple

from rusbeir.errors import BadInput
from rusbeir.storage import data_folder

KEYS = ("refusal", "refusal_anywhere", "prefix", "suffix")
WORDS = "refusal_words"


class Phrases(NamedTuple):
    """The patterns of some languages, those of a key joined into one; None where no language has any."""

    refusal: re.Pattern[str] | None
    refusal_anywhere: re.Pattern[str] | None
    prefix: re.Pattern[str] | None
    suffix: re.Pattern[str] | None
    refusal_words: tuple[str, ...]
    """A text with none of these has no match of refusal_anywhere; searching for them is far faster. "" is in any."""


@cache
def languages() -> tuple[str, ...]:
    """The codes of the languages that have a file of patterns.

    >>> "ru" in languages()
    True
    """
    return tuple(sorted(path.stem for path in (data_folder("translation") / "llm_phrases").glob("*.toml")))


@cache
def phrases_of(*tags: str) -> Phrases:
    """The patterns of those languages together; languages without a file add nothing. Each set is read once."""
    folder = data_folder("translation") / "llm_phrases"
    codes = sorted({tag.replace("_", "-").partition("-")[0].lower() for tag in tags})
    tables = [_read(folder / f"{code}.toml") for code in codes if (folder / f"{code}.toml").is_file()]
    found = [[f"(?:{pattern})" for table in tables for pattern in table[key]] for key in KEYS]
    words = {word for table in tables if table["refusal_anywhere"] for word in table[WORDS] or [""]}
    refusal, anywhere, prefix, suffix = (re.compile("|".join(patterns)) if patterns else None for patterns in found)
    return Phrases(refusal, anywhere, prefix, suffix, tuple(sorted(words)))


def _read(path: Path) -> dict[str, list[str]]:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: {error}. A file of patterns is TOML in UTF-8.") from error
    keys = (*KEYS, WORDS)
    if extra := table.keys() - {"name", *keys}:
        raise BadInput(f"{path}: unknown key {min(extra)!r}. Keys: name, {', '.join(keys)}.")
    for key in keys:
        table.setdefault(key, [])
        if not isinstance(table[key], list):
            raise BadInput(f"{path}: {key} must be a list of regular expressions.")
        for pattern in table[key]:
            try:
                re.compile(pattern)
            except (re.error, TypeError) as error:
                raise BadInput(f"{path}: {key}: {pattern!r} is not a regular expression ({error}).") from error
    return {key: table[key] for key in keys}

"""Letters that a translation into some language cannot have."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache

import regex

from rusbeir.storage import data_folder

_MIN_LETTERS = 20
_MIN_SHARE = 0.5
_RARE_HAN = ("\U00020000", "\U000323af")
_LETTERS = re.compile(r"[^\W\d_]+")


def intrusion(source: str, answer: str, language: str) -> str | None:
    """What is wrong with the letters of an answer, in one line; None where nothing is, or the language is not listed.

    Letters that stand in the source may stand in the answer; so may Latin and Greek ones, but words that the source
    does not have must be in the language's script by half.
    """
    names = scripts_of(language)
    if not names or (answer.isascii() and "Latin" in names):
        return None
    foreign, own = _patterns(names)
    if foreign.search(answer) and (found := set("".join(foreign.findall(answer))) - set(source)):
        return f"{''.join(sorted(found))[:20]!r} in a text in {', '.join(names)}"
    if 2 * _n_chars(own, answer) >= len(answer):
        return None
    known = set(source.split())
    fresh = " ".join([word for word in answer.split() if word not in known])
    n_letters = _n_chars(_LETTERS, fresh)
    n_own = _n_chars(own, fresh)
    if n_letters >= _MIN_LETTERS and n_own < _MIN_SHARE * n_letters:
        return f"{n_own} of {n_letters} letters are in {', '.join(names)}"
    return None


def mostly_in(answer: str, language: str) -> bool:
    """Whether half of the characters or more are letters of the language's scripts; False where it is not listed."""
    names = scripts_of(language)
    return bool(names) and 2 * _n_chars(_patterns(names)[1], answer) >= len(answer)


def _n_chars(runs: re.Pattern[str], text: str) -> int:
    return sum(map(len, runs.findall(text)))


@cache
def scripts_of(language: str) -> tuple[str, ...]:
    """The scripts of a language, "sr-Latn" by its second part; () where it is not listed."""
    code, _, rest = language.replace("_", "-").partition("-")
    table = _table()
    if "latn" in rest.lower().split("-"):
        return ("Latin",)
    return tuple(table.get(code.lower(), ()))


@cache
def _patterns(names: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Runs of letters of no script that may occur; runs of letters of the language's own."""
    own = "".join(rf"\p{{Script={name}}}" for name in names)
    allowed = rf"{own}\p{{Script=Latin}}\p{{Script=Greek}}\p{{Script=Common}}\p{{Script=Inherited}}"
    return _class(rf"[\p{{L}}--[{allowed}]]+"), _class(rf"[\p{{L}}&&[{own}]]+")


def _class(pattern: str) -> re.Pattern[str]:
    """The characters of a pattern of regex as one for re, which is far faster as long as they lie in the first plane.

    Of the others only the rare Chinese characters are looked at.
    """
    ranges = [f"{run[0]}-{run[-1]}" for run in regex.findall(pattern, _first_plane(), regex.V1)]
    if regex.search(pattern, _RARE_HAN[0], regex.V1):
        ranges.append("-".join(_RARE_HAN))
    return re.compile(f"[{''.join(ranges)}]+")


@cache
def _first_plane() -> str:
    return "".join(map(chr, range(0x10000)))


@cache
def _table() -> Mapping[str, list[str]]:
    with (data_folder("translation") / "scripts.toml").open("rb") as file:
        return tomllib.load(file)

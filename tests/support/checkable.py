"""Translations from English that a test can check."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import rusbeir

LETTERS = str.maketrans(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", "абцдефгхийклмнопярстуввхызАБЦДЕФГХИЙКЛМНОПЯРСТУВВХЫЗ"
)
KEPT = re.compile(r"(<[^<>]*>|&#?\w+;|\bQ\d+Z\b|\[\d+\])")
_NUMBERED = re.compile(r"(\d+\. )?(.*)", re.DOTALL)


def known_pairs() -> dict[str, str]:
    """English sentence -> its Russian translation, from the benchmark mini."""
    path = Path(rusbeir.__file__).parent / "datasets" / "mini" / "memory.en-ru.tsv"
    return dict(line.split("\t") for line in path.read_text(encoding="utf-8").splitlines())


def russian(text: str, pairs: Mapping[str, str]) -> str:
    """A translation that a test can check: a known sentence's own (also behind "12. "), else letter by letter.

    Tags, entities and masks stay as they are.
    """
    match = _NUMBERED.fullmatch(text)
    if match and match[2] in pairs:
        return (match[1] or "") + pairs[match[2]]
    parts = KEPT.split(text)
    return "".join(part if i % 2 else part.translate(LETTERS) for i, part in enumerate(parts))

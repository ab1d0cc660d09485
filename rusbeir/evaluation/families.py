"""Families of models: a model is not an independent judge of one with the same weights, training data or maker."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

_FAMILIES = Path(__file__).parent / "families.toml"


def find_families(name: str) -> frozenset[str]:
    """Find the families of models that the name of a model or of a system mentions.

    >>> sorted(find_families("bm25 >> rerank(bge-reranker-v2-gemma)"))
    ['bge', 'gemini']
    """
    return frozenset(family for family, pattern in _read_families().items() if pattern.search(name.lower()))


@cache
def _read_families() -> Mapping[str, re.Pattern[str]]:
    table = tomllib.loads(_FAMILIES.read_text(encoding="utf-8"))
    return {family: re.compile(rf"(?<![a-z])(?:{'|'.join(map(re.escape, names))})") for family, names in table.items()}

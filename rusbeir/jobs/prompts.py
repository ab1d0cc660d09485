"""The prompts in translation/prompts/: read, chosen by language, and identified in signatures."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from rusbeir.storage import data_folder

_FALLBACK = "en"


@cache
def read_prompts(name: str) -> Mapping[str, Any]:
    """The tables of translation/prompts/<name>.toml."""
    return tomllib.loads(_find_file(name).read_text(encoding="utf-8"))


@cache
def digest_prompts(name: str) -> str:
    """Eight hex digits that change with the file of prompts."""
    return hashlib.blake2b(_find_file(name).read_bytes(), digest_size=4).hexdigest()


def find_prompt_language(name: str, language: str) -> str:
    """The language of the prompts about texts in that language: the same where the file has it, else English.

    >>> find_prompt_language("rewrite", "pt-BR"), find_prompt_language("rewrite", "kk")
    ('pt', 'en')
    """
    primary = language.partition("-")[0]
    return primary if primary in read_prompts(name) else _FALLBACK


def _find_file(name: str) -> Path:
    return data_folder("translation") / "prompts" / f"{name}.toml"

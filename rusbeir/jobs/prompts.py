"""The prompts in translation/prompts/: read, chosen by language, and identified in signatures."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from rusbeir.languages import english_name
from rusbeir.storage import data_folder

_FALLBACK = "en"


@cache
def read_prompts(name: str) -> Mapping[str, Any]:
    """Read the tables of translation/prompts/<name>.toml."""
    return tomllib.loads(_find_file(name).read_text(encoding="utf-8"))


@cache
def digest_prompts(name: str) -> str:
    """Eight hex digits that change with the file of prompts."""
    return hashlib.blake2b(_find_file(name).read_bytes(), digest_size=4).hexdigest()


def find_prompt_language(name: str, language: str) -> str:
    """Find the language of the prompts about texts in that language: the same where the file has it, else English.

    >>> find_prompt_language("rewrite", "pt-BR"), find_prompt_language("rewrite", "kk")
    ('pt', 'en')
    """
    primary = language.partition("-")[0]
    return primary if primary in read_prompts(name) else _FALLBACK


def tell_prompt_language(name: str, language: str, model: str, tell: Callable[[str], None]) -> None:
    """Tell in which language the model is asked about texts in that language, where it is another one."""
    asked_in = find_prompt_language(name, language)
    if not language.startswith(asked_in):
        tell(f"There is no prompt in {english_name(language)}: {model} is asked in {english_name(asked_in)}.")


def _find_file(name: str) -> Path:
    return data_folder("translation") / "prompts" / f"{name}.toml"

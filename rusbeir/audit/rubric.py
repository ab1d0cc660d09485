"""What a translation is scored on: the dimensions, the scale, and the words that a judge is asked with."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Any

from rusbeir.storage import data_folder
from rusbeir.translation.languages import english_name

DIMENSIONS = ("accuracy", "fluency", "completeness", "style_consistency")
SCALE = (1, 2, 3, 4, 5)
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        **{name: {"type": "integer", "minimum": SCALE[0], "maximum": SCALE[-1]} for name in DIMENSIONS},
        "comments": {"type": "string"},
    },
    "required": [*DIMENSIONS, "comments"],
    "additionalProperties": False,
}


def dimensions() -> dict[str, str]:
    """Each dimension with what it asks, in one sentence."""
    table: dict[str, str] = _table()["dimensions"]
    return {name: table[name] for name in DIMENSIONS}


def prompt(source: str, target: str, text: str, translation: str) -> list[dict[str, str]]:
    """The messages that ask a model for its scores; source and target are BCP 47."""
    table = _table()
    names = {"source": english_name(source), "target": english_name(target)}
    rubric = "\n".join(f"- {name}: {asks}" for name, asks in dimensions().items())
    return [
        {"role": "system", "content": table["system"].format(rubric=rubric, **names)},
        {"role": "user", "content": table["user"].format(text=text, translation=translation, **names)},
    ]


def digest() -> str:
    """Eight letters that change with the rubric."""
    return hashlib.blake2b(
        (data_folder("translation") / "prompts" / "judge.toml").read_bytes(), digest_size=4
    ).hexdigest()


@cache
def _table() -> dict[str, Any]:
    with (data_folder("translation") / "prompts" / "judge.toml").open("rb") as file:
        return tomllib.load(file)

"""The translation in a model's answer, also where the JSON around it is not quite JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"translation": {"type": "string"}},
    "required": ["translation"],
    "additionalProperties": False,
}

_THOUGHTS = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_FENCE = re.compile(r"```(?:json)?\s*\n?(.*?)```", re.DOTALL)
# A whole object by its frame, whatever quotes and line breaks stand inside unescaped; never one that was cut.
_FRAME = re.compile(r"""\{\s*["']?translation["']?\s*:\s*(["'])(.*)\1\s*,?\s*\}""", re.DOTALL)
_ESCAPE = re.compile(r'\\(u[0-9a-fA-F]{4}|["\\/bfnrt])')
_ESCAPED = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def read_translation(answer: str) -> str | None:
    r"""The string under "translation"; None where there is none, or where the object was cut.

    Repaired are: text or a fence around the object, thoughts before it, raw line breaks and quotes inside, a comma
    too many. Two objects are as bad as none: nobody knows which is meant.

    >>> read_translation('Sure! ```json\n{"translation": "Вода кипит."}\n```')
    'Вода кипит.'
    >>> read_translation('{"translation": "Вода ки') is None
    True
    """
    answer = _THOUGHTS.sub("", answer)
    for candidate in (answer, *_FENCE.findall(answer), _between_braces(answer)):
        try:
            value = json.loads(candidate, strict=False)
        except ValueError:
            continue
        return _string(value)
    if answer.count("translation") == 1 and (frame := _FRAME.search(answer)):
        return _joined_surrogates(_ESCAPE.sub(_unescaped, frame[2]))
    return None


def _string(value: Any) -> str | None:
    translation = value.get("translation") if isinstance(value, dict) else None
    return _joined_surrogates(translation) if isinstance(translation, str) else None


def _between_braces(answer: str) -> str:
    return answer[answer.find("{") : answer.rfind("}") + 1]


def _unescaped(match: re.Match[str]) -> str:
    escape = match[1]
    return chr(int(escape[1:], 16)) if escape[0] == "u" else _ESCAPED[escape]


def _joined_surrogates(text: str) -> str | None:
    r"""The text with \ud83d\ude00 made one character; None where half of one is left over."""
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        return None

"""The way back of the small translator of the port's tests."""

from __future__ import annotations

import re

from tests.support.small_port import TRANSLATION

ENGLISH = {russian: word for word, russian in TRANSLATION.items()}


def back(text: str, nth: int = 1) -> str:
    """Translate a text of the small port into English; unknown words are kept."""
    return re.sub(r"[А-Яа-яё]+", lambda match: ENGLISH.get(match[0], match[0]), text)

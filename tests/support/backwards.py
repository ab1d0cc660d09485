"""The way back of the small translator of the port's tests."""

from __future__ import annotations

import re

from tests.support.small_port import TRANSLATION

ENGLISH = {russian: word for word, russian in TRANSLATION.items()}


def back(text: str, nth: int = 1) -> str:
    """A Russian text of ours in English; what is no word of ours stays as it is."""
    return re.sub(r"[А-Яа-яё]+", lambda match: ENGLISH.get(match[0], match[0]), text)

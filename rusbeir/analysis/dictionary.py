"""Look-ups in pymorphy3's dictionary, several times as fast as its own reader in Python.

The dictionary is an automaton (DAWG) over the UTF-8 bytes of a form, a separator, and the readings. Two things save
time: the walk over the bytes is one loop, and the readings behind a node, which thousands of forms share, are decoded
once. A test compares the answers with those of pymorphy3.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, TypeAlias

Reading: TypeAlias = tuple[str, Iterable[tuple[int, int]]]
"""A spelling (with ё where the word may have е), and paradigm and index of each form that is spelt so."""

Readings: TypeAlias = Callable[[str], list[Reading]]

NODES = 1 << 15
"""For so many nodes of the automaton the readings are kept."""

_LABEL = 1 << 31 | 0xFF
_EXTENSION = 1 << 9


def readings(morph: Any) -> Readings:
    """What gives the readings of a lower-cased word in the dictionary of that MorphAnalyzer, in no special order."""
    words, substitutes = morph.dictionary.words, morph.char_substitutes
    if not hasattr(getattr(words, "dct", None), "_units"):
        # The reader written in C, where it is installed, is fast by itself.
        return lambda word: words.similar_items(word, substitutes)
    units = words.dct._units
    forms_of = lru_cache(NODES)(words._value_for_index)
    separator: bytes = words._payload_separator

    def follow(index: int, code: bytes) -> int:
        """The node after these bytes; -1 where there is none."""
        for byte in code:
            unit = units[index]
            index ^= (unit >> 10) << ((unit & _EXTENSION) >> 6) ^ byte
            if units[index] & _LABEL != byte:
                return -1
        return index

    others = {
        code.decode(): [(letter, letter_code) for letter_code, letter in letters]
        for code, letters in substitutes.items()
    }
    parts_of = re.compile(f"([{''.join(map(re.escape, others))}])" if others else "(?!)()").split

    def look_up(word: str) -> list[Reading]:
        ways = [("", 0)]
        for part in parts_of(word):  # such as п, е, р, е, ход
            code = part.encode()
            further = [(spelling + part, node) for spelling, index in ways if (node := follow(index, code)) >= 0]
            for letter, letter_code in others.get(part, ()):
                further += [(spelling + letter, n) for spelling, i in ways if (n := follow(i, letter_code)) >= 0]
            if not further:
                return []
            ways = further
        ends = [(spelling, follow(index, separator)) for spelling, index in ways]
        return [(spelling, forms_of(node)) for spelling, node in ends if node >= 0]

    return look_up

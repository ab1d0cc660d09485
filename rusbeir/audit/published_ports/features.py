"""The features by which a text is compared with its translation: its terms, and marks that survive translation.

Marks are numbers and the consonants of words, in Latin letters: names and loanwords keep them in another script.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from array import array
from dataclasses import dataclass, field
from functools import lru_cache
from typing import IO, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rusbeir.analysis import Analyzer

Ids: TypeAlias = NDArray[np.uint32]

N_KINDS = 8
"""Kinds of marks: 1 numbers, 2 to 4 words by the length of their skeleton, 5 to 7 words with a capital."""
_NUMBER, _FIRST_WORD, _CAPITAL = 1, 2, 3
_BITS = 29
HASH = np.uint32((1 << _BITS) - 1)
_MARK = re.compile(r"\d+|[^\W\d_]{4,}")
_N_PARTS, _HEAD = 4, 8
"""The arrays of a unit, and the numbers before them in its file."""
_SHORT_CHARS = 200
_MIN_SKELETON, _MAX_SKELETON = 2, 4
_SPELLINGS = str.maketrans(
    dict(zip("абвгдеёжзийклмнопрстуфхцчшщыэюяіїєґ", "abvgdeezziiklmnoprstufhssssieuaiieg", strict=True))
    | dict(zip("αβγδεζηθικλμνξοπρσςτυφχψω", "avgdezitiklmnxoprsstifhpo", strict=True))
)
"""Cyrillic and Greek letters as the Latin ones by which names are mostly spelled."""
_SOUNDS = [
    (re.compile(pattern), sound)
    for pattern, sound in (
        ("ph", "f"), ("th", "t"), ("s?ch|sh|sc(?=[ei])", "s"), ("ck|qu?", "k"), ("c(?=[ei])", "s"), ("c", "k"),
        ("x", "ks"), ("w", "v"), ("[jz]", "s"), ("[aeiouyh]", ""), (r"(.)\1+", r"\1"),
    )
]  # fmt: skip


class Features(NamedTuple):
    """The features of a text, each once, in order."""

    terms: Ids
    marks: Ids
    """A hash in the lower 29 bits, and the kind in those above."""

    @property
    def size(self) -> int:
        return len(self.terms) + len(self.marks)

    @property
    def mark_hashes(self) -> Ids:
        return self.marks & HASH

    @property
    def kinds(self) -> NDArray[np.intp]:
        return (self.marks >> np.uint32(_BITS)).astype(np.intp)


def find_features(text: str, analyzer: Analyzer) -> Features:
    """Find the features of a text."""
    kinds: dict[int, int] = {}
    for match in _MARK.finditer(text):
        word = match[0]
        if word[0].isdigit():
            kinds[hash_text("#" + (word.lstrip("0") or "0"))] = _NUMBER
        elif len(skeleton := find_skeleton(word.lower())) >= _MIN_SKELETON:
            kind = _FIRST_WORD + len(skeleton) - _MIN_SKELETON + _CAPITAL * word[0].isupper()
            key = hash_text(skeleton)
            kinds[key] = max(kind, kinds.get(key, 0))
    terms = {hash_text(term) for term in _find_terms(text, analyzer)}
    marks = {kind << _BITS | key for key, kind in kinds.items()}
    return Features(*(np.array(sorted(ids), dtype=np.uint32) for ids in (terms, marks)))


def _find_terms(text: str, analyzer: Analyzer) -> list[str]:
    """Find the terms of a text; of a short one its stop words, too, as questions differ by "who" and "when"."""
    if len(text) > _SHORT_CHARS:
        return analyzer.analyze(text)
    return [term for token in analyzer.explain(text) for term in token.term.split() or [token.lemma]]


@lru_cache(maxsize=100_000)
def find_skeleton(word: str) -> str:
    """Find the first consonants of a word in lower case, in Latin letters; of other scripts its first characters.

    >>> find_skeleton("panthers"), find_skeleton("пантерс")
    ('pntr', 'pntr')
    """
    letters = unicodedata.normalize("NFKD", word.translate(_SPELLINGS))
    letters = "".join([char for char in letters if not unicodedata.combining(char)])
    if letters.isascii():
        for pattern, sound in _SOUNDS:
            letters = pattern.sub(sound, letters)
    return letters[:_MAX_SKELETON]


def hash_text(text: str) -> int:
    """Return a hash of 29 bits."""
    return zlib.crc32(text.encode("utf-8", "surrogatepass")) & int(HASH)


class Unit(NamedTuple):
    """A title, a text or a query, and its translation."""

    source: Features
    translation: Features
    chars: tuple[int, int]
    text: int
    """A hash of the source."""
    fold: int
    """The number of its fold; it is judged by what the pairs of other folds teach."""


@dataclass
class UnitFile:
    """Units of one field in a file without a name, from which they are read by number."""

    file: IO[bytes]
    starts: array[int] = field(default_factory=lambda: array("Q", [0]))
    ids: NDArray[np.uint32] | None = None

    def __len__(self) -> int:
        return len(self.starts) - 1

    def add(self, unit: Unit) -> None:
        """Write the next unit. Raises OSError."""
        parts = (*unit.source, *unit.translation)
        head = np.array([*map(len, parts), *unit.chars, unit.text, unit.fold], dtype=np.uint32)
        row = np.concatenate([head, *parts])
        self.file.write(row.tobytes())
        self.starts.append(self.starts[-1] + len(row))

    def __getitem__(self, number: int) -> Unit:
        if self.ids is None:
            self.file.flush()
            self.ids = np.memmap(self.file, dtype=np.uint32, mode="r")
        row = self.ids[self.starts[number] : self.starts[number + 1]]
        ends = np.cumsum(row[:_N_PARTS]) + _HEAD
        terms, marks, *others = (row[a:b] for a, b in zip([_HEAD, *ends[:-1]], ends, strict=True))
        source_chars, chars, text, fold = row[_N_PARTS:_HEAD].tolist()
        return Unit(Features(terms, marks), Features(*others), (source_chars, chars), text, fold)

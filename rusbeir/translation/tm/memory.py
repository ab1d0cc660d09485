"""A translation memory: pairs looked up by their source, by exact or fuzzy match."""

from __future__ import annotations

import difflib
import heapq
import logging
import mmap
import re
import struct
import tempfile
import unicodedata
from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from rusbeir.errors import BadInput
from rusbeir.translation.tm.pairs import TextPair, read_pairs

logger = logging.getLogger(__name__)

_HEADER = struct.Struct("<II")
_TOKEN = re.compile(r"\w+|[^\w\s]")
_WORDS_PER_PAIR = 4
_MAX_CANDIDATES = 50
_MAX_PAIRS_PER_WORD = 5_000


class Match(NamedTuple):
    """The translation that a memory has for a text."""

    target: str
    kind: Literal["exact", "normalised", "fuzzy"]
    """normalised: the same but for white space and Unicode composition."""
    score: float
    """1.0, or for a fuzzy match the share of words and signs in common, below 1.0."""
    source: str
    """The text that the memory has a translation of."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TranslationMemory:
    """The pairs of one file, with their texts in a temporary file: 1,000,000 pairs take 16 MB of memory, and 50 MB
    while they are read. The first fuzzy search makes an index of rare words, about 200 bytes per pair.
    """

    hashes: npt.NDArray[np.int64]
    """The hashes of the normalised sources, sorted."""
    offsets: npt.NDArray[np.int64]
    """The place in texts of each hash's pair; ascending where hashes are equal."""
    texts: mmap.mmap

    def __len__(self) -> int:
        return len(self.offsets)

    def lookup(self, text: str) -> Match | None:
        """Look up the translation of this very text, else of one that differs in white space alone, else None."""
        normal = _normalise(text)
        key = hash(normal)
        first, last = (int(np.searchsorted(self.hashes, key, side)) for side in ("left", "right"))
        same = [
            pair
            for i in range(first, last)
            if _normalise((pair := _read(self.texts, self.offsets[i])).source) == normal
        ]
        for pair in same:
            if pair.source == text:
                return Match(pair.target, "exact", 1.0, pair.source)
        return Match(_with_spaces_of(text, same[0].target), "normalised", 1.0, same[0].source) if same else None

    def fuzzy(self, text: str, threshold: float) -> Match | None:
        """Return the translation of the most similar text; None where none reaches the threshold, 0 to 1.

        Similarity is difflib's ratio over lower-cased words and signs, among the 50 texts that share most rare words.
        """
        tokens = _tokens(text)
        matcher: difflib.SequenceMatcher[str] = difflib.SequenceMatcher(None, b=tokens, autojunk=False)
        best: tuple[float, TextPair] | None = None
        for i in self._candidates(set(tokens)):
            pair = _read(self.texts, self.offsets[i])
            matcher.set_seq1(_tokens(pair.source))
            needed = threshold if best is None else best[0]
            if min(matcher.real_quick_ratio(), matcher.quick_ratio()) < needed:
                continue
            score = matcher.ratio()
            if score > needed or (best is None and score >= threshold):
                best = score, pair
        return Match(_with_spaces_of(text, best[1].target), "fuzzy", best[0], best[1].source) if best else None

    def _candidates(self, words: set[str]) -> list[int]:
        """Return the pairs that share most indexed words, of equal ones those that come first in the file."""
        shared = Counter(i for word in words for i in self._index.get(word, ()))
        return heapq.nsmallest(_MAX_CANDIDATES, shared, key=lambda i: (-shared[i], self.offsets[i]))

    @cached_property
    def _index(self) -> Mapping[str, array[int]]:
        """File each pair under the rarest of its words."""
        counts = Counter(
            word for i in range(len(self)) for word in set(_tokens(_read(self.texts, self.offsets[i]).source))
        )
        index: dict[str, array[int]] = {}
        for i in range(len(self)):
            words = heapq.nsmallest(
                _WORDS_PER_PAIR,
                set(_tokens(_read(self.texts, self.offsets[i]).source)),
                key=lambda word: (counts[word], word),
            )
            for word in words:
                if counts[word] <= _MAX_PAIRS_PER_WORD:
                    index.setdefault(word, array("L")).append(i)
        return index


def open_memory(path: str | Path, source: str, target: str) -> TranslationMemory:
    """Open the memory of a .jsonl, .tsv or .tmx file (.gz too) for these languages, BCP 47.

    Pairs with a blank side, and those whose source came before with another translation, are left out with a
    warning. Raises BadInput as read_pairs does, and where no pair is left.

    >>> open_memory("xquad.tmx", "en", "ru").lookup("Yes.")  # doctest: +SKIP
    Match(target='Да.', kind='exact', score=1.0, source='Yes.')
    """
    hashes, offsets = array("q"), array("q")
    blank = offset = 0
    with tempfile.TemporaryFile() as file:
        for pair in read_pairs(path, source, target):
            if not pair.source.strip() or not pair.target.strip():
                blank += 1
                continue
            hashes.append(hash(_normalise(pair.source)))
            offsets.append(offset)
            texts_bytes = pair.source.encode(), pair.target.encode()
            offset += file.write(b"".join((_HEADER.pack(*map(len, texts_bytes)), *texts_bytes)))
        if not offsets:
            raise BadInput(f"{path}: no pair of a text and its translation is in this file.")
        file.flush()
        texts = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    keys = np.frombuffer(hashes, dtype=np.int64)
    order = np.argsort(keys, kind="stable")
    keys, starts = keys[order], np.frombuffer(offsets, dtype=np.int64)[order]
    same = np.flatnonzero(keys[1:] == keys[:-1])
    repeated, conflicts = _find_repeated(keys, starts, texts, same) if len(same) else ([], 0)
    if conflicts or blank:
        logger.warning(
            "%s: pairs left out: %s with another translation of a text that came before, %s with a blank side.",
            path,
            f"{conflicts:,}",
            f"{blank:,}",
        )
    return TranslationMemory(hashes=np.delete(keys, repeated), offsets=np.delete(starts, repeated), texts=texts)


def _find_repeated(
    keys: npt.NDArray[np.int64], starts: npt.NDArray[np.int64], texts: mmap.mmap, same: npt.NDArray[np.intp]
) -> tuple[list[int], int]:
    """Find the rows whose source came before, and how many of them have another target than the first.

    same has the rows whose next row has the same key.
    """
    known: dict[str, str] = {}
    repeated = []
    conflicts = 0
    for i in same:
        if i == 0 or keys[i - 1] != keys[i]:
            known = dict([_read(texts, starts[i])])
        pair = _read(texts, starts[i + 1])
        if pair.source in known:
            repeated.append(int(i) + 1)
            conflicts += known[pair.source] != pair.target
        else:
            known[pair.source] = pair.target
    return repeated, conflicts


def _read(texts: mmap.mmap, offset: np.int64) -> TextPair:
    """Read the pair at that place."""
    start = int(offset) + _HEADER.size
    source_bytes, target_bytes = _HEADER.unpack_from(texts, int(offset))
    middle = start + source_bytes
    return TextPair(texts[start:middle].decode(), texts[middle : middle + target_bytes].decode())


def _normalise(text: str) -> str:
    text = " ".join(text.split())
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def _with_spaces_of(text: str, target: str) -> str:
    """Return the target, with the white space that the text begins and ends with."""
    content = text.strip()
    start = text.index(content)
    return text[:start] + target.strip() + text[start + len(content) :]


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(text.lower())

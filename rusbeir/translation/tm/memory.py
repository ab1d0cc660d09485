"""A translation memory: pairs looked up by their source, exactly or as the most alike."""

from __future__ import annotations

import difflib
import heapq
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
from typing import IO, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from rusbeir.datasets.formats.files import checksum_of
from rusbeir.errors import BadInput
from rusbeir.translation.tm.pairs import TextPair, read_pairs

_HEADER = struct.Struct("<II")
_TOKEN = re.compile(r"\w+|[^\w\s]")
_WORDS_A_PAIR = 4
_CANDIDATES = 50
_MAX_PAIRS_A_WORD = 5_000


class Match(NamedTuple):
    """What a memory has for a text."""

    target: str
    kind: Literal["exact", "normalised", "fuzzy"]
    """normalised: the same but for white space and Unicode composition."""
    score: float
    """1.0, or for a fuzzy match the share of words and signs in common, below 1.0."""
    source: str
    """The text that the memory has a translation of."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TranslationMemory:
    """Pairs of one file, whose texts lie in a temporary file: 1,000,000 pairs take 16 MB of memory, and while they
    are read 50 MB. The first fuzzy search makes an index of rare words, about 200 bytes a pair.
    """

    path: Path
    duplicates: int
    """Pairs left out because their source came before with another translation: the first is taken."""
    blank: int
    """Pairs left out because one side is blank."""
    hashes: npt.NDArray[np.int64]
    """Of the normalised sources, sorted."""
    offsets: npt.NDArray[np.int64]
    """Where in texts the pair of each hash lies; ascending where hashes are equal."""
    texts: mmap.mmap

    def __len__(self) -> int:
        return len(self.offsets)

    @cached_property
    def fingerprint(self) -> str:
        """The sha256 (hex) of the file."""
        return checksum_of(self.path)

    def lookup(self, text: str) -> Match | None:
        """The translation of exactly this text, else of one that differs in white space alone; else None."""
        normal = _normalised(text)
        key = hash(normal)
        first, last = (int(np.searchsorted(self.hashes, key, side)) for side in ("left", "right"))
        same = [pair for i in range(first, last) if _normalised((pair := self._pair(i)).source) == normal]
        for pair in same:
            if pair.source == text:
                return Match(pair.target, "exact", 1.0, pair.source)
        return Match(_spaced(text, same[0].target), "normalised", 1.0, same[0].source) if same else None

    def fuzzy(self, text: str, threshold: float) -> Match | None:
        """The translation of the text most like this one; None where none reaches the threshold, 0 to 1.

        Likeness is difflib's ratio over lower-cased words and signs, among the 50 texts that share most rare words.
        """
        tokens = _tokens(text)
        matcher: difflib.SequenceMatcher[str] = difflib.SequenceMatcher(None, b=tokens, autojunk=False)
        best: tuple[float, TextPair] | None = None
        for i in self._alike(set(tokens)):
            pair = self._pair(i)
            matcher.set_seq1(_tokens(pair.source))
            needed = threshold if best is None else best[0]
            if min(matcher.real_quick_ratio(), matcher.quick_ratio()) < needed:
                continue
            score = matcher.ratio()
            if score > needed or (best is None and score >= threshold):
                best = score, pair
        return Match(_spaced(text, best[1].target), "fuzzy", best[0], best[1].source) if best else None

    def _alike(self, words: set[str]) -> list[int]:
        """The pairs that share most of the words that are indexed, those that come first in the file first."""
        shared = Counter(i for word in words for i in self._index.get(word, ()))
        return heapq.nsmallest(_CANDIDATES, shared, key=lambda i: (-shared[i], self.offsets[i]))

    @cached_property
    def _index(self) -> Mapping[str, array[int]]:
        """Each pair under the rarest of its words."""
        counts = Counter(word for i in range(len(self)) for word in set(_tokens(self._pair(i).source)))
        index: dict[str, array[int]] = {}
        for i in range(len(self)):
            words = heapq.nsmallest(
                _WORDS_A_PAIR, set(_tokens(self._pair(i).source)), key=lambda word: (counts[word], word)
            )
            for word in words:
                if counts[word] <= _MAX_PAIRS_A_WORD:
                    index.setdefault(word, array("L")).append(i)
        return index

    def _pair(self, i: int) -> TextPair:
        return _read(self.texts, int(self.offsets[i]))


def open_memory(path: str | Path, source: str, target: str) -> TranslationMemory:
    """The memory of a .jsonl, .tsv or .tmx file (.gz too) for these languages, BCP 47.

    Raises BadInput as read_pairs does, and where no pair has two texts that are not blank.

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
            hashes.append(hash(_normalised(pair.source)))
            offsets.append(offset)
            offset += _write(file, pair)
        if not offsets:
            raise BadInput(f"{path}: there is no pair of a text and its translation in it.")
        file.flush()
        texts = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    keys = np.frombuffer(hashes, dtype=np.int64)
    order = np.argsort(keys, kind="stable")
    keys, places = keys[order], np.frombuffer(offsets, dtype=np.int64)[order]
    repeated, duplicates = _repeated(keys, places, texts)
    return TranslationMemory(
        path=Path(path),
        duplicates=duplicates,
        blank=blank,
        hashes=np.delete(keys, repeated),
        offsets=np.delete(places, repeated),
        texts=texts,
    )


def _repeated(keys: npt.NDArray[np.int64], places: npt.NDArray[np.int64], texts: mmap.mmap) -> tuple[list[int], int]:
    """The rows whose source came before, and how many of them have another target than that."""
    known: dict[str, str] = {}
    repeated = []
    duplicates = 0
    for i in np.flatnonzero(keys[1:] == keys[:-1]):
        if i == 0 or keys[i - 1] != keys[i]:
            known = dict([_read(texts, int(places[i]))])
        pair = _read(texts, int(places[i + 1]))
        if pair.source in known:
            repeated.append(int(i) + 1)
            duplicates += known[pair.source] != pair.target
        else:
            known[pair.source] = pair.target
    return repeated, duplicates


def _write(file: IO[bytes], pair: TextPair) -> int:
    source, target = pair.source.encode("utf-8", "surrogatepass"), pair.target.encode("utf-8", "surrogatepass")
    return file.write(_HEADER.pack(len(source), len(target)) + source + target)


def _read(texts: mmap.mmap, offset: int) -> TextPair:
    source_bytes, target_bytes = _HEADER.unpack_from(texts, offset)
    start = offset + _HEADER.size
    middle = start + source_bytes
    return TextPair(
        texts[start:middle].decode("utf-8", "surrogatepass"),
        texts[middle : middle + target_bytes].decode("utf-8", "surrogatepass"),
    )


def _normalised(text: str) -> str:
    text = " ".join(text.split())
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def _spaced(text: str, target: str) -> str:
    """The target within the white space that the text begins and ends with."""
    content = text.strip()
    start = text.index(content)
    return text[:start] + target.strip() + text[start + len(content) :]


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(text.lower())

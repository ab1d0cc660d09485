"""Parts of documents: chunks of long ones, thirds, and verbatim passages located in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

from rusbeir.datasets import count_tokens
from rusbeir.sentences import sentence_spans
from rusbeir.synthesis.queries.attributes import THIRDS
from rusbeir.types import Corpus, Doc

CHUNK_TOKENS, OVERLAP_TOKENS = 200, 50
"""AIR-Bench's. Its tokens are those of a model, a little shorter than words; these are those of count_tokens."""


def locate(text: str, passage: str) -> tuple[int, int] | None:
    """(start, end) of a passage that occurs once in the text, in characters; None where it does not, or more often.

    >>> locate("Water boils.", "boils"), locate("no, no", "no")
    ((6, 11), None)
    """
    start = text.find(passage) if passage else -1
    if start < 0 or text.find(passage, start + 1) >= 0:
        return None
    return start, start + len(passage)


def find_third(start: int, end: int, length: int) -> str:
    """Find the third of a text of that length in which the middle of a span lies.

    >>> find_third(0, 10, 90), find_third(30, 60, 90), find_third(80, 90, 90)
    ('first', 'middle', 'last')
    """
    return THIRDS[min(3 * (start + end) // (2 * length), 2)]


def take_third(text: str, third: str) -> str:
    """Take the words of a text that lie in a third of its characters, whole ones; "" where there are none.

    >>> take_third("one two three four five six", "middle")
    'three'
    """
    number = THIRDS.index(third)
    low, high = (_word_start(text, len(text) * n // 3) for n in (number, number + 1))
    return text[low:high].strip()


def _word_start(text: str, offset: int) -> int:
    """Return the beginning of the word at a place of a text; the place itself in a text without spaces near."""
    start = text.rfind(" ", max(offset - 40, 0), offset) + 1
    return start if start and offset < len(text) else offset


def cut_chunks(text: str, language: str) -> list[str]:
    """Cut the text in chunks of whole sentences of up to CHUNK_TOKENS, each beginning with the last OVERLAP_TOKENS.

    A longer sentence is cut between words. Every sentence is in a chunk; [] for a blank text.
    """
    pieces = [piece for span in sentence_spans(text, language) for piece in _cut_sentence(text, *span)]
    chunks: list[str] = []
    first = 0
    while first < len(pieces):
        last, room = first, CHUNK_TOKENS
        while last < len(pieces) and (last == first or pieces[last][2] <= room):
            room -= pieces[last][2]
            last += 1
        chunks.append(text[pieces[first][0] : pieces[last - 1][1]])
        if last == len(pieces):
            break
        after, room = last, OVERLAP_TOKENS
        while after - 1 > first and pieces[after - 1][2] <= room:
            after -= 1
            room -= pieces[after][2]
        # What is repeated must leave room for the next piece, or chunks would not end.
        while after < last and sum(tokens for *_, tokens in pieces[after : last + 1]) > CHUNK_TOKENS:
            after += 1
        first = after
    return chunks


def _cut_sentence(text: str, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Cut (start, end, tokens) of the pieces of a sentence, halved between words until none is longer than a chunk."""
    tokens = count_tokens(text[start:end])
    if tokens <= CHUNK_TOKENS or end - start < 2:
        yield start, end, tokens
        return
    middle = (start + end) // 2
    space = text.rfind(" ", start + 1, middle) + 1
    cut = space or middle
    yield from _cut_sentence(text, start, cut)
    yield from _cut_sentence(text, cut, end)


@dataclass(frozen=True)
class ChunkedCorpus:
    """The chunks of a corpus's documents as documents, `<doc_id>#<n>`, cut when they are asked for."""

    corpus: Corpus
    language: str

    def __iter__(self) -> Iterator[Doc]:
        for doc in self.corpus:
            for n, text in enumerate(cut_chunks(doc.text, self.language)):
                yield Doc(f"{doc.doc_id}#{n}", text, doc.title)

    def __len__(self) -> int:
        return self._n_chunks

    @cached_property
    def _n_chunks(self) -> int:
        return sum(1 for _ in self)

    def __getitem__(self, chunk_id: str) -> Doc:
        doc_id, _, n = chunk_id.rpartition("#")
        doc = self.corpus[doc_id]
        try:
            return Doc(chunk_id, _cut_again(doc.text, self.language)[int(n)], doc.title)
        except (ValueError, IndexError):
            raise KeyError(chunk_id) from None


_cut_again = lru_cache(maxsize=64)(cut_chunks)

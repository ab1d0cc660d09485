"""The likeness of rewritten documents to those of people: lengths, terms in common, embeddings."""

from __future__ import annotations

import hashlib
import heapq
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rusbeir.analysis import Analyzer, find_language, language_files, unicode
from rusbeir.errors import BadInput
from rusbeir.retrieval import DenseSystem, Metered, check_available, check_vectors, resolve
from rusbeir.text import batched
from rusbeir.types import Progress

EMBEDDED_PAIRS = 1_000
"""Pairs that are encoded, drawn by the seed: the standard error of a mean is then below 0.01."""
_BATCH_TEXTS = 64
_PERCENTILES = (5, 50, 95)


def count_words(text: str) -> int:
    """Count the words of a text; in a script without spaces, its overlapping runs of two or three characters.

    >>> count_words("Water boils at 100 °C."), count_words("机器学习")
    (5, 3)
    """
    return len(unicode(text))


def open_encoder(spec: str, language: str) -> DenseSystem:
    """Open the dense system of a spec. Raises BadInput for another kind of system and for a model at an endpoint."""
    system = resolve(spec, language=language)
    if not isinstance(system, DenseSystem):
        raise BadInput(f"{spec} encodes no texts: give a dense system, such as 'dense(multilingual-e5-small)'.")
    if isinstance(system.encoder, Metered):
        raise BadInput(f"{spec} would send texts to an endpoint: give a model that runs on this machine.")
    check_available(system.encoder)
    return system


def compare_texts(
    pairs: Iterable[tuple[str, str]], *, language: str, encoder: DenseSystem | None, seed: int, progress: Progress
) -> dict[str, Any]:
    """Yield the figures of (human, rewritten) pairs, as in docs/json.md; holds no more texts than EMBEDDED_PAIRS."""
    analyzer = Analyzer(language, "words" if find_language(language) in language_files() else "unicode")
    lengths = array("L"), array("L")
    drawn: list[tuple[bytes, str, str]] = []

    def texts() -> Iterator[str]:
        for n, pair in enumerate(pairs, 1):
            for text, words in zip(pair, lengths, strict=True):
                words.append(count_words(text))
                yield text
            if encoder is not None:
                entry = (hashlib.sha256("\0".join([str(seed), *pair]).encode()).digest(), *pair)
                # A heap of the highest digests, which are a random order.
                (heapq.heappush if len(drawn) < EMBEDDED_PAIRS else heapq.heappushpop)(drawn, entry)
            progress("compare texts", n, None)

    jaccard, overlap = array("d"), array("d")
    terms = analyzer.analyze_many(texts())
    for human, rewritten in zip(terms, terms, strict=True):
        before, after = set(human), set(rewritten)
        if before:
            both = len(before & after)
            jaccard.append(both / len(before | after))
            overlap.append(both / len(before))
    before_words, after_words = (np.array(words, dtype=np.float64) for words in lengths)
    return {
        "documents": len(before_words),
        "analyzer": analyzer.signature,
        "words": {
            "human": _describe(before_words),
            "rewritten": _describe(after_words),
            "ratio": _describe(after_words / np.maximum(before_words, 1)),
        },
        "jaccard": _describe(jaccard),
        "overlap": _describe(overlap),
        "similarity": _compare_vectors([pair for _, *pair in sorted(drawn)], encoder, progress) if encoder else None,
    }


def _compare_vectors(pairs: Sequence[Sequence[str]], system: DenseSystem, progress: Progress) -> dict[str, Any]:
    """Cosines of documents with their own rewriting, and with that of the next pair, whose order is random."""
    sides: list[npt.NDArray[np.float32]] = []
    for side in (0, 1):
        parts: list[npt.NDArray[np.float32]] = []
        for batch in batched((pair[side] for pair in pairs), _BATCH_TEXTS):
            parts.append(check_vectors(system.encoder.encode_documents(batch), batch, None, system.name))
            progress("encode texts", side * len(pairs) + sum(map(len, parts)), 2 * len(pairs))
        sides.append(np.concatenate(parts))
    human, rewritten = sides
    return {
        "system": system.name,
        "encoder": system.encoder.signature,
        "pairs": len(pairs),
        "matched": _describe(np.sum(human * rewritten, axis=1)),
        "random": _describe(np.sum(human * np.roll(rewritten, 1, axis=0), axis=1) if len(pairs) > 1 else []),
    }


def _describe(values: Sequence[float] | npt.NDArray[Any]) -> dict[str, float] | None:
    """Describe the mean and percentiles; None of nothing."""
    if not len(values):
        return None
    numbers = np.asarray(values, dtype=np.float64)
    shown = zip(_PERCENTILES, np.percentile(numbers, _PERCENTILES), strict=True)
    return {"mean": float(numbers.mean()), **{f"p{part}": float(value) for part, value in shown}}

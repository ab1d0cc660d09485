"""chrF, chrF++, BLEU and TER as sacrebleu defines them, from 0 to 100 (TER from 0 up, less is better).

chrF and chrF++ are counted here, for many pairs at once and several times as fast as sacrebleu; BLEU and TER are
sacrebleu's. All are equal to sacrebleu's own numbers; a test compares.
"""

from __future__ import annotations

import importlib
import string
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rusbeir.audit import scores
from rusbeir.audit.ngrams import Ints, shared, shared_units, spans
from rusbeir.errors import MissingExtra

CHARS, WORDS = 6, 2
"""The longest n-grams of characters and of words."""
BETA = 2.0
NAMES = ("BLEU", "chrF", "chrF++", "TER")
"""The scores against a reference."""
_BATCH_CHARS = 1 << 20
_PUNCTUATION = frozenset(string.punctuation)


def chrf_counts(hypotheses: Sequence[str], references: Sequence[str], *, words: bool = False) -> Ints:
    """n-grams of the hypothesis, of the reference, and in both, for each n: int64 [pairs, 3 × 6], with words 3 × 8.

    Their sum over pairs is what a corpus' score is made of. White space is left out; words lose one punctuation mark.
    """
    parts = []
    sizes = [len(hypothesis) + len(reference) for hypothesis, reference in zip(hypotheses, references, strict=True)]
    for start, stop in spans(sizes, _BATCH_CHARS):
        texts = [*hypotheses[start:stop], *references[start:stop]]
        counts = [_chars(texts), _words(texts)] if words else [_chars(texts)]
        parts.append(np.concatenate(counts, axis=1))
    return np.concatenate(parts) if parts else np.zeros((0, 3 * (CHARS + WORDS * words)), dtype=np.int64)


def chrf(counts: Ints) -> NDArray[np.float64]:
    """The score of each row of counts: chrF of 18, chrF++ of 24.

    >>> round(float(chrf(chrf_counts(["The cat sat."], ["A cat sat."]))[0]), 2)
    74.06
    """
    table = counts.reshape(len(counts), counts.shape[1] // 3, 3).astype(np.float64)
    hypothesis, reference, both = table[..., 0], table[..., 1], table[..., 2]
    # Orders that one of the two is too short for do not count.
    known = (hypothesis > 0) & (reference > 0)
    orders = np.maximum(known.sum(axis=1), 1)
    precision = _means(both, hypothesis, known, orders)
    recall = _means(both, reference, known, orders)
    below = BETA**2 * precision + recall
    above = (1 + BETA**2) * precision * recall
    return 100 * np.divide(above, below, out=np.zeros_like(above), where=below > 0)


def corpus_scores(counts: Ints) -> dict[str, float]:
    """chrF and chrF++ of a corpus whose counts, words among them, add up to this."""
    row = counts.reshape(1, -1)
    return {"chrF": float(chrf(row[:, : 3 * CHARS])[0]), "chrF++": float(chrf(row)[0])}


def counts_of(name: str, hypotheses: Sequence[str], references: Sequence[str], language: str) -> list[float]:
    """What BLEU or TER counts over the pairs. language, BCP 47, chooses BLEU's tokenizer."""
    # The method under corpus_score: the public ones give no counts to add up across processes.
    rows = _metric(name, language)._extract_corpus_statistics(hypotheses, [references])
    return [sum(column) for column in zip(*rows, strict=True)]


def score_of(name: str, counts: Sequence[float], language: str) -> float:
    """BLEU or TER of the summed counts of a corpus."""
    return float(_metric(name, language)._aggregate_and_compute([list(counts)]).score)


class Compared(NamedTuple):
    """Pairs of a translation and its reference, counted."""

    counts: dict[str, NDArray[Any]]
    """Of each score, summed up over the pairs; "chrF" holds those of chrF++, too."""
    chrf: list[float]
    """Of each pair."""


def compare(hypotheses: Sequence[str], references: Sequence[str], language: str, *, ter: bool = True) -> Compared:
    """What all scores are made of, TER where asked for. language, BCP 47, is that of both."""
    found = chrf_counts(hypotheses, references, words=True)
    names = ("BLEU", "TER") if ter else ("BLEU",)
    counts = {name: np.array(counts_of(name, hypotheses, references, language)) for name in names}
    return Compared({**counts, "chrF": found.sum(axis=0)}, chrf(found[:, : 3 * CHARS]).tolist())


def compared_scores(counts: Mapping[str, NDArray[Any]], language: str) -> dict[str, float]:
    """BLEU, chrF, chrF++ and TER of a corpus, as far as they were counted: of the sum of its pairs' counts."""
    found = {name: score_of(name, counts[name].tolist(), language) for name in ("BLEU", "TER") if name in counts}
    found |= corpus_scores(counts["chrF"])
    return {name: found[name] for name in NAMES if name in found}


@cache
def signature(name: str, language: str = "") -> str:
    """sacrebleu's signature of a score: BLEU, chrF, chrF++ or TER.

    >>> signature("chrF").rpartition("|")[0]
    'nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no'
    """
    metric = _metric(name, language)
    metric.corpus_score(["a"], [["a"]])
    return str(metric.get_signature())


def _chars(texts: Sequence[str]) -> Ints:
    bare = ["".join(text.split()) for text in texts]
    lengths = np.fromiter(map(len, bare), dtype=np.int64, count=len(bare))
    units = np.frombuffer("".join(bare).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    return _with_sizes(shared_units(units, lengths, CHARS), lengths, CHARS)


def _words(texts: Sequence[str]) -> Ints:
    numbers: dict[str, int] = {}
    coded = [[numbers.setdefault(word, len(numbers)) for word in _split(text)] for text in texts]
    lengths = np.fromiter(map(len, coded), dtype=np.int64, count=len(coded))
    n = len(coded) // 2
    return _with_sizes(shared(coded[:n], coded[n:], WORDS), lengths, WORDS)


def _split(text: str) -> list[str]:
    """The words, each parted from one punctuation mark at its end, else at its beginning."""
    found = []
    for word in text.split():
        if len(word) == 1:
            found.append(word)
        elif word[-1] in _PUNCTUATION:
            found += (word[:-1], word[-1])
        elif word[0] in _PUNCTUATION:
            found += (word[0], word[1:])
        else:
            found.append(word)
    return found


def _with_sizes(both: Ints, lengths: Ints, orders: int) -> Ints:
    """The counts in sacrebleu's order; it takes hypotheses for 0 where the reference has no n-gram of that length."""
    n = len(lengths) // 2
    sizes = np.maximum(lengths[:, None] - np.arange(orders), 0)
    hypothesis, reference = sizes[:n], sizes[n:]
    hypothesis = np.where(reference > 0, hypothesis, 0)
    return np.stack([hypothesis, reference, both], axis=2).reshape(n, 3 * orders)


def _means(
    both: NDArray[np.float64], whole: NDArray[np.float64], known: NDArray[np.bool_], orders: Ints
) -> NDArray[np.float64]:
    """The mean of both / whole over the orders that count, added up one by one as sacrebleu does."""
    shares = np.divide(both, whole, out=np.zeros_like(both), where=known)
    total = np.zeros(len(shares))
    for column in shares.T:
        total += column
    return total / orders


_METRICS: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
    "BLEU": ("sacrebleu.metrics.bleu", "BLEU", {}),
    "chrF": ("sacrebleu.metrics.chrf", "CHRF", {}),
    "chrF++": ("sacrebleu.metrics.chrf", "CHRF", {"word_order": WORDS}),
    "TER": ("sacrebleu.metrics.ter", "TER", {}),
}


@cache
def _metric(name: str, language: str) -> Any:
    module, attribute, options = _METRICS[name]
    try:
        made = getattr(importlib.import_module(module), attribute)
        # Chinese, Japanese and Korean have tokenizers of their own, some in packages of their own.
        return made(**options, **({"trg_lang": language.partition("-")[0]} if name == "BLEU" else {}))
    except (ImportError, RuntimeError) as error:
        raise MissingExtra(f"{name} needs sacrebleu: pip install 'rusbeir[audit]' ({error})") from error


BINS = 20
"""Of the distribution, each 5 points wide; a score of 100 falls into the last."""


@dataclass(kw_only=True)
class Level:
    """The scores of one kind of text; 4 bytes each are kept."""

    values: array[float] = field(default_factory=lambda: array("f"))
    counts: Ints | None = None

    def add(self, values: Sequence[float], counts: Ints) -> None:
        """Take in the chrF of texts, and the sum of their counts."""
        if values:
            self.values.extend(values)
            self.counts = counts if self.counts is None else self.counts + counts

    def summary(self) -> dict[str, Any]:
        """n, the corpus' chrF and chrF++, and the distribution of the texts' chrF; {} where there are none."""
        if self.counts is None:
            return {}
        values = np.frombuffer(self.values, dtype=np.float32).astype(np.float64)
        found = {"n": len(values), **scores.corpus_scores(self.counts), "mean": float(values.mean())}
        found |= {
            f"p{percent}": float(value)
            for percent, value in zip((5, 25, 50, 75), np.quantile(values, [0.05, 0.25, 0.5, 0.75]), strict=True)
        }
        found["histogram"] = np.histogram(np.minimum(values, 99.999), bins=BINS, range=(0, 100))[0].tolist()
        return found

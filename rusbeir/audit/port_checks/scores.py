"""chrF, chrF++, BLEU and TER as sacrebleu defines them, from 0 to 100 (TER from 0 up; lower is better).

chrF and chrF++ are computed here, for many pairs at once and several times as fast as sacrebleu; BLEU and TER are
computed by sacrebleu. All are equal to the output of sacrebleu; a test compares.
"""

from __future__ import annotations

import string
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rusbeir.audit.port_checks.ngrams import Ints, count_shared, count_shared_units, split_by_size
from rusbeir.errors import MissingExtra, require

CHARS, WORDS = 6, 2
"""The lengths of the longest n-grams of characters and of words."""
BETA = 2.0
NAMES = ("BLEU", "chrF", "chrF++", "TER")
"""The scores that compare translations with references."""
_BATCH_CHARS = 1 << 20
_PUNCTUATION = frozenset(string.punctuation)


def count_chrf(hypotheses: Sequence[str], references: Sequence[str], *, words: bool = False) -> Ints:
    """Numbers of n-grams in hypothesis, reference, and both, for each n: int64 [pairs, 3 × 6], with words 3 × 8.

    A corpus score is computed from their sum over pairs. White space is ignored; one punctuation mark is separated
    from each word.
    """
    parts = []
    sizes = [len(hypothesis) + len(reference) for hypothesis, reference in zip(hypotheses, references, strict=True)]
    for start, stop in split_by_size(sizes, _BATCH_CHARS):
        texts = [*hypotheses[start:stop], *references[start:stop]]
        counts = [_count_chars(texts), _count_words(texts)] if words else [_count_chars(texts)]
        parts.append(np.concatenate(counts, axis=1))
    return np.concatenate(parts) if parts else np.zeros((0, 3 * (CHARS + WORDS * words)), dtype=np.int64)


def chrf(counts: Ints) -> NDArray[np.float64]:
    """Return the score of each row of counts: chrF for 18 columns, chrF++ for 24.

    >>> round(float(chrf(count_chrf(["The cat sat."], ["A cat sat."]))[0]), 2)
    74.06
    """
    table = counts.reshape(len(counts), counts.shape[1] // 3, 3).astype(np.float64)
    hypothesis, reference, both = table[..., 0], table[..., 1], table[..., 2]
    # Orders for which one of the two texts is too short do not count.
    known = (hypothesis > 0) & (reference > 0)
    orders = np.maximum(known.sum(axis=1), 1)
    precision = _means(both, hypothesis, known, orders)
    recall = _means(both, reference, known, orders)
    below = BETA**2 * precision + recall
    above = (1 + BETA**2) * precision * recall
    return 100 * np.divide(above, below, out=np.zeros_like(above), where=below > 0)


def score_corpus(counts: Ints) -> dict[str, float]:
    """chrF and chrF++ of a corpus, from the sum of its counts with words."""
    row = counts.reshape(1, -1)
    return {"chrF": float(chrf(row[:, : 3 * CHARS])[0]), "chrF++": float(chrf(row)[0])}


def count_metric(name: str, hypotheses: Sequence[str], references: Sequence[str], language: str) -> list[float]:
    """Count the statistics of BLEU or TER, summed over the pairs. language (BCP 47) chooses the tokenizer of BLEU."""
    # A private method, since the public ones return no statistics that could be summed across processes.
    rows = _metric(name, language)._extract_corpus_statistics(hypotheses, [references])
    return [sum(column) for column in zip(*rows, strict=True)]


def score_metric(name: str, counts: Sequence[float], language: str) -> float:
    """BLEU or TER of a corpus, from its summed statistics."""
    return float(_metric(name, language)._aggregate_and_compute([list(counts)]).score)


class Compared(NamedTuple):
    """The counts in pairs of a translation and its reference."""

    counts: dict[str, NDArray[Any]]
    """The statistics of each score, summed over the pairs; "chrF" includes those of chrF++."""
    chrf: list[float]
    """The chrF of each pair."""


def compare(hypotheses: Sequence[str], references: Sequence[str], language: str, *, ter: bool = True) -> Compared:
    """Return the statistics of all scores; of TER only where asked for. language (BCP 47) is that of both sides."""
    ngrams = count_chrf(hypotheses, references, words=True)
    names = ("BLEU", "TER") if ter else ("BLEU",)
    counts = {name: np.array(count_metric(name, hypotheses, references, language)) for name in names}
    return Compared({**counts, "chrF": ngrams.sum(axis=0)}, chrf(ngrams[:, : 3 * CHARS]).tolist())


def add_counts(totals: dict[str, NDArray[Any]], counts: Mapping[str, NDArray[Any]]) -> None:
    """Add the statistics of further pairs to the totals of a corpus."""
    for name, part in counts.items():
        totals[name] = totals[name] + part if name in totals else part


def score_compared(counts: Mapping[str, NDArray[Any]], language: str) -> dict[str, float]:
    """Return those of BLEU, chrF, chrF++ and TER that were counted, from the statistics summed over a corpus."""
    figures = {name: score_metric(name, counts[name].tolist(), language) for name in ("BLEU", "TER") if name in counts}
    figures |= score_corpus(counts["chrF"])
    return {name: figures[name] for name in NAMES if name in figures}


@cache
def signature(name: str, language: str = "") -> str:
    """sacrebleu's signature of a score: BLEU, chrF, chrF++ or TER.

    >>> signature("chrF").rpartition("|")[0]
    'nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no'
    """
    metric = _metric(name, language)
    metric.corpus_score(["a"], [["a"]])
    return str(metric.get_signature())


def _count_chars(texts: Sequence[str]) -> Ints:
    bare = ["".join(text.split()) for text in texts]
    lengths = np.fromiter(map(len, bare), dtype=np.int64, count=len(bare))
    units = np.frombuffer("".join(bare).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    return _add_sizes(count_shared_units(units, lengths, CHARS), lengths, CHARS)


def _count_words(texts: Sequence[str]) -> Ints:
    numbers: dict[str, int] = {}
    coded = [[numbers.setdefault(word, len(numbers)) for word in _split(text)] for text in texts]
    lengths = np.fromiter(map(len, coded), dtype=np.int64, count=len(coded))
    n = len(coded) // 2
    return _add_sizes(count_shared(coded[:n], coded[n:], WORDS), lengths, WORDS)


def _split(text: str) -> list[str]:
    """Split the words; one punctuation mark at the end of a word, else at its beginning, is a word by itself."""
    words = []
    for word in text.split():
        if len(word) == 1:
            words.append(word)
        elif word[-1] in _PUNCTUATION:
            words += (word[:-1], word[-1])
        elif word[0] in _PUNCTUATION:
            words += (word[0], word[1:])
        else:
            words.append(word)
    return words


def _add_sizes(both: Ints, lengths: Ints, orders: int) -> Ints:
    """Return the counts in the order of sacrebleu, which sets the hypothesis to 0 where the reference has no n-gram."""
    n = len(lengths) // 2
    sizes = np.maximum(lengths[:, None] - np.arange(orders), 0)
    hypothesis, reference = sizes[:n], sizes[n:]
    hypothesis = np.where(reference > 0, hypothesis, 0)
    return np.stack([hypothesis, reference, both], axis=2).reshape(n, 3 * orders)


def _means(
    both: NDArray[np.float64], whole: NDArray[np.float64], known: NDArray[np.bool_], orders: Ints
) -> NDArray[np.float64]:
    """Return the mean of both / whole over the orders that count, added one by one as in sacrebleu."""
    shares = np.divide(both, whole, out=np.zeros_like(both), where=known)
    total = np.zeros(len(shares))
    for column in shares.T:
        total += column
    return total / orders


_METRICS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "BLEU": ("BLEU", {}),
    "chrF": ("CHRF", {}),
    "chrF++": ("CHRF", {"word_order": WORDS}),
    "TER": ("TER", {}),
}


@cache
def _metric(name: str, language: str) -> Any:
    attribute, options = _METRICS[name]
    made = getattr(require("sacrebleu.metrics", name, "audit"), attribute)
    try:
        return made(**options, **({"trg_lang": language.partition("-")[0]} if name == "BLEU" else {}))
    except (ImportError, RuntimeError) as error:
        # The tokenizers of Chinese, Japanese and Korean need further packages.
        raise MissingExtra(f"{name} of {language!r} needs a tokenizer that is not installed: {error}") from error


BINS = 20
"""The number of bars of the histogram, each 5 points wide; the last includes 100."""


@dataclass(kw_only=True)
class Level:
    """The scores of texts of one kind, kept in 4 bytes each."""

    values: array[float] = field(default_factory=lambda: array("f"))
    counts: Ints | None = None

    def add(self, values: Sequence[float], counts: Ints) -> None:
        """Add the chrF of texts, and the sum of their counts."""
        if values:
            self.values.extend(values)
            self.counts = counts if self.counts is None else self.counts + counts

    def summary(self) -> dict[str, Any]:
        """n, chrF and chrF++ of the corpus, and the distribution of chrF over the texts; {} where there are none."""
        if self.counts is None:
            return {}
        values = np.frombuffer(self.values, dtype=np.float32).astype(np.float64)
        figures = {"n": len(values), **score_corpus(self.counts), "mean": float(values.mean())}
        figures |= {
            f"p{percent}": float(value)
            for percent, value in zip((5, 25, 50, 75), np.quantile(values, [0.05, 0.25, 0.5, 0.75]), strict=True)
        }
        figures["histogram"] = np.histogram(np.minimum(values, 99.999), bins=BINS, range=(0, 100))[0].tolist()
        return figures

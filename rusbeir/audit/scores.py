"""chrF, chrF++, BLEU and TER as sacrebleu defines them, from 0 to 100 (TER from 0 up, less is better).

fastchrf gives chrF of single segments, about four times as fast as sacrebleu; sacrebleu gives what it has not:
the other scores, and the counts whose sums are a corpus' score. Equal to sacrebleu's own numbers; a test compares.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from rusbeir.errors import MissingExtra

Counts = list[int]
"""What sacrebleu counts of a segment; for chrF++ n-grams of the hypothesis, of the reference, and common to both."""

_METRICS: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
    "BLEU": ("sacrebleu.metrics.bleu", "BLEU", {}),
    "chrF": ("sacrebleu.metrics.chrf", "CHRF", {}),
    "chrF++": ("sacrebleu.metrics.chrf", "CHRF", {"word_order": 2}),
    "TER": ("sacrebleu.metrics.ter", "TER", {}),
}
_CHRF_COUNTS = 18
"""Three for each length of character n-grams, 1 to 6; those of words follow, in chrF++'s counts."""


def segment_chrf(hypotheses: Sequence[str], references: Sequence[str]) -> list[float]:
    """chrF of each hypothesis; 0 where one of the two is empty.

    >>> [round(score, 2) for score in segment_chrf(["The cat sat."], ["A cat sat."])]
    [74.06]
    """
    fastchrf = _fastchrf()
    # What is white space is Python's word, as in sacrebleu: fastchrf's own differs in U+001C to U+001F.
    pairs = [[["".join(text.split())] for text in texts] for texts in (hypotheses, references)]
    return [row[0][0] for row in fastchrf.pairwise_chrf(*pairs)]


def counts(name: str, hypotheses: Sequence[str], references: Sequence[str], language: str = "") -> list[Counts]:
    """What that score counts of each pair. language, BCP 47, chooses BLEU's tokenizer."""
    # The method under corpus_score: the public ones give no counts to add up across processes.
    found: list[Counts] = _metric(name, language)._extract_corpus_statistics(hypotheses, [references])
    return found


def total(parts: Iterable[Counts]) -> Counts:
    """The counts of a corpus from those of its segments; [] for none."""
    return [sum(column) for column in zip(*parts, strict=True)]


def score_of(name: str, found: Counts, language: str = "") -> float:
    """The score of counts: of a segment, or of a corpus. chrF is had from chrF++'s counts, which begin with its own."""
    return float(
        _metric(name, language)._aggregate_and_compute([found[:_CHRF_COUNTS] if name == "chrF" else found]).score
    )


@cache
def signature(name: str, language: str = "") -> str:
    """sacrebleu's signature of a score.

    >>> signature("chrF").rpartition("|")[0]
    'nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no'
    """
    metric = _metric(name, language)
    metric.corpus_score(["a"], [["a"]])
    return str(metric.get_signature())


@cache
def _metric(name: str, language: str) -> Any:
    module, attribute, options = _METRICS[name]
    try:
        made = getattr(importlib.import_module(module), attribute)
        # Chinese, Japanese and Korean have tokenizers of their own, some in packages of their own.
        return made(**options, **({"trg_lang": language.partition("-")[0]} if name == "BLEU" else {}))
    except (ImportError, RuntimeError) as error:
        raise MissingExtra(f"{name} needs sacrebleu: pip install 'rusbeir[audit]' ({error})") from error


@cache
def _fastchrf() -> Any:
    try:
        return importlib.import_module("fastchrf")
    except ImportError as error:
        raise MissingExtra("Scores need fastchrf: pip install 'rusbeir[audit]'") from error

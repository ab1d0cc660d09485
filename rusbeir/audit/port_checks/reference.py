"""A port compared with a human translation of the same dataset, text by text with the same id."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from rusbeir.audit.port_checks import scores
from rusbeir.audit.port_checks.aligned import AlignedPort, Texts
from rusbeir.audit.port_checks.score_files import PairBatch, PairResult, PairScorer
from rusbeir.audit.port_checks.scores import Level
from rusbeir.datasets import load, read_card
from rusbeir.errors import BadInput, option
from rusbeir.processes import cpu_count, in_order
from rusbeir.text import batched
from rusbeir.types import Dataset, Doc, Progress, silent

LEVELS: Mapping[str, str] = {"document": "documents", "query": "queries"}
BATCH_TEXTS = 25
TER_WORDS = 100
"""The longest text with TER: sacrebleu takes a second for this many words, ten seconds for twice as many."""


@dataclass(kw_only=True)
class _Total:
    lacking: int = 0
    long: bool = False
    """Whether a text has no TER, so that the corpus has none."""
    counts: dict[str, Any] = field(default_factory=dict)
    level: Level = field(default_factory=Level)

    def add(self, result: PairResult) -> None:
        self.lacking += result.lacking
        counts, chrf = result.compared
        if chrf:
            self.level.add(chrf, counts["chrF"])
            self.long |= "TER" not in counts
        scores.add_counts(self.counts, counts)

    def summary(self, language: str) -> dict[str, Any]:
        if not self.level.values:
            return {"n": 0, "lacking": self.lacking}
        figures: dict[str, float | None] = {**scores.score_compared(self.counts, language)}
        if self.long:
            figures["TER"] = None
        return {**self.level.summary(), **figures, "lacking": self.lacking}


def open_reference(port: AlignedPort, name_or_path: str | Path, progress: Progress = silent) -> Dataset:
    """The dataset to compare a port with. Raises BadInput for another language, and where no query id is shared."""
    card, path = port.dataset.card, Path(name_or_path)
    stated = read_card(path)
    # A path without a card is assumed to have the language and the split of the port.
    assumed = {key: getattr(card, key) for key in ("language", "split") if path.exists() and key not in stated}
    reference = load(name_or_path, progress=progress, **assumed)
    if reference.card.language != card.language:
        raise BadInput(
            f"{option('reference', name_or_path)} is in {reference.card.language!r}, but {port.folder} is "
            f"in {card.language!r}. "
            "Give a translation into the same language."
        )
    if not reference.queries.keys() & port.dataset.queries.keys():
        raise BadInput(
            f"{option('reference', name_or_path)} and {port.folder} have no query id in common. The ids "
            f"must be the same."
        )
    return reference


def compare_port(
    port: AlignedPort, reference: Dataset, *, processes: int | None = None, progress: Progress = silent
) -> dict[str, Any]:
    """Score the documents of a port and its queries, each as one corpus, with BLEU, chrF, chrF++ and TER.

    A document is one line of title and text, without fields that the source or the reference does not have. "lacking"
    counts texts that the reference does not have; they are not scored. TER is None where a text is longer than
    TER_WORDS. "mean" and percentiles are those of chrF over the texts.
    """
    language = port.dataset.card.language
    total = len(port.dataset.corpus) + len(port.dataset.queries)
    totals = {level: _Total() for level in LEVELS.values()}
    done = 0
    scorer = PairScorer(languages=port.languages, ter_words=TER_WORDS)
    for result in in_order(scorer, _read_batches(port, reference), processes or cpu_count()):
        totals[result.level].add(result)
        done += result.lacking + len(result.compared.chrf)
        progress("compare with the reference", done, total)
    return {
        "name": reference.card.name,
        "fingerprint": reference.fingerprint,
        "levels": {level: total.summary(language) for level, total in totals.items()},
        "signatures": {name: scores.signature(name, language) for name in scores.NAMES},
    }


def _read_batches(port: AlignedPort, reference: Dataset) -> Iterator[PairBatch]:
    for kind, texts in groupby(port.texts(), itemgetter(0)):
        for page in batched(_pair_texts(texts, reference), BATCH_TEXTS):
            yield PairBatch(LEVELS[kind], [line for line, _ in page], [line for _, line in page])


def _pair_texts(texts: Iterable[Texts], reference: Dataset) -> Iterator[tuple[str, str | None]]:
    """Yield each text of the port as a line, with that of the reference; None where the reference does not have it."""
    for kind, record_id, fields in texts:
        translations = {name: translation for name, _, translation in fields if translation is not None}
        if translations:
            references = _find_texts(reference, kind, record_id)
            shared = [name for name in translations if references.get(name)]
            yield (
                _join_lines(translations[name] for name in shared),
                _join_lines(references[name] for name in shared) or None,
            )


def _find_texts(reference: Dataset, kind: str, record_id: str) -> dict[str, str]:
    if kind == "query":
        return {"query": reference.queries.get(record_id, "")}
    try:
        doc = reference.corpus[record_id]
    except KeyError:
        doc = Doc(record_id, "")
    return {"title": doc.title, "text": doc.text}


def _join_lines(texts: Iterator[str]) -> str:
    """The texts on one line, so that the command line of sacrebleu gives the same scores for a file of these lines."""
    return " ".join(" ".join(texts).split())

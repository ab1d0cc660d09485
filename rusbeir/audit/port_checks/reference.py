"""A port compared with a human translation of the same dataset, text by text with the same id."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from rusbeir.audit.port_checks import scores
from rusbeir.audit.port_checks.aligned import AlignedPort
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


class _Pair(NamedTuple):
    level: str
    hypothesis: str
    reference: str | None
    """None where the reference does not have this text."""


class _Found(NamedTuple):
    level: str
    lacking: int
    compared: scores.Compared


@dataclass(kw_only=True)
class _Total:
    lacking: int = 0
    long: bool = False
    """Whether a text has no TER, so that the corpus has none."""
    counts: dict[str, Any] = field(default_factory=dict)
    level: Level = field(default_factory=Level)

    def add(self, found: _Found) -> None:
        self.lacking += found.lacking
        counts, chrf = found.compared
        if chrf:
            self.level.add(chrf, counts["chrF"])
            self.long |= "TER" not in counts
        for name, part in counts.items():
            self.counts[name] = self.counts[name] + part if name in self.counts else part

    def summary(self, language: str) -> dict[str, Any]:
        if not self.level.values:
            return {"n": 0, "lacking": self.lacking}
        found: dict[str, float | None] = {**scores.score_compared(self.counts, language)}
        if self.long:
            found["TER"] = None
        return {**self.level.summary(), **found, "lacking": self.lacking}


@dataclass(frozen=True, kw_only=True)
class _Worker:
    language: str

    def __call__(self, page: list[_Pair]) -> list[_Found]:
        found = []
        for level in LEVELS.values():
            asked = [pair for pair in page if pair.level == level]
            known = [(pair.hypothesis, pair.reference) for pair in asked if pair.reference is not None]
            compared = scores.Compared({}, [])
            if known:
                hypotheses, references = ([*side] for side in zip(*known, strict=True))
                short = all(len(text.split()) <= TER_WORDS for text in (*hypotheses, *references))
                compared = scores.compare(hypotheses, references, self.language, ter=short)
            found.append(_Found(level, len(asked) - len(known), compared))
        return found


def open_reference(port: AlignedPort, name_or_path: str | Path, progress: Progress = silent) -> Dataset:
    """The dataset to compare a port with. Raises BadInput for another language, and where no query id is shared."""
    card, path = port.dataset.card, Path(name_or_path)
    own = read_card(path)
    # A path without a card is assumed to have the language and the split of the port.
    assumed = {key: getattr(card, key) for key in ("language", "split") if path.exists() and key not in own}
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
    """BLEU, chrF, chrF++ and TER of the documents of the port and of its queries, each as one corpus.

    A document is one line of title and text, without fields that the source or the reference does not have. "lacking"
    counts texts that the reference does not have; they are not scored. TER is None where a text is longer than
    TER_WORDS. "mean" and percentiles are those of chrF over the texts.
    """
    language = port.dataset.card.language
    total = len(port.dataset.corpus) + len(port.dataset.queries)
    totals = {level: _Total() for level in LEVELS.values()}
    done = 0
    batches = batched(_pair_texts(port, reference), BATCH_TEXTS)
    for page in in_order(_Worker(language=language), batches, cpu_count() if processes is None else processes):
        for found in page:
            totals[found.level].add(found)
            done += found.lacking + len(found.compared.chrf)
        progress("compare with the reference", done, total)
    return {
        "name": reference.card.name,
        "fingerprint": reference.fingerprint,
        "levels": {level: total.summary(language) for level, total in totals.items()},
        "signatures": {name: scores.signature(name, language) for name in scores.NAMES},
    }


def _pair_texts(port: AlignedPort, reference: Dataset) -> Iterator[_Pair]:
    for kind, record_id, fields in port.texts():
        held = {name: translation for name, _, translation in fields if translation is not None}
        if held:
            texts = _find_texts(reference, kind, record_id)
            shared = [name for name in held if texts.get(name)]
            yield _Pair(
                LEVELS[kind],
                _join_lines(held[name] for name in shared),
                _join_lines(texts[name] for name in shared) or None,
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

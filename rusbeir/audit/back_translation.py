"""The segments of a port translated back into the language of its source."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rusbeir.audit.aligned import Port, segments
from rusbeir.jobs import Journal
from rusbeir.storage import atomic_file
from rusbeir.translation.port.api import port as translate
from rusbeir.translation.port.folder import JOURNAL, LAYOUT, apply_cuts, read_cuts
from rusbeir.translation.port.job import Incomplete, Tell
from rusbeir.translation.port.plan import Plan, read_entries
from rusbeir.translation.translator import Translator
from rusbeir.types import Card, Dataset, Doc, Progress

_CONTENT = "content.txt"


@dataclass(frozen=True, kw_only=True)
class Segments:
    """The translations of a port's segments as a corpus of documents: what a back-translator is given."""

    port: Port
    n: int
    sha256: str = "segments"
    """The same for whatever segments the port has: the journal finds the answers that still fit by their text."""

    def __iter__(self) -> Iterator[Doc]:
        return (Doc(str(n), part.translation) for n, part in enumerate(segments(self.port.records())))

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, doc_id: str) -> Doc:
        raise KeyError(doc_id)


def back_translate(
    port: Port,
    folder: Path,
    translator: str | Translator,
    *,
    n_segments: int,
    budget_chars: int | None,
    budget_cost: float | None,
    progress: Progress,
    tell: Tell,
    **options: Any,
) -> None:
    """Translate the port's segments back, with a journal in folder, as a port of their own.

    Raises as rusbeir.port does, but goes on where single segments have no translation.
    """
    source, target = port.languages
    content = f"{port.dataset.fingerprint} {n_segments}"
    marker = folder / _CONTENT
    if not marker.exists() or marker.read_text(encoding="utf-8") != content:
        # The port has changed since: its texts are cut again, and answers that still fit are found by their text.
        (folder / LAYOUT).unlink(missing_ok=True)
    name = f"{port.dataset.card.name} (segments)"
    card = Card(name=name, language=target, split=port.dataset.card.split)
    dataset = Dataset(corpus=Segments(port=port, n=n_segments), queries={}, qrels={}, card=card)
    try:
        translate(
            dataset,
            to=source,
            out=folder,
            translator=translator,
            fields=("text",),
            budget_chars=budget_chars,
            budget_cost=budget_cost,
            keep_untranslated=True,
            progress=progress,
            tell=tell,
            **options,
        )
    except Incomplete as error:
        tell(f"{error.report['missing']:,} segments have no back-translation; they count as they stand.")
    with atomic_file(marker) as file:
        file.write(content.encode())


@dataclass(frozen=True, kw_only=True)
class Answers:
    """The back-translations in a journal."""

    journal: Journal
    plan: Plan
    folder: Path
    lengths: Iterator[list[int]]
    """How each text was cut; the next text's first."""

    @property
    def signatures(self) -> list[str]:
        """Of the translators that made them."""
        return [entry.signature for entry in self.plan.entries]

    def of(self, texts: Sequence[str]) -> list[str]:
        """The back-translation of the next texts of the port, which are asked for in their order.

        What has none stays as it is, and so does text without a letter.
        """
        cuts = list(apply_cuts(self.lengths, [text for text in texts if text], self.folder / LAYOUT))
        found = iter(self.plan.joined(self.journal, cuts, keep=True))
        return [(next(found) or "") if text else "" for text in texts]


@contextlib.contextmanager
def answers(port: Port, folder: Path) -> Iterator[Answers]:
    """The back-translations in that folder."""
    with Journal.open(folder / JOURNAL, {}) as journal:
        entries = read_entries(journal.get_meta("translators") or "[]")
        plan = Plan(language=port.dataset.card.language, glossary=None, entries=entries)
        yield Answers(journal=journal, plan=plan, folder=folder, lengths=read_cuts(folder / LAYOUT))

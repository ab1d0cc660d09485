"""The order in which a text is tried: each translator at each of its levels, what one lacks going to the next.

A pass is one translator asked for units of one size. What a pass has not done is cut to the next pass's size and
tried there. So a memory is asked for whole fields, then paragraphs, then sentences, and the sentences that it lacks
go to the next translator of a chain. The journal's tasks say by their kind which pass they belong to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property

import orjson

from rusbeir.jobs import Journal, Task, TaskQueue, task_key
from rusbeir.translation.backends import names, preset
from rusbeir.translation.backends.python import PREFIX
from rusbeir.translation.segments.glossary import Glossary
from rusbeir.translation.segments.segment import Piece, join, units
from rusbeir.translation.segments.spans import find_spans
from rusbeir.translation.translator import Capacity, Translator

PAGE_TEXTS = 500


@dataclass(frozen=True, kw_only=True)
class CascadeStep:
    """One translator at one level."""

    entry: TranslatorEntry
    level: str
    number: int

    @property
    def kind(self) -> str:
        """The kind of its tasks."""
        return f"{self.number}:{self.level}"

    @property
    def worker(self) -> str:
        """The name under which the journal keeps its answers."""
        return self.entry.signature

    def queue(self, journal: Journal) -> TaskQueue:
        """Its tasks in the journal."""
        return TaskQueue(journal, self.kind, self.worker)


def steps_of(entries: Sequence[TranslatorEntry]) -> tuple[CascadeStep, ...]:
    """Every level of every translator, in order."""
    steps = [(entry, level) for entry in entries for level in entry.capacity.levels]
    return tuple(CascadeStep(entry=entry, level=level, number=number) for number, (entry, level) in enumerate(steps))


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How the texts of one port are cut, and where their translations are found."""

    language: str
    """Of the source texts."""
    glossary: Glossary | None
    entries: tuple[TranslatorEntry, ...]

    @cached_property
    def steps(self) -> tuple[CascadeStep, ...]:
        return steps_of(self.entries)

    def cut(self, text: str, step: CascadeStep) -> list[Piece]:
        """The pieces of a text as that pass is asked for them."""
        spans = find_spans(text, self.glossary)
        return units(text, language=self.language, capacity=step.entry.capacity, level=step.level, spans=spans)

    def tasks(self, texts: Iterable[str], step: CascadeStep) -> Iterator[Task]:
        """The tasks of a pass over these texts."""
        kind = step.kind
        for text in texts:
            for piece, sent in self.cut(text, step):
                if sent:
                    yield Task.of(kind, piece)

    def translated(
        self, journal: Journal, texts: Sequence[str], first: int = 0, *, keep: bool = False
    ) -> list[str | None]:
        """The translation of each text, from the pass of that number on; None where a part of it has none.

        With keep, a part without a translation stays as it is.
        """
        if first == len(self.steps):
            return list(texts) if keep else [None] * len(texts)
        return self.joined(journal, [self.cut(text, self.steps[first]) for text in texts], first, keep=keep)

    def joined(
        self, journal: Journal, cuts: Sequence[Sequence[Piece]], first: int = 0, *, keep: bool = False
    ) -> list[str | None]:
        """The same for texts that are cut already, as that pass is asked for them."""
        step = self.steps[first]
        kind = step.kind
        keys = {text: task_key(kind, text) for pieces in cuts for text, sent in pieces if sent}
        results = step.queue(journal).answers(list(keys.values()))
        found: dict[str, str | None] = {text: results.get(key) for text, key in keys.items()}
        if missing := [text for text, answer in found.items() if answer is None]:
            found.update(zip(missing, self.translated(journal, missing, first + 1, keep=keep), strict=True))
        return [_joined(pieces, found) for pieces in cuts]

    def reset_missing(self, journal: Journal) -> int:
        """How many failed units are asked for again: those that no later pass made up for.

        What a translation memory has no entry for is left, since it would be missing again.
        """
        count = 0
        for step in reversed(self.steps):
            queue = step.queue(journal)
            if step.entry.translator is None or step.entry.trusted:
                continue
            for page in pages(queue.unfinished(with_failed=True), PAGE_TEXTS):
                found = self.translated(journal, [task.payload for task in page], step.number + 1)
                count += queue.reset(task.key for task, answer in zip(page, found, strict=True) if answer is None)
        return count


def pages(tasks: Iterable[Task], size: int) -> Iterator[list[Task]]:
    """The tasks in lists of that size; the last may be shorter."""
    page: list[Task] = []
    for task in tasks:
        page.append(task)
        if len(page) == size:
            yield page
            page = []
    if page:
        yield page


def _joined(pieces: Sequence[Piece], found: dict[str, str | None]) -> str | None:
    answers = []
    for text, sent in pieces:
        if sent:
            answer = found[text]
            if answer is None:
                return None
            answers.append(answer)
    return join(pieces, answers)


@dataclass(frozen=True, kw_only=True)
class TranslatorEntry:
    """One translator of a port: at hand, or known from the journal alone."""

    name: str
    signature: str
    capacity: Capacity
    """By which its units are cut: as it was when the journal began."""
    translator: Translator | None = None
    """None where it is not at hand: its answers count, and it is asked for nothing more."""

    @classmethod
    def of(cls, name: str, translator: Translator) -> TranslatorEntry:
        """The translator under that name; reads its signature once."""
        return cls(name=name, signature=translator.signature, capacity=translator.capacity, translator=translator)

    @property
    def preset_name(self) -> str:
        """The name of its row in translation/backends.toml; "" where it has none."""
        if self.name.startswith(PREFIX):
            return "python"
        return self.name if self.name in names() else ""

    @property
    def sends(self) -> str:
        """Who receives the texts; "" where they stay on this machine, or where nothing is known of it."""
        return preset(self.preset_name).sends if self.preset_name else ""

    @property
    def about(self) -> str:
        """What it is, with the licence of its models, in one line; "" where nothing is known of it."""
        return preset(self.preset_name).about if self.preset_name else ""

    @property
    def local(self) -> bool:
        """Whether it runs on this machine and always answers the same."""
        return self.preset_name not in ("", "python") and not self.sends

    @property
    def trusted(self) -> bool:
        """Whether its answers are people's, as a translation memory's: what looks wrong in them is only flagged."""
        return self.capacity.mask == "none"


def dump_entries(entries: Sequence[TranslatorEntry]) -> str:
    """The entries as the journal keeps them."""
    rows = [{"name": m.name, "signature": m.signature, "capacity": asdict(m.capacity)} for m in entries]
    return orjson.dumps(rows).decode()


def read_entries(text: str) -> tuple[TranslatorEntry, ...]:
    """The entries that the journal keeps; none of them is at hand."""
    return tuple(
        TranslatorEntry(
            name=row["name"],
            signature=row["signature"],
            capacity=Capacity(**{**row["capacity"], "levels": tuple(row["capacity"]["levels"])}),
        )
        for row in orjson.loads(text)
    )


def continue_chain(
    stored: Sequence[TranslatorEntry], given: Sequence[TranslatorEntry], *, more: bool
) -> tuple[TranslatorEntry, ...] | None:
    """The entries to go on with; None where those given begin another chain and are to be kept apart.

    A chain goes on where one is the beginning of the other. With more, whatever is given and new is put behind the
    stored ones, to be asked for what they lack.
    """
    at_hand = {entry.signature: entry for entry in given}
    known = [
        replace(entry, translator=at_hand[entry.signature].translator) if entry.signature in at_hand else entry
        for entry in stored
    ]
    signatures = [entry.signature for entry in stored]
    if more:
        return (*known, *(entry for entry in given if entry.signature not in signatures))
    both = min(len(stored), len(given))
    if signatures[:both] != [entry.signature for entry in given[:both]]:
        return None
    return (*known, *given[both:])

"""The order in which a text is tried: each translator at each of its levels, what one lacks going to the next.

A pass is one translator asked for units of one size. What a pass has not done is cut to the next pass's size and
tried there. So a memory is asked for whole fields, then paragraphs, then sentences, and the sentences that it lacks
go to the next translator of a chain. The journal's tasks say by their kind which pass they belong to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from rusbeir.jobs import Journal, Lane, Task, task_key
from rusbeir.translation.glossary import Glossary
from rusbeir.translation.members import Member
from rusbeir.translation.segment import Piece, join, units
from rusbeir.translation.spans import find_spans

PAGE_TEXTS = 500


@dataclass(frozen=True, kw_only=True)
class Pass:
    """One translator at one level."""

    member: Member
    level: str
    number: int

    @property
    def kind(self) -> str:
        """The kind of its tasks."""
        return f"{self.number}:{self.level}"

    @property
    def worker(self) -> str:
        """The name under which the journal keeps its answers."""
        return self.member.signature

    def lane(self, journal: Journal) -> Lane:
        """Its tasks in the journal."""
        return Lane(journal, self.kind, self.worker)


def passes_of(members: Sequence[Member]) -> tuple[Pass, ...]:
    """Every level of every translator, in order."""
    steps = [(member, level) for member in members for level in member.capacity.levels]
    return tuple(Pass(member=member, level=level, number=number) for number, (member, level) in enumerate(steps))


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How the texts of one port are cut, and where their translations are found."""

    language: str
    """Of the source texts."""
    glossary: Glossary | None
    members: tuple[Member, ...]

    @cached_property
    def passes(self) -> tuple[Pass, ...]:
        return passes_of(self.members)

    def cut(self, text: str, step: Pass) -> list[Piece]:
        """The pieces of a text as that pass is asked for them."""
        spans = find_spans(text, self.glossary)
        return units(text, language=self.language, capacity=step.member.capacity, level=step.level, spans=spans)

    def tasks(self, texts: Iterable[str], step: Pass) -> Iterator[Task]:
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
        if first == len(self.passes):
            return list(texts) if keep else [None] * len(texts)
        return self.joined(journal, [self.cut(text, self.passes[first]) for text in texts], first, keep=keep)

    def joined(
        self, journal: Journal, cuts: Sequence[Sequence[Piece]], first: int = 0, *, keep: bool = False
    ) -> list[str | None]:
        """The same for texts that are cut already, as that pass is asked for them."""
        step = self.passes[first]
        kind = step.kind
        keys = {text: task_key(kind, text) for pieces in cuts for text, sent in pieces if sent}
        results = journal.results(list(keys.values()), step.worker)
        found: dict[str, str | None] = {text: results.get(key) for text, key in keys.items()}
        if missing := [text for text, answer in found.items() if answer is None]:
            found.update(zip(missing, self.translated(journal, missing, first + 1, keep=keep), strict=True))
        return [_joined(pieces, found) for pieces in cuts]

    def reset_missing(self, journal: Journal) -> int:
        """How many failed units are asked for again: those that no later pass made up for.

        What a translation memory has no entry for is left, since it would be missing again.
        """
        count = 0
        for step in reversed(self.passes):
            lane = step.lane(journal)
            if step.member.translator is None or step.member.believed:
                continue
            for page in pages(lane.undone(), PAGE_TEXTS):
                found = self.translated(journal, [task.payload for task in page], step.number + 1)
                count += lane.reset(task.key for task, answer in zip(page, found, strict=True) if answer is None)
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

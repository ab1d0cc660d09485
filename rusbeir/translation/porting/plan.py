"""The order in which texts are tried: each translator at each of its levels; what one lacks goes to the next.

A step asks one translator for units of one size. What a step leaves undone is cut to the size of the next step and
tried there. So a memory is asked for whole fields, then paragraphs, then sentences, and the sentences that it lacks
go to the next translator of a chain. The kind of a task in the journal says to which step it belongs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import repeat
from typing import IO, Any, TypeAlias

import orjson

from rusbeir.errors import BadInput, option
from rusbeir.jobs import Journal, Task, TaskQueue, ask_for_prices, refuse_unpriced, task_key
from rusbeir.processes import in_order
from rusbeir.text import batched
from rusbeir.translation.backends.registry import TranslatorOptions, find_preset, make
from rusbeir.translation.segments.glossary import Glossary
from rusbeir.translation.segments.segment import Cutter, Piece
from rusbeir.translation.translator import (
    Capacity,
    ChecksPair,
    CountsCost,
    Discloses,
    Named,
    PaidByToken,
    TakesBatches,
    Translator,
)
from rusbeir.types import Progress, silent
from rusbeir.user_sources import PYTHON

PAGE_TEXTS = 500
CUT_CHARS = 1 << 18
TRANSLATORS = "translators"
"""The name in a journal under which it has the text of dump_entries."""
ROUNDS = "rounds of retries"
"""The name in a journal under which it has the number of rounds in which chosen segments were translated again."""
RETRIED = "retried"
"""The worker of the new translations, one task for each whole segment."""

Translators: TypeAlias = Translator | Sequence["Translators"]
"""One translator, or several that are tried in turn; sequences may be nested."""


@dataclass(frozen=True, kw_only=True)
class TranslatorEntry:
    """One translator of a port: at hand, or known from the journal alone."""

    name: str
    signature: str
    """Also the worker's name under which the journal keeps its answers."""
    capacity: Capacity
    """The capacity by which its units are cut: as it was when the journal was created."""
    sends: str = ""
    """Who receives the texts; "" where they stay on this machine, or where nothing is known about it."""
    about: str = ""
    """What it is, with the licence of its models, in one line; "" where nothing is known about it."""
    local: bool = False
    """Whether it runs on this machine and always gives the same answer."""
    translator: Translator | None = None
    """None where it is not at hand: its answers count, and it is not asked for more."""

    @classmethod
    def of(cls, translator: Translator, name: str = "") -> TranslatorEntry:
        """Return the entry of a translator, under the name that made it, if any; reads its signature once."""
        signature, capacity = translator.signature, translator.capacity
        name = name or (translator.name if isinstance(translator, Named) else signature.partition("|")[0])
        entry = cls.known_by(name, signature, capacity)
        if isinstance(translator, Discloses):
            entry = replace(entry, sends=translator.sends, about=translator.about, local=False)
        return replace(entry, translator=translator)

    @classmethod
    def known_by(cls, name: str, signature: str, capacity: Capacity) -> TranslatorEntry:
        """Return the entry of a translator that is not at hand; its row in translation/backends.toml tells the rest."""
        entry = cls(name=name, signature=signature, capacity=capacity)
        row = find_preset("python" if name.startswith(PYTHON) else name)
        if row is None:
            return entry
        return replace(entry, sends=row.sends, about=row.about, local=row.name != "python" and not row.sends)

    @property
    def trusted(self) -> bool:
        """True if people made its answers, as in a translation memory: what looks wrong in them is only flagged."""
        return self.capacity.mask == "none"

    @property
    def price_remedy(self) -> str:
        """The remedy where its price is not known; "" where it is, or where nothing is to be paid."""
        translator = self.translator
        if isinstance(translator, PaidByToken):
            return ask_for_prices(translator.missing_prices)
        silent = isinstance(translator, Discloses) and not translator.sends
        priced = self.capacity.cost_per_million_chars or isinstance(translator, CountsCost)
        if translator is None or self.local or self.trusted or silent or priced:
            return ""
        return f"it has none that is known; give {option('budget_chars', 'N')} instead"


@dataclass(frozen=True, kw_only=True)
class CascadeStep:
    """One translator at one level."""

    entry: TranslatorEntry
    level: str
    number: int
    kind: str
    """The kind of its tasks."""
    cut_mark: str
    """The name in a journal under which it has the version that cut what the previous step left undone."""
    cut: Cutter

    def queue(self, journal: Journal) -> TaskQueue:
        """Return its tasks in the journal."""
        return TaskQueue(journal, self.kind, self.entry.signature)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The steps by which the texts of one port are cut and translated."""

    language: str
    """The language of the source texts."""
    glossary: Glossary | None
    entries: tuple[TranslatorEntry, ...]
    round: int = 0
    """The number of a round of retries, whose tasks are its own; 0 for the port itself."""

    @cached_property
    def steps(self) -> tuple[CascadeStep, ...]:
        """Every level of every translator, in order."""
        pairs = [(entry, level) for entry in self.entries for level in entry.capacity.levels]
        prefix = f"{name_round(self.round)} " if self.round else ""
        return tuple(
            CascadeStep(
                entry=entry,
                level=level,
                number=number,
                kind=f"{prefix}{number}:{level}",
                cut_mark=f"cut {prefix}{number}",
                cut=Cutter(self.language, self.glossary, entry.capacity, level),
            )
            for number, (entry, level) in enumerate(pairs)
        )

    def rounds(self, journal: Journal) -> list[Plan]:
        """Return the plan of each round of retries, the earliest first, its translators not at hand.

        Raises BadInput for a damaged journal.
        """
        number = journal.get_meta(ROUNDS) or "0"
        if not (number.isascii() and number.isdecimal() and len(number) < 6):
            raise BadInput(
                f"{journal.path}: The journal is damaged: its number of retries is {number[:20]!r}. Move it away to "
                "start over, or restore a copy."
            )
        return [
            replace(self, entries=read_entries(journal, name_translators(nth)), round=nth)
            for nth in range(1, int(number) + 1)
        ]

    def retried(self, journal: Journal) -> TaskQueue:
        """Return the new translations of a round of retries, one task for each whole segment."""
        return TaskQueue(journal, name_round(self.round), RETRIED)

    def tasks(
        self,
        texts: Iterable[str],
        step: CascadeStep,
        *,
        layout: IO[bytes] | None = None,
        keys: Iterable[str] = repeat(""),
        progress: Progress = silent,
    ) -> Iterator[Task]:
        """Cut texts for a step, and yield its tasks; layout gets the lengths of each text's pieces behind its key.

        porting.folder reads such a file.
        """
        names = iter(keys)
        n_texts = 0
        for cuts in in_order(step.cut, batched(texts, PAGE_TEXTS, chars=len, max_chars=CUT_CHARS)):
            for pieces in cuts:
                if layout is not None:
                    lengths = " ".join([str(len(text) if sent else -len(text)) for text, sent in pieces])
                    layout.write(f"{next(names)}{lengths}\n".encode())
                yield from [Task.of(step.kind, text) for text, sent in pieces if sent]
            n_texts += len(cuts)
            progress("cut texts", n_texts, None)

    def translated(
        self, journal: Journal, texts: Sequence[str], first: int = 0, *, keep: bool = False
    ) -> list[str | None]:
        """Return the translation of each text, from the step of that number on; None where a part of it has none.

        With keep, a part without a translation stays as it is.
        """
        if first == len(self.steps):
            return list(texts) if keep else [None] * len(texts)
        return self.joined(journal, self.steps[first].cut(texts), first, keep=keep)

    def joined(
        self, journal: Journal, cuts: Sequence[Sequence[Piece]], first: int = 0, *, keep: bool = False
    ) -> list[str | None]:
        """Join the translations of texts that are cut already, as that step asks for them.

        Segments that were translated again have their newest translation.
        """
        step = self.steps[first]
        kind = step.kind
        keys = {text: task_key(kind, text) for pieces in cuts for text, sent in pieces if sent}
        results = step.queue(journal).answers(list(keys.values()))
        answers_by_text: dict[str, str | None] = {text: results.get(key) for text, key in keys.items()}
        if step.number == self.round == 0:
            for queue in (round_plan.retried(journal) for round_plan in self.rounds(journal)):
                again = {task_key(queue.kind, text): text for text in answers_by_text}
                answers_by_text.update({again[key]: answer for key, answer in queue.answers(list(again)).items()})
        if missing := [text for text, answer in answers_by_text.items() if answer is None]:
            answers_by_text.update(zip(missing, self.translated(journal, missing, first + 1, keep=keep), strict=True))
        parts = ([answers_by_text[text] if sent else text for text, sent in pieces] for pieces in cuts)
        return [None if None in answers else "".join(filter(None, answers)) for answers in parts]

    def reset_missing(self, journal: Journal) -> int:
        """Make failed units pending again, and return their number: those that no later step translated.

        What a translation memory lacks is left out, since it would be missing again.
        """
        count = 0
        for step in reversed(self.steps):
            queue = step.queue(journal)
            if step.entry.translator is None or step.entry.trusted:
                continue
            for page in batched(queue.unfinished(with_failed=True), PAGE_TEXTS):
                translations = self.translated(journal, [task.payload for task in page], step.number + 1)
                count += queue.reset(
                    task.key for task, answer in zip(page, translations, strict=True) if answer is None
                )
        return count


def name_round(number: int) -> str:
    """Name the kind of the tasks of a round of retries, which are whole segments.

    >>> name_round(2)
    'retry 2'
    """
    return f"retry {number}"


def name_translators(number: int) -> str:
    """Name the translators of a round in a journal."""
    return f"{name_round(number)} {TRANSLATORS}"


def dump_entries(entries: Sequence[TranslatorEntry]) -> str:
    """Dump the entries as JSON, as the journal keeps them."""
    rows = []
    for entry in entries:
        row: dict[str, object] = {"name": entry.name, "signature": entry.signature, "capacity": asdict(entry.capacity)}
        if entry.about != TranslatorEntry.known_by(entry.name, entry.signature, entry.capacity).about:
            row["about"] = entry.about
        rows.append(row)
    return orjson.dumps(rows).decode()


def read_entries(journal: Journal, name: str = TRANSLATORS) -> tuple[TranslatorEntry, ...]:
    """Read the translators that a journal was created with, none of them at hand; () where a kill prevented that note.

    Of a round of retries, under the name that name_translators gives.
    """
    entries = []
    try:
        for row in orjson.loads(journal.get_meta(name) or "[]"):
            capacity = Capacity(**{**row["capacity"], "levels": tuple(row["capacity"]["levels"])})
            entry = TranslatorEntry.known_by(row["name"], row["signature"], capacity)
            entries.append(replace(entry, about=row.get("about", entry.about)))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadInput(
            f"{journal.path}: The journal is damaged: it does not name its translators ({error!r}). Move it away to "
            "start over, or restore a copy."
        ) from error
    return tuple(entries)


def continue_chain(
    stored: Sequence[TranslatorEntry], entries: Sequence[TranslatorEntry], *, more: bool
) -> tuple[TranslatorEntry, ...] | None:
    """Return the translators of a port that is resumed; None where those given make a different port.

    They make the same one where one chain is the beginning of the other. With more, all given ones that are new are
    added behind the stored ones, to be asked for what those lack.
    """
    at_hand = {entry.signature: entry for entry in entries}
    known = [
        replace(ready, name=entry.name, capacity=entry.capacity)
        if (ready := at_hand.get(entry.signature)) is not None
        else entry
        for entry in stored
    ]
    signatures = [entry.signature for entry in stored]
    if more:
        return (*known, *(entry for entry in entries if entry.signature not in signatures))
    both = min(len(stored), len(entries))
    if signatures[:both] != [entry.signature for entry in entries[:both]]:
        return None
    return (*known, *entries[both:])


def make_entries(
    translator: str | Translators,
    source: str,
    target: str,
    options: TranslatorOptions,
    *,
    checked: bool = True,
    batching: Mapping[str, Any] | None = None,
    budget_cost: float | None = None,
) -> tuple[TranslatorEntry, ...]:
    """Make the translators, in order, with the names that messages and the journal use; checked: ready for that pair.

    batching has the jobs.BatchOptions that say something; language models whose requests are only written to files need
    neither key nor address.
    Raises BadInput for a source that is in the target language already, and for a budget of money where the price of
    one is not known.
    """
    if target == source:
        raise BadInput(f"The dataset is already in {source!r}. Name another language with {option('to')}.")
    if isinstance(translator, str):
        names = [name.strip() for name in translator.split(",")]
        made = make(translator, source=source, target=target, **options)
    elif options:
        raise BadInput(f"The option {next(iter(options))!r} is for translators given by name; set it on the object.")
    else:
        made = tuple(_flatten(translator))
        names = [""] * len(made)
    offline = bool(batching) and not {"batch", "cancel"} & {*(batching or {})}
    if checked:
        for instance in made:
            if isinstance(instance, ChecksPair) and not (offline and isinstance(instance, TakesBatches)):
                instance.check(source, target)
    entries = tuple(TranslatorEntry.of(instance, name) for instance, name in zip(made, names, strict=True))
    if not entries or len({entry.signature for entry in entries}) < len(entries):
        raise BadInput("translator= must contain at least one translator, and each only once.")
    if budget_cost is not None:
        for entry in entries:
            refuse_unpriced(budget_cost, entry.name, entry.price_remedy)
    return entries


def _flatten(translators: Translators) -> Iterator[Translator]:
    if isinstance(translators, str):
        raise BadInput(
            f"translator= contains the name {translators!r} among objects: pass make({translators!r}) in its place."
        )
    if not isinstance(translators, Sequence):
        yield translators
        return
    for translator in translators:
        yield from _flatten(translator)

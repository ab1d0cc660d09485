"""Translators on the workers of a cluster, for a port whose journal stays with this process."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from rusbeir.cluster import MODEL_CPUS, Deployed, On, Workers, open_workers
from rusbeir.errors import BadInput, option
from rusbeir.jobs import Limits
from rusbeir.translation.backends.registry import TranslatorOptions, make, select_options
from rusbeir.translation.porting.plan import TranslatorEntry
from rusbeir.translation.translator import Capacity, ChecksPair, CountsCost, JudgesAnswers, Outcome, Translator


@dataclass(frozen=True, kw_only=True)
class RemoteTranslator:
    """A translator whose requests are answered by workers."""

    signature: str
    capacity: Capacity
    limits: Limits
    deployed: Deployed

    async def translate(self, texts: Sequence[str], source: str, target: str) -> Sequence[Outcome]:
        """Translate the texts by one request to one worker."""
        outcomes: Sequence[Outcome] = await asyncio.wrap_future(
            self.deployed.submit("translate", list(texts), source, target)
        )
        return outcomes


@contextlib.contextmanager
def place_entries(
    on: On, entries: Sequence[TranslatorEntry], source: str, target: str, options: TranslatorOptions, *, by_name: bool
) -> Iterator[tuple[TranslatorEntry, ...]]:
    """Return the entries; within the block, those whose models are on the user's own machines are answered by workers.

    Memories stay here, and so do translators that send texts to somebody, count their cost or judge their answers.
    by_name says that the workers make them by their names and these options; else they get the objects. Raises what
    open_workers and Workers.deploy raise, and BadInput where a cluster would be joined for nothing.
    """
    if isinstance(on, str) and not any(map(_can_move, entries)):
        raise BadInput(
            f"{', '.join(entry.name for entry in entries)} cannot run on a cluster, which is for models on machines of "
            f"your own. Leave out {option('on')}."
        )
    with open_workers(on, cpus=MODEL_CPUS) as workers:
        placed = []
        for entry in entries:
            translator = entry.translator
            if workers is not None and translator is not None and _can_move(entry):
                taken = select_options(entry.name, options) if by_name else {}
                make_it = partial(_make, entry.name if by_name else translator, source, target, taken)
                placed.append(replace(entry, translator=_deploy(workers, translator, entry.signature, make_it)))
            else:
                placed.append(entry)
        yield tuple(placed)


def _can_move(entry: TranslatorEntry) -> bool:
    return not (entry.trusted or entry.sends or isinstance(entry.translator, CountsCost | JudgesAnswers))


def _deploy(workers: Workers, translator: Translator, signature: str, make_it: Callable[[], Translator]) -> Translator:
    limits = translator.limits
    return RemoteTranslator(
        signature=signature,
        capacity=translator.capacity,
        # One more waits at each worker, so that no worker waits for this process.
        limits=replace(limits, concurrency=(limits.concurrency + 1) * len(workers)),
        deployed=workers.deploy(make_it, signature=signature, at_once=limits.concurrency),
    )


def _make(made_of: str | Translator, source: str, target: str, options: TranslatorOptions) -> Translator:
    """Make the translator on a worker, if it works there for the pair."""
    if isinstance(made_of, str):
        (made_of,) = make(made_of, source=source, target=target, **options)
    if isinstance(made_of, ChecksPair):
        made_of.check(source, target)
    return made_of

"""The time and the money that a port would take of its translators, before anything is sent."""

from __future__ import annotations

import asyncio
import time
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple, Unpack, cast

import numpy as np

from rusbeir.datasets import FIELDS, Material, hash_id, load_material, sample_documents
from rusbeir.jobs import Costs, describe_time, estimate_seconds, run_to_end
from rusbeir.languages import parse_language
from rusbeir.translation.backends import TranslatorOptions
from rusbeir.translation.porting.plan import Plan, TranslatorEntry, Translators, make_entries
from rusbeir.translation.segments.glossary import Glossary, GlossaryUse, read_glossary
from rusbeir.translation.translator import ChecksPair, Closes, PaidByToken, TakesBatches
from rusbeir.types import Dataset, Progress, silent

PROGRESS_EVERY = 1000
WARM_TEXTS = 5
TIMED_TEXTS = 2_000
TIMED_SECONDS = 2.0


class Volume(NamedTuple):
    """The amount of text to translate, cut for one translator."""

    texts: int
    segments: int
    unique: int
    """Segments that differ: only these are sent."""
    chars: int
    """The characters of the unique segments."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """The requests to one translator, as if it had to translate everything."""

    translator: str
    sends: str
    """Who receives the texts; "" where they stay on this machine, or where nothing is known of it."""
    volume: Volume
    requests: int
    seconds: float | None
    """The time by the requests a second that are allowed, or timed on the first texts; None where nothing is known."""
    cost: float
    """USD; 0 where the price is not known."""
    batch_cost: float | None = None
    """USD in batches; None where nothing is known of them, or where they are not offered."""
    cached_cost: float | None = None
    """USD with the prompt in the provider's cache; None where its price is not known."""
    input_tokens: int | None = None
    """Tokens for a language model, prompts included, if no answer is repeated; None for other translators."""
    output_tokens: int | None = None
    missing_options: tuple[str, ...] = ()
    """Options without which the price is not known."""
    assumption: str = ""
    """A sentence that says what the time depends on, for a language model; "" for other translators."""


def estimate(
    volume: Volume,
    entry: TranslatorEntry,
    chars_per_second: float | None = None,
    *,
    source: str = "en",
    target: str = "en",
) -> Estimate:
    """Estimate what a volume costs and how long it takes, at a translator's limits or at a given speed.

    A language model is asked in the languages source and target.

    Examples:
        >>> from rusbeir.translation.backends import make
        >>> google = TranslatorEntry.of(*make("google-cloud"))
        >>> estimate(Volume(6_000, 6_000, 6_000, 9_000_000), google).cost
        180.0
    """
    limits = entry.translator.limits if entry.translator is not None else None
    capacity = entry.capacity
    requests = capacity.count_requests(volume.unique, volume.chars)
    seconds = None
    if chars_per_second:
        seconds = volume.chars / chars_per_second
    elif limits is not None and limits.requests_per_second:
        seconds = requests / limits.requests_per_second
    whole = Estimate(
        translator=entry.name,
        sends=entry.sends,
        volume=volume,
        requests=requests,
        seconds=seconds,
        cost=volume.chars * capacity.cost_per_million_chars / 1e6,
    )
    model = entry.translator
    if not isinstance(model, PaidByToken):
        return whole
    tokens = model.estimate_tokens(volume.unique, volume.chars, source, target)
    costs = Costs(None, None)
    if isinstance(model, TakesBatches) and not model.missing_prices:
        costs = model.price.compare(requests, tokens.input, tokens.output, tokens.prompt)
    return replace(
        whole,
        **costs._asdict(),
        seconds=estimate_seconds(requests, tokens.output, model.limits),
        cost=0.0 if model.missing_prices else model.price_tokens(tokens),
        input_tokens=tokens.input,
        output_tokens=tokens.output,
        missing_options=model.missing_prices,
        assumption=describe_time(model.limits),
    )


def estimates(
    material: Material,
    entries: Sequence[TranslatorEntry],
    target: str,
    glossary: Glossary | None = None,
    *,
    progress: Progress = silent,
) -> list[Estimate]:
    """Estimate what each translator would be asked, as if it were alone. Nothing leaves this machine.

    Those that run on it are timed for a few seconds.
    """
    rows = []
    for entry in entries:
        plan = Plan(language=material.language, glossary=glossary, entries=(entry,))
        volume, first = _measured(material, plan, progress)
        speed = _chars_per_second(entry, first, plan.language, target) if entry.local and first else None
        rows.append(estimate(volume, entry, speed, source=plan.language, target=target))
    return rows


class SampledOptions(TranslatorOptions, total=False):
    """Options of the translators, and the sample of documents that is ported."""

    sample: int | None
    seed: int


def estimate_port(
    dataset: str | Path | Dataset,
    *,
    to: str,
    translator: str | Translators,
    language: str | None = None,
    split: str | None = None,
    fields: Sequence[str] = FIELDS,
    all_queries: bool = False,
    glossary: str | Path | None = None,
    progress: Progress = silent,
    **options: Unpack[SampledOptions],
) -> list[Estimate]:
    """Estimate what rusbeir.port would ask of each translator, as if it were alone; nothing is sent.

    Needs no credentials. Raises what port raises for the dataset, the languages and the options.
    """
    sample, seed = options.pop("sample", None), options.pop("seed", 0)
    material = load_material(
        dataset, language=language, split=split, all_queries=all_queries, fields=fields, progress=progress
    )
    if sample is not None:
        material = material.reduce_to(sample_documents(material.dataset, sample, seed))
    to = parse_language(to)
    translator_options = cast(TranslatorOptions, options)
    entries = make_entries(translator, material.language, to, translator_options, checked=False)
    terms = read_glossary(glossary) if glossary else None
    if terms:
        GlossaryUse.count(terms, material.all_texts()).warn()
    return estimates(material, entries, to, terms, progress=progress)


def _measured(material: Material, plan: Plan, progress: Progress) -> tuple[Volume, list[str]]:
    """Return the volume, and the first segments."""
    hashes, lengths = array("Q"), array("L")
    first: list[str] = []
    texts = 0
    for texts, text in enumerate(material.all_texts(), 1):
        if texts % PROGRESS_EVERY == 0:
            progress("count segments", texts, None)
        for piece, sent in plan.steps[0].cut([text])[0]:
            if sent:
                hashes.append(hash_id(piece))
                lengths.append(len(piece))
                if len(first) < TIMED_TEXTS:
                    first.append(piece)
    unique, rows = np.unique(np.frombuffer(hashes, dtype=np.uint64), return_index=True)
    chars = int(np.frombuffer(lengths, dtype=f"u{lengths.itemsize}")[rows].sum())
    return Volume(texts, len(hashes), len(unique), chars), first


def _chars_per_second(entry: TranslatorEntry, texts: Sequence[str], source: str, target: str) -> float | None:
    """Time a translator on this machine; None where it is not there, or has nothing to show."""
    translator = entry.translator
    if translator is None:
        return None

    async def timed() -> float | None:
        rest = iter(texts)
        size, at_once = translator.capacity.max_items, translator.limits.concurrency
        # The first request loads models and starts processes.
        await translator.translate(list(islice(rest, WARM_TEXTS)), source, target)
        chars, started = 0, time.perf_counter()
        while time.perf_counter() - started < TIMED_SECONDS:
            batches = [batch for _ in range(at_once) if (batch := list(islice(rest, size)))]
            if not batches:
                break
            await asyncio.gather(*(translator.translate(batch, source, target) for batch in batches))
            chars += sum(len(text) for batch in batches for text in batch)
        seconds = time.perf_counter() - started
        if isinstance(translator, Closes):
            await translator.close()
        return chars / seconds if chars else None

    if isinstance(translator, ChecksPair):
        translator.check(source, target)
    return run_to_end(timed())

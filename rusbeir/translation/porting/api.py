"""Port a dataset to another language: what `rusbeir port` and `rusbeir.port` do."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Unpack, cast

from rusbeir.datasets import FIELDS, find_entry, find_obstacle
from rusbeir.errors import BadInput, option
from rusbeir.jobs import BatchOptions, Budget, Journal, Tell, run_to_end
from rusbeir.languages import parse_language
from rusbeir.translation.backends import TranslatorOptions
from rusbeir.translation.porting.folder import (
    Order,
    open_port_folder,
    read_spent,
    read_translator_names,
    write_source_path,
)
from rusbeir.translation.porting.job import PortJob, Report, open_original
from rusbeir.translation.porting.plan import Plan, TranslatorEntry, Translators, make_entries
from rusbeir.translation.porting.retries import Retry
from rusbeir.translation.porting.runner import translate_pending
from rusbeir.translation.segments.glossary import Glossary, read_glossary
from rusbeir.types import Dataset, Progress, silent

if TYPE_CHECKING:
    from rusbeir.cluster import On


def port(
    dataset: str | Path | Dataset,
    *,
    to: str,
    out: str | Path,
    translator: str | Translators | None = "memory",
    language: str | None = None,
    name: str | None = None,
    licence: str | None = None,
    source_url: str | None = None,
    author: str | None = None,
    citation: str | None = None,
    split: str | None = None,
    all_queries: bool = False,
    fields: Sequence[str] = FIELDS,
    sample: int | None = None,
    seed: int = 0,
    glossary: str | Path | Glossary | None = None,
    budget_chars: int | None = None,
    budget_cost: float | None = None,
    budget_with: Sequence[str | Path] = (),
    retry_failed: bool = False,
    retry_segments: str | Path | None = None,
    keep_untranslated: bool = False,
    export: str | Path | None = None,
    batch: bool | float = False,
    cancel: bool = False,
    batch_out: str | Path | None = None,
    batch_in: Sequence[str | Path] = (),
    on: str | None = None,
    progress: Progress = silent,
    tell: Tell = lambda line: None,
    **options: Unpack[TranslatorOptions],
) -> Report:
    """Translate a dataset into a folder, and return a report (docs/port.md).

    What these translators have translated into this folder before is not asked for again.

    Args:
        dataset: A name such as beir/scifact, a path, or a dataset.
        to: The target language, as a BCP 47 tag.
        out: The folder of the port; its subfolder work has the journal.
        translator: A name, several names joined by commas, or objects; None takes those of the port in out.
        language: The language of the source, where its card does not say it.
        name: How the card names the source, where the source has no card. This and the next four may be given or
            changed later, by running the same port again.
        licence: The licence of the source, in the words of the field, such as CC-BY-SA-4.0.
        source_url: Where the source is from.
        author: Who made the source.
        citation: How the source is cited.
        split: One split. By default all splits are ported; a later call adds others.
        all_queries: Port queries that no split judges, too.
        fields: What is translated, of title, text and query.
        sample: The number of documents to port, judged ones first.
        seed: What the sample is drawn with.
        glossary: Terms and their translations, or a file of them.
        budget_chars: The most characters to send, every attempt counted.
        budget_cost: The most to spend, in the currency of the translators' prices.
        budget_with: Folders of other ports, made or not, that have these budgets in common with this one.
        retry_failed: Ask again for what has failed.
        retry_segments: A file of segments (docs/validity.md) that alone are asked for again in a finished port. One
            that fails keeps its translation, and what is left out here is as the port was made.
        keep_untranslated: Let texts that came back unchanged stay so in the dataset.
        export: A translation memory to write: .tmx, .tsv or .jsonl.
        batch: Send the requests to a language model by the Batch API of its endpoint, wait, and continue. A call that
            was stopped finds its batches again. A number, such as 0.5, is what a batch costs of the usual price.
        cancel: Cancel the batches that are under way.
        batch_out: A file to which the requests to a language model are written, instead of sending them; then
            Suspended is raised.
        batch_in: Files with the answers to such requests.
        on: Where local models run: "ray" or "ray://HOST:PORT" (docs/scale.md). The journal stays with this process.
        progress: Called as progress(stage, done, total).
        tell: Called with a line for a person before anything is sent.
        **options: The options of the translators, such as memory=, model= and llm=.

    Returns:
        Counts of texts and segments, what was spent, and the fingerprint.

    Raises:
        Suspended: Requests were written, and their answers come later.
        Incomplete: Texts are left without a translation; no dataset is written.
        BackendError: The service or a budget stopped the work; all that was answered is kept.
        BadInput: The folder contains another port, or an argument is wrong.

    Examples:
        >>> rusbeir.port("xquad/en", to="ru", translator="memory", memory="pairs.tsv", out="out")  # doctest: +SKIP
    """
    out = Path(out)
    about = {"name": name, "licence": licence, "source": source_url, "author": author, "citation": citation}
    terms = read_glossary(glossary) if isinstance(glossary, str | Path) else glossary
    order = Order(
        language=language,
        split=split,
        all_queries=all_queries,
        fields=tuple(fields),
        sample=sample,
        seed=seed,
        glossary=terms.terms if terms else None,
        keep_untranslated=keep_untranslated,
    )
    if retry_segments is not None:
        order = order.complete(out)
        terms = Glossary(order.glossary) if order.glossary else None
    original = open_original(dataset, order, terms, about, out, progress)
    source_language = original.material.language
    if translator is None:
        translator = ",".join(read_translator_names(out))
    to = parse_language(to)
    ways = {"batch": batch, "cancel": cancel, "batch_out": batch_out, "batch_in": batch_in}
    batching = {name: value for name, value in ways.items() if value}
    entries = make_entries(translator, source_language, to, options, batching=batching, budget_cost=budget_cost)
    card = original.card
    if obstacle := find_obstacle(card.name, card.licence, card.provenance):
        # Now it can still be cleared up at no cost.
        tell(
            f"{card.name}: `rusbeir publish` will refuse the port, since {obstacle}. If its owners say otherwise, give "
            f"{option('licence')}, and {option('source_url')}, {option('author')} and {option('citation')}."
        )
    if retry_segments is not None and retry_failed:
        raise BadInput(f"{option('retry_failed', True)} and {option('retry_segments')} are two steps: give one first.")
    with contextlib.ExitStack() as stack:
        if on is not None:
            entries = stack.enter_context(_move_to_cluster(on, entries, translator, source_language, to, options))
        retry = Retry(path=Path(retry_segments), entries=entries) if retry_segments is not None else None
        # The translators of a retry are asked for its segments alone.
        more, chain_entries = (retry_failed, entries) if retry is None else (True, ())
        opened = open_port_folder(out, {**original.identity, "to": to}, chain_entries, more=more, tell=tell)
        journal, chain = stack.enter_context(opened)
        order.record(journal, card.name, original.fingerprints)
        if isinstance(dataset, Path) or (isinstance(dataset, str) and not find_entry(dataset)):
            write_source_path(out, Path(dataset))
        return PortJob(
            original=original,
            target=to,
            plan=Plan(language=source_language, glossary=terms, entries=chain),
            out=out,
            journal=journal,
            budget=Budget(journal, chars=budget_chars, cost=budget_cost, elsewhere=[*map(read_spent, budget_with)]),
            progress=progress,
            tell=tell,
            batching=batching,
        ).run(
            retry_failed=retry_failed,
            retry=retry,
            keep_untranslated=order.keep_untranslated,
            export=Path(export) if export else None,
        )


class TextOptions(TranslatorOptions, BatchOptions, total=False):
    """Options of the translators, and the ways in which a language model is asked in batches."""


@contextlib.contextmanager
def translate_texts(
    texts: Iterable[str],
    *,
    source: str,
    target: str,
    out: Path,
    translator: str | Translators,
    budget_chars: int | None = None,
    budget_cost: float | None = None,
    on: On = None,
    progress: Progress = silent,
    tell: Tell = lambda line: None,
    **options: Unpack[TextOptions],
) -> Iterator[tuple[Plan, Journal]]:
    """Translate texts that belong to no dataset; Plan.translated finds the answers in the journal while it is open.

    The journal is in the folder out. What it contains already is not sent again, whatever texts it was made for. Raises
    what port raises for the translators and where the service or a budget stops the work; a single text without a
    translation raises nothing.
    """
    target = parse_language(target)
    ways = BatchOptions.__annotations__
    batching = {name: value for name, value in options.items() if name in ways and value}
    model_options = cast(TranslatorOptions, {name: value for name, value in options.items() if name not in ways})
    entries = make_entries(translator, source, target, model_options, batching=batching, budget_cost=budget_cost)
    with contextlib.ExitStack() as stack:
        if on is not None:
            entries = stack.enter_context(_move_to_cluster(on, entries, translator, source, target, model_options))
        opened = open_port_folder(out, {"from": source, "to": target}, entries, more=False, tell=tell)
        journal, chain = stack.enter_context(opened)
        plan = Plan(language=source, glossary=None, entries=chain)
        journal.add(plan.tasks(texts, plan.steps[0]))
        # What later steps were given before lacks the new texts.
        journal.set_meta({step.cut_mark: "" for step in plan.steps[1:]})
        budget = Budget(journal, chars=budget_chars, cost=budget_cost)
        run_to_end(
            translate_pending(
                plan, journal, source=source, target=target, budget=budget, progress=progress, tell=tell,
                batching=batching,
            )
        )  # fmt: skip
        yield plan, journal


def _move_to_cluster(
    on: On,
    entries: tuple[TranslatorEntry, ...],
    translator: str | Translators,
    source: str,
    target: str,
    options: TranslatorOptions,
) -> AbstractContextManager[tuple[TranslatorEntry, ...]]:
    """Return the entries, on a cluster."""
    from rusbeir.translation.remote import place_entries

    return place_entries(on, entries, source, target, options, by_name=isinstance(translator, str))

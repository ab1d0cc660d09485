"""Port a dataset to another language: what `rusbeir port` and `rusbeir.port` do."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import count, repeat
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeAlias, Unpack

from rusbeir.datasets import (
    FIELDS,
    Material,
    find_entry,
    find_obstacle,
    load_material,
    name_qrels_file,
    sample_documents,
    take_split,
)
from rusbeir.errors import BackendError, BadInput, option
from rusbeir.jobs import CORPUS, WORK, Budget, Journal, Tell, run_to_end
from rusbeir.languages import parse_target_language
from rusbeir.storage import atomic_file
from rusbeir.text import digest
from rusbeir.translation.backends import TranslatorOptions
from rusbeir.translation.porting import output
from rusbeir.translation.porting.folder import (
    LAYOUT,
    QUERY_LAYOUT,
    Order,
    apply_cuts,
    open_port_folder,
    read_cuts,
    read_translator_names,
    write_source_path,
)
from rusbeir.translation.porting.output import ported_card
from rusbeir.translation.porting.plan import Plan, TranslatorEntry, Translators, make_entries
from rusbeir.translation.porting.retries import Retry, finish_round
from rusbeir.translation.porting.runner import translate_pending
from rusbeir.translation.segments.glossary import Glossary, GlossaryUse, read_glossary
from rusbeir.translation.segments.segment import Piece
from rusbeir.translation.tm.pairs import write_pairs
from rusbeir.types import Card, Dataset, Progress, silent

if TYPE_CHECKING:
    from rusbeir.cluster import On

PROGRESS_EVERY = 1000

Report: TypeAlias = dict[str, Any]
"""What came of a port: see docs/port.md."""


class Incomplete(BackendError):
    """Some texts have no translation, and no dataset was written. report is that of rusbeir.port."""

    def __init__(self, message: str, report: Report) -> None:
        super().__init__(message)
        self.report = report


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
    retry_failed: bool = False,
    retry_segments: str | Path | None = None,
    keep_untranslated: bool = False,
    export: str | Path | None = None,
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
        retry_failed: Ask again for what has failed.
        retry_segments: A file of segments (docs/validity.md) that alone are asked for again in a finished port. One
            that fails keeps its translation, and what is left out here is as the port was made.
        keep_untranslated: Let texts that came back unchanged stay so in the dataset.
        export: A translation memory to write: .tmx, .tsv or .jsonl.
        on: Where local models run: "ray" or "ray://HOST:PORT" (docs/scale.md). The journal stays with this process.
        progress: Called as progress(stage, done, total).
        tell: Called with a line for a person before anything is sent.
        **options: The options of the translators, such as memory=, model= and llm=.

    Returns:
        Counts of texts and segments, what was spent, and the fingerprint.

    Raises:
        Incomplete: Texts are left without a translation; no dataset is written.
        BackendError: The service or a budget stopped the work; all that was answered is kept.
        BadInput: The folder contains another port, or an argument is wrong.

    Examples:
        >>> rusbeir.port("xquad/en", to="ru", translator="memory", memory="pairs.tsv", out="out")  # doctest: +SKIP
    """
    about: dict[str, Any] = {
        "name": name,
        "licence": licence,
        "source": source_url,
        "author": author,
        "citation": citation,
    }
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
        order = order.complete(Path(out))
        terms = Glossary(order.glossary) if order.glossary else None
    sample, seed = order.sample, order.seed
    source = load_material(
        dataset,
        language=order.language,
        split=order.split,
        also={path.stem for path in Path(out).glob("qrels/*.tsv")},
        all_queries=order.all_queries,
        fields=order.fields,
        progress=progress,
    )
    card = replace(source.dataset.card, **{key: value for key, value in about.items() if value is not None})
    source = replace(source, dataset=replace(source.dataset, card=card))
    for part in source.splits:
        name_qrels_file(part)  # A split that cannot be written is refused before anything is paid.
    material = source if sample is None else replace(source, dataset=sample_documents(source.dataset, sample, seed))
    if translator is None:
        translator = ",".join(read_translator_names(Path(out)))
    to = parse_target_language(to, material.language)
    entries = make_entries(translator, material.language, to, options, budget_cost=budget_cost)
    settings = {
        "fields": ",".join(source.fields),
        "sample": "all" if sample is None else f"{sample} (seed {seed})",
        "glossary": terms.signature if terms else "none",
    }
    fingerprints = {part: take_split(source.dataset, part, qrels).fingerprint for part, qrels in source.splits.items()}
    meta = {
        CORPUS: replace(source.dataset, queries={}, qrels={}).fingerprint,
        "from": material.language,
        "to": to,
        **settings,
        # Which documents are drawn depends on the judgements.
        **({} if sample is None else {"splits": ",".join(source.splits)}),
    }
    if obstacle := find_obstacle(card.name, card.licence, card.provenance):
        # Now, while it can still be cleared up at no cost.
        tell(
            f"{card.name}: `rusbeir publish` will refuse the port, since {obstacle}. If its owners say otherwise, give "
            f"{option('licence')}, and {option('source_url')}, {option('author')} and {option('citation')}."
        )
    if retry_segments is not None and retry_failed:
        raise BadInput(f"{option('retry_failed', True)} and {option('retry_segments')} are two steps: give one first.")
    with contextlib.ExitStack() as stack:
        if on is not None:
            entries = stack.enter_context(_move_to_cluster(on, entries, translator, material.language, to, options))
        retry = Retry(path=Path(retry_segments), entries=entries) if retry_segments is not None else None
        # The translators of a retry are asked for its segments alone.
        more, chain_entries = (retry_failed, entries) if retry is None else (True, ())
        opened = open_port_folder(Path(out), meta, chain_entries, more=more, tell=tell)
        journal, chain = stack.enter_context(opened)
        order.record(journal, card.name, fingerprints)
        if isinstance(dataset, Path) or (isinstance(dataset, str) and not find_entry(dataset)):
            write_source_path(Path(out), Path(dataset))
        return PortJob(
            material=material,
            source=card,
            source_fingerprints=fingerprints,
            target=to,
            plan=Plan(language=material.language, glossary=terms, entries=chain),
            settings=settings,
            out=Path(out),
            journal=journal,
            budget=Budget(journal, chars=budget_chars, cost=budget_cost),
            progress=progress,
            tell=tell,
        ).run(
            retry_failed=retry_failed,
            retry=retry,
            keep_untranslated=order.keep_untranslated,
            export=Path(export) if export else None,
        )


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
    **options: Unpack[TranslatorOptions],
) -> Iterator[tuple[Plan, Journal]]:
    """Translate texts that belong to no dataset; Plan.translated finds the answers in the journal while it is open.

    The journal is in the folder out. What it contains already is not sent again, whatever texts it was made for. Raises
    what port raises for the translators and where the service or a budget stops the work; a single text without a
    translation raises nothing.
    """
    target = parse_target_language(target, source)
    entries = make_entries(translator, source, target, options, budget_cost=budget_cost)
    with contextlib.ExitStack() as stack:
        if on is not None:
            entries = stack.enter_context(_move_to_cluster(on, entries, translator, source, target, options))
        opened = open_port_folder(out, {"from": source, "to": target}, entries, more=False, tell=tell)
        journal, chain = stack.enter_context(opened)
        plan = Plan(language=source, glossary=None, entries=chain)
        journal.add(plan.tasks(texts, plan.steps[0]))
        # What later steps were given before lacks the new texts.
        journal.set_meta({step.cut_mark: "" for step in plan.steps[1:]})
        budget = Budget(journal, chars=budget_chars, cost=budget_cost)
        run_to_end(
            translate_pending(plan, journal, source=source, target=target, budget=budget, progress=progress, tell=tell)
        )
        yield plan, journal


def _move_to_cluster(
    on: On,
    entries: tuple[TranslatorEntry, ...],
    translator: str | Translators,
    source: str,
    target: str,
    options: TranslatorOptions,
) -> AbstractContextManager[tuple[TranslatorEntry, ...]]:
    """The entries, on a cluster."""
    from rusbeir.translation.remote import place_entries

    return place_entries(on, entries, source, target, options, by_name=isinstance(translator, str))


@dataclass(frozen=True, kw_only=True)
class PortJob:
    """One port, with its journal open."""

    material: Material
    source: Card
    source_fingerprints: Mapping[str, str]
    """split -> that of the whole dataset, as the card is, where the material is a sample."""
    target: str
    plan: Plan
    settings: Mapping[str, str]
    out: Path
    journal: Journal
    budget: Budget
    progress: Progress
    tell: Tell

    def run(
        self, *, retry_failed: bool, retry: Retry | None = None, keep_untranslated: bool, export: Path | None
    ) -> Report:
        """Translate what is missing and write the dataset. Raises as port does."""
        if retry_failed:
            self.plan.reset_missing(self.journal)
        self._cut()
        glossary = self.plan.glossary if retry is None else None
        use = self._count_terms(glossary) if glossary else None
        counts = run_to_end(
            translate_pending(
                self.plan,
                self.journal,
                source=self.material.language,
                target=self.target,
                budget=self.budget,
                progress=self.progress,
                tell=self.tell,
            )
        )
        retried = self._retry(retry) if retry is not None else None
        rounds = self.plan.rounds(self.journal)
        outcome = output.summary(self.journal, self.plan, keep_untranslated=keep_untranslated, rounds=rounds)
        output.write_quality(self.out, self.journal, self.plan, outcome)
        report: Report = {
            "dataset": self.source.name,
            "out": str(self.out),
            "from": self.material.language,
            "to": self.target,
            "split": self.source.split,
            "splits": list(self.source_fingerprints),
            "translators": [entry.signature for entry in self.plan.entries],
            **{name: outcome[name] for name in ("segments", "translated", "kept", "missing", "flagged")},
            "passes": outcome["passes"],
            **({} if use is None else {"glossary": asdict(use)}),
            **({} if retried is None else {"retried": retried}),
            **counts,
            "spent": asdict(self.budget.spent),
        }
        if export is not None:
            pairs = output.aligned_pairs(self.journal, self.plan)
            report["exported"] = write_pairs(export, pairs, self.material.language, self.target)
        if outcome["missing"]:
            raise Incomplete(self._what_is_missing(outcome), report)
        made_by = (*self.plan.entries, *(entry for plan in rounds for entry in plan.entries))
        report |= self._publish(outcome, tuple({entry.signature: entry for entry in made_by}.values()))
        if rounds:
            finish_round(self.journal, rounds[-1])
        return report

    def _count_terms(self, glossary: Glossary) -> GlossaryUse:
        """How far the texts have the terms of the glossary, told before anything is sent."""
        use = GlossaryUse.count(glossary, self.material.all_texts())
        self.tell(f"Glossary: {use.terms:,} terms, in {use.texts:,} texts.")
        use.warn()
        return use

    def _retry(self, retry: Retry) -> dict[str, int]:
        return retry.run(
            self.material,
            self.plan,
            self.journal,
            self.out / WORK,
            self.target,
            self.budget,
            self.progress,
            self.tell,
        )

    def _cut(self) -> None:
        """Put the units of texts that are new into the journal, and write down in the layouts how each was cut."""
        work, first = self.out / WORK, self.plan.steps[0]
        # What later steps were given before was cut from other units.
        later = {step.cut_mark: "" for step in self.plan.steps[1:]}
        numbers = count()

        def write(file: IO[bytes], names: Iterator[str], pieces: Sequence[Piece]) -> None:
            lengths = " ".join([str(len(text) if sent else -len(text)) for text, sent in pieces])
            file.write(f"{next(names)}{lengths}\n".encode())
            if (n := next(numbers)) % PROGRESS_EVERY == 0:
                self.progress("cut texts", n, None)

        if not (self.journal.get_meta("cut") and (work / LAYOUT).exists()):
            with atomic_file(work / LAYOUT) as file:
                tell = partial(write, file, repeat(""))
                self.journal.add(self.plan.tasks(self.material.document_texts(), first, tell))
            self.journal.set_meta({"cut": "yes", **later})
        path = work / QUERY_LAYOUT
        known = dict(read_cuts(path)) if path.exists() else {}
        if new := {key: text for text in self.material.query_texts() if (key := digest(text)) not in known}:
            with atomic_file(path) as file:
                file.write(path.read_bytes() if known else b"")
                tell = partial(write, file, (f"{key}\t" for key in new))
                self.journal.add(self.plan.tasks(new.values(), first, tell))
                self.journal.set_meta(later)

    def _what_is_missing(self, outcome: Mapping[str, Any]) -> str:
        last = outcome["passes"][-1]
        reasons = {**last["reasons"], **({"not asked": last["pending"]} if last["pending"] else {})}
        commonest = max(reasons, key=lambda reason: reasons[reason])
        keep = (
            f", or keep the unchanged ones with {option('keep_untranslated', True)}"
            if output.UNTRANSLATED in reasons
            else ""
        )
        return (
            f"{outcome['missing']:,} of {outcome['segments']:,} segments of {self.source.name} have no translation "
            f"({reasons[commonest]:,} {commonest}), so no dataset was written; see {self.out / 'qa'}. Ask for them "
            f"again with {option('retry_failed', True)}, or another translator with "
            f"{option('retry_failed', True)} {option('translator', 'OTHER')}{keep}."
        )

    def _publish(self, outcome: Mapping[str, Any], entries: Sequence[TranslatorEntry]) -> Report:
        """Write the dataset; its name, fingerprint, licence and counts."""
        work = self.out / WORK
        documents = (lengths for _, lengths in read_cuts(work / LAYOUT))
        queries = dict(read_cuts(work / QUERY_LAYOUT)) if (work / QUERY_LAYOUT).exists() else {}

        def translate(kind: str, texts: Sequence[str]) -> list[str]:
            if kind == "document":
                cuts = list(apply_cuts(documents, texts, work / LAYOUT))
            else:
                lengths = (queries.get(digest(text), []) for text in texts)
                cuts = list(apply_cuts(lengths, texts, work / QUERY_LAYOUT))
            answers = self.plan.joined(self.journal, cuts, keep=outcome["kept"] > 0)
            present = [answer for answer in answers if answer is not None]
            if len(present) < len(answers):
                raise BackendError(
                    f"{self.journal.path} lacks answers that it had. Remove {LAYOUT} next to it and run the same again."
                )
            return present

        card = ported_card(self.source, self.source_fingerprints, self.target, entries, self.settings, outcome)
        fingerprint = output.publish(self.out, self.material, translate, card, self.progress)
        dataset = self.material.dataset
        counts = {"n_docs": len(dataset.corpus), "n_queries": len(dataset.queries)}
        return {"name": card.name, "fingerprint": fingerprint, "licence": card.licence, **counts}

"""The dataset that a port translates, and the port with its journal open: translate what is missing, write the set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from rusbeir.datasets import Material, load_material, name_qrels_file, sample_documents, take_split
from rusbeir.errors import BackendError, option
from rusbeir.jobs import CORPUS, WORK, Budget, Journal, Tell, run_to_end
from rusbeir.storage import atomic_file
from rusbeir.text import digest
from rusbeir.translation.porting import output
from rusbeir.translation.porting.folder import LAYOUT, QUERY_LAYOUT, Order, apply_cuts, cut_documents, read_cuts
from rusbeir.translation.porting.output import ported_card
from rusbeir.translation.porting.plan import Plan, TranslatorEntry
from rusbeir.translation.porting.retries import Retry, finish_round
from rusbeir.translation.porting.runner import translate_pending
from rusbeir.translation.segments.glossary import Glossary, GlossaryUse
from rusbeir.translation.tm.pairs import write_pairs
from rusbeir.types import Card, Dataset, Progress

Report: TypeAlias = dict[str, Any]
"""What came of a port: see docs/port.md."""


class Incomplete(BackendError):
    """Some texts have no translation, and no dataset was written. report is that of rusbeir.port."""

    def __init__(self, message: str, report: Report) -> None:
        super().__init__(message)
        self.report = report


@dataclass(frozen=True, kw_only=True)
class Original:
    """A dataset that is to be translated, and what of it is."""

    card: Card
    """The card of the whole dataset."""
    material: Material
    """What is translated: the whole, or a sample of its documents."""
    fingerprints: Mapping[str, str]
    """split -> fingerprint of the whole dataset with that split."""
    settings: Mapping[str, str]
    """What decides which texts are translated, and how."""
    identity: Mapping[str, str]
    """What the journal of its ports has in addition to their target: no port of another original continues it."""


def open_original(
    dataset: str | Path | Dataset,
    order: Order,
    terms: Glossary | None,
    about: Mapping[str, str | None],
    out: Path,
    progress: Progress,
) -> Original:
    """Read the dataset with the splits that the port in out has; about replaces what its card says."""
    whole = load_material(
        dataset,
        language=order.language,
        split=order.split,
        also={path.stem for path in out.glob("qrels/*.tsv")},
        all_queries=order.all_queries,
        fields=order.fields,
        progress=progress,
    )
    stated: dict[str, Any] = {name: value for name, value in about.items() if value is not None}
    card = replace(whole.dataset.card, **stated)
    whole = replace(whole, dataset=replace(whole.dataset, card=card))
    for split in whole.splits:
        name_qrels_file(split)  # A split that cannot be written is refused before anything is paid.
    material = whole
    if order.sample is not None:
        material = whole.reduce_to(sample_documents(whole.dataset, order.sample, order.seed))
    fingerprints = {split: take_split(whole.dataset, split, qrels).fingerprint for split, qrels in whole.splits.items()}
    settings = {
        "fields": ",".join(whole.fields),
        "sample": "all" if order.sample is None else f"{order.sample} (seed {order.seed})",
        "glossary": terms.signature if terms else "none",
    }
    identity = {
        CORPUS: replace(whole.dataset, queries={}, qrels={}).fingerprint,
        "from": material.language,
        **settings,
        # Which documents are drawn depends on the judgements.
        **({} if order.sample is None else {"splits": ",".join(whole.splits)}),
    }
    return Original(card=card, material=material, fingerprints=fingerprints, settings=settings, identity=identity)


@dataclass(frozen=True, kw_only=True)
class PortJob:
    """One port, with its journal open."""

    original: Original
    target: str
    plan: Plan
    out: Path
    journal: Journal
    budget: Budget
    progress: Progress
    tell: Tell
    batching: Mapping[str, Any]
    """The jobs.BatchOptions that say something."""

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
                source=self.original.material.language,
                target=self.target,
                budget=self.budget,
                progress=self.progress,
                tell=self.tell,
                documents=partial(cut_documents, self.original.material, self.out / WORK),
                batching=self.batching,
            )
        )
        retried = self._retry(retry) if retry is not None else None
        rounds = self.plan.rounds(self.journal)
        outcome = output.summary(self.journal, self.plan, keep_untranslated=keep_untranslated, rounds=rounds)
        output.write_quality(self.out, self.journal, self.plan, outcome)
        report: Report = {
            "dataset": self.original.card.name,
            "out": str(self.out),
            "from": self.original.material.language,
            "to": self.target,
            "split": self.original.card.split,
            "splits": list(self.original.fingerprints),
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
            report["exported"] = write_pairs(export, pairs, self.original.material.language, self.target)
        if outcome["missing"]:
            raise Incomplete(self._what_is_missing(outcome), report)
        made_by = (*self.plan.entries, *(entry for plan in rounds for entry in plan.entries))
        report |= self._publish(outcome, tuple({entry.signature: entry for entry in made_by}.values()))
        if rounds:
            finish_round(self.journal, rounds[-1])
        return report

    def _count_terms(self, glossary: Glossary) -> GlossaryUse:
        """Count how far the texts have the terms of the glossary, told before anything is sent."""
        use = GlossaryUse.count(glossary, self.original.material.all_texts())
        self.tell(f"Glossary: {use.terms:,} terms, in {use.texts:,} texts.")
        use.warn()
        return use

    def _retry(self, retry: Retry) -> dict[str, int]:
        return retry.run(
            self.original.material,
            self.plan,
            self.journal,
            self.out / WORK,
            self.target,
            self.budget,
            self.progress,
            self.tell,
            self.batching,
        )

    def _cut(self) -> None:
        """Put the units of texts that are new into the journal, and write down in the layouts how each was cut."""
        work, first, material = self.out / WORK, self.plan.steps[0], self.original.material
        # What later steps were given before was cut from other units.
        later = {step.cut_mark: "" for step in self.plan.steps[1:]}
        if not (self.journal.get_meta("cut") and (work / LAYOUT).exists()):
            texts = material.document_texts(material.dataset.corpus)
            with atomic_file(work / LAYOUT) as file:
                self.journal.add(self.plan.tasks(texts, first, layout=file, progress=self.progress))
            self.journal.set_meta({"cut": "yes", **later})
        path = work / QUERY_LAYOUT
        known = dict(read_cuts(path)) if path.exists() else {}
        if new := {key: text for text in material.query_texts() if (key := digest(text)) not in known}:
            keys = (f"{key}\t" for key in new)
            with atomic_file(path) as file:
                file.write(path.read_bytes() if known else b"")
                self.journal.add(self.plan.tasks(new.values(), first, layout=file, keys=keys, progress=self.progress))
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
            f"{outcome['missing']:,} of {outcome['segments']:,} segments of {self.original.card.name} have no "
            f"translation ({reasons[commonest]:,} {commonest}), so no dataset was written; see {self.out / 'qa'}. "
            f"Ask for them again with {option('retry_failed', True)}, or another translator with "
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

        card = ported_card(
            self.original.card, self.original.fingerprints, self.target, entries, self.original.settings, outcome
        )
        fingerprint = output.publish(self.out, self.original.material, translate, card, self.progress)
        dataset = self.original.material.dataset
        counts = {"n_docs": len(dataset.corpus), "n_queries": len(dataset.queries)}
        return {"name": card.name, "fingerprint": fingerprint, "licence": card.licence, **counts}

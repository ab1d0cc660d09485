"""Rewrite the documents of a dataset by a language model: a dataset in Cocktail's layout, with a corpus of each source.

A rewriting is a translation of whole documents from a language into itself: the journal, the budgets, the retries and
the checks are those of a port.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeAlias, Unpack, cast

import orjson

from rusbeir import __version__
from rusbeir.errors import BackendError, option
from rusbeir.jobs import (
    CORPUS,
    BatchOptions,
    Budget,
    Journal,
    Spending,
    Tell,
    refuse_unpriced,
    run_to_end,
    select_batching,
    tell_prompt_language,
)
from rusbeir.storage import atomic_file
from rusbeir.synthesis.likeness import compare_texts, open_encoder
from rusbeir.synthesis.rewriting.corpora import Rewriting, read_other_corpora
from rusbeir.synthesis.rewriting.translator import PROMPTS, TEMPERATURE, Rewriter
from rusbeir.synthesis.selection import MAX_WORDS, MIN_WORDS, Selection, select_documents
from rusbeir.text import slug
from rusbeir.translation import (
    Estimate,
    Plan,
    TranslatorEntry,
    TranslatorOptions,
    estimates,
    open_port_folder,
    summary,
    translate_pending,
    write_quality,
)
from rusbeir.types import Dataset, Progress, silent

UNANSWERED = ("rate-limited", "server", "timeout")
"""Failures of the service: a text that the model has not seen must not stay human, as one that it refused."""

Report: TypeAlias = dict[str, Any]
"""What came of a rewriting: see docs/json.md."""


def estimate_rewrite(
    dataset: str | Path | Dataset,
    *,
    language: str | None = None,
    split: str | None = None,
    sample: int | None = None,
    seed: int = 0,
    temperature: float = TEMPERATURE,
    progress: Progress = silent,
    **options: Unpack[TranslatorOptions],
) -> Estimate:
    """Estimate what rewrite would ask of the model; nothing is sent, and no credentials are needed."""
    rewriter = Rewriter.make(temperature=temperature, **options)
    selection = select_documents(dataset, language=language, split=split, sample=sample, seed=seed, progress=progress)
    tag = selection.source.card.language
    return estimates(selection.material, [TranslatorEntry.of(rewriter)], tag, progress=progress)[0]


class RewriteOptions(TranslatorOptions, Spending, BatchOptions, total=False):
    """The options of the translator llm, what a rewriting may cost, and how it is asked in batches."""


def rewrite(
    dataset: str | Path | Dataset,
    *,
    out: str | Path,
    language: str | None = None,
    split: str | None = None,
    sample: int | None = None,
    seed: int = 0,
    temperature: float = TEMPERATURE,
    encoder: str | None = None,
    progress: Progress = silent,
    tell: Tell = lambda line: None,
    **options: Unpack[RewriteOptions],
) -> Report:
    """Let a model rewrite the documents into the folder out, in Cocktail's layout, and return a report (docs/json.md).

    A document that the model will not or cannot rewrite stays as it is, and is counted. What was answered before is not
    asked for again; other models add their corpora to the same folder. The options are those of the translator llm, of
    which llm, the model, is needed.
    Raises BadInput where nothing can be rewritten or out contains something else; BackendError where the service or a
    budget stopped the work or gave no answers to some documents, all that was answered being kept.

    Examples:
        >>> rewrite("cocktail/nfcorpus/human", llm="qwen3-30b", out="rewritten")["documents"]  # doctest: +SKIP
        {'rewritten': 3631, 'kept_human': 2, 'short': 0, 'long': 0, 'not_drawn': 0}
    """
    out = Path(out)
    spending, batching, model_options = _split_options(options)
    rewriter = Rewriter.make(temperature=temperature, **model_options)
    refuse_unpriced(spending.get("budget_cost"), rewriter.llm, TranslatorEntry.of(rewriter).price_remedy)
    selection = select_documents(dataset, language=language, split=split, sample=sample, seed=seed, progress=progress)
    tag = selection.source.card.language
    if not batching or batching.keys() & {"batch", "cancel"}:
        rewriter.check(tag, tag)
    system = open_encoder(encoder, tag) if encoder else None
    corpus = f"{slug(rewriter.llm) or 'model'}-tmp{temperature:g}"
    others = read_other_corpora(out, corpus, rewriter.signature)
    tell_prompt_language(PROMPTS, tag, rewriter.llm, tell)
    with open_port_folder(out, _identify(selection), [TranslatorEntry.of(rewriter)], more=False) as (journal, chain):
        plan = Plan(language=tag, glossary=None, entries=chain)
        if spending.get("retry_failed"):
            plan.reset_missing(journal)
        if not journal.get_meta("cut"):
            journal.add(plan.tasks(selection.material.document_texts(selection.material.dataset.corpus), plan.steps[0]))
            journal.set_meta({"cut": "yes"})
        budget = Budget(journal, chars=spending.get("budget_chars"), cost=spending.get("budget_cost"))
        talk: dict[str, Any] = {"progress": progress, "tell": tell, "batching": batching}
        requests = run_to_end(translate_pending(plan, journal, source=tag, target=tag, budget=budget, **talk))
        outcome = _summarise(plan, journal, selection.source.card.name, out)
        rewriting = Rewriting(
            selection=selection, plan=plan, journal=journal, out=out, corpus=corpus, progress=progress
        )
        counts = rewriting.write_corpora()
        made = {"corpus": corpus, "name": "llm", "signature": rewriter.signature, "about": chain[0].about, **counts}
        card = rewriting.write_card([*others, made])
        pairs = ((doc.text, text) for doc, _, text in rewriting.documents() if text is not None)
        quality = {
            "version": __version__,
            "dataset": selection.source.card.name,
            "language": tag,
            "corpus": corpus,
            "rewriter": rewriter.signature,
            "documents": {**counts, **selection.left_out},
            **{name: outcome["passes"][0][name] for name in ("reasons", "flags")},
            "likeness": compare_texts(pairs, language=tag, encoder=system, seed=seed, progress=progress),
        }
    with atomic_file(out / "qa" / f"rewrite-{corpus}.json") as file:
        file.write(orjson.dumps(quality, option=orjson.OPT_INDENT_2) + b"\n")
    return {**quality, "out": str(out), **card, **requests, "spent": asdict(budget.spent)}


def _split_options(options: RewriteOptions) -> tuple[Spending, dict[str, Any], TranslatorOptions]:
    """Return (what it may cost, the options of batches that say something, the options of the translator llm)."""
    names = Spending.__annotations__.keys(), BatchOptions.__annotations__.keys()
    spending = {name: value for name, value in options.items() if name in names[0]}
    of_model = {name: value for name, value in options.items() if name not in names[0] | names[1]}
    return cast(Spending, spending), select_batching(options), cast(TranslatorOptions, of_model)


def _identify(selection: Selection) -> dict[str, str]:
    """Identify the rewriting in its journal, which another cannot resume."""
    source = selection.source
    return {
        "source": source.card.name,
        CORPUS: replace(source, queries={}, qrels={}).fingerprint,
        "from": source.card.language,
        "to": source.card.language,
        "words": f"{MIN_WORDS} to {MAX_WORDS}",
        "sample": selection.drawn,
        # Which documents are drawn depends on the judgements.
        **({} if selection.drawn == "all" else {"splits": ",".join(selection.fingerprints)}),
    }


def _summarise(plan: Plan, journal: Journal, name: str, out: Path) -> Mapping[str, Any]:
    """Summarise the answers, and write them to qa/.

    Raises BackendError where the service gave no answer to some texts, or the model rewrote none of them.
    """
    outcome = summary(journal, plan, keep_untranslated=False)
    write_quality(out, journal, plan, outcome)
    reasons = outcome["passes"][0]["reasons"]
    again = f"so no corpus was written; see {out / 'qa'}. Ask again with {option('retry_failed', True)}."
    if unanswered := {reason: n for reason, n in reasons.items() if reason in UNANSWERED}:
        which = ", ".join(f"{n:,} {reason}" for reason, n in unanswered.items())
        raise BackendError(f"{sum(unanswered.values()):,} documents of {name} have no answer ({which}), {again}")
    if not outcome["translated"]:
        which = ", ".join(f"{n:,} {reason}" for reason, n in reasons.items())
        raise BackendError(f"The model rewrote none of {outcome['segments']:,} documents of {name} ({which}), {again}")
    return outcome

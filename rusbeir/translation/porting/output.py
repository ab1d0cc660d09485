"""The dataset that a port makes, its card, and what a reader should know of its quality."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from rusbeir import __version__
from rusbeir.datasets import Material, describe_source, replace_dataset, whole_documents, write_card
from rusbeir.jobs import Journal, TaskResult
from rusbeir.storage import atomic_file
from rusbeir.text import batched
from rusbeir.translation.porting.plan import RETRIED, Plan, TranslatorEntry
from rusbeir.types import Card, Progress

PAGE_DOCS = 500
UNTRANSLATED = "untranslated"

Translate = Callable[[str, Sequence[str]], Sequence[str]]
"""The translations of texts; called with "document" and the texts of documents, page after page in corpus order, then
with "query" and those of all queries."""


def publish(out: Path, material: Material, translate: Translate, card: Card, progress: Progress) -> str:
    """Write corpus.jsonl, queries.jsonl, the qrels of all splits and card.json into out, and return the fingerprint.

    A split without judgements is not written. The card, its counts and the fingerprint describe the split `test`, or
    the first one where there is none of that name. All files appear once all are complete, the card last.
    """
    dataset = material.dataset
    splits = {split: qrels for split, qrels in material.splits.items() if qrels}
    described = "test" if "test" in splits else next(iter(splits))
    with replace_dataset(out, "port") as writer:
        total = len(dataset.corpus)
        n_docs = 0
        for page in batched(whole_documents(dataset.corpus), PAGE_DOCS):
            translations = iter(translate("document", list(material.document_texts(doc for doc, _ in page))))
            for doc, keys in page:
                writer.add_document(material.with_texts(doc, translations), keys)
            n_docs += len(page)
            progress("write documents", n_docs, total)
        queries = dict(dataset.queries)
        if "query" in material.fields:
            ids = [query_id for query_id, text in queries.items() if text]
            queries.update(zip(ids, translate("query", material.query_texts()), strict=True))
        for query_id, text in queries.items():
            writer.add_query(query_id, text, material.query_metadata.get(query_id, {}))
        for split, qrels in splits.items():
            writer.add_judgements(split, qrels)
    content = writer.content(described)
    write_card(out, replace(card, split=described), content)
    return content.fingerprint


def summary(journal: Journal, plan: Plan, *, keep_untranslated: bool, rounds: Sequence[Plan] = ()) -> dict[str, Any]:
    """Sum up what became of the units, translator by translator and level by level; no times, no costs.

    "kept" are units that the last translator returned unchanged and that stay so in the dataset, on demand only. With
    rounds of retries, "retries" tells of these, and flags of translations that they replaced do not count.
    """
    rows, flagged = _count_passes(journal, plan)
    last = rows[-1]
    n_kept = last["reasons"].get(UNTRANSLATED, 0) if keep_untranslated else 0
    counts = {
        "segments": sum(row["done"] for row in rows) + last["failed"] + last["pending"],
        "translated": sum(row["done"] for row in rows),
        "kept": n_kept,
        "missing": last["failed"] + last["pending"] - n_kept,
        "flagged": flagged,
        "passes": rows,
    }
    if not rounds:
        return counts
    retries = [row for round_plan in rounds for row in _count_passes(journal, round_plan)[0]]
    return {**counts, "flagged": sum(1 for _ in _find_used(journal, plan, flagged=True)), "retries": retries}


def _count_passes(journal: Journal, plan: Plan) -> tuple[list[dict[str, Any]], int]:
    """Count what became of the units of each step, and how many answers have flags."""
    rows: list[dict[str, Any]] = []
    flagged = 0
    for step in plan.steps:
        states: Counter[str] = Counter()
        reasons: Counter[str] = Counter()
        flags: Counter[str] = Counter()
        chars = 0
        for group in step.queue(journal).counts():
            states[group.state] += group.tasks
            chars += group.chars
            if group.state == "failed":
                reasons[group.word] += group.tasks
            elif group.word:
                flagged += group.tasks
                for flag in group.word.split(","):
                    flags[flag.partition(":")[0]] += group.tasks
        row = {"translator": step.entry.name, "signature": step.entry.signature, "level": step.level, "chars": chars}
        counts = {state: states[state] for state in ("done", "failed", "pending")}
        # The most frequent first, equally frequent ones by the alphabet.
        words = {
            name: dict(sorted(counter.items(), key=lambda item: (-item[1], item[0])))
            for name, counter in (("reasons", reasons), ("flags", flags))
        }
        rows.append({**row, **counts, **words})
    return rows, flagged


def _find_used(journal: Journal, plan: Plan, *, flagged: bool) -> Iterator[tuple[str, TaskResult]]:
    """Find the translations in use, flagged only those with flags, each behind the signature of its translator.

    Step by step in the order of their first occurrence; segments that were translated again come last.
    """
    queues = [round_plan.retried(journal) for round_plan in plan.rounds(journal)]
    retried = {result.task.payload: result for queue in queues for result in queue.results("done")}
    for step in plan.steps:
        for result in step.queue(journal).results("done", flagged=flagged):
            if result.task.payload not in retried:
                yield step.entry.signature, result
    for result in retried.values():
        if result.flags or not flagged:
            yield RETRIED, result


def write_quality(out: Path, journal: Journal, plan: Plan, counts: Mapping[str, Any]) -> None:
    """Write qa/summary.json, qa/failures.jsonl (units without a translation) and qa/flagged.jsonl into out."""
    with atomic_file(out / "qa" / "summary.json") as file:
        file.write(orjson.dumps(counts, option=orjson.OPT_INDENT_2) + b"\n")
    last = plan.steps[-1]
    failures = (
        {
            "source": result.task.payload,
            "reason": result.error.partition(": ")[0],
            "detail": result.error.partition(": ")[2],
            "translator": last.entry.signature,
        }
        for result in last.queue(journal).results("failed")
    )
    flagged = (
        {
            "source": result.task.payload,
            "translation": result.result,
            "flags": result.flags.split(","),
            "translator": translator,
        }
        for translator, result in _find_used(journal, plan, flagged=True)
    )
    for name, rows in (("failures.jsonl", failures), ("flagged.jsonl", flagged)):
        with atomic_file(out / "qa" / name) as file:
            for row in rows:
                try:
                    line = orjson.dumps(row)
                except orjson.JSONEncodeError:
                    # Unpaired surrogates, which no translator accepts, can only be written as escapes.
                    line = json.dumps(row).encode()
                file.write(line + b"\n")


def aligned_pairs(journal: Journal, plan: Plan) -> Iterator[tuple[str, str]]:
    """Return (source, translation) of each unit that is done, once, in the order of _find_used."""
    return ((result.task.payload, result.result) for _, result in _find_used(journal, plan, flagged=False))


def ported_card(
    source: Card,
    source_fingerprints: Mapping[str, str],
    target: str,
    entries: Sequence[TranslatorEntry],
    settings: Mapping[str, str],
    counts: Mapping[str, Any],
) -> Card:
    """Return the card of a dataset that was made of another; found is what summary says. The same port, the same card.

    entries are all translators, also those of retries.

    source_fingerprints has those of the source's splits.

    A translation is a derivative work: it has the source's licence, and what a translator's model demands in
    addition is in that translator's entry.
    """
    done = {entry.signature: 0 for entry in entries}
    for row in (*counts["passes"], *counts.get("retries", ())):
        done[row["signature"]] += row["done"]
    fields = settings["fields"].split(",")
    language = target if "text" in fields else source.language
    asked_in = target if "query" in fields else source.asked_in
    sample = "" if settings["sample"] == "all" else f"-sample{settings['sample'].split()[0]}"
    return replace(
        source,
        name=f"{source.name}@{target}{sample}",
        language=language,
        query_language=asked_in if asked_in != language else "",
        revision="",
        author="",
        citation="",
        provenance={
            "made_by": f"rusbeir {__version__}, port",
            "source": describe_source(source, source_fingerprints),
            "translators": [
                {
                    "name": entry.name,
                    "signature": entry.signature,
                    "about": entry.about,
                    "segments": done[entry.signature],
                }
                for entry in entries
            ],
            "settings": dict(settings),
            "counts": {name: counts[name] for name in ("segments", "translated", "kept", "flagged")},
        },
    )

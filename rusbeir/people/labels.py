"""People's labels of a sample of the pairs that a model labelled in `rusbeir synth qc`, and what they say of all."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rusbeir.datasets import ALL_SPLITS, QA, load_splits, read_card, read_jsonl
from rusbeir.errors import BadInput, option
from rusbeir.evaluation import estimate_mean
from rusbeir.jobs import read_prompts
from rusbeir.people.sampling import hash_parts, refuse_empty
from rusbeir.people.sheet_files import Form, Guide, Line
from rusbeir.synthesis import (
    DECISIONS,
    DECISIONS_REMEDY,
    KEEP,
    POSITIVE,
    RELEVANCE_PROMPTS,
    REMOVED,
    REMOVED_SHAPES,
    SCALE,
    read_decisions,
)
from rusbeir.text import digest
from rusbeir.types import Doc, Progress, join_title, silent

LABELS = Form(texts=("query", "document"), questions=("label",), scale=SCALE)


class Slice(NamedTuple):
    """A choice among the decisions of `rusbeir synth qc`: those that have all of its values; None allows any."""

    step: str | None = None
    kind: str | None = None
    action: str | None = None


EVERYTHING = Slice()


class LabelStratum(NamedTuple):
    """Decisions that are similar: labels of people are drawn from each in proportion to its size."""

    step: str
    kind: str
    label: int
    """The model's label."""


def guide_labels() -> Guide:
    """The instructions on a sheet of labels."""
    table = read_prompts(RELEVANCE_PROMPTS)["en"]
    return Guide(
        "Documents to label",
        "Label how relevant each document is to its query, from 0 to 3. Judge by what the document says, not by what "
        "you know.",
        ("Query", "Document"),
        {"label": "How well does the document answer the query?"},
        {label: table["scale"][label] for label in reversed(LABELS.scale)},
    )


def draw_labels(
    folder: Path, *, n: int, seed: int, only: Slice, progress: Progress = silent
) -> tuple[list[Line], dict[str, Any]]:
    """n pairs of query and document that the model labelled, or all where they are fewer, and the key of their sheets.

    Each stratum has its share of the sample, so that what is counted in the sample holds for all. Raises BadInput where
    nothing is labelled in that slice, and for texts that are missing.
    """
    refuse_empty(n)
    labelled = _read_labelled(folder, only, seed)
    if not labelled:
        chosen = ", ".join(f"{option(name, value)}" for name, value in only._asdict().items() if value)
        raise BadInput(f"{folder / QA / DECISIONS}: no decision has a label" + (f" with {chosen}." if chosen else "."))
    if len({row["id"] for row in labelled}) < len(labelled):
        raise BadInput(f"{folder / QA / DECISIONS}: the id of a decision is repeated. {DECISIONS_REMEDY}")
    n = min(n, len(labelled))
    drawn = [labelled[(2 * number + 1) * len(labelled) // (2 * n)] for number in range(n)]
    drawn.sort(key=lambda row: hash_parts(seed, "item", row["id"]))
    items = {hash_parts(seed, "item", row["id"]).hex()[:12]: row for row in drawn}
    texts = _find_texts(folder, drawn, progress)
    card = read_card(folder)
    rules = card.get("provenance", {}).get("rules")
    positive = rules.get("positive") if isinstance(rules, dict) else None
    key = {
        "decisions": str(card.get("name", folder.name)),
        "fingerprint": _digest_labels(labelled),
        "seed": seed,
        **{name: value for name, value in only._asdict().items() if value},
        "positive": positive if positive in LABELS.scale[1:] else POSITIVE,
        "strata": [{**stratum._asdict(), "n": len(list(rows))} for stratum, rows in groupby(labelled, key=_stratum)],
        "items": {
            item: {
                **{name: row[name] for name in ("id", "step", "kind", "query_id", "doc_id", "label", "action")},
                "digest": digest(*pair),
            }
            for (item, row), pair in zip(items.items(), texts, strict=True)
        },
    }
    return [Line(item, *pair) for item, pair in zip(items, texts, strict=True)], key


def find_unchanged_pairs(folder: Path, key: Mapping[str, Any], progress: Progress = silent) -> list[str]:
    """The items of a key whose texts are still those of the folder; [] where the model's labels are others.

    Keys of earlier versions do not know the texts, which are then taken to be unchanged.
    """
    labelled = _read_labelled(folder, Slice(*(key.get(name) for name in Slice._fields)), key["seed"])
    if key["fingerprint"] != _digest_labels(labelled):
        return []
    items = key["items"]
    texts = _find_texts(folder, list(items.values()), progress)
    pairs = zip(items.items(), texts, strict=True)
    return [item for (item, about), pair in pairs if about.get("digest") in (None, digest(*pair))]


def _read_labelled(folder: Path, only: Slice, seed: int) -> list[dict[str, Any]]:
    """The decisions with a label, by stratum and in an order drawn by the seed."""
    chosen = {name: value for name, value in only._asdict().items() if value}
    labelled = [
        row
        for row in read_decisions(folder)
        if row["label"] is not None and all(row[name] == value for name, value in chosen.items())
    ]
    return sorted(labelled, key=lambda row: (_stratum(row), hash_parts(seed, row["id"])))


def _digest_labels(labelled: Sequence[Mapping[str, Any]]) -> str:
    return digest(*(f"{row['id']} {row['label']}" for row in labelled))


def _stratum(row: Mapping[str, Any]) -> LabelStratum:
    return LabelStratum(row["step"], row["kind"], row["label"])


def _find_texts(folder: Path, rows: Sequence[Mapping[str, Any]], progress: Progress) -> list[tuple[str, str]]:
    """The query and the document of each decision, also of those that were dropped."""
    dataset = load_splits(folder, split=ALL_SPLITS, all_queries=True, progress=progress).dataset
    queries = {row["query_id"]: dataset.queries.get(row["query_id"]) for row in rows}
    documents: dict[str, str | None] = dict.fromkeys(row["doc_id"] for row in rows)
    for doc_id in documents:
        with contextlib.suppress(KeyError):
            documents[doc_id] = _join(dataset.corpus[doc_id])
    if (path := folder / QA / REMOVED).exists():
        for row in read_jsonl(path, REMOVED_SHAPES, DECISIONS_REMEDY):
            if row.get("query_id") in queries:
                queries[row["query_id"]] = row["text"]
            elif row.get("doc_id") in documents:
                documents[row["doc_id"]] = _join(Doc(row["doc_id"], row["text"], row["title"]))
    texts = []
    for row in rows:
        query, document = queries[row["query_id"]], documents[row["doc_id"]]
        if query is None or document is None:
            what = f"query {row['query_id']!r}" if query is None else f"document {row['doc_id']!r}"
            raise BadInput(f"{folder} has no text of the {what}, which {DECISIONS} names. {DECISIONS_REMEDY}")
        texts.append((query, document))
    return texts


def _join(doc: Doc) -> str:
    return join_title(doc.title, doc.text, "\n")


_STRATUM = {"step": str, "kind": str, "label": {*LABELS.scale}}
LABELS_KEY = {
    "positive": {*LABELS.scale[1:]},
    "strata": [{**_STRATUM, "n": int}],
    "items": {str: {"id": str, "query_id": str, "doc_id": str, "action": str, "digest?": str, **_STRATUM}},
    "fingerprint": str,
    "seed": int,
    **{f"{name}?": str for name in Slice._fields},
}
"""The shape of the key of a sheet of labels."""
_MAX_DECISIONS = 10_000_000
Labels = Mapping[str, Mapping[str, int]]
"""rater -> item id -> label."""


def estimate_shares(people: Labels, key: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Estimate how many of the pairs that the model labelled people would label with each threshold or more.

    The keys are `>= t`, the values the model's own share (`judge`) and the fields of PoweredMean; {} for fewer than two
    labels. Where raters differ about a pair, it counts by the share of them that label it so. Raises BadInput for a
    damaged key.
    """
    sizes = {(row["step"], row["kind"], row["label"]): row["n"] for row in key["strata"]}
    if not (all(n > 0 for n in sizes.values()) and sum(sizes.values()) <= _MAX_DECISIONS):
        raise BadInput("The strata in the key of the sheets have impossible sizes. Restore the file.")
    # The pairs of a stratum differ in nothing that is known here, so those of the sample take its first places.
    ends = dict(zip(sizes, np.cumsum(list(sizes.values())).tolist(), strict=True))
    free = {stratum: ends[stratum] - n for stratum, n in sizes.items()}
    labels_by_row: dict[int, list[int]] = {}
    for item, about in key["items"].items():
        stratum = about["step"], about["kind"], about["label"]
        if stratum not in free or free[stratum] == ends[stratum]:
            raise BadInput("The strata in the key of the sheets lack pairs of the sample. Restore the file.")
        if labels := [by_item[item] for by_item in people.values() if item in by_item]:
            labels_by_row[free[stratum]] = labels
        free[stratum] += 1
    if len(labels_by_row) < 2:
        return {}
    judge = np.repeat([label for _, _, label in sizes], list(sizes.values()))
    strata = np.repeat(np.arange(len(sizes)), list(sizes.values()))
    shares = {}
    for threshold in LABELS.scale[1:]:
        positive = {row: float(np.mean(np.array(labels) >= threshold)) for row, labels in labels_by_row.items()}
        mean = estimate_mean(positive, (judge >= threshold).astype(np.float64), strata)
        shares[f">= {threshold}"] = {"judge": float((judge >= threshold).mean()), **asdict(mean)}
    return shares


def list_contradicted(people: Labels, key: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The decisions whose label is on one side of the threshold and those of most people on the other.

    Those that changed something come first: they can be undone by their `decision`.
    """
    positive = key["positive"]
    contradicted = []
    for item, about in sorted(key["items"].items()):
        labels = {rater: by_item[item] for rater, by_item in people.items() if item in by_item}
        n_positive = sum(label >= positive for label in labels.values())
        n_other = n_positive if about["label"] < positive else len(labels) - n_positive
        if 2 * n_other > len(labels):
            about_decision = {name: about[name] for name in ("step", "kind", "query_id", "doc_id", "action")}
            contradicted.append(
                {"decision": about["id"], "item": item, **about_decision, "judge": about["label"], "people": labels}
            )
    return sorted(contradicted, key=lambda row: row["action"] == KEEP)

"""A sample of a port for people and judges: documents and queries of every length and quality, drawn by a seed."""

from __future__ import annotations

import hashlib
import heapq
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from rusbeir.audit import AlignedPort, Field, Record, read_report
from rusbeir.datasets import read_audited_texts
from rusbeir.errors import BadInput
from rusbeir.text import digest
from rusbeir.types import Dataset

PARTS = ((4, 10), (4, 5), (2, 5), (2, 2), (1, 1))
"""Into how many equal parts texts of each kind are divided by length and by quality: the finest that are filled."""
MIN_DRAWN = 2
"""Texts of each stratum, or all where it has fewer, so that every text can be drawn and the spread is known."""


class TextStratum(NamedTuple):
    """Texts that are similar: of one kind, length, quality, and flagged or not."""

    kind: str
    length: int
    """From 1, the shortest part, up."""
    decile: int
    """The part by quality estimation, else by chrF, of ten or fewer, from 1, the lowest, up; 0 without a score."""
    flagged: bool
    """Also False where a small sample does not tell flagged texts from others."""


class Item(NamedTuple):
    """One text of the sample."""

    item_id: str
    """Reveals nothing about the text; equal for the same port, text and seed."""
    kind: str
    record_id: str
    source: str
    translation: str
    stratum: TextStratum
    weight: float
    """How many texts of the port it represents."""
    digest: str
    """The digest of its text in the port (`find_digest`)."""
    fields: tuple[Field, ...]
    """The fields that source and translation are made of, one on each line, with their segments."""


def draw_sample(port: AlignedPort, n: int, seed: int) -> list[Item]:
    """n texts of a checked port, or all where it has fewer, in an order drawn by the seed.

    Each stratum is in it, so that rare texts (flagged, long, of low chrF) are; the weights restore the proportions of
    the port. A small sample has fewer strata. Raises BadInput for a port that has not been checked.
    """
    refuse_empty(n)
    read_report(port)
    drawn = draw_rows([row for row in read_audited_texts(port.folder) if row["chars"]], n, seed)
    items = []
    for record in port.records():
        if (record.kind, record.record_id) in drawn:
            stratum, weight = drawn[record.kind, record.record_id]
            item_id = hash_parts(seed, port.dataset.card.name, record.kind, record.record_id).hex()[:12]
            of_text = find_digest(port.dataset, {"kind": record.kind, "id": record.record_id})
            texts = _join_fields(record)
            about = (item_id, record.kind, record.record_id)
            items.append(Item(*about, *texts, stratum, weight, of_text, record.fields))
    return sorted(items, key=lambda item: item.item_id)


def draw_rows(rows: Sequence[dict[str, Any]], n: int, seed: int) -> dict[tuple[str, str], tuple[TextStratum, float]]:
    """(kind, id) -> stratum and weight of n of the rows of a port's texts.jsonl."""
    strata = _divide(rows, n)
    for members in strata.values():
        members.sort(key=lambda row: hash_parts(seed, row["kind"], row["id"]))
    taken = _allocate({stratum: len(members) for stratum, members in strata.items()}, n)
    return {
        (row["kind"], row["id"]): (stratum, len(members) / taken[stratum])
        for stratum, members in strata.items()
        for row in members[: taken[stratum]]
    }


def _allocate(sizes: Mapping[TextStratum, int], n: int) -> Counter[TextStratum]:
    """Divide n texts among the strata: first MIN_DRAWN of each, then always one that represents the most."""

    def rank(stratum: TextStratum, n_taken: int) -> tuple[int, float, TextStratum]:
        return min(n_taken, MIN_DRAWN), -sizes[stratum] / max(n_taken, 1), stratum

    taken: Counter[TextStratum] = Counter()
    waiting = [rank(stratum, 0) for stratum in sizes]
    heapq.heapify(waiting)
    while waiting and taken.total() < n:
        *_, stratum = heapq.heappop(waiting)
        taken[stratum] += 1
        if taken[stratum] < sizes[stratum]:
            heapq.heappush(waiting, rank(stratum, taken[stratum]))
    return taken


def _join_fields(record: Record) -> tuple[str, str]:
    return "\n".join(field.source for field in record.fields), "\n".join(field.translation for field in record.fields)


def _divide(rows: Sequence[dict[str, Any]], n: int) -> dict[TextStratum, list[dict[str, Any]]]:
    """The texts by stratum: as finely as n texts can represent, else by kind alone."""
    for lengths, deciles, flags in (*((*parts, True) for parts in PARTS), (1, 1, False)):
        strata: dict[TextStratum, list[dict[str, Any]]] = {}
        for row, stratum in zip(rows, _stratify(rows, lengths, deciles, flags), strict=True):
            strata.setdefault(stratum, []).append(row)
        # The other half goes where most texts are: equal parts would tell less of the port.
        if n >= len(rows) or 2 * sum(min(MIN_DRAWN, len(members)) for members in strata.values()) <= n:
            break
    return strata


def _stratify(rows: Sequence[dict[str, Any]], lengths: int, deciles: int, flags: bool) -> Iterator[TextStratum]:
    cuts: dict[str, tuple[list[float], list[float]]] = {}
    for kind in ("document", "query"):
        of_kind = [row for row in rows if row["kind"] == kind]
        scores = [score for row in of_kind if (score := _find_quality(row)) is not None]
        cuts[kind] = (_cuts([row["chars"] for row in of_kind], lengths), _cuts(scores, deciles))
    for row in rows:
        by_length, by_score = cuts[row["kind"]]
        score = _find_quality(row)
        decile = 0 if score is None else 1 + bisect_right(by_score, score)
        yield TextStratum(row["kind"], 1 + bisect_right(by_length, row["chars"]), decile, flags and bool(row["flags"]))


def _find_quality(row: dict[str, Any]) -> float | None:
    """The score of the first quality estimation, else chrF; None where a text has neither."""
    scores: dict[str, float | None] = row.get("qe") or {}
    return next(iter(scores.values())) if scores else row.get("chrF")


def _cuts(values: Sequence[float], parts: int) -> list[float]:
    """The values that separate equal parts."""
    cuts: list[float] = np.quantile(values, np.arange(1, parts) / parts).tolist() if values else []
    return cuts


def find_digest(dataset: Dataset, about: Mapping[str, Any]) -> str:
    """Identifies the text that the document or query of that `kind` and `id` has; "" where there is none."""
    record_id = about.get("id", "")
    if about.get("kind") == "query":
        text = dataset.queries.get(record_id)
        return "" if text is None else digest(text)
    try:
        doc = dataset.corpus[record_id]
    except KeyError:
        return ""
    return digest(doc.title, doc.text)


def refuse_empty(n: int) -> None:
    """Raise BadInput for a sample without a text."""
    if n < 1:
        raise BadInput(f"-n {n} is too small. Draw at least 1 text.")


def hash_parts(seed: int, *parts: str) -> bytes:
    """The sha256 of the seed and the parts: an order, or an id, that tells nothing."""
    return hashlib.sha256("\0".join([str(seed), *parts]).encode()).digest()

"""Collapse: distinct sources that became one text, which no system can tell apart any more.

Memory holds two hashes for each document, and the ids of those that collapsed.
"""

from __future__ import annotations

import heapq
from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import regex

from rusbeir.audit.port_checks.aligned import Record
from rusbeir.audit.port_checks.measurement import RecordFile
from rusbeir.audit.port_checks.tally import EXAMPLES, SHOWN
from rusbeir.datasets import hash_id
from rusbeir.types import Qrels

_NOT_COMPARED = regex.compile(r"[\p{P}\p{Z}\p{C}]+")


class Collapsed(NamedTuple):
    """The documents or queries whose texts became one, though their sources differ."""

    groups: Mapping[int, Sequence[str]]
    """The hash of the text that they became -> their ids."""
    examples: list[dict[str, Any]]
    n: int
    """How many documents or queries the port has, of those that are in the source."""

    @property
    def ids(self) -> frozenset[str]:
        return frozenset(record_id for ids in self.groups.values() for record_id in ids)

    def summary(self) -> dict[str, Any]:
        """Counts, and the largest groups."""
        texts = sum(map(len, self.groups.values()))
        return {
            "groups": len(self.groups),
            "texts": texts,
            "share": texts / max(self.n, 1),
            "examples": self.examples,
        }


def find_collapse(records: RecordFile, kind: str) -> Collapsed:
    """Distinct sources that became one text, where case, punctuation and white space do not count."""
    sources, translations = array("Q"), array("Q")
    for record in _of_kind(records, kind):
        sources.append(_hash_texts(field.source for field in record.fields))
        translations.append(_hash_texts(field.translation for field in record.fields))
    pairs = np.stack([np.frombuffer(side, dtype=np.uint64) for side in (translations, sources)], axis=1)
    distinct = np.unique(pairs[pairs[:, 0] != 0], axis=0)[:, 0]
    texts, counts = np.unique(distinct, return_counts=True)
    same = set(texts[counts > 1].tolist())
    groups: dict[int, list[str]] = defaultdict(list)
    shown: dict[int, list[dict[str, str]]] = defaultdict(list)
    for number, record in enumerate(_of_kind(records, kind) if same else ()):
        text = translations[number]
        if text in same:
            groups[text].append(record.record_id)
            if len(rows := shown[text]) < EXAMPLES:
                rows.append(
                    {
                        "id": record.record_id,
                        "source": "\n".join(field.source for field in record.fields),
                        "translation": "\n".join(field.translation for field in record.fields),
                    }
                )
    largest = heapq.nlargest(SHOWN, groups, key=lambda text: len(groups[text]))
    examples = [{"n": len(groups[text]), "texts": shown[text]} for text in largest]
    return Collapsed(groups, examples, len(sources))


def find_twins(collapsed: Collapsed, qrels: Qrels) -> Iterator[dict[str, Any]]:
    """Relevant documents with the unjudged documents that became the same text: a system finds all of them or none."""
    group_of = {doc_id: text for text, ids in collapsed.groups.items() for doc_id in ids}
    for query_id, grades in qrels.items():
        for doc_id, grade in grades.items():
            if grade > 0 and doc_id in group_of:
                twins = [other for other in collapsed.groups[group_of[doc_id]] if other not in grades]
                if twins:
                    yield {"query": query_id, "relevant": doc_id, "twins": twins}


def _of_kind(records: RecordFile, kind: str) -> Iterator[Record]:
    return (record for batch in records.batches() for record in batch if record.kind == kind)


def _hash_texts(texts: Iterator[str]) -> int:
    """Return a hash of the letters, digits and symbols of the texts; 0 where there are none."""
    plain = "\n".join([_NOT_COMPARED.sub("", text.casefold()) for text in texts])
    return hash_id(plain) if plain.strip() else 0

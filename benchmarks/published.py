"""What `rusbeir audit published` finds of planted faults, and what it flags in good ports.

python -m benchmarks.published [xquad] [nfcorpus]

Each fault is planted in 1 % of the documents and queries of a port, in several draws; dropped are 1 % of the queries,
and the relevant documents of one more. Texts left untranslated have at least four words: a shorter one cannot be told
from a name. Recall and precision are over all draws. What is flagged without any fault is not a false alarm of a
draw, but has a row of its own. NFCorpus is translated into Spanish by Apertium, which must be installed.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import run
from rusbeir.audit.published_ports.published import COLLAPSE, DRIFT, DROPPED, check_published
from rusbeir.datasets import TEXTS, load, write_beir
from rusbeir.translation.porting.api import port as translate
from rusbeir.types import Dataset, Doc, MemoryCorpus

SHARE = 0.01
LEAST = 3
"""Faults of each kind in a small dataset."""
KINDS = ("document", "query")

Key = tuple[str, str]
"""The kind of a record, and its id."""
Text = tuple[str, str]
"""Title and text; the title of a query is empty."""


class Planted(NamedTuple):
    """A port with faults."""

    port: Dataset
    where: dict[str, set[Key]]
    """fault -> the records that have it."""
    twins: set[Key]
    """Good records whose text others have as well; they are rightly found with these."""


DAMAGES: dict[str, Callable[[Text, Text, Text], Text]] = {
    "collapse": lambda source, good, other: other,
    "doubled": lambda source, good, other: (good[0], f"{good[1]} {good[1]}"),
    "empty": lambda source, good, other: ("", ""),
    "untranslated": lambda source, good, other: source,
}
"""Called with a source, its translation and another translation."""
FAULTS = (*DAMAGES, "drift", "dropped")


def plant(source: Dataset, port: Dataset, seed: int) -> Planted:
    """The port with each fault in 1 % of its documents and queries; no record has two."""
    draw = random.Random(seed)
    sources, good = _read_texts(source), _read_texts(port)
    texts = dict(good)
    where: dict[str, set[Key]] = {fault: set() for fault in FAULTS}
    twins: set[Key] = set()
    spared = set()
    # Where two have one text already, nobody could say which of them has a fault.
    counts = Counter([*good.values(), *sources.values()])
    for kind in KINDS:
        keys = [key for key in good if key[0] == kind and counts[good[key]] == counts[sources[key]] == 1]
        n = max(round(SHARE * len(keys)), LEAST)
        for cycle in _draw_cycles(keys, n, draw):
            texts |= {key: good[other] for key, other in zip(cycle, [*cycle[1:], cycle[0]], strict=True)}
            where["drift"] |= set(cycle)
        left = [key for key in keys if key not in where["drift"]]
        draw.shuffle(left)
        for fault, damage in DAMAGES.items():
            for _ in range(n):
                key = next(key for key in left if fault != "untranslated" or len(sources[key][1].split()) > 3)
                left.remove(key)
                other = left.pop()
                texts[key] = damage(sources[key], good[key], good[other])
                where[fault].add(key)
                if fault == "collapse":
                    twins.add(other)
        spared = set(left)
    lost = draw.sample(sorted(spared), max(round(SHARE * len(port.queries)), LEAST))
    fewest = min(port.qrels, key=lambda query_id: (len(port.qrels[query_id]), query_id))
    removed = {("document", doc_id) for doc_id in port.qrels[fewest]}
    texts_left = {key: text for key, text in texts.items() if key not in removed and key not in lost}
    qrels = {query_id: grades for query_id, grades in port.qrels.items() if ("query", query_id) in texts_left}
    where["dropped"] = {*lost} | {
        ("query", query_id)
        for query_id, grades in qrels.items()
        if not any(grade > 0 and ("document", doc_id) in texts_left for doc_id, grade in grades.items())
    }
    corpus = MemoryCorpus(Doc(key[1], text, title) for key, (title, text) in texts_left.items() if key[0] == "document")
    queries = {key[1]: text for key, (_, text) in texts_left.items() if key[0] == "query"}
    damaged = replace(port, corpus=corpus, queries=queries, qrels=qrels)
    return Planted(damaged, {fault: damaged_keys - removed for fault, damaged_keys in where.items()}, twins - removed)


def _read_texts(dataset: Dataset) -> dict[Key, Text]:
    texts: dict[Key, Text] = {("document", doc.doc_id): (doc.title, doc.text) for doc in dataset.corpus}
    return texts | {("query", query_id): ("", text) for query_id, text in dataset.queries.items()}


def _draw_cycles(keys: list[Key], n: int, draw: random.Random) -> list[list[Key]]:
    """Texts that change places, two or three at once, n or a few more: half of them neighbours."""
    cycles: list[list[Key]] = []
    taken: set[Key] = set()
    while len(taken) < n:
        size = draw.choice([2, 3])
        start = draw.randrange(len(keys) - size)
        cycle = keys[start : start + size] if draw.random() < 0.5 else draw.sample(keys, size)
        if taken.isdisjoint(cycle):
            taken |= set(cycle)
            cycles.append(cycle)
    return cycles


def find_faults(source: str, port: str | Path, out: Path) -> tuple[dict[str, set[Key]], dict[str, Any]]:
    """fault -> the records that the audit flags for it; and its report."""
    report = check_published(source, port, out=out)
    flagged: dict[str, set[Key]] = {fault: set() for fault in FAULTS}
    for row in _rows(out / TEXTS):
        for flag in row["flags"]:
            flagged.setdefault(flag, set()).add((row["kind"], row["id"]))
    flagged["collapse"] = {(row["kind"], record_id) for row in _rows(out / COLLAPSE) for record_id in row["ids"]}
    flagged["drift"] = {(row["kind"], row["record_id"]) for row in _rows(out / DRIFT)}
    flagged["dropped"] = {("query", row["query"]) for row in _rows(out / DROPPED)}
    return flagged, report


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def measure(name: str, source: str, port: str | Path, folder: Path, draws: int) -> list[dict[str, Any]]:
    """Recall and precision of each fault, and what is flagged in the port as it is."""
    original, good = load(source), load(port)
    clean, report = find_faults(source, port, folder / "clean")
    n = len(good.corpus) + len(good.queries)
    planted: Counter[str] = Counter()
    right: Counter[str] = Counter()
    alarms: Counter[str] = Counter()
    for seed in range(draws):
        damaged = plant(original, good, seed)
        write_beir(damaged.port, folder / f"port-{seed}")
        flagged, _ = find_faults(source, folder / f"port-{seed}", folder / f"audit-{seed}")
        for fault in FAULTS:
            there = damaged.where[fault]
            planted[fault] += len(there)
            right[fault] += len(there & flagged[fault])
            ignored = clean[fault] | (damaged.twins if fault == "collapse" else set())
            alarms[fault] += len(flagged[fault] - there - ignored)
    what = f"{name}, {draws} draws"
    rows: list[dict[str, Any]] = []
    for fault in FAULTS:
        known = {
            "what": what,
            "planted": planted[fault],
            "found": right[fault],
            "false": alarms[fault],
            "at_least": 0.95,
        }
        precision = right[fault] / max(right[fault] + alarms[fault], 1)
        rows.append({**known, "measure": f"recall of {fault}", "value": right[fault] / planted[fault]})
        rows.append({**known, "measure": f"precision of {fault}", "value": precision})
    for fault in FAULTS:
        share = len(clean[fault]) / n
        rows.append({"what": f"{name}, clean", "measure": f"{fault} flagged", "value": share, "at_most": 0.005})
    rows.append({"what": f"{name}, clean", "measure": "segments flagged", "value": report["flagged"]["share"]})
    return rows


def xquad(folder: Path) -> list[dict[str, Any]]:
    return measure("XQuAD en-ru", "xquad/en", "xquad/ru", folder, draws=10)


def nfcorpus(folder: Path) -> list[dict[str, Any]]:
    source = "cocktail/nfcorpus/human"
    translate(source, to="es", translator="apertium", out=folder / "port", keep_untranslated=True)
    return measure("NFCorpus en-es", source, folder / "port", folder, draws=3)


DATASETS = {"xquad": xquad, "nfcorpus": nfcorpus}


def rows(*names: str) -> list[dict[str, Any]]:
    """what, measure, value, and at_least or at_most where the figure is claimed."""
    figures = []
    for name in names or DATASETS:
        with tempfile.TemporaryDirectory() as folder:
            figures += DATASETS[name](Path(folder))
    return figures


if __name__ == "__main__":
    run.find_data()
    for row in rows(*sys.argv[1:]):
        print(json.dumps(row))

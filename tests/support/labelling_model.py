"""A small made test set with planted flaws, and a model at an endpoint that labels its pairs."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.support.openai_server import Endpoint, Reply, completion

TEXTS = {
    "water": "Water boils at one hundred degrees in a kettle by the sea.",
    "steam": "A kettle by the sea: its water turns to steam at one hundred degrees.",
    "ice": "Ice melts in spring, when rivers rise and carry snow to the plains.",
    "hares": "Hares dig no burrows: by day they rest in a hollow called a form.",
    "wolves": "Wolves hunt at night in packs of six to ten under an old pair.",
    "bears": "Bears sleep through the winter in dens that they dig in autumn.",
    "q1-neg1": "A kettle of water costs ten crowns by the sea.",
    "q1-neg2": "In a kettle by the sea water boils when it has one hundred degrees.",
}
QUERIES = {
    "q1": "at how many degrees does water boil in a kettle by the sea",
    "q2": "what is the hollow called in which hares rest by day",
    "q3": "who won the election in the year of the kettle",
    "q4": "in packs of how many do wolves hunt at night",
}
SOURCES = {"q1": "water", "q2": "hares", "q3": "ice", "q4": "wolves"}
NEGATIVES = {"q1": ["q1-neg1", "q1-neg2"]}
TRUTH = {
    ("q1", "water"): 3, ("q1", "steam"): 3, ("q1", "q1-neg2"): 3, ("q1", "q1-neg1"): 1, ("q2", "hares"): 3,
    ("q3", "ice"): 0, ("q4", "wolves"): 2,
}  # fmt: skip
"""Pairs that are not here have the label 0."""


def write_made_set(folder: Path, language: str = "en", spans: Mapping[str, tuple[int, int]] | None = None) -> Path:
    """A set as `rusbeir synth queries` makes it."""
    (folder / "qrels").mkdir(parents=True)
    (folder / "qa").mkdir()
    _write(folder / "corpus.jsonl", [{"_id": name, "title": "", "text": text} for name, text in TEXTS.items()])
    _write(folder / "queries.jsonl", [{"_id": name, "text": text} for name, text in QUERIES.items()])
    rows = [(query, SOURCES[query], 1) for query in QUERIES]
    rows += [(query, one, 0) for query, negatives in NEGATIVES.items() for one in negatives]
    lines = "".join("\t".join(map(str, row)) + "\n" for row in sorted(rows, key=lambda row: row[0]))
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + lines)
    generated = [
        {
            "query_id": query, "doc_id": SOURCES[query], "kind": "position" if spans else "qa", "character": "A cook",
            "scenario": "A kitchen", "attributes": {}, "first": text, "negatives": NEGATIVES.get(query, []),
            "span": spans.get(query) if spans else None, "answer": None, "model": "qwen3-30b",
        }
        for query, text in QUERIES.items()
    ]  # fmt: skip
    _write(folder / "qa" / "generated.jsonl", generated)
    (folder / "card.json").write_text(json.dumps({"name": "made", "language": language, "licence": "CC-BY-4.0"}))
    return folder


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def label_answer(label: Any, reason: str = "So it says.") -> Reply:
    """An answer as the schema asks for it."""
    return completion(json.dumps({"reason": reason, "label": label}))


class LabellingModel(Endpoint):
    """Labels pairs by the texts in the prompt, and counts them; `truth` is asked first, and may plant an answer."""

    def __init__(self, truth: Callable[[str, str], Reply | int | None]) -> None:
        super().__init__()
        self.truth = truth
        self.pairs: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()

    def reply(self, asked: dict[str, Any]) -> Reply:
        words = asked["messages"][1]["content"].strip()
        query, document = (part.split("\n", 1)[1].strip() for part in words.split("\n\n", 1))
        with self._lock:
            self.pairs[query, document] += 1
        found = self.truth(query, document)
        return found if isinstance(found, Reply) else label_answer(found or 0)


def small_truth(query: str, document: str) -> int:
    """TRUTH by texts."""
    names = {text: name for name, text in (QUERIES | TEXTS).items()}
    return TRUTH.get((names[query], names[document]), 0)


def files(folder: Path) -> dict[str, bytes]:
    """What must be the same however often a run was killed."""
    paths = [path for part in ("*.json*", "qrels/*", "qa/*") for path in folder.glob(part)]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}

"""A small dataset to rewrite, and a model at an endpoint that rewrites it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.openai_server import Endpoint, Reply, completion

TEXTS = {
    "d1": "Water boils at one hundred degrees in every kettle by the sea.",
    "d2": "Short texts are left out.",
    "d3": "Ice melts in spring, when rivers rise and carry snow to the plains.",
    "d4": " ".join(["Long texts are left out, too."] * 334),
    "d5": "Hares dig no burrows: by day they rest in a hollow called a form.",
    "d6": "Wolves hunt at night in packs of six to ten under an old pair.",
    "d7": "Bears sleep through the winter in dens that they dig in autumn.",
}
REWRITTEN = [name for name in TEXTS if name not in ("d2", "d4")]
QUERIES = {"q1": "when does water boil", "q2": "short texts", "q3": "hares and burrows", "q4": "wolves at night"}
QRELS = {"test": {"q1": {"d1": 2, "d3": 0}, "q2": {"d2": 1}, "q3": {"d5": 1, "d2": 1}}, "train": {"q4": {"d6": 1}}}


def write_source(folder: Path, texts: dict[str, str] = TEXTS, language: str = "en") -> Path:
    """A BEIR folder of two splits, with titles and a further key."""
    (folder / "qrels").mkdir(parents=True)
    docs = [{"_id": name, "title": f"On {name}", "text": text, "year": 1987} for name, text in texts.items()]
    queries = [{"_id": name, "text": text, "asked": "often"} for name, text in QUERIES.items()]
    for name, rows in (("corpus", docs), ("queries", queries)):
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
        (folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    for split, qrels in QRELS.items():
        rows = [f"{query}\t{doc}\t{grade}\n" for query, grades in qrels.items() for doc, grade in grades.items()]
        (folder / "qrels" / f"{split}.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(rows))
    card = {"name": "small", "language": language, "licence": "CC-BY-4.0"}
    (folder / "card.json").write_text(json.dumps(card))
    return folder


def in_other_words(text: str) -> str:
    """What the model makes of a text."""
    return f"In other words, {text}"


class RewritingModel(Endpoint):
    """Answers what `answers` gives for a text, else the text in other words, and counts how often it was asked."""

    def __init__(self, answers: Callable[[str], Reply | None] = lambda text: None) -> None:
        super().__init__()
        self.answers = answers
        self.texts: Counter[str] = Counter()

    def reply(self, asked: dict[str, Any]) -> Reply:
        text = asked["messages"][0]["content"].partition("Original Text: ")[2].partition("\n\nPlease")[0]
        self.texts[text] += 1
        return self.answers(text) or completion(f"Rewritten Text: {in_other_words(text)}")


def files(folder: Path) -> dict[str, bytes]:
    """What must be the same however often a rewriting was killed."""
    names = [path for part in ("*.json*", "corpus/*", "qrels/*", "qa/*") for path in folder.glob(part)]
    return {str(path.relative_to(folder)): path.read_bytes() for path in names}

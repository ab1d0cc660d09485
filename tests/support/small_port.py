"""Small datasets and translators of which a test knows what they must give."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rusbeir.jobs import Limits
from rusbeir.translation.translator import Capacity, Failure, Outcome

_RUSSIAN = {
    "water": "вода", "boils": "кипит", "ice": "лёд", "melts": "тает", "snow": "снег", "falls": "падает",
    "rain": "дождь", "river": "река", "mountain": "гора", "lake": "озеро", "bear": "медведь", "wolf": "волк",
    "hare": "заяц", "night": "ночь", "morning": "утро",
}  # fmt: skip
TRANSLATION = _RUSSIAN | {word.title(): russian.title() for word, russian in _RUSSIAN.items()}
CAPACITY = Capacity(max_items=3, mask="bracket")
LIMITS = Limits(concurrency=2, retries=1, first_wait_seconds=0.0, breaker=5)


def translated(text: str) -> str:
    """The text in Russian, word by word; unknown words are kept."""
    return re.sub(r"[A-Za-z]+", lambda match: TRANSLATION.get(match[0], match[0]), text)


@dataclass(kw_only=True)
class Fake:
    """A translator that answers by a function of the text and of how often that text was asked."""

    answer: Callable[[str, int], Outcome] = lambda text, nth: translated(text)
    signature: str = "fake-1"
    capacity: Capacity = CAPACITY
    limits: Limits = LIMITS
    requests: list[list[str]] = field(default_factory=list)
    asked: dict[str, int] = field(default_factory=dict)

    async def translate(self, texts: Sequence[str], source: str, target: str) -> list[Outcome]:
        self.requests.append(list(texts))
        return [self._one(text) for text in texts]

    def _one(self, text: str) -> Outcome:
        self.asked[text] = self.asked.get(text, 0) + 1
        return self.answer(text, self.asked[text])

    @property
    def sent(self) -> list[str]:
        return [text for request in self.requests for text in request]


def failing(reason: str, *words: str, times: int = 10**6, retry: bool = True) -> Callable[[str, int], Outcome]:
    """Fails texts that hold one of the words, so many times."""

    def answer(text: str, nth: int) -> Outcome:
        if nth <= times and any(word in text for word in words):
            return Failure(reason, f"for {words[0]}", retry)
        return translated(text)

    return answer


DOCS: list[dict[str, Any]] = [
    {
        "_id": "d1",
        "title": "Water boils",
        "text": "Ice melts. Snow falls.\n\n- Bear 5 kg\n- Wolf 7 kg\n",
        "metadata": {"a": 1},
    },
    {"_id": "d2", "title": "", "text": "Rain falls https://a.org/b. River night.", "url": "x"},
    {"_id": "d3", "title": "Mountain lake", "text": "Ice melts. Snow falls."},
    {"_id": "d4", "title": "1987", "text": ""},
]
QUERIES: list[dict[str, Any]] = [
    {"_id": "q1", "text": "ice melts", "metadata": {"b": 2}},
    {"_id": "q2", "text": "mountain lake morning"},
]
MORE_QUERIES = [{"_id": "q3", "text": "snow falls"}, {"_id": "q4", "text": "hare night"}]
QRELS = "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td3\t0\nq2\td3\t1\n"


def write_source(folder: Path, docs: Sequence[dict[str, Any]] = DOCS) -> Path:
    """A small BEIR folder in English."""
    (folder / "qrels").mkdir(parents=True)
    for name, records in (("corpus", docs), ("queries", QUERIES)):
        lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in records]
        (folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    (folder / "qrels" / "test.tsv").write_text(QRELS)
    card = {"name": "small", "language": "en", "split": "test", "licence": "CC-BY-4.0"}
    (folder / "card.json").write_text(json.dumps(card))
    return folder


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def dataset_bytes(folder: Path) -> dict[str, bytes]:
    """What must be the same however often a port was killed."""
    names = ["corpus.jsonl", "queries.jsonl", "card.json", "qa/summary.json", "qa/failures.jsonl", "qa/flagged.jsonl"]
    files = [folder / name for name in names] + sorted((folder / "qrels").iterdir())
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def add_split(folder: Path) -> Path:
    """Add the split train, with a query of its own and one of test, and a query of no split."""
    with (folder / "queries.jsonl").open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in MORE_QUERIES)
    (folder / "qrels" / "train.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td3\t1\nq3\td1\t1\n")
    return folder

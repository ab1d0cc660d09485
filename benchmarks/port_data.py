"""Corpora of any size whose translation is known, and translators that know it: python:benchmarks.port_data.instant.

Sentences and their translations are those of the bundled memory of mini, made different by a number before the full
stop: "Hares dig no burrows 17." is "Зайцы не роют нор 17.".
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import orjson

import rusbeir
from rusbeir import processes

MEMORY = Path(rusbeir.__file__).parent / "datasets" / "mini" / "memory.en-ru.tsv"
_NUMBERED = re.compile(r"(\S[^.]*) (\d+)\.")
_MASK = re.compile(r"(<x id=\"\d+\"/>)")
_PLAIN = re.compile(r"[^.\d]+\.")


@cache
def pairs() -> dict[str, str]:
    """English sentence -> Russian sentence, both with one full stop and without numbers."""
    rows = (line.split("\t") for line in MEMORY.read_text(encoding="utf-8").splitlines())
    return {english: russian for english, russian in rows if _PLAIN.fullmatch(english) and _PLAIN.fullmatch(russian)}


def translated(text: str) -> str:
    """The translation of numbered sentences, parted by spaces; of any others nothing."""
    known = pairs()
    numbered = ((known.get(f"{sentence}."), number) for sentence, number in _NUMBERED.findall(text))
    return " ".join([f"{russian[:-1]} {number}." for russian, number in numbered if russian])


def instant(texts: list[str], source: str, target: str) -> list[str]:
    """The translations, at once."""
    return [translated(text) for text in texts]


def forgetful(texts: list[str], source: str, target: str) -> list[str]:
    """The texts in Cyrillic letters, with their masks where there is no 3 in them."""
    cyrillic = str.maketrans("abcdefghijklmnopqrstuvwxyz", "абцдефгхийклмнопярстуввхыз")
    parts = ([part for n, part in enumerate(_MASK.split(text)) if n % 2 == 0 or "3" not in text] for text in texts)
    return [
        "".join([part if _MASK.match(part) else part.lower().translate(cyrillic) for part in pieces])
        for pieces in parts
    ]


def in_workers(texts: list[str], source: str, target: str) -> list[str]:
    """As slow; from its first call on, the other work of a port is given to worker processes at once."""
    processes.START_SECONDS = processes.BUSY_SHARE = 0.0
    return slow(texts, source, target)


def slow(texts: list[str], source: str, target: str) -> list[str]:
    """The translations, a millisecond each."""
    time.sleep(0.001 * len(texts))
    return instant(texts, source, target)


def write_corpus(folder: Path, n_docs: int, sentences: int = 3, n_queries: int = 100) -> Path:
    """A BEIR folder of so many documents, each with so many sentences; no two sentences are equal."""
    chance = random.Random(1)
    known = list(pairs())
    (folder / "qrels").mkdir(parents=True)

    def numbered(start: int, count: int) -> Iterator[str]:
        for number in range(start, start + count):
            yield f"{chance.choice(known)[:-1]} {number}."

    with (folder / "corpus.jsonl").open("wb") as file:
        for n in range(n_docs):
            text = " ".join(numbered(n * sentences, sentences))
            file.write(orjson.dumps({"_id": f"d{n}", "title": "", "text": text}) + b"\n")
    with (folder / "queries.jsonl").open("wb") as file:
        for n, text in enumerate(numbered(n_docs * sentences, n_queries)):
            file.write(orjson.dumps({"_id": f"q{n}", "text": text}) + b"\n")
    lines = ["query-id\tcorpus-id\tscore\n", *(f"q{n}\td{n % n_docs}\t1\n" for n in range(n_queries))]
    (folder / "qrels" / "test.tsv").write_text("".join(lines))
    (folder / "card.json").write_bytes(orjson.dumps({"name": folder.name, "language": "en", "split": "test"}))
    return folder

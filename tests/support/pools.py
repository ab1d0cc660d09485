"""A pool of parallel texts in memory, and systems whose preferences for languages are known."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

import rusbeir
from rusbeir.types import MultilingualQueries, Queries, Run

LANGUAGES = ("en", "kk", "ru")


def make_pool(n: int = 30, languages: tuple[str, ...] = LANGUAGES, *, relevant: str = "any") -> rusbeir.Dataset:
    """n texts and n questions in each language; relevant to a question is its text in every language, or its own."""
    docs = [
        {"_id": f"d{number}@{language}", "text": f"text {number} {language}", "lang": language}
        for number in range(n)
        for language in languages
    ]
    asked_in = {f"q{number}@{language}": language for number in range(n) for language in languages}
    queries = MultilingualQueries({query_id: f"question {query_id}" for query_id in asked_in}, asked_in)
    qrels = {
        query_id: {
            f"d{query_id[1:].partition('@')[0]}@{language}": 1
            for language in (languages if relevant == "any" else [asked_in[query_id]])
        }
        for query_id in asked_in
    }
    pool = rusbeir.Dataset.of(docs, queries, qrels, language="mul", name="pool")
    return replace(pool, card=replace(pool.card, languages=languages))


@dataclass(frozen=True, kw_only=True)
class PlantedPreference:
    """Finds the texts of a question, and a few others below them; within them a bonus decides, and else chance.

    bonus(language of the query, language of the document) is added to a number from 0 to 1.
    """

    bonus: Callable[[str, str], float]
    n: int = 30
    languages: tuple[str, ...] = LANGUAGES
    signature: str = "planted"

    def search(self, queries: Queries, k: int) -> Run:
        run = {}
        for query_id in queries:
            number, _, asked_in = query_id[1:].partition("@")
            chance = random.Random(query_id)
            texts = {
                f"d{number}@{language}": 10 + chance.random() + self.bonus(asked_in, language)
                for language in self.languages
            }
            others = {f"d{(int(number) + 1) % self.n}@{language}": chance.random() for language in self.languages}
            hits = sorted((texts | others).items(), key=lambda hit: -hit[1])
            run[query_id] = dict(hits[:k])
        return run

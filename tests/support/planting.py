"""Damage planted in good translations, so that what the checks find can be counted."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from rusbeir.sentences import sentence_spans


class Pair(NamedTuple):
    source: str
    translation: str
    spanish: str


class Planted(NamedTuple):
    source: str
    translation: str
    damage: str
    """The flag that is expected; "" for none."""


REFUSALS = [
    "I'm sorry, but I can't assist with that request.",
    "I cannot translate this text because it may violate content policies.",
    "As an AI language model, I am unable to provide a translation of this passage.",
    "Извините, но я не могу перевести этот текст.",
    "К сожалению, я не могу помочь с переводом этого фрагмента.",
    "Я всего лишь языковая модель и не могу выполнить этот запрос.",
]
PREFIXES = [
    "Here is the translation:\n\n",
    "Sure! Here's the Russian translation of the text:\n",
    "Translation: ",
    "Конечно! Вот перевод на русский язык:\n",
    "Вот перевод текста:\n\n",
    "Перевод: ",
]


def xquad_pairs(data: Path, n: int) -> list[Pair]:
    """n questions, paragraphs and sentences of XQuAD in English, Russian and Spanish, in a seeded order.

    Sentences are taken of paragraphs that have as many in all three languages.
    """
    articles = {
        code: json.loads((data / "xquad" / f"xquad.{code}.json").read_text(encoding="utf-8"))["data"]
        for code in ("en", "ru", "es")
    }
    pairs = []
    for triple in zip(*articles.values(), strict=True):
        for paragraphs in zip(*(article["paragraphs"] for article in triple), strict=True):
            pairs += [
                Pair(*(question["question"] for question in questions))
                for questions in zip(*(paragraph["qas"] for paragraph in paragraphs), strict=True)
            ]
            pairs.append(Pair(*(paragraph["context"] for paragraph in paragraphs)))
            split = [
                [paragraph["context"][start:end] for start, end in sentence_spans(paragraph["context"], code)]
                for code, paragraph in zip(articles, paragraphs, strict=True)
            ]
            if len({len(sentences) for sentences in split}) == 1:
                pairs += [Pair(*sentences) for sentences in zip(*split, strict=True)]
    random.Random(0).shuffle(pairs)
    return pairs[:n]


def plant(pairs: list[Pair], each: int, seed: int = 0) -> list[Planted]:
    """The pairs, as many of each damage planted among them."""
    draw = random.Random(seed)
    left = list(range(len(pairs)))
    draw.shuffle(left)
    made: dict[int, Planted] = {}
    for name, damage in DAMAGES.items():
        found = 0
        for i in list(left):
            if found == each:
                break
            damaged = damage(pairs[i], draw, pairs)
            if damaged is not None:
                made[i] = Planted(*damaged, name)
                left.remove(i)
                found += 1
    return [made.get(i, Planted(pair.source, pair.translation, "")) for i, pair in enumerate(pairs)]


Damage = Callable[[Pair, random.Random, list[Pair]], tuple[str, str] | None]
"""Called with a pair, gives it damaged; None where the pair cannot be damaged so."""


def _lost_number(pair: Pair, draw: random.Random, pairs: list[Pair]) -> tuple[str, str] | None:
    # Numbers up to twelve may become words; one that occurs twice, or is spelled otherwise, would not be lost.
    for number in re.findall(r"(?<![\w.,])\d{2,}(?![\w.,]\w)", pair.source):
        if int(number) > 12 and pair.source.count(number) == pair.translation.count(number) == 1:
            return pair.source, pair.translation.replace(number, "")
    return None


def _looped(pair: Pair, draw: random.Random, pairs: list[Pair]) -> tuple[str, str] | None:
    words = pair.translation.split()
    if len(words) < 4:
        return None
    period = draw.choice([1, 2, 3, 5])
    return pair.source, " ".join(words + words[-period:] * draw.randint(6, 12))


def _cut(pair: Pair, draw: random.Random, pairs: list[Pair]) -> tuple[str, str] | None:
    words = pair.translation.split()
    # Without a full stop at its end a source does not tell where its translation should end.
    if len(words) < 6 or pair.source[-1] not in ".!?":
        return None
    return pair.source, " ".join(words[: round(len(words) * draw.uniform(0.4, 0.8))])


def _longer(pair: Pair, draw: random.Random, pairs: list[Pair]) -> tuple[str, str] | None:
    if len(pair.source) < 40:
        return None
    translation = pair.translation
    while len(translation) < 2 * len(pair.source):
        translation += " " + draw.choice(pairs).translation
    return pair.source, translation


def _with_prose(pair: Pair) -> bool:
    return len(pair.source) >= 40


DAMAGES: dict[str, Damage] = {
    "refusal": lambda pair, draw, pairs: (pair.source, draw.choice(REFUSALS)),
    "chat-prefix": lambda pair, draw, pairs: (pair.source, draw.choice(PREFIXES) + pair.translation),
    "untranslated": lambda pair, draw, pairs: (pair.source, pair.source) if _with_prose(pair) else None,
    "wrong-language": lambda pair, draw, pairs: (pair.source, pair.spanish) if _with_prose(pair) else None,
    "lost-numbers": _lost_number,
    "lost-spans": lambda pair, draw, pairs: (
        f"{pair.source} See https://example.org/wiki/{draw.randint(100, 999)}.",
        pair.translation,
    ),
    "repetition": _looped,
    "truncated": _cut,
    "empty": lambda pair, draw, pairs: (pair.source, ""),
    "length": _longer,
    "doubled": lambda pair, draw, pairs: (pair.source, f"{pair.translation} {pair.translation}"),
}
COUNTS_AS = {"wrong-language": {"wrong-language", "wrong-script"}}
"""Flags that find a damage, where they are not the one of its name: Spanish for Russian is both."""

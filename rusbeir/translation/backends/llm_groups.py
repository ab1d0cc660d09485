"""Several texts in one request to a language model: numbered, and each translation held against its own text.

Models leave texts out, join two, or give one the translation of another. So each translation comes with the first words
of its text, and one that does not fit is asked for again alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

from rusbeir.jobs import Answer, Llm, Rejected, read_object, read_prompts
from rusbeir.languages import english_name
from rusbeir.translation.checks.content import lost_numbers
from rusbeir.translation.translator import Failure, Segment

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "translations": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "number": {"type": "integer"},
                    "begins": {"type": "string"},
                    "translation": {"type": "string"},
                },
                "required": ["number", "begins", "translation"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["translations"],
    "additionalProperties": False,
}
FRAME_TOKENS = 24
"""About what a text takes in addition: its number, its frame and its first words, sent and answered."""
_MARK = re.compile(r'<x id="\d+"/>')
_MIN_COMPARED_CHARS = 20
_UNLIKE = 1.5
"""A translation that is so many times as long, or as short, as the others of its request suggest may be of other texts.

Of translations by people, 1.2 % are asked again then, and most of those that were divided wrongly
(benchmarks/batches.py).
"""


class Item(NamedTuple):
    """A model's answer about one of several texts."""

    begins: str
    """The first words of the text, as the model copied them."""
    translation: str


def write_messages(texts: Sequence[str], source: str, target: str) -> list[dict[str, str]]:
    """Write the messages that ask the model about several texts. What comes first is the same for all texts."""
    prompt = read_prompts("translate")["together"].format(source=english_name(source), target=english_name(target))
    rows = [{"number": number, "text": text} for number, text in enumerate(texts, 1)]
    return [
        {"role": "system", "content": prompt},
        {"role": "user", "content": json.dumps(rows, ensure_ascii=False)},
    ]


async def ask_together(
    client: Llm, texts: Sequence[str], source: str, target: str, *, seed: int, max_tokens: int
) -> list[str | Failure]:
    """Return the translation of each text, or the Failure of one that is to be asked alone.

    Raises as Llm.chat does, Rejected excepted.
    """
    messages = write_messages(texts, source, target)
    try:
        answer = await client.chat(messages, schema=SCHEMA, temperature=0.0, seed=seed, max_tokens=max_tokens)
    except Rejected as error:
        return [_ask_alone(error.detail)] * len(texts)
    items = _read_answer(answer)
    faults = find_faults(texts, items, source, target)
    return [
        _ask_alone(faults[number]) if number in faults else items[number].translation
        for number in range(1, len(texts) + 1)
    ]


def read_items(answer: str) -> dict[int, Item]:
    """Read number -> item; a number that is said twice is left out.

    Examples:
        >>> read_items('{"translations": [{"number": 1, "begins": "Water", "translation": "Вода"}, {"number": 2}]}')
        {1: Item(begins='Water', translation='Вода')}
    """
    content = read_object(answer) or {}
    rows = content.get("translations")
    items: dict[int, Item] = {}
    doubled: set[int] = set()
    for row in rows if isinstance(rows, list) else ():
        match row:
            case {"number": int(number), "begins": str(begins), "translation": str(translation)}:
                doubled |= {number} & items.keys()
                items[number] = Item(begins, translation)
    return {number: item for number, item in items.items() if number not in doubled}


def find_faults(texts: Sequence[str], items: Mapping[int, Item], source: str, target: str) -> dict[int, str]:
    """Return number -> why its text has no translation of its own among the items; numbers count from 1.

    Examples:
        >>> items = {1: Item("It is 7", "Это 7 км."), 2: Item("It is 7", "Это 7 км.")}
        >>> find_faults(["It is 5 km.", "It is 7 km."], items, "en", "ru")
        {1: 'it begins as another text', 2: 'another text has the same translation'}
    """
    numbers = range(1, len(texts) + 1)
    missing = {number for number in numbers if number not in items}
    faults = dict.fromkeys(missing, "it is missing")
    ratio = _find_length_ratio(texts, items)
    for number in numbers:
        if number not in missing and (fault := _find_fault(number, texts, items, ratio, source, target)):
            faults[number] = fault
        elif {number - 1, number + 1} & missing and number not in missing:
            # Two texts may have become one.
            faults[number] = "its neighbour is missing"
    return faults


def _find_fault(
    number: int, texts: Sequence[str], items: Mapping[int, Item], ratio: float, source: str, target: str
) -> str | None:
    text, (begins, translation) = texts[number - 1], items[number]
    if not _begins_with(text, begins):
        return "it begins as another text"
    twins = (other for other, item in items.items() if other != number and item.translation == translation)
    if any(other <= len(texts) and texts[other - 1] != text for other in twins):
        return "another text has the same translation"
    if sorted(_MARK.findall(text)) != sorted(_MARK.findall(translation)):
        return "its marks are those of another text"
    there, back = Segment(text, translation, source, target), Segment(translation, text, target, source)
    if lost_numbers(there) or lost_numbers(back):
        return "its numbers are those of another text"
    expected = len(text) * ratio
    if len(text) >= _MIN_COMPARED_CHARS and not expected / _UNLIKE <= len(translation) <= expected * _UNLIKE:
        return f"{len(translation):,} characters are not the length of its translation"
    return None


def _begins_with(text: str, begins: str) -> bool:
    """Whether these may be the first words of the text, whatever the punctuation."""
    whole, first = _fold(text), _fold(begins)
    return whole.startswith(first) if first else not whole


def _fold(text: str) -> str:
    return "".join(filter(str.isalnum, _MARK.sub("", text).casefold()))


def _find_length_ratio(texts: Sequence[str], items: Mapping[int, Item]) -> float:
    """The characters of a translation for one of its text, of most texts of a request."""
    pairs = [(text, items[number].translation) for number, text in enumerate(texts, 1) if number in items]
    ratios = [len(translation) / len(text) for text, translation in pairs if len(text) >= _MIN_COMPARED_CHARS]
    return median(ratios) if ratios else 1.0


def _read_answer(answer: Answer) -> dict[int, Item]:
    """Read the items of an answer; none of one that is refused or cut."""
    whole = not answer.refusal and answer.finish_reason not in {"content_filter", "length"}
    return read_items(answer.text) if whole else {}


def _ask_alone(fault: str) -> Failure:
    return Failure("malformed", f"asked together with others: {fault}", retry=True)

"""What can be seen wrong in a translation without knowing what it should be.

Each check takes a segment and gives a Flag or None. All but wrong_language together take about 50 microseconds a
sentence; wrong_language takes 150, and 2 seconds to load.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import NamedTuple, TypeAlias

from rusbeir.translation.checks import language, numbers, writing_system
from rusbeir.translation.checks.llm_phrases import phrases_of
from rusbeir.translation.checks.repetition import loop
from rusbeir.translation.segments.spans import find_spans
from rusbeir.translation.translator import Failure

_WORD = re.compile(r"[^\W\d_]+")
_LOWER_WORD = re.compile(r"(?<!\w)[^\W\d_A-ZÀ-ÖØ-ÞА-ЯЁ][^\W\d_]{2,}")
_FEW_WORDS = 3
_FEW_CHARS = 10
_CONTENT = re.compile(r"[^\W_]")
_HEAD_CHARS = 300
_LEAD = re.compile(r"[\W_]{0,20}")
_CLOSING = "\"'“”„’‘»«›‹)]}*_」』）】》 \t\n"
_REMARK_LEAD = " \t\n*_#\"'“«"
_SENTENCE_ENDS = frozenset(".!?…。！？।॥؟۔։។။:;：；")
_UNPUNCTUATED = frozenset({"th", "lo"})
_CHARS_PER_LETTER = {"zh": 3.0, "yue": 3.0, "ja": 2.2, "ko": 1.8}
_VERBATIM = frozenset({"url", "email", "doi", "identifier", "latex", "code", "path"})
_SHORT = 0.3
_COPY_SHARE = 0.9
_SHOWN_CHARS = 60


class Segment(NamedTuple):
    """A text and what came back for it. Languages are BCP 47."""

    source: str
    answer: str
    source_language: str
    target_language: str


class Flag(NamedTuple):
    """Something that a check has seen."""

    name: str
    """A key of CHECKS."""
    detail: str
    """One line for a reader."""


Check: TypeAlias = Callable[[Segment], Flag | None]


def empty(segment: Segment) -> Flag | None:
    """A Flag where the answer has no letter and no digit, though the source has."""
    if _has_content(segment.answer) or not _has_content(segment.source):
        return None
    return Flag("empty", f"the answer to {_shown(segment.source)} is {_shown(segment.answer)}")


def untranslated(segment: Segment) -> Flag | None:
    """A Flag where nine tenths of the answer's words, and more than three, stand in the source.

    Texts of names alone, where every word has a capital, may stay as they are.
    """
    if _primary(segment.source_language) == _primary(segment.target_language):
        return None
    source, answer = segment.source, segment.answer
    words = answer.split()
    if len(words) > _FEW_WORDS:
        known = set(source.split())
        share = sum([word in known for word in words]) / len(words)
    else:
        # Without spaces between words, as in Chinese, the whole must be the same.
        share = float(len(answer) > _FEW_CHARS and not answer.isascii() and words == source.split())
    if share < _COPY_SHARE or len(_WORD.findall(answer)) <= (_FEW_WORDS if len(words) > _FEW_WORDS else 0):
        return None
    if any(char.isupper() for char in answer) and not _LOWER_WORD.search(answer):
        return None
    return Flag("untranslated", f"{share:.0%} of the answer's words stand in the source: {_shown(answer)}")


def refusal(segment: Segment) -> Flag | None:
    """A Flag where the answer begins like a model that will not translate, and the source does not."""
    found = _refused(segment.answer, _codes(segment))
    if found is None or _refused(segment.source, _codes(segment)) is not None:
        return None
    return Flag("refusal", _shown(found))


def chat_prefix(segment: Segment) -> Flag | None:
    """A Flag where the answer announces the translation or remarks on it, and the source does nothing alike.

    "Here is the translation:", a code fence, a translator's note at the end.
    """
    found = _remark(segment.answer, _codes(segment))
    if found is None or _remark(segment.source, _codes(segment)) is not None:
        return None
    return Flag("chat-prefix", _shown(found))


def wrong_script(segment: Segment) -> Flag | None:
    """A Flag where letters are of a script foreign to the target language and to the source.

    None where translation/scripts.toml does not know the language.
    """
    detail = writing_system.intrusion(segment.source, segment.answer, segment.target_language)
    return Flag("wrong-script", detail) if detail else None


def wrong_language(segment: Segment) -> Flag | None:
    """A Flag where py3langid is sure of another language, over what of the answer does not stand in the source.

    None below 40 characters of that, and for languages that it does not know.
    """
    detail = language.mistaken(
        segment.source, segment.answer, _primary(segment.source_language), _primary(segment.target_language)
    )
    return Flag("wrong-language", detail) if detail else None


def repetition(segment: Segment) -> Flag | None:
    """A Flag where the answer says the same four times in a row or more, and the source does not."""
    found = loop(segment.answer)
    if found is None or loop(segment.source) is not None:
        return None
    return Flag("repetition", f"{_shown(found.phrase)} {found.times} times in a row")


def truncated(segment: Segment) -> Flag | None:
    """A Flag where the answer ends in the middle of a sentence and the source does not, or is far too short."""
    source, answer = segment.source.rstrip(_CLOSING), segment.answer.rstrip(_CLOSING)
    languages = _primary(segment.source_language), _primary(segment.target_language)
    if not source or not answer:
        return None
    expected = len(source) * _CHARS_PER_LETTER.get(languages[0], 1.0) / _CHARS_PER_LETTER.get(languages[1], 1.0)
    if len(source) > 60 and len(answer) < _SHORT * expected:
        return Flag("truncated", f"{len(answer)} characters for {len(source)}")
    elided = answer.endswith(("...", "…", "[…]"))
    if elided and not source.endswith(("...", "…")):
        return Flag("truncated", f"ends in {_shown(answer[-30:])}")
    ended = source[-1] in ".!?。！？" and len(source) > 20
    if ended and answer[-1] not in _SENTENCE_ENDS and languages[1] not in _UNPUNCTUATED:
        return Flag("truncated", f"ends without a full stop in {_shown(answer[-30:])}")
    return None


def lost_numbers(segment: Segment) -> Flag | None:
    """A Flag that names the numbers of the source that the answer has in no spelling.

    Separators may differ (1,000.5 and 1 000,5), small numbers may become words or Roman, digits may be of any script.
    """
    lost = numbers.lost(segment.source, segment.answer)
    return Flag("lost-numbers", ", ".join(lost[:10])) if lost else None


def lost_spans(segment: Segment) -> Flag | None:
    """A Flag that names the URLs, identifiers, code and formulas of the source that the answer lacks."""
    lost = [
        text
        for start, end, kind, _ in find_spans(segment.source)
        if kind in _VERBATIM and (text := segment.source[start:end]) not in segment.answer
    ]
    return Flag("lost-spans", ", ".join(_shown(text) for text in lost[:5])) if lost else None


CHECKS: Mapping[str, Check] = {
    "empty": empty,
    "untranslated": untranslated,
    "refusal": refusal,
    "chat-prefix": chat_prefix,
    "wrong-script": wrong_script,
    "wrong-language": wrong_language,
    "repetition": repetition,
    "truncated": truncated,
    "lost-numbers": lost_numbers,
    "lost-spans": lost_spans,
}
"""By the names of their flags."""

FAILURES: Mapping[str, str] = {
    "empty": "empty",
    "untranslated": "untranslated",
    "refusal": "refused",
    "wrong-script": "wrong-language",
    "wrong-language": "wrong-language",
}
"""Flags that leave a segment without a translation, and the Failure's reason. The others are for a reader."""


def check(segment: Segment) -> list[Flag]:
    """All that the checks have seen, in the order of CHECKS; an answer that is empty is nothing else.

    >>> [flag.name for flag in check(Segment("It was in 1987.", "Это было.", "en", "ru"))]
    ['lost-numbers']
    """
    if flag := empty(segment):
        return [flag]
    return [flag for one in CHECKS.values() if (flag := one(segment))]


def failure(flags: list[Flag]) -> Failure | None:
    """The Failure that the first of the flags makes of an answer; None where they are for a reader only."""
    for flag in flags:
        if flag.name in FAILURES:
            return Failure(FAILURES[flag.name], flag.detail, retry=True)
    return None


def without_remarks(segment: Segment) -> str | None:
    """The answer without what chat_prefix sees in it; None where it sees nothing, or where nothing would be left.

    >>> without_remarks(Segment("Water boils.", "Вот перевод:\\n\\nВода кипит.", "en", "ru"))
    'Вода кипит.'
    """
    text = segment.answer
    while chat_prefix(segment._replace(answer=text)):
        prefix = phrases_of(_codes(segment)).prefix
        bare = text.lstrip(_REMARK_LEAD)
        found = prefix.match(bare[:_HEAD_CHARS].lower()) if prefix else None
        if found is not None:
            shorter = bare[found.end() :].lstrip(_REMARK_LEAD)
        elif bare.startswith("```"):
            shorter = bare.partition("\n")[2].removesuffix("```").strip()
        else:
            shorter = text.rstrip().rpartition("\n")[0].rstrip()
        if not _has_content(shorter):
            return None
        text = shorter
    return None if text == segment.answer else text


def _refused(text: str, codes: frozenset[str]) -> str | None:
    phrases = phrases_of(codes)
    head = text[:_HEAD_CHARS].lower().replace("’", "'").replace("\n", " ")
    lead = _LEAD.match(head)
    found = phrases.refusal.match(head, lead.end() if lead else 0) if phrases.refusal else None
    if found is None and phrases.refusal_anywhere is not None:
        found = phrases.refusal_anywhere.search(head)
    return head[found.start() :] if found else None


def _remark(text: str, codes: frozenset[str]) -> str | None:
    phrases = phrases_of(codes)
    head = text[:_HEAD_CHARS].lstrip(_REMARK_LEAD).lower()
    if head.startswith(("```", "<think", "<translation", '{"')):
        return head.partition("\n")[0]
    if phrases.prefix is not None and (found := phrases.prefix.match(head)):
        return found[0]
    before, break_, last = text.rstrip().rpartition("\n")
    if break_ and before.strip() and phrases.suffix is not None:
        last = last[:_HEAD_CHARS].lower().lstrip(" \t*_")
        return last if phrases.suffix.match(last) else None
    return None


@cache
def _both(source_language: str, target_language: str) -> frozenset[str]:
    """Models refuse in the language of the prompt, of the source or of the target."""
    return frozenset({"en", _primary(source_language), _primary(target_language)})


def _codes(segment: Segment) -> frozenset[str]:
    return _both(segment.source_language, segment.target_language)


@cache
def _primary(language: str) -> str:
    return language.replace("_", "-").partition("-")[0].lower()


def _has_content(text: str) -> bool:
    return _CONTENT.search(text) is not None


def _shown(text: str) -> str:
    line = " ".join(text[: 4 * _SHOWN_CHARS].split())
    return repr(line if len(line) <= _SHOWN_CHARS else line[: _SHOWN_CHARS - 1] + "…")

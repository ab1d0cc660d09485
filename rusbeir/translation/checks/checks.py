"""Reference-free checks of a translated segment.

Each check returns a Flag or None. All but wrong_language together take about 50 microseconds for 400 characters;
where the script does not tell the language, wrong_language takes 150, and 2 seconds to load.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from rusbeir.text import shorten
from rusbeir.translation.checks.content import find_loop, is_doubled, lost_numbers, words_of
from rusbeir.translation.checks.language import Phrases, phrases_of, primary, wrong_language, wrong_script
from rusbeir.translation.segments.protect import Masked, restore
from rusbeir.translation.segments.spans import find_spans
from rusbeir.translation.translator import Failure, Flag, Outcome, Segment, Translation

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
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_SHORT = 0.3
_COPY_SHARE = 0.9
_SHOWN_CHARS = 60


Check: TypeAlias = Callable[[Segment], Flag | None]


def find_empty(segment: Segment) -> Flag | None:
    """Return a Flag where the answer has no letter and no digit, though the source has."""
    if _CONTENT.search(segment.answer) or not _CONTENT.search(segment.source):
        return None
    return Flag("empty", f"the answer to {_quote(segment.source)} is {_quote(segment.answer)}")


def find_untranslated(segment: Segment, *, names: bool = False) -> Flag | None:
    """Return a Flag where nine tenths of the answer's words, and more than three, are words of the source.

    Texts of names alone, where every word has a capital, may stay as they are, unless names says otherwise.
    """
    if primary(segment.source_language) == primary(segment.target_language):
        return None
    source, answer = segment.source, segment.answer
    words = words_of(answer)
    # A fifth of the words tells most translations without a set of the source's words.
    if sum([word not in source for word in words[: len(words) // 5 + 2]]) > len(words) // 10:
        return None
    if len(words) > _FEW_WORDS:
        known = set(source.split())
        share = sum([word in known for word in words]) / len(words)
    else:
        # Without spaces between words, as in Chinese, the whole must be the same.
        share = float(len(answer) > _FEW_CHARS and not answer.isascii() and words == source.split())
    if share < _COPY_SHARE or len(_WORD.findall(answer)) <= (_FEW_WORDS if len(words) > _FEW_WORDS else 0):
        return None
    if not names and any(char.isupper() for char in answer) and not _LOWER_WORD.search(answer):
        return None
    return Flag("untranslated", f"{share:.0%} of the answer's words are in the source: {_quote(answer)}")


def _find_refusal(text: str, phrases: Phrases) -> str | None:
    head = text[:_HEAD_CHARS].lower().replace("’", "'").replace("\n", " ")
    lead = _LEAD.match(head)
    match = phrases.refusal.match(head, lead.end() if lead else 0) if phrases.refusal else None
    if match is None and phrases.refusal_anywhere and any(word in head for word in phrases.refusal_words):
        match = phrases.refusal_anywhere.search(head)
    return head[match.start() :] if match else None


def _find_remark(text: str, phrases: Phrases) -> str | None:
    head = text[:_HEAD_CHARS].lstrip(_REMARK_LEAD).lower()
    if head.startswith(("```", "<think", "<translation", '{"')):
        return head.partition("\n")[0]
    if phrases.prefix is not None and (match := phrases.prefix.match(head)):
        return match[0]
    before, break_, last = text.rstrip().rpartition("\n")
    if break_ and before.strip() and phrases.suffix is not None:
        last = last[:_HEAD_CHARS].lower().lstrip(" \t*_")
        return last if phrases.suffix.match(last) else None
    return None


def _find_said(name: str, find: Callable[[str, Phrases], str | None], segment: Segment) -> Flag | None:
    """Return a Flag where an answer has, and its source has not, what language models say."""
    # In the language of the prompt, of the source or of the target.
    phrases = phrases_of("en", segment.source_language, segment.target_language)
    phrase = find(segment.answer, phrases)
    if phrase is None or find(segment.source, phrases) is not None:
        return None
    return Flag(name, _quote(phrase))


refusal: Check = partial(_find_said, "refusal", _find_refusal)
"""A Flag where the answer begins with a model's refusal to translate, and the source does not."""
chat_prefix: Check = partial(_find_said, "chat-prefix", _find_remark)
"""A Flag where the answer announces the translation or comments on it, and the source has nothing similar.

"Here is the translation:", a code fence, a translator's note at the end.
"""


def repetition(segment: Segment) -> Flag | None:
    """Return a Flag where the answer says the same four times in a row or more, and the source does not."""
    loop = find_loop(segment.answer)
    if loop is None or find_loop(segment.source) is not None:
        return None
    return Flag("repetition", f"{_quote(loop.phrase)} {loop.times} times in a row")


def doubled(segment: Segment) -> Flag | None:
    """Return a Flag where the answer says the whole text twice, and the source does not; four times are a repetition.

    White space, punctuation and case may differ.
    """
    if not is_doubled(segment.answer) or is_doubled(segment.source) or find_loop(segment.answer):
        return None
    return Flag("doubled", f"twice {_quote(segment.answer[: len(segment.answer) // 2])}")


def truncated(segment: Segment) -> Flag | None:
    """Return a Flag where the answer ends in the middle of a sentence and the source does not, or is far too short."""
    source, answer = segment.source.rstrip(_CLOSING), segment.answer.rstrip(_CLOSING)
    languages = primary(segment.source_language), primary(segment.target_language)
    if not source or not answer:
        return None
    expected = len(source) * _CHARS_PER_LETTER.get(languages[0], 1.0) / _CHARS_PER_LETTER.get(languages[1], 1.0)
    if len(source) > 60 and len(answer) < _SHORT * expected:
        return Flag("truncated", f"{len(answer)} characters for {len(source)}")
    elided = answer.endswith(("...", "…", "[…]"))
    if elided and not source.endswith(("...", "…")):
        return Flag("truncated", f"ends in {_quote(answer[-30:])}")
    ended = source[-1] in ".!?。！？" and len(source) > 20
    if ended and answer[-1] not in _SENTENCE_ENDS and languages[1] not in _UNPUNCTUATED:
        return Flag("truncated", f"ends without a full stop in {_quote(answer[-30:])}")
    return None


def lost_spans(segment: Segment) -> Flag | None:
    """Return a Flag that names the URLs, identifiers, code and formulas of the source that the answer lacks."""
    lost = [
        text
        for start, end, kind, _ in find_spans(segment.source)
        if kind in _VERBATIM and (text := segment.source[start:end]) not in segment.answer
    ]
    return Flag("lost-spans", ", ".join(_quote(text) for text in lost[:5])) if lost else None


def control(segment: Segment) -> Flag | None:
    """Return a Flag that names characters that control a terminal or reverse the text, and that the source lacks."""
    if segment.answer.isprintable():
        return None
    chars = sorted(set(_CONTROL.findall(segment.answer)) - set(segment.source))
    return Flag("control", ", ".join([f"U+{ord(char):04X}" for char in chars[:10]])) if chars else None


SEGMENT_CHECKS: Mapping[str, Check] = {
    "empty": find_empty,
    "untranslated": find_untranslated,
    "refusal": refusal,
    "chat-prefix": chat_prefix,
    "wrong-script": wrong_script,
    "wrong-language": wrong_language,
    "repetition": repetition,
    "doubled": doubled,
    "truncated": truncated,
    "lost-numbers": lost_numbers,
    "lost-spans": lost_spans,
    "control": control,
}
"""The checks by the names of their flags."""

FAILURES: Mapping[str, str] = {
    "empty": "empty",
    "untranslated": "untranslated",
    "refusal": "refused",
    "wrong-script": "wrong-language",
    "wrong-language": "wrong-language",
}
"""The flags that leave a segment without a translation, with the Failure's reason. The others are for a reader."""


def check(segment: Segment, but: Collection[str] = ()) -> list[Flag]:
    """Run all checks but those of these names, in the order of SEGMENT_CHECKS; an empty answer has that flag alone.

    >>> [flag.name for flag in check(Segment("It was in 1987.", "Это было.", "en", "ru"))]
    ['lost-numbers']
    """
    if "empty" not in but and (flag := find_empty(segment)):
        return [flag]
    return [flag for name, find_flag in SEGMENT_CHECKS.items() if name not in but and (flag := find_flag(segment))]


def failure(flags: list[Flag]) -> Failure | None:
    """Return the Failure that the first flag of FAILURES stands for; None where the flags are for a reader only."""
    for flag in flags:
        if flag.name in FAILURES:
            return Failure(FAILURES[flag.name], flag.detail, retry=True)
    return None


Answer: TypeAlias = Translation | Failure | None
"""What became of one text; None where it was not asked, since the translator is stopped."""

Asked: TypeAlias = tuple[str, Masked | None, Sequence[Outcome | None]]
"""A unit; how it was sent, or None where nothing in it is protected; and the outcomes of its parts."""


@dataclass(frozen=True)
class Finisher:
    """Makes checked translations of the answers to the parts of units; sent to worker processes."""

    source: str
    target: str
    trusted: bool
    """Whether what looks wrong is only flagged."""
    judges: bool
    """Whether the translator has judged those of its answers that are to whole units."""
    again: bool = False
    """Whether the units had lost a mask, and only the texts between the protected ones were sent."""

    def __call__(self, units: Sequence[Asked]) -> list[Answer]:
        """Give each unit's translation with its flags and those of check, or why there is none."""
        results: list[Answer] = []
        for text, masked, parts in units:
            read = [Translation(part) if isinstance(part, str) else part for part in parts]
            answers = [part for part in read if isinstance(part, Translation)]
            if len(answers) < len(parts):
                results.append(next(part for part in read if not isinstance(part, Translation)))
                continue
            whole = restore(masked, [part.text for part in answers]) if masked else answers[0].text
            if isinstance(whole, Failure):
                results.append(whole)
                continue
            try:
                whole.encode()
            except UnicodeEncodeError:
                results.append(Failure("malformed", "the answer contains an unpaired surrogate", retry=True))
                continue
            segment = Segment(text, whole, self.source, self.target)
            bare = not self.trusted and masked is None
            # What has been judged has passed these, and no span is lost where there is none.
            known = [*FAILURES] if self.judges and (bare or (masked and masked.parts == [text])) else []
            if bare or (masked and not masked.spans and masked.style != "plain"):
                known.append("lost-spans")
            flags = check(segment, but=known)
            part_flags = ["split"] if self.again else [part.flags for part in answers]
            names = ",".join(filter(None, [*part_flags, *(flag.name for flag in flags)]))
            results.append((None if self.trusted else failure(flags)) or Translation(whole, names))
        return results


def without_remarks(segment: Segment) -> str | None:
    """Remove what chat_prefix finds in the answer; None where it finds nothing, or where nothing would be left.

    >>> without_remarks(Segment("Water boils.", "Вот перевод:\\n\\nВода кипит.", "en", "ru"))
    'Вода кипит.'
    """
    text = segment.answer
    while chat_prefix(segment._replace(answer=text)):
        prefix = phrases_of("en", segment.source_language, segment.target_language).prefix
        bare = text.lstrip(_REMARK_LEAD)
        match = prefix.match(bare[:_HEAD_CHARS].lower()) if prefix else None
        if match is not None:
            shorter = bare[match.end() :].lstrip(_REMARK_LEAD)
        elif bare.startswith("```"):
            shorter = bare.partition("\n")[2].removesuffix("```").strip()
        else:
            shorter = text.rstrip().rpartition("\n")[0].rstrip()
        if not _CONTENT.search(shorter):
            return None
        text = shorter
    return None if text == segment.answer else text


def _quote(text: str) -> str:
    return repr(shorten(text, _SHOWN_CHARS))

"""Which planted damage the checks find, and how often they flag human translations."""

from __future__ import annotations

import pytest

from rusbeir.audit.port_checks.segment_checks import (
    CHECKS,
    CheckedSegment,
    CheckedTexts,
    LengthFinder,
    find_flags,
    prepare_checks,
    usual_lengths,
)
from rusbeir.translation.checks.checks import lost_spans, without_remarks
from rusbeir.translation.translator import Segment
from tests.support.planting import COUNTS_AS, DAMAGES, plant, xquad_pairs


@pytest.fixture(scope="module")
def flagged(shared_data):
    planted = plant(xquad_pairs(shared_data, 1000), each=25)
    pairs = [(row.source, row.translation) for row in planted]
    finders = prepare_checks(CheckedTexts(languages=("en", "ru"), pairs=lambda: pairs))
    flags_found = find_flags(finders, [CheckedSegment(Segment(*pair, "en", "ru"), None) for pair in pairs])
    return [(row, {flag.name for flag in flags}) for row, flags in zip(planted, flags_found, strict=True)]


@pytest.mark.parametrize("damage", DAMAGES)
def test_recall(flagged, damage):
    caught = [bool(flags & COUNTS_AS.get(damage, {damage})) for row, flags in flagged if row.damage == damage]
    assert len(caught) == 25
    assert sum(caught) >= 0.95 * len(caught)


@pytest.mark.parametrize("flag", [*DAMAGES, "wrong-script"])
def test_false_alarms(flagged, flag):
    clean = [flags for row, flags in flagged if not row.damage]
    assert len(clean) == 725
    assert sum(flag in flags for flags in clean) < 0.005 * len(clean)


def test_any_false_alarm(flagged):
    clean = [flags for row, flags in flagged if not row.damage]
    assert sum(map(bool, clean)) < 0.01 * len(clean)


RATIOS = [("x" * 100, "y" * n) for n in range(90, 130)]
# By hand, of 0.90 to 1.29: quartiles 0.9975 and 1.1925; 0.9975 - 3 × 0.195; the median 1.095 × 1.6.
LIMITS = (0.4125, 1.752, 1.095, 40)


@pytest.mark.parametrize(
    ("source", "translation", "flagged", "reason"),
    [
        ("x" * 100, "y" * 110, False, "the median"),
        ("x" * 100, "y" * 195, False, "within 1.6 times the median, and 20 characters"),
        ("x" * 100, "y" * 196, True, "beyond it"),
        ("x" * 1000, "y" * 1773, True, "20 characters are little of a long text"),
        ("x" * 100, "y" * 42, False, "above the first quartile minus three interquartile ranges"),
        ("x" * 100, "y" * 41, True, "below it"),
        ("x" * 39, "y" * 180, False, "too short a source"),
        ("x" * 100, " ", False, "an empty translation is left to another check"),
    ],
)
def test_length(source, translation, flagged, reason):
    limits = usual_lengths(RATIOS)
    assert limits == pytest.approx(LIMITS, abs=1e-6)
    (flag,) = LengthFinder(limits)([CheckedSegment(Segment(source, translation, "en", "ru"), None)])
    assert (flag is not None) is flagged


def test_length_of_few_is_unknown():
    assert usual_lengths(RATIOS[:19]) is None


EN, RU = "Water boils at 100 degrees.", "Вода кипит при 100 градусах."


@pytest.mark.parametrize(
    ("answer", "left", "reason"),
    [
        (RU, None, "nothing to cut off"),
        (f"Вот перевод текста:\n\n{RU}", RU, "a prefix"),
        (f"**Перевод:** {RU}", RU, "in bold"),
        (f"Конечно! Вот перевод:\n{RU}\n\nПримечание: перевод дословный.", RU, "a prefix and a note"),
        (f"```\n{RU}\n```", RU, "a fence"),
        ("Вот перевод текста:\n", None, "nothing would be left"),
    ],
)
def test_remarks_are_cut_off(answer, left, reason):
    assert without_remarks(Segment(EN, answer, "en", "ru")) == left


@pytest.mark.parametrize(
    ("source", "answer", "lost", "reason"),
    [
        ("See https://a.org/b.", "См. https://a.org/b.", None, "kept"),
        ("See https://a.org/b.", "См. сайт.", "'https://a.org/b'", "a URL"),
        ("Mail x@y.org", "Пишите", "'x@y.org'", "an address"),
        ("Call `run()` now", "Вызовите сейчас", "'`run()`'", "code"),
        ("Take 5 mg", "Примите 5 мг", None, "quantities may be translated"),
    ],
)
def test_lost_spans(source, answer, lost, reason):
    flag = lost_spans(Segment(source, answer, "en", "ru"))
    assert (flag and flag.detail) == lost


def test_headlines_are_not_names():
    """A copied text in which every word has a capital is flagged where its words are translated elsewhere."""
    pairs = [("Water helps the sick liver", "вода лечит больную печень"), ("The Denver Broncos", "The Denver Broncos"),
             ("Water Helps The Liver", "Water Helps The Liver"),
             ("Bank Of New York", "Bank Of New York"), ("near the Bank Of New York", "у Bank Of New York")]  # fmt: skip
    finders = prepare_checks(
        CheckedTexts(languages=("en", "ru"), pairs=lambda: pairs), {"untranslated": CHECKS["untranslated"]}
    )
    flags_of_pairs = find_flags(finders, [CheckedSegment(Segment(*pair, "en", "ru"), None) for pair in pairs])
    assert [bool(flags) for flags in flags_of_pairs] == [False, False, True, False, False]

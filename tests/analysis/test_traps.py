"""The traps of rusbeir.analysis.traps: every shipped language avoids its own, and each catches a careless recipe."""

from __future__ import annotations

from pathlib import Path

import pytest

from rusbeir.analysis import language_files
from rusbeir.analysis.lines import Line, read_lines
from rusbeir.analysis.traps import RESPELLINGS, TRAPS, check_traps, find_scripts
from rusbeir.errors import MissingExtra

LINES = Path(__file__).parent.parent / "languages"

CARELESS = {
    "vowel signs": 'tokens = "python-word"',
    "presentation forms": 'normalise = "none"',
    "half-width kana": 'normalise = "none"',
    "sara am": 'normalise = "none"',
    "zero-width non-joiner": "fold = []",
    "non-joiner before an ending": 'fold = ["invisible"]',
    "accents after stemming": 'fold = ["accents"]\nterm_fold = []',
    "ة after stemming": 'fold = ["arabic", "arabic-endings"]',
    "ى after stemming": 'fold = ["arabic", "arabic-endings"]',
    "final sigma": 'case = "simple"\nterm_fold = ["accents"]',
    "stop words in capitals": 'term_fold = ["digits"]',
    "tones tell words apart": 'term_fold = ["accents"]',
    "đ is a letter": 'term_fold = ["accents"]',
    "ß": 'case = "lower"',
    "two gershayim": 'tokens = "uax29"',
    "two gereshes": 'apostrophe = "keep"',
}
"""What a default profile has that falls into the trap of that name; for the others, no settings at all."""
OF_A_LANGUAGE = ("accents after stemming", "ة after stemming", "ى after stemming", "stop words in capitals")
"""Traps for languages with a stop list, a stemmer or a lexicon; these would hide the others."""
SCRIPTS = sorted({word for trap in TRAPS for word in trap.where.split() if word.istitle()})
NAMES = ("name", "stopwords", "snowball", "lemmas")


def write_language(folder: Path, code: str, settings: str, *, like: str = "") -> None:
    """A language file with the stop list, stemmer and lexicon of a shipped language."""
    shipped = language_files()[like].read_text(encoding="utf-8").splitlines() if like else ['name = "X"']
    # What precedes the first profile.
    shipped = shipped[: next((row for row, line in enumerate(shipped) if line.startswith("[")), None)]
    copied = [line for line in shipped if line.partition(" =")[0] in NAMES]
    (folder / f"{code}.toml").write_text(
        "\n".join(['extends = "none"', *copied, "[profiles.default]", settings]), encoding="utf-8"
    )


def in_the_script_of(where: str) -> list[Line]:
    """Lines that a language would have if it were written as those traps are."""
    return [Line("terms", trap.line.text, "", "why") for trap in TRAPS if trap.where == where]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("RUSBEIR_ANALYZERS", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("code", language_files())
def test_no_shipped_language_falls_into_its_traps(code):
    lines = read_lines(LINES / f"{code}.tsv")
    try:
        traps = check_traps(code, lines)
    except MissingExtra as error:
        pytest.skip(str(error))
    assert {"soft hyphens", "zero-width joiners", "full width", "capitals", "only stop words"} <= set(traps)
    assert [failure for failure in traps.values() if failure] == []
    pairs = {frozenset(trap.line[1:3]) for trap in TRAPS if code in trap.where.split()}
    assert [line for line in lines if frozenset(line[1:3]) in pairs] == [], "these lines are traps already"


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: f"{trap.name} ({trap.where})")
def test_a_trap_catches_a_careless_recipe(trap, folder):
    code = "xx" if trap.where in SCRIPTS else trap.where.split()[0]
    write_language(folder, code, CARELESS.get(trap.name, ""), like=code if trap.name in OF_A_LANGUAGE else "")
    failure = check_traps(code, in_the_script_of(trap.where))[trap.name]
    assert failure is not None
    assert (failure["check"], failure["found"] != "") == (trap.name, True)


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_new_language_can_avoid_the_traps_of_its_script(script, folder):
    fold = '["invisible", "digits", "arabic"]'
    signs = 'apostrophe = "hebrew"' if script == "Hebrew" else ""
    write_language(folder, "xx", f'tokens = "unicode"\nfold = {fold}\n{signs}')
    traps = check_traps("xx", in_the_script_of(script))
    assert {trap.name for trap in TRAPS if trap.where == script} < set(traps)
    assert [failure for failure in traps.values() if failure] == []


@pytest.mark.parametrize(
    ("trap", "code", "settings", "text", "terms"),
    [
        ("marks", "xx", 'tokens = "python-word"', "ꯃꯤꯇꯩ", "ꯃ ꯇ"),
        ("only stop words", "en", "keep_only_stop_words = false", "a about above", "nothing"),
        ("decomposed", "de", 'normalise = "none"', "fu\u0308r", "fur"),
        ("soft hyphens", "de", "fold = []", "a\u00adb\u00ade\u00adr", "a b e r"),
        ("zero-width joiners", "de", "fold = []", "a\u200db\u200de\u200dr", "a b e r"),
        ("full width", "xx", 'normalise = "none"', "１０ ｋｍ", "１０ ｋｍ"),
        ("capitals", "en", 'case = "none"', "A", "A"),
        ("capitals", "tr", 'case = "fold"', "ASLINDA", "asl"),
    ],
)
def test_what_any_text_may_fall_into(trap, code, settings, text, terms, folder):
    write_language(folder, code, settings, like=code if code in language_files() else "")
    lines = [Line("same", text, text, "why")] if trap == "marks" else []
    failure = check_traps(code, lines)[trap]
    assert failure is not None
    assert (failure["text"], failure["found"]) == (text, terms)


def test_every_respelling_is_tried_above():
    rows = next(mark for mark in test_what_any_text_may_fall_into.pytestmark if mark.name == "parametrize").args[1]
    assert set(RESPELLINGS) < {row[0] for row in rows}
    assert set(CARELESS) < {trap.name for trap in TRAPS}


@pytest.mark.parametrize(
    ("code", "texts", "scripts"),
    [
        ("th", [], {"Thai"}),
        ("tlh", [], set()),
        ("xx", ["देश Google", "शहर"], {"Devanagari"}),
        ("ja", ["東京でカタカナを読む"], {"Han", "Hiragana"}),
        ("th", ["Bangkok"], set()),
    ],
)
def test_scripts_are_those_of_the_texts(code, texts, scripts):
    assert find_scripts(code, texts) == scripts

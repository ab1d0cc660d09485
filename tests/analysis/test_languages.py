"""The lines of tests/languages/<code>.tsv, which a linguist can write, against the default profile."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from rusbeir.analysis import Analyzer, language_files, read_language
from rusbeir.analysis.folding import CASES, FOLDS, NORMALISATIONS
from rusbeir.analysis.lemmas import LEXICONS
from rusbeir.analysis.lines import HEADER, Line, check_lines, read_lines
from rusbeir.analysis.recipes import APOSTROPHES, NUMBERS, STEM_INPUTS, STOP_MATCHES, TERMS, Recipe
from rusbeir.analysis.skeletons import write_skeleton
from rusbeir.analysis.tokenisers import TOKENISERS
from rusbeir.errors import BadInput, MissingExtra

FOLDER = Path(__file__).parent.parent / "languages"
FILES = {path.stem: read_lines(path) for path in sorted(FOLDER.glob("*.tsv"))}
LINES = [
    pytest.param(code, line, id=f"{code}-{line.kind}-{line.text}") for code, lines in FILES.items() for line in lines
]
AIR_BENCH_AND_POSIR = ("ar", "bn", "de", "es", "fa", "fr", "hi", "id", "it", "ja", "ko", "pt", "zh")
MANY = {**dict.fromkeys(AIR_BENCH_AND_POSIR, 40), "en": 150, "ru": 150}
FEW = 15
"""Lines that any language must have; more in those of AIR-Bench and PosIR."""


@cache
def make_analyzer(code: str) -> Analyzer:
    """One analyzer for all lines of a language."""
    return Analyzer(code)


@pytest.mark.parametrize(("code", "line"), LINES)
def test_line(code, line):
    try:
        failure = line.failure(make_analyzer(code))
    except MissingExtra as error:
        pytest.skip(str(error))
    assert failure is None, line.note


@pytest.mark.parametrize("code", language_files())
def test_a_language_has_lines_and_says_why(code):
    assert len(FILES[code]) >= MANY.get(code, FEW)
    assert 0 < len(read_language(code).why) <= 240


@pytest.mark.parametrize(
    ("kind", "text", "expected", "failure"),
    [
        ("lemmas", "на столах", "стол", None),
        ("lemmas", "на столах", "столы", "стол"),
        ("terms", "водные столы", "водн стол", None),
        ("same", "столы", "столами", None),
        ("same", "столы", "стулья", "стол"),
        ("same", "...", "...", "nothing"),
        ("contains", "новые столы", "стол", None),
        ("contains", "столы", "новый стол", "стол"),
        ("contains", "столы", "и", "стол"),
        ("whole", "столы", "", None),
        ("whole", "стол-стул", "", "стол стул"),
        ("differ", "столы", "стулья", None),
        ("differ", "столы", "новый стол", "стол"),
        ("empty", "и в на", "", None),
        ("empty", "и стол", "", "стол"),
        ("xfail-same", "столы", "стулья", None),
        ("xfail-same", "столы", "столами", "holds, so remove xfail-"),
    ],
)
def test_what_a_line_finds(kind, text, expected, failure, tmp_path):
    path = tmp_path / "ru.tsv"
    path.write_text(f"{HEADER}\n{kind}\t{text}\t{expected}\twhy\n", encoding="utf-8")
    (line,) = read_lines(path)
    assert line.failure(Analyzer("ru")) == failure


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("kind\ttext\n", ":1: the header is"),
        (f"{HEADER}\nsame\ta\tb\n", ":2: 3 columns instead of 4"),
        (f"{HEADER}\n# a comment\nsmae\ta\tb\tc\n", ":3: no kind 'smae'"),
        (f"{HEADER}\nsame\ta\tb\tc\nsame\ta\tb\td\n", ":3: comes twice"),
        (f"{HEADER}\nsame\ta\tb\t\n", ":2: a note is missing"),
    ],
)
def test_a_wrong_file_says_what_is_wrong(content, says, tmp_path):
    path = tmp_path / "ru.tsv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(BadInput, match=says):
        read_lines(path)


def test_a_check_tells_which_lines_fail():
    lines = [Line("same", "водяные", "водяная", "why"), Line("same", "стол", "стул", "why")]
    failure = {"check": "same", "text": "стол", "expected": "стул", "found": "стол", "reason": "why"}
    assert check_lines("ru", lines) == [failure]


def test_a_skeleton_is_a_language(tmp_path, monkeypatch):
    (tmp_path / "text.txt").write_text("la hundo kaj la kato kaj la birdo", encoding="utf-8")
    written = write_skeleton("eo", tmp_path / "mine", tmp_path / "text.txt")
    assert [path.name for path in written] == ["eo.toml", "eo.tsv", "eo-candidates.txt"]
    monkeypatch.setenv("RUSBEIR_ANALYZERS", str(tmp_path / "mine"))
    recipe = Analyzer("eo").recipe
    assert (recipe.stemmer, recipe.lemmas) == ("snowball:esperanto", "simplemma")
    assert {"la", "kaj"} <= recipe.stop.words
    assert read_lines(tmp_path / "mine" / "eo.tsv") == []
    with pytest.raises(BadInput, match=r"eo\.toml exists already"):
        write_skeleton("eo", tmp_path / "mine")


def test_a_skeleton_of_a_shipped_language_is_a_copy(tmp_path, monkeypatch):
    """A stub of Turkish had no case, no apostrophe and no stop words, and failed five of nine traps."""
    shipped = Analyzer("tr").signature
    written = write_skeleton("tr", tmp_path / "mine")
    assert [path.name for path in written] == ["tr.toml", "tr.tsv", "nltk-turkish.txt"]
    monkeypatch.setenv("RUSBEIR_ANALYZERS", str(tmp_path / "mine"))
    assert read_language("tr").path == tmp_path / "mine" / "tr.toml"
    assert Analyzer("tr").signature == shipped
    assert read_lines(tmp_path / "mine" / "tr.tsv") == FILES["tr"]
    (tmp_path / "mine" / "stopwords" / "nltk-turkish.txt").write_text("ve\n", encoding="utf-8")
    assert Analyzer("tr").recipe.stop.words == {"ve"}


def test_the_page_names_every_setting_and_value():
    """It sent its readers to a class in the source."""
    page = (Path(__file__).parents[2] / "docs" / "add-a-language.md").read_text(encoding="utf-8")
    section = page.partition("### Every setting")[2].partition("### Rules of your own")[0]
    named = set(re.findall(r"`([\w-]+)`", section))
    settings = set(Recipe.__dataclass_fields__) - {"language", "rules"} | {"inherits"}
    assert settings - named == set()
    for values in (TOKENISERS, NORMALISATIONS, CASES, FOLDS, APOSTROPHES, NUMBERS, STOP_MATCHES, STEM_INPUTS, TERMS):
        assert set(values) - named == set()
    assert set(LEXICONS) - named == set()


def test_a_skeleton_of_a_language_that_no_package_knows(tmp_path, monkeypatch):
    write_skeleton("tlh", tmp_path)
    monkeypatch.setenv("RUSBEIR_ANALYZERS", str(tmp_path))
    assert Analyzer("tlh", "words").analyze("tlhIngan Hol") == ["tlhingan", "hol"]
    assert Analyzer("tlh").recipe == Analyzer("tlh", "blend").recipe, "without a lexicon"
    assert Analyzer("tlh", "blend").analyze("Hol") == ["hol", "~_hol", "~hol_"]


def test_a_skeleton_has_what_its_script_asks_for(tmp_path, monkeypatch):
    monkeypatch.setenv("RUSBEIR_ANALYZERS", str(tmp_path))
    write_skeleton("km", tmp_path)
    # No spaces between words, and digits of its own.
    assert Analyzer("km", "words").analyze("ឆ្មាដេក ២០២៦") == Analyzer("km", "unicode").analyze("ឆ្មាដេក 2026")
    write_skeleton("or", tmp_path)
    assert Analyzer("or", "words").analyze("୨୦୨୬") == ["2026"]

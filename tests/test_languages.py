"""Every place that takes a language understands how people spell it, and says early what has no analyzer."""

from __future__ import annotations

import pytest

import rusbeir
from rusbeir.analysis import read_language
from rusbeir.datasets import load
from rusbeir.errors import RusbeirError, UnknownName
from rusbeir.languages import _own_names, parse_language, read_language_tag
from rusbeir.retrieval import resolve

SPELLINGS = ["ru", "RU", "Russian", "russian", "ru-RU", "ru_RU", " ru "]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_python_understands_every_spelling(spelling, tmp_path):
    assert rusbeir.Analyzer(spelling).signature == rusbeir.Analyzer("ru").signature
    assert resolve("bm25", language=spelling).signature == resolve("bm25", language="ru").signature
    assert load("mini/ru", language=spelling).card.language == "ru"
    made = rusbeir.Dataset.of([{"_id": "d", "text": "мама"}], {"q": "мамы"}, {"q": {"d": 1}}, language=spelling)
    assert rusbeir.bench(made, out=tmp_path)["measures"]["nDCG@10"] == 1


@pytest.mark.parametrize("tag", ["nb", "nb-NO", "NB", "Norwegian Bokmål"])
def test_norwegian_bokmal_is_norwegian(tag):
    """BCP 47: no is the macrolanguage of nb and nn; nn has a file of its own."""
    assert read_language(tag) == read_language("no")
    assert rusbeir.Analyzer(tag, "unicode").signature == rusbeir.Analyzer("no", "unicode").signature
    assert [read_language(tag).code for tag in ("nn", "nn-NO")] == ["nn", "nn"]


@pytest.mark.parametrize(
    ("spelling", "tag"),
    [
        ("Kazakh", "kk"),
        ("PT-BR", "pt-BR"),
        ("German", "de"),
        ("zh_Hans", "zh-Hans"),
        ("rus", "ru"),  # BCP 47: the shortest code of a language is its tag
        ("spa-MX", "es-MX"),
        ("tlh", "tlh"),
        ("qaa", "qaa"),  # ISO 639: for private use
        ("mul", "mul"),
    ],
)
def test_a_port_goes_into_any_spelling(spelling, tag):
    assert parse_language(spelling) == tag


@pytest.mark.parametrize("text", ["", "??", "../ru", "base", "Klingon", "r", "русский"])
def test_what_is_not_a_language_stays_as_it_is(text):
    assert read_language_tag(text) == text
    with pytest.raises(UnknownName):
        read_language(text)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("русский", "ru"),
        ("Español", "es"),
        ("中文", "zh"),
        ("spannish", "es"),
        ("Brazilian Portuguse", "pt-br"),
        ("xx", None),
        ("Klingon", None),
        ("x-mine", None),
        ("??", None),
    ],
)
def test_an_unknown_language_is_answered_with_what_was_meant(text, meant):
    with pytest.raises(UnknownName) as raised:
        parse_language(text)
    assert str(raised.value).startswith(f"No language {text!r}. " + (f"Did you mean {meant!r}?" if meant else "Lang"))


def test_every_own_name_leads_to_a_tag():
    for name, tag in _own_names().items():
        assert name == name.lower()
        assert parse_language(tag) == tag


def test_another_language_than_the_registered_one_is_refused():
    with pytest.raises(RusbeirError, match="says that the language is 'ru', not 'en'"):
        load("mini/ru", language="English")

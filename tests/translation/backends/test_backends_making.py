"""How a translator is made from its name and options, and what is said where it cannot be."""

from __future__ import annotations

import sys

import pytest

from rusbeir.errors import BadInput, MissingExtra, UnknownName
from rusbeir.jobs import Limits
from rusbeir.languages import english_name
from rusbeir.translation.backends import make, preset
from rusbeir.translation.backends.common import Codes
from rusbeir.translation.backends.registry import codes_of
from rusbeir.translation.translator import Failure
from tests.support.asking import ask, make_one


@pytest.mark.parametrize(
    ("name", "options", "error", "message"),
    [
        ("gogle", {}, UnknownName, "No translator 'gogle'. Did you mean 'google'"),
        ("memory,gogle", {}, UnknownName, "No translator 'gogle'."),
        ("google,", {}, BadInput, "The chain 'google,' must name each translator once."),
        ("google,google", {}, BadInput, "The chain 'google,google' must name each translator once."),
        (
            "google",
            {"beam_size": 3},
            BadInput,
            "The translator google does not take the option 'beam_size'.",
        ),
        ("google", {"limits": None, "judge": 1}, BadInput, "The translator google does not take the option 'judge'."),
        ("google", {"concurrency": 0}, BadInput, "concurrency is 0: it must be at least 1."),
        ("opus-mt", {}, BadInput, "The translator opus-mt handles a single language pair: pass source and target."),
        (
            "apertium",
            {"source": "en"},
            BadInput,
            "The translator apertium handles a single language pair: pass target.",
        ),
    ],
)
def test_what_cannot_be_made(name, options, error, message):
    with pytest.raises(error) as raised:
        make_one(name, **options)
    assert str(raised.value).startswith(message)


def test_limits_are_the_rows_but_for_what_is_given():
    translator = make_one("google", requests_per_second=1.5, retries=None)
    assert translator.limits == Limits(
        **{**vars(preset("google").limits), "requests_per_second": 1.5},
    )


@pytest.mark.parametrize(
    ("name", "options", "unset", "message"),
    [
        ("llm", {}, "", "The translator llm needs a model: give llm=MODEL"),
        ("llm", {"llm": "m"}, "OPENAI_API_KEY", "OPENAI_API_KEY is not set"),
        ("llm", {"llm": "m"}, "OPENAI_BASE_URL", "OPENAI_BASE_URL is not set"),
        ("llm", {"llm": "m", "attempts": 0}, "", "attempts is 0"),
        ("deepl", {}, "DEEPL_AUTH_KEY", "DEEPL_AUTH_KEY is not set"),
        ("deepl", {"endpoint": "localhost"}, "", "The translator deepl's endpoint is not a URL"),
        ("google-cloud", {}, "GOOGLE_API_KEY", "The translator google-cloud needs credentials: set GOOGLE_API_KEY"),
        ("google", {"endpoint": "ftp://x"}, "", "The translator google's endpoint is not a URL"),
        ("memory", {}, "", "The translator memory needs a file: give memory=FILE"),
        ("memory", {"memory": "nowhere.tsv"}, "", "nowhere.tsv does not exist"),
        ("python:own_translators", {}, "", "python:own_translators does not name a function"),
        ("python:no_module.f", {}, "", "python:no_module.f cannot be imported: No module named 'no_module'."),
        ("python:own_translators.none", {}, "", "python:own_translators.none: own_translators has no function 'none'."),
    ],
)
def test_what_is_missing_is_said_before_anything_is_sent(name, options, unset, message, monkeypatch):
    if unset:
        monkeypatch.delenv(unset)
    with pytest.raises(BadInput) as raised:
        make_one(name, **options).check("en", "ru")
    assert str(raised.value).startswith(message)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "options", "package", "extra"),
    [
        ("google", {}, "googletrans", "google"),
        ("google-cloud", {}, "httpx2", "google-cloud"),
        ("deepl", {}, "httpx2", "deepl"),
        ("nllb", {"source": "en", "target": "ru"}, "ctranslate2", "mt"),
    ],
)
def test_a_missing_package_names_its_extra(name, options, package, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=rf"needs the package {package}: .*pip install 'rusbeir\[{extra}\]'"):
        make_one(name, **options).check("en", "ru")


def test_without_openai(monkeypatch):
    monkeypatch.setattr("rusbeir.translation.backends.llm.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"rusbeir\[llm\]"):
        make_one("llm", llm="m").check("en", "ru")


@pytest.mark.parametrize(
    ("tag", "google", "deepl"),
    [
        # tag, Google's code, DeepL's; None where it has none
        ("ru", "ru", "RU"),
        ("ru-RU", "ru", "RU"),
        ("ru-Cyrl", "ru", "RU"),
        ("nb", "no", "NB"),
        ("no", "no", "NB"),
        ("pt-BR", "pt", "PT-BR"),
        ("pt-PT", "pt-PT", "PT-PT"),
        ("pt_br", "pt", "PT-BR"),
        ("zh", "zh-CN", "ZH"),
        ("zh-Hant", "zh-TW", "ZH-HANT"),
        ("zh-Hant-TW", "zh-TW", "ZH-HANT"),
        ("zh-TW", "zh-TW", "ZH-HANT"),
        ("ee", "ee", None),  # googletrans makes Estonian of Ewe
        ("tk", "tk", None),  # googletrans knows only "tuk", which it calls Tuvan
        ("iw", "he", "HE"),
        ("sr", "sr", None),
        ("sr-Cyrl", "sr", None),
        ("sr-Latn", None, None),  # they write Serbian in Cyrillic letters
        ("xx", None, None),
    ],
)
def test_bcp47_to_the_codes_of_services(tag, google, deepl):
    for codes, expected in ((codes_of("google", "google-languages"), google), (codes_of("deepl"), deepl)):
        if expected is None:
            with pytest.raises(BadInput, match=f"does not translate into '{tag}'"):
                codes.target(tag)
        else:
            assert codes.target(tag) == expected


def test_a_language_may_be_read_in_any_script():
    assert codes_of("google", "google-languages").source("sr-Latn") == "sr"


def test_an_unknown_language_is_answered_with_those_there_are():
    codes = Codes(translator="t", codes=("ru", "kk"), aliases={})
    with pytest.raises(BadInput) as raised:
        codes.target("kkk")
    assert str(raised.value) == "The translator t does not translate into 'kkk'. Did you mean 'kk'? It has: kk, ru."


def test_names_for_prompts():
    assert [english_name(tag) for tag in ("ru", "pt-BR", "sr-Latn", "kk-KZ", "tlh")] == [
        "Russian", "Brazilian Portuguese", "Serbian in Latin script", "Kazakh", "tlh",
    ]  # fmt: skip


def test_python_functions():
    assert make_one("python:own_translators.versioned").signature == "python:own_translators.versioned|ownmodel2key"
    assert ask(make_one("python:own_translators.breaks_on_b"), "a", "b", "c") == [
        "а",
        Failure("server", "KeyError: 'b'", False),
        "ц",
    ]
    wrong = "TypeError: own_translators.too_few must return a list of 1 for 1 texts"
    assert ask(make_one("python:own_translators.too_few"), "a", "b") == ["x", "x"]
    assert ask(make_one("python:own_translators.one_string"), "a") == [
        Failure("server", wrong.replace("too_few", "one_string"), False)
    ]
    assert ask(make_one("python:own_translators.mixed"), "a", "b", "c", "d") == [
        Failure("refused", "no", False),
        Failure("malformed", "NoneType came where a str was expected", False),
        Failure("empty", "the answer is empty", True),
        "ответ",
    ]


def test_a_chain_is_its_translators_in_order(memory_file, server):
    chain = make("memory,google", memory=memory_file, endpoint=server.url)
    assert [translator.name for translator in chain] == ["memory", "google"]


def test_fuzzy_matches_are_flagged(memory_file):
    (answer, missing) = ask(
        make_one("memory", memory=memory_file, fuzzy=0.6), "Water boils!", "Something else entirely."
    )
    assert answer.text == "Вода кипит."
    assert answer.flags.startswith("fuzzy:0.")
    assert missing.reason == "no-entry"
    assert ask(make_one("memory", memory=memory_file), "Water boils!")[0].reason == "no-entry"
    with pytest.raises(BadInput, match="fuzzy is 2"):
        make_one("memory", memory=memory_file, fuzzy=2.0).check("en", "ru")


def test_a_memory_is_known_by_its_content(memory_file, tmp_path):
    copy = tmp_path / "other.tsv"
    copy.write_bytes(memory_file.read_bytes())
    assert make_one("memory", memory=copy).signature == make_one("memory", memory=memory_file).signature
    copy.write_text("a\tб\n", encoding="utf-8")
    assert make_one("memory", memory=copy).signature != make_one("memory", memory=memory_file).signature


def test_a_broken_memory_is_bad_input(tmp_path):
    path = tmp_path / "memory.tsv"
    path.write_text("Water boils.\tВода кипит.\nno tab\n", encoding="utf-8")
    with pytest.raises(BadInput, match=r"memory\.tsv:2: 1 columns"):
        make_one("memory", memory=path).check("en", "ru")

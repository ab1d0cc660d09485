"""What a stage asks for, and which engine takes it."""

from __future__ import annotations

import re

import pytest

from rusbeir.errors import BadInput, UnknownName
from rusbeir.retrieval.lexical import bm25, engines
from rusbeir.retrieval.lexical.bm25 import Bm25
from rusbeir.retrieval.spec import parse

ASKED = [
    # text, language, value, why
    ("bm25", "ru", Bm25(), "Lucene's defaults over one field, the language's own analysis"),
    ("bm25(k1=0.9,b=0.4)", "ru", Bm25(k1=0.9, b=0.4), "parameters"),
    ("bm25(k1=2)", "ru", Bm25(k1=2.0), "an integer is a number too"),
    ("bm25(profile=raw)", "ru", Bm25(analysis="raw"), "any other profile is one of the analyzer"),
    (
        "bm25(profile=rusbeir-paper)",
        "ru",
        Bm25(fields="best_fields", tie_breaker=0.5, analysis="rusbeir-paper"),
        "the paper's multi_match",
    ),
    (
        "bm25(profile=rusbeir-paper,fields=flat)",
        "ru",
        Bm25(analysis="rusbeir-paper"),
        "what stands beside a profile overrides it",
    ),
    (
        "bm25(profile=anserini-flat)",
        "en",
        Bm25(k1=0.9, b=0.4, analysis="lucene-english", lengths="lucene"),
        "Anserini, English",
    ),
    (
        "bm25(profile=anserini-flat)",
        "de",
        Bm25(k1=0.9, b=0.4, analysis="snowball", lengths="lucene"),
        "Anserini, any other",
    ),
    (
        "bm25(profile=anserini-multifield)",
        "en",
        Bm25(k1=0.9, b=0.4, fields="sum", analysis="lucene-english", lengths="lucene"),
        "both fields added",
    ),
    (
        "bm25(profile=es-best_fields)",
        "ru",
        Bm25(fields="best_fields", tie_breaker=0.5, analysis="snowball", lengths="lucene"),
        "BEIR on Elasticsearch",
    ),
    ("bm25(profile=server)", "de", Bm25(analysis="server", server_language="de"), "the analyzer that the server has"),
    (
        "bm25(fields=best_fields,tie_breaker=0)",
        "ru",
        Bm25(fields="best_fields", tie_breaker=0.0),
        "fields without a profile",
    ),
]


@pytest.mark.parametrize(("text", "language", "value", "why"), ASKED, ids=[f"{row[0]} {row[1]}" for row in ASKED])
def test_from_stage(text, language, value, why):
    assert bm25.read_bm25(parse(text).stages[0], language=language) == value, why


AVAILABLE = "profile, analyzer, stop, synonyms, tokens, k1, b, fields, weights, tie_breaker, gram_weight, lengths."
REFUSED = [
    ("bm25(k3=1)", "bm25 has no option 'k3'. Available: " + AVAILABLE),
    ("bm25(0.9)", "bm25 takes options only, such as k1=0.9, not 0.9."),
    ("bm25(k1=-1)", "bm25 needs k1 to be a number from 0 up, not -1."),
    ("bm25(k1=high)", "bm25 needs k1 to be a number from 0 up, not high."),
    ("bm25(b=1.5)", "bm25 needs b to be a number from 0 to 1, not 1.5."),
    ("bm25(tie_breaker=2)", "bm25 needs tie_breaker to be a number from 0 to 1, not 2."),
    ("bm25(fields=both)", "bm25 has no fields=both. Available: flat, best_fields, sum."),
    ("bm25(lengths=short)", "bm25 has no lengths=short. Available: lucene, exact."),
    ("bm25(fields=1)", "bm25 has no fields=1. Available: flat, best_fields, sum."),
    ("bm25(weights=2:1)", "bm25 has one field with fields=flat: add fields=best_fields or fields=sum to weights."),
    (
        "bm25(fields=sum,weights=2)",
        "bm25 needs weights to be 2 numbers from 0 up, one for title and one for text, such as 1:1, not 2.",
    ),
    (
        "bm25(fields=sum,weights=0:1)",
        "bm25 needs weights above 0: without title or text a field has nothing to search.",
    ),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_bad_options(text, message):
    with pytest.raises(BadInput) as error:
        bm25.read_bm25(parse(text).stages[0], language="ru")
    assert str(error.value) == message


def test_profiles_are_complete():
    for name, recipe in bm25.profiles().items():
        assert set(recipe) <= {"analysis", "k1", "b", "fields", "tie_breaker", "gram_weight", "lengths"}, name
        assert isinstance(recipe["analysis"], str) or "other" in recipe["analysis"], name


def test_signatures_tell_recipes_apart():
    recipes = [Bm25(), Bm25(k1=1.2000001), Bm25(fields="sum"), Bm25(fields="best_fields", tie_breaker=0.3)]
    assert len({recipe.signature for recipe in recipes}) == len(recipes)
    assert Bm25().signature == "bm25|k1:1.2|b:0.75|fields:flat"


CHOSEN = [
    # name, BM25, the engine, note
    ("auto", Bm25(), "tantivy", None),
    ("tantivy", Bm25(fields="sum"), "tantivy", None),
    ("bm25s", Bm25(), "bm25s", None),
    (
        "auto",
        Bm25(k1=0.9, b=0.4),
        "bm25s",
        "tantivy has k1 1.2 and b 0.75 built in and cannot do k1 0.9, b 0.4. Using bm25s.",
    ),
    (
        "auto",
        Bm25(analysis="server", server_language="ru"),
        "elasticsearch",
        "tantivy gets terms and cannot leave the analysis to a server. Using elasticsearch.",
    ),
]


@pytest.mark.parametrize(("name", "bm25", "chosen", "note"), CHOSEN)
def test_choose(name, bm25, chosen, note):
    engine, reason = engines.choose(name, bm25)
    assert (engine.name, reason) == (chosen, note)


def test_tantivy_refuses_what_it_cannot_do():
    with pytest.raises(BadInput) as error:
        engines.choose("tantivy", Bm25(k1=0.9))
    assert str(error.value) == (
        "tantivy has k1 1.2 and b 0.75 built in and cannot do k1 0.9, b 0.75. "
        "Use engine=auto, bm25s, elasticsearch or opensearch."
    )


def test_unknown_engine():
    with pytest.raises(UnknownName, match=r"No engine 'tantivi'\. Did you mean 'tantivy'\?"):
        engines.choose("tantivi", Bm25())


@pytest.mark.parametrize("engine", sorted(engines.ENGINES), indirect=True)
def test_signature_names_version_and_lengths(engine):
    loaded = engines.load(engine)
    assert loaded.name == engine
    assert re.fullmatch(rf"{engine}-[0-9.]+\|len:(lucene|exact)", loaded.signature(Bm25()))


def test_only_a_server_has_an_address():
    assert engines.load("elasticsearch@http://search.example:9200").address == "http://search.example:9200"
    with pytest.raises(BadInput, match="The engine tantivy runs on this machine and has no address"):
        engines.load("tantivy@http://127.0.0.1:9200")

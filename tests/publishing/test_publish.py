"""A published folder is loaded by every tool with the same scores, and its card claims no more than is known."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from rusbeir import bench, load
from rusbeir.audit.sheets import FORMS
from rusbeir.datasets import read_run, write_beir
from rusbeir.errors import BadInput
from rusbeir.publishing import publish
from rusbeir.publishing.evidence import Evidence, collect_evidence
from rusbeir.publishing.licences import find_hub_licence, refuse_licence
from rusbeir.translation.port.api import port
from rusbeir.types import Dataset
from tests.support.small_port import Fake, write_source


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("publish") / "mini-ru"
    publish("mini/ru", to=folder)
    return folder


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, object]:
    """The row of BM25 on the original."""
    return bench("mini/ru", k=1000, measures="nDCG@10", out=tmp_path_factory.mktemp("rows"))


def test_rusbeir_reads_it(published, expected, tmp_path):
    for place in (published, published / "beir.zip"):
        row = bench(place, k=1000, measures="nDCG@10", out=tmp_path)
        assert row["fingerprint"] == expected["fingerprint"]
        assert row["measures"] == pytest.approx(expected["measures"], abs=1e-6)


def test_the_zip_has_beirs_layout(published):
    with zipfile.ZipFile(published / "beir.zip") as bundle:
        assert bundle.namelist() == ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv", "card.json"]
        assert json.loads(bundle.read("corpus.jsonl").splitlines()[0]).keys() == {"_id", "title", "text"}
        assert bundle.read("qrels/test.tsv").startswith(b"query-id\tcorpus-id\tscore\n")


def test_datasets_reads_it(published, tmp_path):
    import datasets

    source = load("mini/ru")
    corpus, queries, qrels = (
        datasets.load_dataset(str(published), name, split=split, cache_dir=str(tmp_path))
        for name, split in (("corpus", "corpus"), ("queries", "queries"), ("default", "test"))
    )
    assert [(row["_id"], row["title"], row["text"]) for row in corpus] == [
        (doc.doc_id, doc.title, doc.text) for doc in source.corpus
    ]
    assert {row["_id"]: row["text"] for row in queries} == source.queries
    read: dict[str, dict[str, int]] = {}
    for row in qrels:
        read.setdefault(row["query-id"], {})[row["corpus-id"]] = row["score"]
    assert read == source.qrels


def test_trecs_tools_read_it(published, expected):
    import ir_datasets
    import pytrec_eval

    trec = published / "trec"
    found = ir_datasets.create_dataset(
        docs_tsv=str(trec / "docs.tsv"), queries_tsv=str(trec / "queries.tsv"), qrels_trec=str(trec / "qrels.test.txt")
    )
    source = load("mini/ru")
    assert [doc.doc_id for doc in found.docs_iter()] == [doc.doc_id for doc in source.corpus]
    assert {query.query_id: query.text for query in found.queries_iter()} == source.queries
    qrels: dict[str, dict[str, int]] = {}
    for one in found.qrels_iter():
        qrels.setdefault(one.query_id, {})[one.doc_id] = one.relevance
    run = read_run(expected["run"])
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10"})
    scores = [row["ndcg_cut_10"] for row in evaluator.evaluate(run).values()]
    assert sum(scores) / len(source.queries) == pytest.approx(expected["measures"]["nDCG@10"], abs=1e-6)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_croissant_is_valid(published):
    import mlcroissant

    found = mlcroissant.Dataset(published / "croissant.json")
    assert not found.metadata.ctx.issues.errors
    first = next(iter(found.records("queries")))
    assert first["queries/text"].decode() == next(iter(load("mini/ru").queries.values()))


def test_the_same_dataset_gives_the_same_bytes(published, tmp_path):
    publish("mini/ru", to=tmp_path / "again")
    files = [path.relative_to(published) for path in published.rglob("*") if path.is_file()]
    assert all((tmp_path / "again" / name).read_bytes() == (published / name).read_bytes() for name in files)


@pytest.mark.parametrize(
    ("made_by", "n_judged", "n_read", "created", "annotated"),
    [
        ("", 5, 5, None, None),  # nothing is known of a dataset that rusbeir did not make
        ("port", 0, 0, "machine-translated", "derived"),
        ("port", 5, 0, "machine-translated and LM verified", "derived"),
        ("port", 5, 5, "machine-translated and verified", "derived"),
        ("rewrite", 0, 0, None, "derived"),
        ("queries", 0, 0, None, "LM-generated"),
        ("qc", 0, 5, "LM-generated and verified", "LM-generated and reviewed"),
    ],
)
def test_words_for_how_it_was_made(made_by, n_judged, n_read, created, annotated):
    evidence = Evidence(made_by=made_by, n_judged=n_judged, n_read=n_read, report=None)
    assert (evidence.sample_creation, evidence.annotations_creators) == (created, annotated)


def test_a_card_says_what_the_audit_found(tmp_path):
    from rusbeir.audit import check_port
    from rusbeir.audit.sheets import make_sheets

    out = tmp_path / "port"
    port(write_source(tmp_path / "source"), to="ru", out=out, translator=Fake())
    check_port(out, processes=1, round_trip=False)
    (sheet, *_) = [path for path in make_sheets(out, n=4) if path.suffix == ".csv"]
    card = load(out, split="test").card
    assert collect_evidence(card, out).n_read == 0, "an empty sheet is not a check"
    lines = sheet.read_text(encoding="utf-8-sig").splitlines()
    answers = "," + ",".join("5" for _ in FORMS[0].questions) + ","
    sheet.write_text("\n".join([lines[0], *(line.replace(",,,,,", answers) for line in lines[1:])]), encoding="utf-8")
    assert collect_evidence(card, out).n_read == 4
    report = publish(out, to=tmp_path / "published", i_have_permission=True)
    page = (tmp_path / "published" / "README.md").read_text(encoding="utf-8")
    assert report["sample_creation"] == "machine-translated and verified"
    assert "segments flagged" in page
    assert "have permitted this publication" in page
    assert "translated by a machine from" in page


@pytest.mark.parametrize(
    ("licence", "derived", "refused"),
    [
        ("CC-BY-SA-4.0", True, None),
        ("CC BY-SA 4.0 (BEIR's card; see each source)", True, None),
        ("MIT", True, None),
        ("CC-BY-NC-ND-4.0", False, None),  # a copy is allowed
        ("CC-BY-NC-ND-4.0", True, "allows no derivative works"),
        ("academic use only (Cocktail)", False, "cannot tell whether the licence of x, 'academic use only"),
        ("unknown", False, "is not known"),
        ("", True, "is not known"),
    ],
)
def test_licences(licence, derived, refused):
    if refused is None:
        refuse_licence("x", licence, derived=derived)
        assert find_hub_licence(licence)
    else:
        with pytest.raises(BadInput, match=refused):
            refuse_licence("x", licence, derived=derived)


def test_a_folder_that_holds_something_is_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(BadInput, match="holds something else"):
        publish("mini/ru", to=tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_licence_that_forbids_it(tmp_path):
    docs = [{"_id": "d", "text": "Кошка спит."}]
    dataset = Dataset.of(docs, {"q": "кошка"}, {"q": {"d": 1}}, language="ru", licence="CC-BY-ND-4.0 and more")
    write_beir(dataset, tmp_path / "mine")
    with pytest.raises(BadInput, match="cannot tell whether the licence"):
        publish(tmp_path / "mine", to=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert publish(tmp_path / "mine", to=tmp_path / "out", i_have_permission=True)["n_docs"] == 1

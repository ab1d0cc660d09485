"""A published folder is loaded by every tool with the same scores, and its card claims no more than is known."""

from __future__ import annotations

import ast
import csv
import json
import re
import tomllib
import zipfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import openpyxl
import pytest

import rusbeir.mteb
from rusbeir import bench, load
from rusbeir.audit import audit_port
from rusbeir.comparison import compare
from rusbeir.comparison.validity import measure_validity
from rusbeir.datasets import read_run, write_beir
from rusbeir.datasets.formats.files import Folder
from rusbeir.datasets.licences import find_hub_licence, find_obstacle
from rusbeir.datasets.loading import load_splits
from rusbeir.errors import BadInput
from rusbeir.people.esa_sheets import Campaign, make_esa_sheets
from rusbeir.people.judge import DIMENSIONS
from rusbeir.people.sheets import FORMS, make_sheets
from rusbeir.publishing import publish
from rusbeir.publishing.evidence import Evidence, collect_evidence
from rusbeir.publishing.making import describe_making
from rusbeir.publishing.tables import find_nano_split
from rusbeir.site.pages import write_site
from rusbeir.storage import data_folder
from rusbeir.translation.porting.api import port
from rusbeir.translation.translator import Failure
from rusbeir.types import Dataset
from tests.support.mteb_task import make_task, score_task
from tests.support.small_port import Fake, translated, write_source
from tests.support.toy_encoder import Toy


@pytest.fixture(scope="module", params=["mini/ru", "a port of XQuAD"])
def source(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What is published: a registered dataset, and XQuAD's English ported with its Russian paragraphs as a memory."""
    if request.param == "mini/ru":
        return str(request.param)
    request.getfixturevalue("shared_data")
    folder = tmp_path_factory.mktemp("port")
    english, russian = load("xquad/en"), load("xquad/ru")
    pairs = [
        *((doc.text, russian.corpus[doc.doc_id].text) for doc in english.corpus),
        *((text, russian.queries[query_id]) for query_id, text in english.queries.items()),
    ]
    lines = [json.dumps({"source": source, "target": target}) + "\n" for source, target in pairs]
    (folder / "memory.jsonl").write_text("".join(lines), encoding="utf-8")
    port("xquad/en", to="ru", out=folder / "xquad-ru", translator="memory", memory=folder / "memory.jsonl")
    return str(folder / "xquad-ru")


@pytest.fixture(scope="module")
def published(source, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("publish") / "published"
    publish(source, to=folder)
    return folder


@pytest.fixture(scope="module")
def expected(source, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, object]:
    """The row of BM25 on what is published."""
    return bench(source, k=1000, measures="nDCG@10", out=tmp_path_factory.mktemp("rows"))


def test_rusbeir_reads_it(published, expected, tmp_path):
    for path in (published, published / "beir.zip"):
        row = bench(path, k=1000, measures="nDCG@10", out=tmp_path)
        assert row["fingerprint"] == expected["fingerprint"]
        assert row["measures"] == pytest.approx(expected["measures"], abs=1e-6)


def test_beirs_loader_reads_the_zip(source, published, expected):
    """Read as beir.datasets.data_loader.GenericDataLoader reads it: a line of column names, grades through int()."""
    with zipfile.ZipFile(published / "beir.zip") as bundle:
        corpus = {row["_id"]: row for row in map(json.loads, bundle.read("corpus.jsonl").splitlines())}
        queries = {row["_id"]: row["text"] for row in map(json.loads, bundle.read("queries.jsonl").splitlines())}
        _, *rows = csv.reader(
            bundle.read(f"qrels/{load(source).card.split}.tsv").decode().splitlines(),
            delimiter="\t",
            quoting=csv.QUOTE_MINIMAL,
        )
    qrels: dict[str, dict[str, int]] = {}
    for query_id, doc_id, grade in rows:
        qrels.setdefault(query_id, {})[doc_id] = int(grade)
    original = load(source)
    assert [(row["title"], row["text"]) for row in corpus.values()] == [
        (doc.title, doc.text) for doc in original.corpus
    ]
    assert queries == original.queries
    assert score_run(expected, qrels) == pytest.approx(expected["measures"]["nDCG@10"], abs=1e-6)


def test_the_zip_has_beirs_layout(source, published):
    qrels = f"qrels/{load(source).card.split}.tsv"
    with zipfile.ZipFile(published / "beir.zip") as bundle:
        assert bundle.namelist() == ["corpus.jsonl", "queries.jsonl", qrels, "card.json"]
        assert json.loads(bundle.read("corpus.jsonl").splitlines()[0]).keys() == {"_id", "title", "text"}
        assert bundle.read(qrels).startswith(b"query-id\tcorpus-id\tscore\n")


def test_datasets_reads_it(source, published, tmp_path):
    import datasets

    original = load(source)
    corpus, queries, qrels = (
        datasets.load_dataset(str(published), name, split=split, cache_dir=str(tmp_path))
        for name, split in (("corpus", "corpus"), ("queries", "queries"), ("default", load(source).card.split))
    )
    assert [(row["_id"], row["title"], row["text"]) for row in corpus] == [
        (doc.doc_id, doc.title, doc.text) for doc in original.corpus
    ]
    assert {row["_id"]: row["text"] for row in queries} == original.queries
    read: dict[str, dict[str, int]] = {}
    for row in qrels:
        read.setdefault(row["query-id"], {})[row["corpus-id"]] = row["score"]
    assert read == original.qrels


def test_trecs_tools_read_it(source, published, expected):
    import ir_datasets

    trec = published / "trec"
    dataset = ir_datasets.create_dataset(
        docs_tsv=str(trec / "docs.tsv"),
        queries_tsv=str(trec / "queries.tsv"),
        qrels_trec=str(trec / f"qrels.{load(source).card.split}.txt"),
    )
    original = load(source)
    assert [doc.doc_id for doc in dataset.docs_iter()] == [doc.doc_id for doc in original.corpus]
    # A table holds no line breaks, and no space at an end.
    texts = {query_id: " ".join(text.split()) for query_id, text in original.queries.items()}
    assert {query.query_id: query.text for query in dataset.queries_iter()} == texts
    qrels: dict[str, dict[str, int]] = {}
    for judgement in dataset.qrels_iter():
        qrels.setdefault(judgement.query_id, {})[judgement.doc_id] = judgement.relevance
    assert score_run(expected, qrels) == pytest.approx(expected["measures"]["nDCG@10"], abs=1e-6)


def test_mteb_reads_it(source, published, expected, tmp_path, monkeypatch):
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    task = make_task(source, "rus-Cyrl", folder=published)
    # mteb rounds to five digits.
    score = score_task(rusbeir.mteb.model("bm25"), task)["ndcg_at_10"]
    assert score == round(expected["measures"]["nDCG@10"], 5)


def score_run(row: Mapping[str, object], qrels: Mapping[str, Mapping[str, int]]) -> float:
    """The nDCG@10 of a row's run by pytrec_eval, over every judged query."""
    import pytrec_eval

    evaluator = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10"})
    scores = [measures["ndcg_cut_10"] for measures in evaluator.evaluate(read_run(str(row["run"]))).values()]
    return float(sum(scores) / len(qrels))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_croissant_is_valid(source, published):
    import mlcroissant

    croissant = mlcroissant.Dataset(published / "croissant.json")
    assert not croissant.metadata.ctx.issues.errors
    first = next(iter(croissant.records("queries")))
    assert first["queries/text"].decode() == next(iter(load(source).queries.values()))


def test_the_same_dataset_gives_the_same_bytes(source, published, tmp_path):
    publish(source, to=tmp_path / "again")
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


@pytest.fixture
def checked(tmp_path: Path) -> Path:
    """A port that was checked, with empty sheets of four texts for two raters."""
    out = tmp_path / "port"
    port(write_source(tmp_path / "source"), to="ru", out=out, translator=Fake())
    audit_port(out, processes=1, round_trip=False)
    make_sheets(out, n=4)
    return out


def fill_sheet(folder: Path, rater: int, ending: str, score: int = 5, n_open: int = 0) -> None:
    """Score every text, but leave that many answers open; the html page exports its answers as CSV."""
    path = folder / "qa" / "sheets" / f"rater-{rater}.csv"
    header, *rows = csv.reader(path.read_text(encoding="utf-8-sig").splitlines(keepends=True))
    n = len(FORMS[0].questions)
    filled = [[*row[:3], *[str(score)] * n, ""] for row in rows]
    for row in filled[:n_open]:
        row[3] = ""
    if ending == "xlsx":
        book = openpyxl.load_workbook(path.with_suffix(".xlsx"))
        for cells, row in zip(book.active.iter_rows(min_row=2), filled, strict=True):
            for cell, answer in zip(cells[3 : 3 + n], row[3 : 3 + n], strict=True):
                cell.value = int(answer) if answer else None
        book.save(path.with_suffix(".xlsx"))
        return
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        quoting = csv.QUOTE_ALL if ending == "html" else csv.QUOTE_MINIMAL
        csv.writer(file, quoting=quoting).writerows([header, *filled])


@pytest.mark.parametrize("endings", [("csv", "csv"), ("html", "html"), ("xlsx", "xlsx"), ("csv", "xlsx")])
def test_a_card_says_what_the_audit_and_people_found(checked, tmp_path, endings):
    card = load(checked, split="test").card
    assert collect_evidence(card, checked).n_read == 0, "an empty sheet is not a check"
    fill_sheet(checked, 1, endings[0], 5, n_open=1)
    fill_sheet(checked, 2, endings[1], 4)
    report = publish(checked, to=tmp_path / "published", i_have_permission=True)
    page = (tmp_path / "published" / "README.md").read_text(encoding="utf-8")
    assert report["sample_creation"] == "machine-translated and verified"
    assert "sample_creation='machine-translated and verified'" in page
    assert "People (`rusbeir audit sheet`): 2 raters on 4 texts; 1 answer missing." in page
    assert "Weighted to the port, 1 to 5, with 95 % intervals: accuracy 4." in page
    assert "; fluency 4.50 (" in page
    assert "segments flagged" in page
    assert "have permitted this publication" in page
    assert "translated by a machine from" in page


def rate(folder: Path, rater: str, score: int, n_open: int = 0) -> None:
    """Mark a major error in every text of a rater's page, and score all but that many."""
    home = folder / "qa" / "esa"
    key = json.loads((home / "key.json").read_text())
    error = {"in": "translation", "start": 0, "end": 1, "severity": "major"}
    rows = [{"rater": rater, "item": item, "score": score, "errors": [error]} for item in key["raters"][rater]]
    rows[:n_open] = [{**row, "score": None} for row in rows[:n_open]]
    (home / f"{rater}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_a_card_counts_ratings_with_errors(checked, tmp_path, caplog):
    make_esa_sheets(checked, n=4, campaign=Campaign(attention=0.25, repeats=0))
    make_esa_sheets(checked, n=4, campaign=Campaign(attention=0.25, repeats=0), format="pearmut")
    card = load(checked, split="test").card
    assert collect_evidence(card, checked).n_read == 0, "neither pages nor a campaign are ratings"
    rate(checked, "rater-1", 80)
    rate(checked, "rater-2", 60)
    evidence = collect_evidence(card, checked)
    assert evidence.n_read == 4
    assert evidence.sample_creation == "machine-translated and verified"
    assert evidence.people.startswith("People (`rusbeir audit sheet --protocol esa`): 2 raters on 4 texts; ")
    assert "of 2 attention checks missed. Weighted to the port, with 95 % intervals: score, 0 to 100, 70.0 (" in (
        evidence.people
    )
    assert "; MQM score -5.00 (" in evidence.people
    assert "; with a major error 100.0% (" in evidence.people
    rate(checked, "rater-2", 60, n_open=1)
    assert "; 1 score missing" in collect_evidence(card, checked).people
    key = json.loads((checked / "qa" / "esa" / "key.json").read_text())
    changed = next(about["id"] for about in key["items"].values() if about["kind"] == "query")
    rows = [json.loads(line) for line in (checked / "queries.jsonl").read_text(encoding="utf-8").splitlines()]
    rows = [{**row, "text": f"{row['text']} ещё"} if row["_id"] == changed else row for row in rows]
    (checked / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    evidence = collect_evidence(card, checked)
    assert evidence.n_read == 3
    assert "2 raters on 3 texts; 1 more, changed since, left out" in evidence.people
    assert "`rusbeir audit sheet" in caplog.text
    assert "--protocol esa` again." in caplog.text
    for name in ("queries.jsonl", "corpus.jsonl"):
        rows = [json.loads(line) for line in (checked / name).read_text(encoding="utf-8").splitlines()]
        (checked / name).write_text("".join(json.dumps({**row, "text": f"{row['text']} опять"}) + "\n" for row in rows))
    assert collect_evidence(card, checked).n_read == 0, "people have read nothing of this version"


def test_a_card_of_some_splits_says_that_all_were_checked(tmp_path):
    source = write_source(tmp_path / "source")
    (source / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\nq2\td2\t1\n")
    out = tmp_path / "port"
    port(source, to="ru", out=out, translator=Fake())
    audit_port(out, processes=1, round_trip=False)
    sentence = "These checks include the queries of splits that are not in this folder: dev."
    for split, named in ((None, False), ("test", True)):
        to = tmp_path / f"published-{split}"
        publish(out, to=to, split=split, i_have_permission=True)
        assert (sentence in (to / "README.md").read_text(encoding="utf-8")) == named


def write_verdicts(folder: Path) -> None:
    """The file of a judge that gave every text of the sheets a 4."""
    items = json.loads((folder / "qa" / "sheets" / "key.json").read_text())["items"]
    rows = [
        {
            "item": item,
            **{name: about[name] for name in ("kind", "id", "digest")},
            "scores": dict.fromkeys(DIMENSIONS, 4),
        }
        for item, about in items.items()
    ]
    (folder / "qa" / "judge.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_a_card_repeats_nothing_of_an_earlier_version(checked, tmp_path, caplog):
    """One query is translated again: the audit is stale, and so are a verdict and what people scored of that text."""
    fill_sheet(checked, 1, "csv")
    write_verdicts(checked)
    folder = checked
    current = collect_evidence(load(folder, split="test").card, folder)
    assert (current.n_judged, current.n_read, current.report is None) == (4, 4, False)
    assert caplog.messages == []
    key = json.loads((folder / "qa" / "sheets" / "key.json").read_text())
    changed = next(about["id"] for about in key["items"].values() if about["kind"] == "query")
    rows = [json.loads(line) for line in (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines()]
    rows = [{**row, "text": f"{row['text']} ещё"} if row["_id"] == changed else row for row in rows]
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    report = publish(folder, to=tmp_path / "published", i_have_permission=True)
    page = (tmp_path / "published" / "README.md").read_text(encoding="utf-8")
    assert report["fingerprint"] in page
    assert "flagged" not in page
    assert "A language model scored 3 texts" in page
    assert "1 rater on 3 texts; 1 more, changed since, left out." in page
    assert len(caplog.messages) == 3
    assert f"Run `rusbeir audit check {folder}` again." in caplog.text
    assert "judge.jsonl: the scores of texts that have changed since (1) are left out." in caplog.text
    assert "sheets: the answers about texts that have changed since (1) are left out." in caplog.text
    # All other texts, too: people have read nothing of this version.
    for name in ("queries.jsonl", "corpus.jsonl"):
        rows = [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines()]
        lines = [json.dumps({**row, "text": f"{row['text']} опять"}) + "\n" for row in rows]
        (folder / name).write_text("".join(lines))
    again = publish(folder, to=tmp_path / "again", i_have_permission=True)
    assert again["sample_creation"] == "machine-translated"
    page = (tmp_path / "again" / "README.md").read_text(encoding="utf-8")
    assert not any(word in page for word in ("flagged", "People", "scored"))


def measure(folder: Path, out: Path) -> None:
    for system in ("bm25", "bm25(profile=raw)"):
        bench(folder, system, out=out)


DAMAGES = [
    '{"a": 1',
    "[]",
    '{"fingerprint": 5}',
    '{"fingerprint": "", "n_segments": "x", "flagged": {"segments": 1, "share": 0.5}, "levels": {}}',
    '{"fingerprint": "", "n_segments": 1, "flagged": {"segments": 1, "share": 0.5}, "levels": {"documents": 5}}',
    '{"fingerprint": "", "n_segments": 1, "flagged": {}, "levels": {"documents": {"chrF": "x"}}}',
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_audit_is_one_line(checked, tmp_path, damage):
    """Each was a traceback, or would have been one, in the card or on the page of the dataset."""
    (checked / "qa" / "report.json").write_text(damage)
    line = rf"report\.json: this is not what rusbeir writes .*Run `rusbeir audit check {checked}` again\.$"
    with pytest.raises(BadInput, match=line):
        publish(checked, to=tmp_path / "published", i_have_permission=True)
    assert not (tmp_path / "published").exists()
    measure(checked, tmp_path / "results")
    with pytest.raises(BadInput, match=line):
        write_site([tmp_path / "results"], tmp_path / "site", data=[checked])
    assert not (tmp_path / "site").exists()


def test_a_site_shows_no_audit_of_an_earlier_version(checked, tmp_path, caplog):
    measure(checked, tmp_path / "results")
    write_site([tmp_path / "results"], tmp_path / "site", data=[checked])
    (page,) = (tmp_path / "site" / "datasets").glob("*.html")
    assert "Audit of the port" in page.read_text(encoding="utf-8")
    assert compare(tmp_path / "results", where="port.flags<=0", data=[checked]).datasets[0].n_queries == 2
    queries = checked / "queries.jsonl"
    queries.write_text(queries.read_text(encoding="utf-8").replace("лёд", "снег"), encoding="utf-8")
    measure(checked, tmp_path / "new")
    write_site([tmp_path / "new"], tmp_path / "new-site", data=[checked])
    (page,) = (tmp_path / "new-site" / "datasets").glob("*.html")
    assert "Audit of the port" not in page.read_text(encoding="utf-8")
    assert "report.json is of an earlier version of this port and is left out" in caplog.text
    # Neither are its queries filtered by what was wrong with others.
    with pytest.raises(BadInput, match=r"needs the audit of small@ru.*rusbeir audit check"):
        compare(tmp_path / "new", where="port.flags<=0", data=[checked])


def test_a_published_folder_is_not_written_into(checked, tmp_path):
    """What `hf upload` sends has nothing that its card does not name."""
    publish(checked, to=tmp_path / "published", i_have_permission=True)
    before = sorted(tmp_path.glob("published/**/*"))
    with pytest.raises(BadInput, match=r"written by `rusbeir publish`.*rusbeir audit published small .*--out DIR"):
        audit_port(tmp_path / "published", source=tmp_path / "source")
    assert sorted(tmp_path.glob("published/**/*")) == before


class Vectors:
    """What NanoBEIREvaluator asks of a SentenceTransformer, answered by an encoder of arithmetic."""

    similarity_fn_name = "dot"
    model_card_data = SimpleNamespace(set_evaluation_metrics=lambda *arguments: None)

    def __init__(self) -> None:
        self.toy = Toy()

    def encode(self, texts, **options):
        import torch

        # One at a time: a vector of the toy depends on its batch.
        return torch.tensor(np.concatenate([self.toy.encode_documents([text]) for text in texts]))

    encode_query = encode_document = encode

    def similarity(self, queries, documents):
        return queries @ documents.T


def one_by_one():
    """The same encoder for rusbeir."""
    vectors = Vectors()
    encode = lambda texts: vectors.encode(texts).numpy()  # noqa: E731
    return SimpleNamespace(signature="toy, one by one", encode_queries=encode, encode_documents=encode)


def test_nano_beir_evaluator_reads_it(tmp_path, monkeypatch, needs):
    needs("sentence-transformers", bool(find_spec("sentence_transformers")), "install the extra sentence-transformers")
    from sentence_transformers.sentence_transformer.evaluation import NanoBEIREvaluator

    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    mini = load("mini/ru")
    docs = [doc._replace(title=f"заглавие {n % 7}") for n, doc in enumerate(mini.corpus)]
    binary = {
        query_id: {doc_id: int(grade > 0) for doc_id, grade in grades.items()}
        for query_id, grades in mini.qrels.items()
    }
    dataset = Dataset.of(docs, mini.queries, binary, language="ru", name="beir/scifact/test@ru", licence="CC0-1.0")
    write_beir(dataset, tmp_path / "mine")
    publish(tmp_path / "mine", to=tmp_path / "out")
    evaluator = NanoBEIREvaluator(dataset_names=["scifact"], dataset_id=str(tmp_path / "out"), write_csv=False)
    results = evaluator(Vectors())
    row = bench(tmp_path / "out", f"dense(python:{__name__}.one_by_one)", measures="nDCG@10", out=tmp_path / "rows")
    assert results["NanoSciFact_dot_ndcg@10"] == pytest.approx(row["measures"]["nDCG@10"], abs=1e-6)
    assert row["fingerprint"] == load(tmp_path / "mine").fingerprint
    # MTEB finds its split among those of the hub's configurations.
    expected = bench(tmp_path / "mine", k=1000, measures="nDCG@10", out=tmp_path / "rows")["measures"]["nDCG@10"]
    task = make_task(str(tmp_path / "mine"), "rus-Cyrl", folder=tmp_path / "out")
    assert score_task(rusbeir.mteb.model("bm25"), task)["ndcg_at_10"] == round(expected, 5)


def test_a_small_version_of_a_port_is_one_of_a_translation(tmp_path):
    whole = {"name": "small@ru", "language": "ru", "fingerprint": "0", "provenance": {"made_by": "rusbeir 0.1.0, port"}}
    provenance = {
        "made_by": "rusbeir 0.1.0, nano", "source": whole, "agreement": {"conclusion": ["tau is 0.95."], "twins": {}},
    }  # fmt: skip
    docs = [{"_id": "d", "text": "Кошка спит."}]
    dataset = Dataset.of(
        docs, {"q": "кошка"}, {"q": {"d": 1}}, language="ru", licence="CC0-1.0", name="small@ru@nano",
        provenance=provenance,
    )  # fmt: skip
    write_beir(dataset, tmp_path / "mine")
    report = publish(tmp_path / "mine", to=tmp_path / "out")
    page = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert report["sample_creation"] == "machine-translated"
    assert "a small version of small@ru (Russian), which was translated by a machine" in page
    assert "Agreement with the whole (`rusbeir nano`): tau is 0.95." in page


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("beir/nfcorpus/test", "NanoNFCorpus"),
        ("cocktail/nfcorpus/human@nano", "NanoNFCorpus"),
        ("NanoFiQA2018", "NanoFiQA2018"),
        ("beir/climate-fever/test@ru", "NanoClimateFEVER"),
        ("beir/webis-touche2020/v2", "NanoTouche2020"),
        ("xquad/ru", None),
        ("mini/ru", None),
    ],
)
def test_names_that_nano_beir_has(name, split):
    assert find_nano_split(name) == split


def test_the_card_repeats_the_validity(tmp_path):
    folder, scores = tmp_path / "port", tmp_path / "scores.tsv"
    port(write_source(tmp_path / "source"), to="ru", out=folder, translator=Fake())
    name = load(folder, split="test").card.name
    lines = [f"{task}\ttest\tdefault\tm{n}\t{0.1 * n}" for task in ("small", name, "other") for n in range(5)]
    scores.write_text("\n".join(["task\tsplit\tsubset\tmodel\tvalue", *lines]) + "\n")
    for port_name in (name, "other"):
        validity = measure_validity([scores], [("small", port_name)])
        (tmp_path / f"{port_name.partition('@')[0]}.json").write_text(json.dumps(validity.to_dict()))
    unknown = publish(folder, to=tmp_path / "unknown", i_have_permission=True)
    assert unknown["validity"] == []
    assert "was not measured (`rusbeir validity`)" in (tmp_path / "unknown" / "README.md").read_text(encoding="utf-8")
    publish(folder, to=tmp_path / "known", validity=tmp_path / "small.json", i_have_permission=True)
    page = (tmp_path / "known" / "README.md").read_text(encoding="utf-8")
    assert "as good: small and" in page
    assert "translated by people, Kendall's tau is 0.515" in page
    assert "m0, m1, m2, m3, m4" in page
    assert "was not measured" not in page
    with pytest.raises(BadInput, match=f"is not about {name}; its ports are: other"):
        publish(folder, to=tmp_path / "wrong", validity=tmp_path / "other.json", i_have_permission=True)
    whole = json.loads((tmp_path / "small.json").read_text())
    for damaged in ({}, {**whole, "conclusion": []}, {**whole, "conclusion": "x"}, {**whole, "tasks": [5]}):
        (tmp_path / "broken.json").write_text(json.dumps(damaged))
        with pytest.raises(BadInput, match=r"broken\.json: this is not what rusbeir writes .*rusbeir validity --json"):
            publish(folder, to=tmp_path / "wrong", validity=tmp_path / "broken.json", i_have_permission=True)
    assert not (tmp_path / "wrong").exists()


ORIGIN = "beir/nfcorpus/test"


@pytest.mark.parametrize(
    ("licence", "copied", "sources", "obstacle"),
    [
        ("CC-BY-SA-4.0", False, [], None),
        ("CC BY-SA 4.0 (BEIR's card; see each source)", False, [], None),  # the registry's own remark
        ("MIT", False, [], None),
        ("CC-BY-NC-ND-4.0", True, [], None),  # a registered dataset: a copy is allowed
        ("CC-BY-NC-ND-4.0", False, [], "allows no derivative works"),
        (
            "academic use only (Cocktail)",
            True,
            [],
            "the licence of x, 'academic use only (Cocktail)', is not one that rusbeir can judge",
        ),
        ("unknown", True, [], "is not known"),
        ("", False, [], "is not known"),
        # A remark may take back what the name allows.
        ("MIT (but never redistribute; academic use only)", False, [], "the licence of x, 'MIT (but never"),
        ("cc by 4.0 (only with a signed agreement)", False, [], "is not one that rusbeir can judge"),
        # The source's licence binds what is made of it, whatever the card says.
        ("MIT", False, ["CC-BY-NC-ND-4.0"], f"licence of {ORIGIN}, CC-BY-NC-ND-4.0, allows no derivative works"),
        ("MIT", False, ["CC0-1.0", "CC-BY-NC-ND-4.0"], "allows no derivative works"),  # two steps back
        ("MIT", False, ["CC-BY-SA-4.0"], f"was made of {ORIGIN}, whose licence CC-BY-SA-4.0 also binds it"),
        ("CC-BY-SA-4.0", False, ["CC-BY-SA-4.0"], None),
        ("CC-BY-4.0", False, ["MIT"], None),
        ("CC-BY-4.0", False, ["not stated"], None),  # the publisher has stated one
        ("CC-BY-4.0", False, ["proprietary"], f"the licence of {ORIGIN}, 'proprietary', is not"),
    ],
)
def test_licences(licence, copied, sources, obstacle):
    provenance = {}
    for source in reversed(sources):
        provenance = {"source": {"name": ORIGIN, "licence": source, "provenance": provenance}}
    reason = find_obstacle("x", licence, provenance, copied=copied)
    if obstacle is None:
        assert reason is None
        assert find_hub_licence(licence)
    else:
        assert obstacle in str(reason)


def test_a_folder_that_holds_something_is_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(BadInput, match="holds something else"):
        publish("mini/ru", to=tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_licence_that_forbids_it(tmp_path):
    docs = [{"_id": "d", "text": "Кошка спит."}]
    dataset = Dataset.of(docs, {"q": "кошка"}, {"q": {"d": 1}}, language="ru", licence="CC-BY-ND-4.0 and more")
    write_beir(dataset, tmp_path / "mine")
    with pytest.raises(BadInput, match="is not one that rusbeir can judge"):
        publish(tmp_path / "mine", to=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert publish(tmp_path / "mine", to=tmp_path / "out", i_have_permission=True)["n_docs"] == 1


def test_what_a_card_names_cannot_be_markup_or_code(tmp_path):
    """Names of strangers stay on their line as text; a split is a string of Python."""
    source = write_source(tmp_path / "source")
    split = '"+__import__("os").system("id")+"'
    (source / "qrels" / "test.tsv").rename(source / "qrels" / f"{split}.tsv")
    name = "x\n---\n# pwned\n<script>`" + "y" * 1_000
    card = {"name": name, "language": "en", "split": split, "licence": "CC-BY-4.0", "source": "```\nls"}
    (source / "card.json").write_text(json.dumps(card))
    publish(source, to=tmp_path / "out")
    page = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    _, _, body = page.split("---\n", 2)
    assert "pwned" in body
    prose = re.sub(r"```python\n.*?```", "", body, flags=re.DOTALL)
    assert not re.search(r"^# pwned|[^\\]<script>|```", prose, re.MULTILINE)
    assert f"split={split!r})" in body
    assert len(body) < 5_000
    for block in re.findall(r"```python\n(.*?)```", body, re.DOTALL):
        calls = [
            node.func.id
            for node in ast.walk(ast.parse(block))
            if isinstance(node, ast.Call) and hasattr(node.func, "id")
        ]
        assert set(calls) <= {"load_dataset", "TaskMetadata"}


def test_what_the_source_lacks_can_be_said_at_any_time(tmp_path):
    source, lines = write_source(tmp_path / "nfc"), []
    (source / "card.json").write_text('{"language": "en"}')
    order = {"to": "ru", "out": tmp_path / "ru", "tell": lines.append}
    port(source, translator=Fake(), **order)
    assert lines == [
        "nfc: `rusbeir publish` will refuse the port, since the licence of nfc is not known. If its owners say "
        "otherwise, give licence=, and source_url=, author= and citation=."
    ]
    with pytest.raises(
        BadInput, match=r"^The licence of nfc@ru is not known\. State it with licence=, as in licence=CC-BY"
    ):
        publish(tmp_path / "ru", to=tmp_path / "refused")
    # On the port, which asks nothing again.
    lines.clear()
    fake = Fake()
    about = {
        "licence": "CC-BY-SA-4.0",
        "source_url": "https://a.org/nfc",
        "author": "A. Boteva",
        "citation": "@inproceedings{nfc}",
    }
    port(source, translator=fake, name="NFCorpus", **about, **order)
    assert (fake.sent, lines) == ([], [])
    publish(tmp_path / "ru", to=tmp_path / "out")
    page = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    sentences = [
        "# NFCorpus@ru (Russian)", "translated by a machine from NFCorpus (English)", "license: cc-by-sa-4.0",
        "It is that of the source, https://a.org/nfc,", "By A. Boteva.", "    @inproceedings{nfc}",
    ]  # fmt: skip
    assert [text for text in sentences if text not in page] == []
    assert "source_datasets" not in page, "NFCorpus is not a repository of the hub"
    citation = (tmp_path / "out" / "CITATION.cff").read_text(encoding="utf-8")
    assert all(text in citation for text in ("name: A. Boteva", "url: https://a.org/nfc", "'@inproceedings{nfc}'"))
    # On what is published, over what the port says.
    publish(tmp_path / "ru", to=tmp_path / "named", name="Mine", author="B. Other, Jr.")
    page = (tmp_path / "named" / "README.md").read_text(encoding="utf-8")
    assert "# Mine (Russian)" in page
    assert "By B. Other, Jr.\n" in page
    assert load(tmp_path / "named").card.name == "Mine"


def test_a_port_says_what_is_missing_in_it(tmp_path):
    source = write_source(tmp_path / "source")
    fake = Fake(answer=lambda text, nth: Failure("untranslated", "", False) if "Rain" in text else translated(text))
    port(source, to="ru", out=tmp_path / "ru", translator=fake, sample=3, keep_untranslated=True)
    publish(tmp_path / "ru", to=tmp_path / "out")
    page = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    counts = json.loads((tmp_path / "ru" / "card.json").read_text())["provenance"]["counts"]
    assert counts["kept"] == 1
    assert f"1 of {counts['segments']} segments stayed untranslated." in page
    assert "Only a sample of the source's documents: 3 (seed 0), judged ones first." in page


def test_the_licence_of_a_translator_is_on_the_card():
    """Its output may be bound by it, whatever the licence of the source is."""
    about = tomllib.loads((data_folder("translation") / "backends.toml").read_text(encoding="utf-8"))["nllb"]["about"]
    row = {"name": "nllb", "signature": "nllb|x", "segments": 9, "about": about}
    (line,) = describe_making("port", {"translators": [row]}, read_by_people=False)
    assert line.endswith("translated 9 segments: NLLB-200 through CTranslate2: 202 languages, CC-BY-NC-4.0.")


def test_splits_are_read_once(tmp_path, monkeypatch):
    """Not each with a listing of all of them: 300 splits took 300 listings of 300 files."""
    source = write_source(tmp_path / "source")
    for n in range(300):
        (source / "qrels" / f"s{n:03}.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    listings = []
    names = Folder.names.func
    monkeypatch.setattr(Folder, "names", property(lambda folder: listings.append(folder) or names(folder)))
    assert len(load_splits(source, split="all").qrels) == 301
    assert len(listings) < 30

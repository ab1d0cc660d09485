"""Published figures: the rows are sound, what is at hand is measured, and what is missing says how to get it."""

from __future__ import annotations

import json
import subprocess
import sys

import ir_datasets
import pytest

from rusbeir.datasets import read_registry
from rusbeir.errors import UnknownName
from rusbeir.evaluation import check_measures
from rusbeir.reproduction import PublishedFigure, published_figures, reproduce
from rusbeir.retrieval import check_names, resolve

FIGURES = published_figures()


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: f"{figure.dataset} {figure.system}")
def test_every_row_names_what_exists(figure: PublishedFigure):
    aliases = {alias for entry in read_registry().values() for alias in entry.aliases}
    if figure.dataset.startswith("irds:"):
        assert figure.dataset.removeprefix("irds:").partition("?")[0] in ir_datasets.registry
    else:
        assert figure.get or figure.dataset in read_registry() or figure.dataset in aliases
    check_names(figure.system)
    if "lucene-" in figure.system:
        assert resolve(figure.system, language=figure.language).signature
    assert check_measures(list(figure.values)) == tuple(figure.values)
    assert figure.over in ("all", "answered")
    assert figure.source
    assert figure.cause


def test_anserini_s_languages_are_rows_with_lucene_s_analyzers():
    rows = {(figure.dataset, figure.system): figure for figure in FIGURES}
    flat = "fields=flat,k1=0.9,b=0.4"
    arabic = rows["trec-2002-ar", f"bm25(profile=lucene-ar,{flat})"]
    assert arabic.values == {"AP": 29.32, "P@20": 36.10, "nDCG@20": 40.56}
    assert rows["ntcir-8-zh", f"bm25(profile=lucene-zh,{flat})"].values == {
        "AP": 40.14,
        "P@20": 38.49,
        "nDCG@20": 47.57,
    }
    assert rows["miracl/fi/dev", f"bm25(profile=lucene-fi,{flat})"].values == {"nDCG@10": 55.13, "R@100": 89.10}
    assert rows["mr-tydi/te/test", f"bm25(profile=lucene-te,{flat})"].values == {"RR@100": 52.83, "R@100": 89.71}
    for family, count in (("MIRACL", 18), ("Mr. TyDi", 11), ("CIRAL", 8), ("HC4", 6), ("NeuCLIR", 1), ("FIRE", 2)):
        assert sum(family in figure.source and "erini" in figure.source for figure in FIGURES) == count


def test_the_claims_of_the_issue_and_the_papers_are_rows():
    rows = {(figure.dataset, figure.system): figure for figure in FIGURES}
    assert rows["beir/scifact/test", "bm25(profile=anserini-flat)"].values == {"nDCG@10": 67.89, "R@100": 92.53}
    assert rows["beir/scifact/test", "bm25(profile=anserini-multifield)"].values == {"nDCG@10": 66.47}
    assert rows["cacm", "bm25(profile=anserini-flat)"].values == {"AP": 31.24, "P@30": 19.42}
    assert sum(figure.source.startswith("RusBEIR") and figure.system.startswith("bm25") for figure in FIGURES) == 17
    assert sum(figure.source.startswith("Cocktail") and figure.dataset.endswith("mixed") for figure in FIGURES) == 16


@pytest.mark.usefixtures("shared_data")
def test_the_russian_figures_of_the_paper_hold(tmp_path):
    figures = [figure for figure in published_figures("xquad") if figure.system.startswith("bm25")]
    rows = list(reproduce(figures, out=tmp_path))
    assert [(row.dataset, row.measure) for row in rows if not row.holds] == []
    paragraphs = {row.measure: row for row in rows if row.dataset == "xquad/ru"}
    assert paragraphs["nDCG@10"].ours == pytest.approx(96.19, abs=0.005)
    assert paragraphs["nDCG@10"].difference == pytest.approx(0, abs=0.005)


def test_missing_data_cost_a_line_and_nothing_is_downloaded(tmp_path, monkeypatch):
    monkeypatch.setenv("RUSBEIR_DATA", "")
    (row,) = list(reproduce(published_figures("beir/fiqa/test")[:1], out=tmp_path))
    assert (row.ours, row.difference, row.holds) == (None, None, None)
    assert "RUSBEIR_DATA" in row.missing
    classic = list(reproduce(published_figures("cacm"), out=tmp_path))
    assert all("Glasgow" in figure.missing for figure in classic)


def test_a_classic_collection_is_found_in_its_folder(tmp_path, monkeypatch):
    folder = tmp_path / "cacm"
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text('{"_id": "1", "title": "", "text": "time sharing"}\n')
    (folder / "queries.jsonl").write_text('{"_id": "q", "text": "sharing"}\n')
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\t1\t1\n")
    monkeypatch.setenv("RUSBEIR_DATA", str(tmp_path))
    rows = list(reproduce(published_figures("cacm"), out=tmp_path / "out"))
    assert {row.measure: row.ours for row in rows}["AP"] == pytest.approx(100)
    assert not rows[0].holds


def test_an_unknown_figure_lists_what_there_is():
    with pytest.raises(UnknownName, match="No published figure 'scifcat'"):
        published_figures("scifcat")


@pytest.mark.usefixtures("shared_data")
def test_the_verb_prints_published_and_ours(tmp_path):
    command = [sys.executable, "-m", "rusbeir.cli", "reproduce", "cocktail/nfcorpus/llm", "--out", tmp_path, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    figures = {(entry["system"], entry["measure"]): entry for entry in json.loads(done.stdout)["figures"]}
    entry = figures["bm25(profile=lucene-english)", "nDCG@1"]
    assert (entry["published"], entry["holds"]) == (45.8, True)
    listed = subprocess.run([*command[:4], "--list"], capture_output=True, text=True, check=True)
    assert "beir/scifact/test" in listed.stdout

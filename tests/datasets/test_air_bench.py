"""AIR-Bench's versions in one repository, and splits whose judgements are not published."""

from __future__ import annotations

from pathlib import Path

import pytest

from rusbeir.datasets import load, load_qrels, validate
from rusbeir.errors import BadInput
from rusbeir.experiment import bench, search
from tests.support.hub_folders import register_air_bench

pytestmark = pytest.mark.usefixtures("hf_extra", "fresh_cache")

QA, BOOK = "qa/wiki/ru", "long-doc/book/ru/long-book_1"


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    register_air_bench(monkeypatch, tmp_path / "data")
    return tmp_path / "data" / "hub" / "AIR-Bench"


@pytest.mark.parametrize("path", [QA, BOOK])
@pytest.mark.parametrize(
    ("version", "split", "documents", "queries", "judged"),
    [
        ("24.05", "dev", 3, ["q2", "q1"], ["q1", "q2"]),
        ("24.05", "test", 3, ["q9"], []),
        ("24.04", "test", 1, ["q2", "q1", "q9"], []),
    ],
)
def test_each_version_and_split_has_its_own_files(
    path: str, version: str, split: str, documents: int, queries: list[str], judged: list[str]
):
    name = f"air-bench/{version}/{path}/{split}"
    dataset = load(name, judged=False)
    assert (len(dataset.corpus), list(dataset.queries), list(dataset.qrels)) == (documents, queries, judged)
    assert validate(name) == []


def test_nothing_is_measured_without_judgements(tmp_path: Path):
    name = f"air-bench/24.05/{QA}/test"
    for measure in (load, load_qrels, lambda one: bench(one, out=tmp_path / "results")):
        with pytest.raises(BadInput, match=r"qa/wiki/ru/test: its judgements are not published.*rusbeir airbench run"):
            measure(name)
    assert list(search(name, "bm25(profile=raw)")) == ["q9"]
    assert list(search(name, "bm25(profile=raw)", "мостом")["мостом"]) == ["d2"]


def test_dev_and_test_together(tmp_path: Path):
    dataset = load(f"air-bench/24.05/{QA}", split="all", judged=False)
    assert (list(dataset.queries), list(dataset.qrels)) == (["q2", "q1", "q9"], ["q1", "q2"])


def test_another_number_of_queries_without_judgements_is_refused(registered: Path):
    file = registered / "qa_wiki_ru" / "AIR-Bench_24.05" / "queries_default_test.jsonl"
    file.write_text(file.read_text() + '{"id": "q10", "text": "ель"}\n')
    name = f"air-bench/24.05/{QA}/test"
    with pytest.raises(BadInput, match="n_queries is 2, not 1"):
        load(name, judged=False)
    assert [one.message for one in validate(name)] == ["n_queries is 2, expected 1"]


def test_a_folder_without_a_registered_name_gives_the_newest_version(registered: Path):
    dataset = load(registered / "qa_wiki_ru", language="ru", split="dev")
    assert (len(dataset.corpus), list(dataset.qrels)) == (3, ["q1", "q2"])


def test_a_repository_without_its_readme_is_told(registered: Path):
    (registered / "qa_wiki_ru" / "README.md").unlink()
    with pytest.raises(BadInput, match=r"no corpus and no queries of 'dev' in AIR-Bench/qa_wiki_ru"):
        load(f"air-bench/24.05/{QA}/dev")

"""AIR-Bench's result files, its zip and its leaderboards, over small datasets in its layout."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rusbeir.airbench.leaderboards import Leaderboard, rank_systems, read_scores
from rusbeir.airbench.result_files import name_parts, pack_results, read_result, write_results
from rusbeir.datasets import read_run
from rusbeir.errors import BadInput, UnknownName
from rusbeir.experiment import bench
from tests.cli.conftest import rusbeir
from tests.datasets.conftest import hf_extra
from tests.support.hub_folders import register_air_bench

__all__ = ["hf_extra", "rusbeir"]

pytestmark = pytest.mark.usefixtures("hf_extra")

QA, BOOK = "air-bench/24.05/qa/wiki/ru", "air-bench/24.05/long-doc/book/ru/long-book_1"
RAW = "bm25(profile=raw)"
RERANKED = f"{RAW} >> rerank(python:tests.airbench.test_air_bench.shortest_first,depth=100)"


class ShortestFirst:
    signature = "shortest-1"
    pointwise = True

    def score(self, query: str, documents: list[str]) -> list[float]:
        return [-float(len(text)) for text in documents]


def shortest_first() -> ShortestFirst:
    return ShortestFirst()


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    register_air_bench(monkeypatch, tmp_path / "data")


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """The result files of a retriever, and of a reranker of its hits, on all of version 24.05."""
    out = tmp_path / "search_results"
    assert len(list(write_results(["air-bench/24.05"], [RAW, RERANKED], out=out))) == 8
    return out


@pytest.mark.parametrize(
    ("system", "names"),
    [
        ("bm25", ("bm25", "NoReranker")),
        ("dense(bge-m3) >> rerank(bge-reranker-v2-m3)", ("dense-bge-m3", "rerank-bge-reranker-v2-m3")),
        ("bm25 >> rerank(a,depth=50) >> rerank(b)", ("bm25", "rerank-a-depth-50-rerank-b")),
    ],
)
def test_the_first_stage_is_the_retriever_and_the_others_are_the_reranker(system: str, names: tuple[str, str]):
    assert name_parts(system) == names


def test_places_and_keys_are_those_of_air_bench(written: Path):
    """air_benchmark 0.1.0, Evaluator.save_search_results; the signature is ours."""
    raw = written / "bm25-profile-raw" / "NoReranker"
    assert sorted(path.relative_to(raw).as_posix() for path in raw.rglob("*.json")) == [
        "long-doc/book/ru_long-book_1_dev.json", "long-doc/book/ru_long-book_1_test.json",
        "qa/wiki/ru_default_dev.json", "qa/wiki/ru_default_test.json",
    ]  # fmt: skip
    document = json.loads((raw / "qa/wiki/ru_default_dev.json").read_bytes())
    assert document.pop("signature").endswith("|k:1000")
    results = document.pop("search_results")
    assert document == {
        "model_name": "bm25-profile-raw", "reranker_name": "NoReranker", "benchmark_version": "AIR-Bench_24.05",
        "task_type": "qa", "domain": "wiki", "language": "ru", "dataset_name": "default", "split": "dev",
    }  # fmt: skip
    assert {query_id: list(hits) for query_id, hits in results.items()} == {"q2": ["d3"], "q1": ["d1"]}
    # A query without hits is there, too.
    assert read_run(raw / "qa/wiki/ru_default_test.json") == {"q9": {}}


def test_a_file_of_the_same_recipe_is_kept_and_another_is_not_replaced(written: Path):
    first = next(iter(write_results([f"{QA}/dev"], [RAW], out=written)))
    assert first.reused
    with pytest.raises(BadInput, match=r"ru_default_dev\.json holds results of another recipe or version"):
        list(write_results([f"{QA}/dev"], [RAW], out=written, k=5))
    with pytest.raises(BadInput, match=r"ru_default_test\.json holds results of another recipe or version"):
        list(write_results(["air-bench/24.04/qa"], [RAW], out=written))
    (again,) = write_results([f"{QA}/dev"], [RAW], out=written, k=5, force=True)
    assert not again.reused


@pytest.mark.parametrize(
    ("datasets", "systems", "options", "error", "message"),
    [
        (["air-bench/24.05/qa/wiki/de"], [RAW], {}, UnknownName, "No dataset of AIR-Bench 'air-bench/24.05/qa/wiki/de"),
        (["air-bench/24.0"], [RAW], {}, UnknownName, r"No dataset of AIR-Bench 'air-bench/24\.0'"),
        ([QA], [RAW, RERANKED], {"retriever": "mine"}, BadInput, "name the parts of one system"),
        ([QA], [RAW], {"reranker": "mine"}, BadInput, "does not rerank"),
        ([QA], [RAW], {"retriever": "../mine"}, BadInput, r"'\.\./mine' cannot name a folder"),
        ([QA], [RAW], {"k": 0}, BadInput, "k is 0"),
    ],
)
def test_what_cannot_be_written_is_told(
    datasets: list[str],
    systems: list[str],
    options: dict[str, Any],
    error: type[Exception],
    message: str,
    tmp_path: Path,
):
    with pytest.raises(error, match=message):
        list(write_results(datasets, systems, out=tmp_path / "out", **options))
    assert not (tmp_path / "out").exists()


def change(path: Path, **changes: Any) -> None:
    """Write the file again with other values; None leaves a key out."""
    document = json.loads(path.read_bytes()) | changes
    path.write_text(json.dumps({key: value for key, value in document.items() if value is not None}))


def test_files_of_24_04_may_have_older_keys(tmp_path: Path):
    (written,) = write_results(["air-bench/24.04/qa"], [RAW], out=tmp_path / "out")
    change(written.path, dataset_name=None, task_name="default", split=None)
    assert read_result(written.path).task.name == "air-bench/24.04/qa/wiki/ru/test"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_name": None}, "model_name is missing"),
        ({"search_results": {"q1": {"d1": "high"}}}, "search_results.q1.d1 is 'high', not a number"),
        ({"search_results": [1]}, "search_results is"),
        ({"domain": "law"}, r"AIR-Bench has no dataset 24\.05 qa law ru default test"),
        ({"benchmark_version": "AIR-Bench_24.04"}, "has files of the versions 24.04 and 24.05"),
        ({"model_name": "other"}, "its content belongs to other/NoReranker/qa/wiki/ru_default_test.json"),
        ({"split": "dev"}, "its content belongs to bm25-profile-raw/NoReranker/qa/wiki/ru_default_dev.json"),
    ],
)
def test_a_file_that_does_not_fit_is_not_packed(changes: dict[str, Any], message: str, written: Path):
    folder = written / "bm25-profile-raw" / "NoReranker"
    change(folder / "qa/wiki/ru_default_test.json", **changes)
    with pytest.raises(BadInput, match=message) as caught:
        pack_results(folder)
    assert "\n" not in str(caught.value)
    assert not list(written.glob("*.zip"))


def test_the_zip_has_the_tree_without_dev(written: Path, tmp_path: Path):
    """air_benchmark 0.1.0, scripts/zip_results.py."""
    folder = written / "bm25-profile-raw" / "NoReranker"
    packed = pack_results(folder)
    assert packed.path == written / "bm25-profile-raw_NoReranker.zip"
    assert (packed.datasets, packed.missing) == ((f"{BOOK}/test", f"{QA}/test"), ())
    with zipfile.ZipFile(packed.path) as archive:
        assert archive.namelist() == ["long-doc/book/ru_long-book_1_test.json", "qa/wiki/ru_default_test.json"]
        assert archive.read("qa/wiki/ru_default_test.json") == (folder / "qa/wiki/ru_default_test.json").read_bytes()
    assert pack_results(folder, tmp_path).path.read_bytes() == packed.path.read_bytes()
    (folder / "qa/wiki/ru_default_test.json").unlink()
    assert pack_results(folder).missing == (f"{QA}/test",)
    (folder / "long-doc/book/ru_long-book_1_test.json").unlink()
    with pytest.raises(BadInput, match="has only files of dev"):
        pack_results(folder)
    with pytest.raises(BadInput, match="has no result files"):
        pack_results(tmp_path / "nothing")


def test_scores_are_those_of_bench(written: Path, tmp_path: Path):
    scores, unjudged = read_scores([written])
    assert len(unjudged) == 4
    for name, measure in ((f"{QA}/dev", "nDCG@10"), (f"{BOOK}/dev", "R@10")):
        for system in (RAW, RERANKED):
            row = bench(name, system, measures=["nDCG@10", "R@10"], out=tmp_path / "results")
            assert scores[name_parts(system)][name] == pytest.approx(row["measures"][measure])
    # The same systems in both places are counted once.
    assert read_scores([written, tmp_path / "results"])[0] == scores
    bench(f"{BOOK}/dev", "bm25", measures="nDCG@10", out=tmp_path / "few")
    with pytest.raises(
        BadInput, match=r"bm25 on .*/dev has no R@10. Run `rusbeir bench` again with -m nDCG@10 -m R@10"
    ):
        read_scores([tmp_path / "few"])


def test_two_values_of_one_system_are_told(written: Path):
    (other,) = write_results([f"{QA}/dev"], ["bm25"], out=written, retriever="bm25-profile-raw-2")
    change(other.path, model_name="bm25-profile-raw", search_results={})
    with pytest.raises(BadInput, match=r"bm25-profile-raw with NoReranker has two values on air-bench/24\.05/qa"):
        read_scores([written])


Q, B = f"{QA}/dev", f"{BOOK}/dev"
BM25, DENSE = ("bm25", "NoReranker"), ("dense-m3", "NoReranker")
BM25_MORE, DENSE_MORE = ("BM25", "more"), ("dense-m3", "more")


def shape(boards: list[Leaderboard]) -> dict[tuple[str, str], list[tuple[str, str]]]:
    return {
        (board.task_type, board.board): [(row.retriever, row.reranker) for row in board.systems] for board in boards
    }


def test_who_is_on_which_leaderboard():
    """app.py of AIR-Bench's leaderboard: its tabs filter by NoReranker, by BM25, and not at all."""
    scores = {BM25: {Q: 0.3, B: 0.1}, DENSE: {Q: 0.4, B: 0.2}, BM25_MORE: {Q: 0.5}, DENSE_MORE: {Q: 0.6}}
    assert shape(rank_systems(scores)) == {
        ("qa", "retrieval only"): [DENSE, BM25],
        ("qa", "reranking only"): [BM25_MORE, BM25],
        ("qa", "retrieval + reranking"): [DENSE_MORE, BM25_MORE, DENSE, BM25],
        ("long-doc", "retrieval only"): [DENSE, BM25],
        ("long-doc", "reranking only"): [BM25],
        ("long-doc", "retrieval + reranking"): [DENSE, BM25],
    }


def test_a_system_that_lacks_a_dataset_has_no_average(monkeypatch: pytest.MonkeyPatch):
    from rusbeir.datasets import registry

    entries = dict(registry.read_registry())
    entries["air-bench/24.05/qa/law/en/dev"] = next(iter(entries.values()))
    monkeypatch.setattr(registry, "read_registry", lambda: entries)
    law = "air-bench/24.05/qa/law/en/dev"
    scores = {BM25: {Q: 0.3, law: 0.1}, DENSE: {Q: 0.9}, BM25_MORE: {Q: 0.1, law: 0.3}, DENSE_MORE: {Q: 0.3, law: 0.3}}
    board = rank_systems(scores)[-1]
    rows = [(row.rank, row.retriever, row.average, row.missing) for row in board.systems]
    assert rows == [
        (1, "dense-m3", pytest.approx(0.3), ()),
        (2, "BM25", pytest.approx(0.2), ()),
        (2, "bm25", pytest.approx(0.2), ()),
        (None, "dense-m3", None, (law,)),
    ]
    assert board.datasets == (Q, law)
    only = rank_systems(scores, domains=["wiki"])[0]
    assert (only.datasets, [row.average for row in only.systems]) == ((Q,), [0.9, 0.3])
    with pytest.raises(UnknownName, match=r"No domain 'wikis' of AIR-Bench\. Did you mean 'wiki'"):
        rank_systems(scores, domains=["wikis"])
    with pytest.raises(UnknownName, match="No language 'de' of AIR-Bench"):
        rank_systems(scores, languages=["de"])


def test_the_verbs(rusbeir: Callable[..., Any]):
    done = rusbeir("airbench", "run", QA, "--system", RAW, "--retriever", "mine")
    files = [f"search_results/mine/NoReranker/qa/wiki/ru_default_{split}.json" for split in ("dev", "test")]
    assert (done.code, done.out.splitlines()) == (0, files)
    assert "1 of 1 queries of air-bench/24.05/qa/wiki/ru/test have no results" in done.err
    again = json.loads(rusbeir("airbench", "run", QA, "--system", RAW, "--retriever", "mine", "--json").out)
    assert [entry["kept"] for entry in again["files"]] == [True, True]
    packed = rusbeir("airbench", "pack", "search_results/mine/NoReranker")
    assert packed.out.strip().endswith("mine_NoReranker.zip")
    assert "1 of the 2 datasets with a test split" in packed.err
    board = rusbeir("airbench", "leaderboard", "search_results", "--lang", "ru")
    assert "qa, retrieval only: nDCG@10 ×100 on the dev split of 1 datasets" in board.out
    assert "1 result files are of test" in board.err
    document = json.loads(rusbeir("airbench", "leaderboard", "search_results", "--json").out)
    assert [entry["board"] for entry in document["leaderboards"]] == ["retrieval only", "retrieval + reranking"]
    scored = rusbeir("eval", f"{QA}/dev", files[0], "--json")
    value = json.loads(scored.out)["measures"]["nDCG@10"]
    assert document["leaderboards"][0]["systems"][0]["average"] == value
    assert rusbeir("airbench", "leaderboard", "search_results", "--domain", "book").code == 0
    info = json.loads(rusbeir("datasets", "info", f"{QA}/test", "--json").out)
    assert (info["n_docs"], info["n_queries"], info["n_qrels"]) == (3, 1, 0)
    registered = json.loads(rusbeir("datasets", "--lang", "ru", "--json").out)
    assert [entry["split"] for entry in registered if not entry["judged"]] == ["test"] * 4
    assert json.loads(rusbeir("index", f"{QA}/test", "--system", RAW, "--json").out)["n_docs"] == 3
    refused = rusbeir("bench", f"{QA}/test")
    assert (refused.code, len(refused.err.splitlines())) == (2, 1)

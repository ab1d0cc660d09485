"""Results on a pool of several languages, split by the language of queries and by pairs of languages."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

import rusbeir
from rusbeir.cli.main import app
from rusbeir.datasets import write_beir
from rusbeir.errors import BadInput
from rusbeir.evaluation import evaluate
from rusbeir.site import write_site
from tests.support.pools import LANGUAGES, PlantedPreference, make_pool


class OwnFirst(PlantedPreference):
    """A system of its own name."""


class KazakhLast(PlantedPreference):
    """A system of its own name."""


OWN = OwnFirst(bonus=lambda asked_in, language: 2.0 * (asked_in == language))
NOT_KAZAKH = KazakhLast(bonus=lambda asked_in, language: -20.0 * (language == "kk" != asked_in))


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A folder with a pool, and the results of two systems on it."""
    folder = tmp_path_factory.mktemp("pools")
    write_beir(make_pool(), folder / "pool")
    pool = rusbeir.load(folder / "pool")
    for system in (OWN, NOT_KAZAKH):
        rusbeir.bench(pool, system, measures=["nDCG@10", "nDCG@1"], out=folder / "results", k=5)
    return folder, pool


def test_by_the_language_of_queries(measured):
    folder, pool = measured
    comparison = rusbeir.compare(folder / "results", by_language="queries", data=[folder / "pool"])
    assert [(part.dataset, part.n_queries, part.n_clusters) for part in comparison.datasets] == [
        (f"pool asked in {language}", 30, 30) for language in LANGUAGES
    ]
    assert comparison.matrices == ()
    run = NOT_KAZAKH.search(pool.queries, 5)
    for part in comparison.datasets:
        qrels = {key: grades for key, grades in pool.qrels.items() if key.endswith(part.query_language)}
        means = {score.system: score.mean for score in part.systems}
        (name,) = (system for system in means if "KazakhLast" in system)
        assert means[name] == pytest.approx(evaluate(qrels, run, ["nDCG@10"]).measures["nDCG@10"])


def test_by_pairs_of_languages(measured):
    """In five hits the Kazakh text comes last, below what is not relevant, unless it is the query's language."""
    folder, _ = measured
    comparison = rusbeir.compare(folder / "results", by_language="pairs", data=[folder / "pool"])
    assert len(comparison.datasets) == 9
    assert {part.dataset for part in comparison.datasets if part.language == "kk"} == {
        "pool/kk", "pool/kk asked in en", "pool/kk asked in ru"
    }  # fmt: skip
    (matrix,) = (matrix for matrix in comparison.matrices if "KazakhLast" in matrix.system)
    assert (matrix.family, matrix.n_queries, matrix.note) == ("pool/*", 30, "")
    cells = {
        (asked_in, language): cell.mean
        for asked_in, row in zip(matrix.query_languages, matrix.cells, strict=True)
        for language, cell in zip(matrix.languages, row, strict=True)
    }
    assert all((mean == 1.0) == (language != "kk" or asked_in == "kk") for (asked_in, language), mean in cells.items())
    assert matrix.same.mean == 1.0
    assert matrix.across.mean == pytest.approx((4 + cells["en", "kk"] + cells["ru", "kk"]) / 6)


def test_the_terminal_and_the_report_show_pairs(measured, tmp_path):
    folder, _ = measured
    arguments = ["compare", str(folder / "results"), "--by-language", "pairs", "--data", str(folder / "pool")]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert result.output.count("pool/*") == 2
    assert "queries in" in result.output
    write_site([folder / "results"], tmp_path / "site", by_language="queries", data=[folder / "pool"])
    index = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert "Kazakh" in index
    assert len(list((tmp_path / "site" / "datasets").glob("pool-asked-in-*.html"))) == 3
    write_site([folder / "results"], tmp_path / "pairs", by_language="pairs", data=[folder / "pool"])
    assert "pool/*" in (tmp_path / "pairs" / "matrix.html").read_text(encoding="utf-8")


def test_a_split_needs_the_pool(measured):
    folder, _ = measured
    with pytest.raises(BadInput, match="by_language= needs the queries of pool: name its folder with data="):
        rusbeir.compare(folder / "results", by_language="pairs")


def test_results_in_one_language_stay_whole(measured, tmp_path):
    folder, _ = measured
    for system in ("bm25(profile=raw)", "bm25(profile=unicode)"):
        rusbeir.bench("mini/en", system, measures=["nDCG@10"], out=tmp_path)
    with pytest.raises(BadInput, match="by_language=pairs splits results on a pool of several languages, and none"):
        rusbeir.compare(tmp_path, by_language="pairs")
    both = rusbeir.compare([tmp_path, folder / "results"], by_language="queries", data=[folder / "pool"])
    assert [part.n_queries for part in both.datasets if part.dataset == "mini/en"] == [82]
    assert len(both.datasets) == 4

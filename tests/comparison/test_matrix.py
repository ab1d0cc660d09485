"""Languages of queries against languages of documents: rows, comparisons, averages and the page with the picture."""

from __future__ import annotations

import importlib.util
import itertools
import json
import re
from pathlib import Path

import numpy as np
import pytest

import rusbeir
from rusbeir.comparison import Comparison, compare, tables
from rusbeir.comparison.matrix import describe_averages, matrix_table
from rusbeir.comparison.results import load_dataset_of, read_results
from rusbeir.datasets import write_beir
from rusbeir.errors import BadInput, UnknownName
from rusbeir.experiment import Request, bench_all
from rusbeir.ledger import read_rows
from rusbeir.site.pages import write_site
from tests.support import browser

ENCODER = "dense(python:tests.comparison.test_matrix.make_encoder)"


class Letters:
    """Texts as counts of their letters, so that every query finds something in every language."""

    signature = "letters"

    def encode_queries(self, texts):
        return self.encode_documents(texts)

    def encode_documents(self, texts):
        counts = np.array([np.bincount([ord(c) % 64 for c in text] or [0], minlength=64) for text in texts])
        return (counts / np.linalg.norm(counts, axis=1, keepdims=True)).astype(np.float32)


def make_encoder() -> Letters:
    return Letters()


@pytest.fixture(scope="module")
def faiss(needs) -> None:
    """What the encoder's vectors are searched by."""
    needs("faiss", importlib.util.find_spec("faiss") is not None, "pip install 'rusbeir[dense]'")


@pytest.fixture(scope="module")
def measured(tmp_path_factory, faiss) -> Path:
    """mini/ru and mini/en, each asked in both languages."""
    out = tmp_path_factory.mktemp("matrix") / "results"
    request = Request(measures=["nDCG@10"], out=out, query_languages=["all"])
    rows, failed = bench_all(["mini/ru", "mini/en"], ["bm25", ENCODER], request)
    assert (len(rows), failed) == (8, [])
    return out


@pytest.fixture(scope="module")
def site(measured) -> tuple[Path, Comparison]:
    """The report of these rows, and the comparison that it shows."""
    out = measured.parent / "site"
    return out, write_site([measured], out)


def test_rows_tell_both_languages(measured):
    rows = list(read_rows(measured))
    pairs = [(row["query_language"], row["language"]) for row in rows if row["system"] == "bm25"]
    assert pairs == [("ru", "ru"), ("en", "ru"), ("ru", "en"), ("en", "en")]
    assert len({row["fingerprint"] for row in rows}) == 4
    assert {row["dataset"] for row in rows} == {"mini/ru", "mini/en"}


def test_one_pair_from_python_is_the_row_of_the_matrix(measured, caplog):
    row = rusbeir.bench("mini/ru", ENCODER, query_language="en", measures="nDCG@10", out=measured)
    assert row in list(read_rows(measured))
    assert len(list(read_rows(measured))) == 8
    assert not caplog.records
    row = rusbeir.bench("mini/ru", ENCODER, query_language="ru", measures="nDCG@10", out=measured)
    assert row["query_language"] == "ru"
    assert caplog.messages == ["mini/ru is in ru: these are its own queries."]


def test_equal_texts_in_two_languages_are_two_rows(tmp_path):
    """Their fingerprints are equal; only the row tells in which language the texts are."""
    docs, queries, qrels = [{"_id": "d", "text": "taxi"}], {"q": "taxi"}, {"q": {"d": 1}}
    for language in ("no", "sv"):
        dataset = rusbeir.Dataset.of(docs, queries, qrels, language=language, name=f"toy/{language}")
        write_beir(dataset, tmp_path / language)
    rows = [
        rusbeir.bench(tmp_path / "no", "bm25(profile=raw)", query_language=asked_in, out=tmp_path / "out")
        for asked_in in ("no", str(tmp_path / "sv"))
    ]
    assert [row["query_language"] for row in rows] == ["no", "sv"]
    rows = read_results([tmp_path / "out"], "nDCG@10")
    assert [row.dataset for row in rows] == ["toy/no", "toy/no asked in sv"]
    folders = [(rusbeir.load(tmp_path / language), tmp_path / language) for language in ("no", "sv")]
    assert load_dataset_of(rows[1], folders).fingerprint == rows[1].row["fingerprint"]
    with pytest.raises(UnknownName, match="No dataset 'toy/no'"):
        load_dataset_of(rows[1])


def test_words_across_languages_are_warned_of_once(tmp_path, caplog, faiss):
    rusbeir.bench("mini/ru", ["bm25", f"rrf(bm25,{ENCODER})"], query_language="en", measures="nDCG@10", out=tmp_path)
    warnings = [line for line in caplog.messages if "as texts in the language of the documents" in line]
    assert len(warnings) == 1
    assert warnings[0].startswith(f"bm25, rrf(bm25,{ENCODER}): BM25 analyses all queries")


def test_queries_in_another_language_share_the_index(tmp_path, fresh_cache):
    for asked_in in ("ru", "en"):
        rusbeir.bench("mini/ru", "bm25", query_language=asked_in, measures="nDCG@10", out=tmp_path / "out")
    assert len(list((fresh_cache / "indexes").iterdir())) == 1


def test_a_row_asked_in_another_language_is_another_dataset(measured, site):
    comparison = site[1]
    names = ["mini/ru", "mini/ru asked in en", "mini/en asked in ru", "mini/en"]
    assert [compared.dataset for compared in comparison.datasets] == names
    assert [(compared.language, compared.query_language) for compared in comparison.languages] == [
        ("en", "en"), ("en", "ru"), ("ru", "en"), ("ru", "ru"),
    ]  # fmt: skip
    assert [line.partition(" (")[0] for line in comparison.conclusion] == names
    assert tables.to_csv(comparison).splitlines()[3].startswith("mini/ru asked in en,ru,en,")
    only = compare(measured, where="query_language==en and query.words<=4", permutations=100, samples=100)
    assert [compared.dataset for compared in only.datasets] == ["mini/ru asked in en", "mini/en"]


def test_averages_are_over_pairs(measured, site):
    bm25, dense, *_ = site[1].matrices
    assert (bm25.family, bm25.system, dense.system) == ("mini/*", "bm25", ENCODER)
    rows = {
        (row["query_language"], row["language"]): row["measures"]["nDCG@10"]
        for row in read_rows(measured)
        if row["system"] == ENCODER
    }
    means = {pair: dense.cells[i][j].mean for (i, j), pair in zip(
        itertools.product(range(2), repeat=2), itertools.product(("ru", "en"), repeat=2), strict=True)}  # fmt: skip
    assert means == pytest.approx(rows)
    assert [mean.mean for mean in dense.by_queries] == pytest.approx(
        [(rows["ru", "ru"] + rows["ru", "en"]) / 2, (rows["en", "ru"] + rows["en", "en"]) / 2]
    )
    assert [mean.mean for mean in dense.by_documents] == pytest.approx(
        [(rows["ru", "ru"] + rows["en", "ru"]) / 2, (rows["ru", "en"] + rows["en", "en"]) / 2]
    )
    same, across = (rows["ru", "ru"] + rows["en", "en"]) / 2, (rows["ru", "en"] + rows["en", "ru"]) / 2
    assert (dense.same.mean, dense.across.mean) == pytest.approx((same, across))
    assert dense.loss.mean == pytest.approx(same - across)
    assert dense.loss.interval[0] < dense.loss.mean < dense.loss.interval[1]
    assert matrix_table(dense)[1][0][:2] == ["ru", f"{100 * rows['ru', 'ru']:.2f}"]
    assert re.fullmatch(
        r"In one language \S+ \(\S+ to \S+, 2 pairs\), across languages \S+ \(.*, 2 pairs\), a loss of .*\.",
        describe_averages(dense),
    )


def edit(measured: Path, folder: Path, change) -> Path:
    """A copy of the rows of one system, without those for which change is False; it may change them in place."""
    folder.mkdir()
    rows = [row for row in read_rows(measured) if row["system"] == ENCODER]
    changed = [row for row in rows if change(row, folder) is not False]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in changed))
    return folder


def drop_queries(row, folder):
    """Score the English queries of the Russian documents on half of them."""
    if (row["query_language"], row["language"]) == ("en", "ru"):
        scores = json.loads(Path(row["per_query"]).read_text())
        row["per_query"] = str(folder / "fewer.json")
        Path(row["per_query"]).write_text(json.dumps(dict(list(scores.items())[:41])))


def drop_pair(row, _):
    return (row["query_language"], row["language"]) != ("en", "ru")


@pytest.mark.parametrize(
    ("change", "note"),
    [
        (drop_pair, "No averages: 1 of 4 pairs are missing, such as ru asked in en."),
        (drop_queries, "No averages: the pairs were measured on different queries, 41 to 82."),
    ],
)
def test_nothing_is_averaged_over_unlike_queries(measured, tmp_path, change, note):
    (matrix,) = compare(edit(measured, tmp_path / "edited", change), samples=100).matrices
    assert describe_averages(matrix) == note
    assert (matrix.by_queries, matrix.by_documents) == ((), ())
    assert (matrix.same, matrix.across, matrix.loss) == (None, None, None)


def test_rows_of_older_versions_are_in_one_language(measured, tmp_path):
    """They lack the key; one of another language of queries is not among them."""

    def forget(row, _):
        return row["query_language"] == row["language"] and bool(row.pop("query_language"))

    with pytest.raises(BadInput, match="only one system was measured on each dataset"):
        compare(edit(measured, tmp_path / "old", forget))


def test_the_page_is_a_picture_that_everybody_can_read(site, needs):
    needs("Chromium", browser.CHROMIUM.exists(), browser.REMEDY)
    problems: list[str] = []
    with browser.launched() as chromium:
        for scheme in ("light", "dark"):
            page = chromium.new_page(viewport={"width": 390, "height": 900}, color_scheme=scheme)
            page.on("console", lambda message: problems.append(message.text))
            page.on("request", lambda request: problems.append(request.url) if "file:" not in request.url else None)
            page.goto((site[0] / "matrix.html").as_uri())
            assert browser.violations(page) == []
            assert not page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
            table = page.locator("table.heat").first
            rows = [row.split("\t") for row in table.inner_text().splitlines() if "\t" in row]
            assert [row[0] for row in rows] == ["queries in", "ru", "en", "mean"]
            assert rows[1][2] == "0.00"
            colours = table.locator("td.cell").evaluate_all("all => all.map(e => getComputedStyle(e).backgroundColor)")
            assert colours[0] != colours[1] == colours[2] != colours[3], "more colour for more"
            assert table.locator("td.own").count() == 2
        table.locator("td.cell a").nth(2).click()
        assert page.inner_text("h1") == "mini/ru asked in en"
        assert "queries in English" in page.inner_text("body")
        assert page.inner_text("#count") == "82 of 82 queries"
        page.goto((site[0] / "index.html").as_uri())
        assert page.locator("h2").all_inner_texts()[:4] == [
            "For Russian, use bm25: it is better than everything else here.",
            "For English, use bm25: it is better than everything else here.",
            "Every system on every dataset",
            "Across languages",
        ]
        page.click("text=Languages of queries against languages of documents")
        assert page.locator("table.heat").count() >= 2
    assert problems == []

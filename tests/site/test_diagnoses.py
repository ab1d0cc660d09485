"""Diagnoses in result folders: their pages, and one line for a damaged one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rusbeir.diagnostics.documents import read_diagnoses
from rusbeir.diagnostics.store import save_diagnosis
from rusbeir.errors import BadInput
from rusbeir.site.drawing import locate, scale_deltas
from rusbeir.site.pages import write_site
from tests.support import browser

HOSTILE = "<img src=x onerror=\"document.title='owned'\">{{ 7 * 7 }}"
DELTA = {
    "k": 1, "source": "human", "against": HOSTILE, "published": -29.4, "reversed": 9.3, "expected": -10.0,
    "low": -41.4, "high": 21.4, "lowest": -30.6, "highest": 10.8, "safe": False,
    "published_low": -41.4, "published_high": -18.0, "n_queries": 323, "n_clusters": 323, "sentence": "It is not safe.",
}  # fmt: skip
UNDEFINED = DELTA | dict.fromkeys(["published", "reversed", "expected", "low", "high", "lowest", "highest"])
SCORE = {
    "k": 1, "source": "human", "ndcg": 0.18, "ndcg_answered": 0.19, "reversed": 0.2, "expected": 0.19, "lowest": 0.18,
    "highest": 0.21, "share": 0.5, "alone": None, "alone_answered": 0.4,
}  # fmt: skip
QUERIES = {"split": "test", "n_queries": 323, "n_answered": 307, "n_tied": 42, "scores": [SCORE], "deltas": [DELTA]}
DOCUMENT: dict[str, Any] = {
    "kind": "source-bias", "version": "0.1.0", "dataset": "pair", "language": "en", "system": HOSTILE, "signature": "s",
    "fingerprint": "f", "engine": "tantivy", "depth": 100, "seed": 0, "samples": 10_000,
    "sources": ["human", HOSTILE], "query_sets": [QUERIES], "deltas": [DELTA, UNDEFINED],
}  # fmt: skip


def test_a_page_of_a_folder_without_rows(tmp_path, needs):
    """The page holds what the document says, fits a telephone, asks for nothing, and its names are texts."""
    needs("Chromium", browser.CHROMIUM.exists(), browser.REMEDY)
    save_diagnosis(DOCUMENT, tmp_path / "results")
    save_diagnosis(
        DOCUMENT | {"system": "bm25", "dataset": "mean over 2 datasets", "query_sets": []}, tmp_path / "results"
    )
    write_site([tmp_path / "results"], tmp_path / "site")
    with browser.launched() as chromium:
        page = chromium.new_page(viewport={"width": 420, "height": 900})
        problems: list[str] = []
        page.on("request", lambda request: problems.append(request.url) if "file:" not in request.url else None)
        page.on("console", lambda message: problems.append(message.text))
        page.goto((tmp_path / "site" / "index.html").as_uri())
        page.click("text=Source bias")
        assert browser.violations(page) == []
        assert not page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
        assert (page.title(), page.locator("img").count(), problems) == ("Source bias", 0, [])
        text = page.inner_text("body")
        assert "It is not safe." in text
        assert "{{ 7 * 7 }}" in text
        assert page.locator("h2").all_inner_texts() == ["mean over 2 datasets", "pair"]
        cells = page.locator("table").first.locator("tbody tr").first.locator("td.n").all_inner_texts()
        assert cells == ["1", "-29.4", "+9.3", "-10.0", "-41.4 … +21.4", "-30.6 … +10.8"]
        assert page.locator("svg.whiskers").count() == 2
        bar = page.locator("svg.whiskers .bar").first
        assert [float(str(bar.get_attribute(end))) for end in ("x1", "x2")] == [locate(-41.4, 50), locate(21.4, 50)]


def test_scale():
    assert scale_deltas([DOCUMENT]) == 50
    assert scale_deltas([DOCUMENT | {"deltas": [UNDEFINED]}]) == 10
    assert [locate(value, 50) for value in (-50, 0, 25, 50, None)] == [6, 120, 177, 234, 120]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("{", "not JSON"),
        ({"kind": "other"}, "kind is 'other', not one of"),
        ({"dataset": 5}, "dataset is 5, not a string"),
        ({"deltas": [{**DELTA, "low": "x"}]}, "deltas.0.low is 'x', not a number"),
        ({"query_sets": [{**QUERIES, "scores": [{"k": 1}]}]}, "query_sets.0.scores.0.source is missing"),
    ],
)
def test_a_damaged_one_is_named(tmp_path: Path, change, message):
    path = tmp_path / "diagnoses" / "a.json"
    path.parent.mkdir()
    path.write_text(change if isinstance(change, str) else json.dumps({**DOCUMENT, **change}))
    with pytest.raises(BadInput) as raised:
        read_diagnoses([tmp_path])
    assert str(raised.value).startswith(f"{path}: this is not what rusbeir writes ({message}")
    assert str(raised.value).endswith("Remove it, and run `rusbeir diagnose` again.")

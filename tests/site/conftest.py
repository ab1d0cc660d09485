"""What the tests of pages share: a browser a file, and a report of three systems in two languages."""

from __future__ import annotations

from pathlib import Path

import pytest

import rusbeir
from rusbeir.site.pages import write_site
from tests.support import browser
from tests.support.result_folders import results

__all__ = ["results"]


@pytest.fixture(scope="module")
def chromium(needs):
    needs("Chromium", browser.CHROMIUM.exists(), browser.REMEDY)
    with browser.launched() as running:
        yield running


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    for name in ("mini/ru", "mini/en"):
        dataset = rusbeir.load(name)
        for system in ("bm25", "bm25(profile=raw)", "minmax(bm25(profile=snowball),bm25(profile=raw),depth=50)"):
            rusbeir.bench(dataset, system, out=folder / "results")
    rows = folder / "results" / "rows.jsonl"
    paid = rows.read_text(encoding="utf-8").replace('"bytes":', '"cost":0.0123,"bytes":', 1)
    rows.write_text(paid, encoding="utf-8")
    write_site([folder / "results"], folder / "site")
    return folder / "site"

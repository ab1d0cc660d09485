"""The site in a real browser: what it shows, what hostile texts cannot do, and that everybody can read it."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import numpy as np
import pytest

import rusbeir
from rusbeir.datasets import write_beir
from rusbeir.errors import BadInput
from rusbeir.site.pages import write_site
from tests.support import browser
from tests.support.browser import open_page
from tests.support.report_pages import dataset_page

HOSTILE = [
    "</script><script>document.title='owned'</script>",
    "<img src=x onerror=\"document.title='owned'\">",
    "\u202egnirts\u2066 \u2028 \x00",
    "{{ 7 * 7 }}{% raw %}<!--<script>",
    "javascript:document.title='owned'",
]


@pytest.fixture(scope="module")
def hostile_site(tmp_path_factory) -> Path:
    """A site of a dataset whose ids, texts and system names all try something."""
    folder = tmp_path_factory.mktemp("hostile")
    docs = [{"_id": f"d{n} {text}", "text": f"кошка {text}", "title": text} for n, text in enumerate(HOSTILE)]
    queries = {f"q{n} {text}": f"кошка {text}" for n, text in enumerate(HOSTILE)}
    qrels = {query_id: {docs[n]["_id"]: 1} for n, query_id in enumerate(queries)}
    ids = {old: "".join(old.replace("\x00", "").split()) for old in [*queries, *(doc["_id"] for doc in docs)]}
    dataset = rusbeir.Dataset.of(
        [{**doc, "_id": ids[doc["_id"]]} for doc in docs],
        {ids[query_id]: text for query_id, text in queries.items()},
        {ids[q]: {ids[d]: grade for d, grade in grades.items()} for q, grades in qrels.items()},
        language="ru",
        name=f"toy {HOSTILE[1]}",
    )
    write_beir(dataset, folder / "data")
    loaded = rusbeir.load(folder / "data")
    for system in ("bm25", "bm25(profile=raw)"):
        rusbeir.bench(loaded, system, out=folder / "results")
    rows = folder / "results" / "rows.jsonl"
    lines = [json.loads(line) for line in rows.read_text(encoding="utf-8").splitlines()]
    lines[1]["system"] = HOSTILE[0]
    rows.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    write_site([folder / "results"], folder / "site", data=[folder / "data"])
    return folder / "site"


def test_hostile_texts_stay_texts(hostile_site, chromium):
    for path in (hostile_site / "index.html", dataset_page(hostile_site)):
        page = open_page(chromium, path)
        assert page.title() != "owned"
        assert page.problems == []
        assert page.locator("img, iframe, object").count() == 0
        text = page.inner_text("body")
        assert "49" not in text.split("{{ 7 * 7 }}")[0][-4:]
    assert "</script><script>document.title='owned'</script>" in page.inner_text("#hits")
    assert page.locator("#queries button").count() == len(HOSTILE)
    page.close()


@pytest.mark.parametrize("width", [390, 1280, 1920])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_accessible_and_fit(site, chromium, width: int, scheme: str):
    for path in (site / "index.html", dataset_page(site, "mini-ru")):
        page = open_page(chromium, path, viewport={"width": width, "height": 900}, color_scheme=scheme)
        assert browser.violations(page) == []
        assert not page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
        assert page.problems == []
        page.close()


def test_the_explorer_leads_to_a_query_and_back(site, chromium):
    page = open_page(chromium, dataset_page(site, "mini-ru"))
    page.select_option("#first", label="bm25")
    page.select_option("#second", label="bm25(profile=raw)")
    first = page.inner_text("#query")
    assert page.locator("#hits section").count() == 2
    assert page.locator("#hits mark").count() > 0
    assert "BM25: " in page.inner_text("#hits")
    page.keyboard.press("j")
    assert page.inner_text("#query") != first
    address = page.evaluate("location.href")
    again = chromium.new_page()
    again.goto(address)
    assert again.inner_text("#query") == page.inner_text("#query")
    assert again.locator("#second").evaluate("e => e.selectedOptions[0].textContent") == "bm25(profile=raw)"
    again.close()
    page.fill("#find", first)
    assert page.inner_text("#count").startswith("1 of ")
    page.fill("#find", "")
    page.select_option("#only", "zero")
    shown = int(page.inner_text("#count").split()[0])
    assert 0 < shown < page.evaluate("data.queries.length")
    page.close()


def test_leaderboards_are_sorted_and_shaded(site, chromium):
    page = open_page(chromium, site / "index.html")
    table = page.locator("table.sortable").first
    names = table.locator("tbody tr td.system").all_inner_texts()
    assert names[0] == "bm25"
    assert table.locator("tr.best").count() >= 1
    table.locator("th button").first.click()
    assert table.locator("tbody tr td.system").all_inner_texts() == sorted(names, reverse=True)
    page.close()


def test_money_is_shown_where_some_was_paid(site, chromium):
    paid, unpaid = (open_page(chromium, dataset_page(site, name)) for name in ("mini-ru", "mini-en"))
    header = paid.locator("table").first.locator("th").all_inner_texts()
    assert header[-1] == "cost"
    assert sorted(paid.locator("table").first.locator("td:last-child").all_inner_texts()) == ["", "", "0.012"]
    assert paid.locator("figure:has(circle.dot)").count() == 2
    assert "0.012 paid" in " ".join(paid.locator("figure").nth(1).locator("title").all_text_contents())
    assert "cost" not in unpaid.locator("table").first.locator("th").all_inner_texts()
    assert unpaid.locator("figure:has(circle.dot)").count() == 1


def test_a_port_shows_its_source(tmp_path, chromium):
    memory = Path(rusbeir.__file__).parent / "datasets" / "mini" / "memory.en-ru.tsv"
    rusbeir.port("mini/en", to="ru", translator="memory", memory=memory, out=tmp_path / "port")
    ported = rusbeir.load(tmp_path / "port")
    for system in ("bm25", "bm25(profile=raw)"):
        rusbeir.bench(ported, system, out=tmp_path / "results")
    write_site([tmp_path / "results"], tmp_path / "site", data=[tmp_path / "port"])
    page = open_page(chromium, dataset_page(tmp_path / "site"))
    assert page.inner_text("#source").startswith("Source: ")
    page.close()


def test_a_dataset_that_is_gone_has_no_explorer_but_a_reason(tmp_path, chromium):
    dataset = rusbeir.Dataset.of(
        [{"_id": "d1", "text": "кошка"}, {"_id": "d2", "text": "собака"}], {"q": "кошка"}, {"q": {"d1": 1}},
        language="ru", name="gone",
    )  # fmt: skip
    for system in ("bm25", "bm25(profile=raw)"):
        rusbeir.bench(dataset, system, out=tmp_path / "results")
    write_site([tmp_path / "results"], tmp_path / "site")
    page = open_page(chromium, dataset_page(tmp_path / "site"))
    assert "No dataset 'gone'" in page.inner_text("body")
    assert page.problems == []
    page.close()


def test_a_folder_that_holds_something_else_is_left_alone(site, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(BadInput, match=r"holds something other than a report; choose a new folder"):
        write_site([site.parent / "results"], tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_no_page_is_written_through_a_link(site, tmp_path):
    (tmp_path / "theirs").mkdir()
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / ".rusbeir-report").touch()
    (tmp_path / "site" / "datasets").symlink_to(tmp_path / "theirs")
    with pytest.raises(BadInput, match=r"site/datasets is a symbolic link"):
        write_site([site.parent / "results"], tmp_path / "site")
    assert not list((tmp_path / "theirs").iterdir())


def test_a_run_that_is_gone_is_named(tmp_path):
    for system in ("bm25", "bm25(profile=raw)"):
        rusbeir.bench("mini/ru", system, out=tmp_path / "results")
    for path in (tmp_path / "results" / "runs").iterdir():
        path.unlink()
    write_site([tmp_path / "results"], tmp_path / "site")
    assert "is gone" in dataset_page(tmp_path / "site").read_text(encoding="utf-8")
    rows = tmp_path / "results" / "rows.jsonl"
    rows.write_text(
        re.sub('"run":"[^"]*"', f'"run":"{"x" * 5000}"', rows.read_text(encoding="utf-8")), encoding="utf-8"
    )
    write_site([tmp_path / "results"], tmp_path / "site")
    assert "is gone" in dataset_page(tmp_path / "site").read_text(encoding="utf-8"), "a name that no file can have"


def test_pages_open_at_their_top_and_a_query_only_by_its_address(site, chromium):
    path = dataset_page(site, "mini-ru")
    for size in ({"width": 1280, "height": 620}, {"width": 390, "height": 844}):
        page = open_page(chromium, path, viewport=size)
        assert page.evaluate("[scrollY, location.hash]") == [0, ""]
        page.keyboard.press("j")
        address = page.evaluate("location.href")
        page.close()
    named = chromium.new_page()
    named.goto(address)
    assert named.evaluate("scrollY") > 0
    named.close()


def test_the_first_view_answers_in_a_heading_with_a_chart(site, chromium):
    page = open_page(chromium, site / "index.html", viewport={"width": 1280, "height": 900})
    headings = page.locator("h2").all_inner_texts()
    assert headings[0] == "For Russian, use bm25: it is better than everything else here."
    chart = page.locator("table.chart").first
    assert chart.bounding_box()["y"] < 900
    ticks = [float(text) for text in chart.locator("svg.axis text").all_text_contents()]
    assert ticks == sorted(ticks)
    assert len(ticks) >= 3
    assert chart.locator("tbody svg.track").count() == 3
    cells = chart.locator("tbody tr").first.locator("td").all_inner_texts()
    low, high = map(float, cells[3].split("–"))
    assert low < float(cells[2]) < high
    assert page.locator("#grid th").all_inner_texts() == ["system", "mini/ru", "mini/en"]
    page.close()


def test_names_break_at_their_marks_alone(site, chromium):
    """Each letter of a word is on the line of the letter before it."""
    page = open_page(chromium, dataset_page(site, "mini-ru"), viewport={"width": 390, "height": 844})
    broken = page.evaluate(
        """() => [...document.querySelectorAll("td .name")].flatMap((name) => {
          const walker = document.createTreeWalker(name, NodeFilter.SHOW_TEXT), words = [];
          for (let node; (node = walker.nextNode());)
            for (const word of node.data.matchAll(/\\w+/g)) {
              const range = document.createRange();
              range.setStart(node, word.index); range.setEnd(node, word.index + word[0].length);
              if (range.getClientRects().length > 1) words.push(word[0]);
            }
          return words;
        })"""
    )
    assert broken == []
    page.close()


def test_a_search_that_finds_nothing_says_so(site, chromium):
    page = open_page(chromium, dataset_page(site, "mini-ru"))
    page.fill("#find", "nothing has these words")
    assert page.inner_text("#count").startswith("0 of ")
    assert page.inner_text("#query") == "No query matches."
    assert page.inner_text("#hits") == ""
    page.fill("#find", "")
    assert page.locator("#hits section").count() == 2
    page.close()


def test_the_cost_chart_has_axes_units_and_names(site, chromium):
    page = open_page(chromium, dataset_page(site, "mini-en"), viewport={"width": 1280, "height": 900})
    texts = page.locator("svg.costs text").all_text_contents()
    assert {"nDCG@10 ×100", "milliseconds per query, logarithmic →", "bm25", "bm25(profile=raw)"} <= set(texts)
    boxes = [text.bounding_box() for text in page.locator("svg.costs text").all()]
    labels = [box for box in boxes if box["x"] > max(other["x"] for other in boxes) - 1]
    heights = sorted(box["y"] for box in labels)
    assert all(below - above >= 10 for above, below in itertools.pairwise(heights)), "no two names collide"
    page.close()


def test_nothing_is_empty_or_unexplained(site, chromium):
    page = open_page(chromium, dataset_page(site, "mini-en"))
    header = page.locator("table.chart th").all_inner_texts()
    assert "paper" not in header
    cells = page.locator("table.chart tbody td:not(.plot)").all_inner_texts()
    assert all(cell.strip() for cell in cells)
    legend = page.locator("dl.recipe").first.text_content()
    assert all(name in legend for name in ("ranks", "no results", "tied", "index s", "query s", "MB", "peak MB"))
    assert "−" in page.locator("table").nth(1).inner_text()
    assert "125 documents" in page.inner_text("main > p.quiet")
    page.close()


def test_a_weak_system_hides_no_other(results, tmp_path, chromium):
    rng = np.random.default_rng(1)
    strong = rng.uniform(0.9, 1.0, 200)
    folder = results({"a": list(strong), "b": list(strong - 0.02), "weak": list(rng.uniform(0.1, 0.3, 200))})
    write_site([folder], tmp_path / "site")
    page = open_page(chromium, tmp_path / "site" / "index.html", viewport={"width": 1280, "height": 900})
    widths = [bar.bounding_box()["width"] for bar in page.locator("table.chart .bar").all()]
    assert len(widths) == 2
    assert min(widths) > 30
    assert page.locator("table.chart .off").text_content().startswith("◂ ")
    page.close()


def test_pages_are_small(site):
    assert len(site.joinpath("index.html").read_bytes()) < 100_000

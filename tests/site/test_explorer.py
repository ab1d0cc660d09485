"""The explorer of queries: strip, facets, joined documents, terms, keys and notes; recall against depth."""

from __future__ import annotations

import itertools
import json

import pytest

import rusbeir
from rusbeir.site.charts import chart_recall
from rusbeir.site.recall import DEPTHS, measure_recall
from tests.support import browser
from tests.support.browser import open_page
from tests.support.report_pages import dataset_page

MANY = """() => {
  const n = data.queries.length, of = (list) => list && Array.from({ length: 5000 }, (_, i) => list[i % n]);
  [data.hits, data.query_terms] = [of(data.hits), of(data.query_terms)];
  data.queries = of(data.queries).map((query, i) => ({ ...query, id: `${query.id}-${i}` }));
  list(true);
}"""


@pytest.fixture
def page(site, chromium):
    page = open_page(chromium, dataset_page(site, "mini-ru"), viewport={"width": 1280, "height": 900})
    page.select_option("#first", label="bm25")
    page.select_option("#second", label="bm25(profile=raw)")
    yield page
    assert page.problems == []
    page.close()


def test_a_click_on_the_strip_opens_a_query(page):
    """Bars are ordered by difference, so that the far left is the query on which the first system is best."""
    strip = page.locator("#strip")
    gaps = page.evaluate("data.queries.map((_, index) => difference(index))")
    strip.click(position={"x": 45, "y": 40})
    assert page.evaluate("difference(current)") == max(gaps)
    strip.click(position={"x": strip.bounding_box()["width"] - 1, "y": 90})
    assert page.evaluate("difference(current)") == min(gaps)
    counts = [sum(gap > 0 for gap in gaps), sum(gap < 0 for gap in gaps)]
    expected = f"bm25 is better on {counts[0]} queries, bm25(profile=raw) on {counts[1]}"
    assert page.inner_text("#strip-caption").startswith(expected)
    assert expected in page.get_attribute("svg.strip", "aria-label")


def test_lines_join_the_same_document(page):
    columns = page.locator("#hits section").all()
    read = "all => all.map(item => item.dataset.doc)"
    first, second = (set(column.locator("li[data-doc]").evaluate_all(read)) for column in columns)
    common = first & second
    assert common
    assert page.locator("#joins path").count() == len(common)
    page.set_viewport_size({"width": 390, "height": 900})
    page.wait_for_function("document.querySelectorAll('#joins path').length === 0")


def test_terms_are_bars_of_their_weights(page):
    page.fill("#find", page.inner_text("#query"))
    card = page.locator("#hits li[data-doc]").first
    weights = [float(text) for text in card.locator(".terms span").all_inner_texts()]
    assert weights == sorted(weights, reverse=True)
    assert sum(weights) == pytest.approx(float(card.locator("text=BM25:").inner_text().split()[1]), abs=0.02)


def test_facets_divide_the_queries(page):
    total = page.evaluate("data.queries.length")
    sizes = []
    for option in range(page.locator("#length option").count() - 1):
        page.select_option("#length", str(option))
        sizes.append(int(page.inner_text("#count").split()[0]))
    assert sum(sizes) == total
    assert len(sizes) == 3
    again = page.evaluate("location.hash")
    page.evaluate("hash => { location.hash = ''; location.hash = hash; }", again)
    assert page.input_value("#length") == "2"


def test_keys_lead_through_the_list(page):
    first = page.inner_text("#query")
    page.focus("#scroll")
    page.keyboard.press("ArrowDown")
    second = page.inner_text("#query")
    assert second != first
    page.keyboard.press("ArrowUp")
    assert page.inner_text("#query") == first
    page.keyboard.press("End")
    assert page.evaluate("current === shown.at(-1)")
    assert page.locator("#queries [aria-current]").is_visible()
    page.keyboard.press("n")
    assert page.evaluate("document.activeElement.id") == "note"
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "find"


def test_notes_are_exported(page, tmp_path):
    page.fill("#note", "a </script> translation that misled")
    query = page.inner_text("#query")
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    assert page.input_value("#note") == ""
    page.select_option("#only", "noted")
    assert page.inner_text("#count").startswith("1 of ")
    with page.expect_download() as saved:
        page.click("#export")
    saved.value.save_as(tmp_path / "notes.jsonl")
    (line,) = (tmp_path / "notes.jsonl").read_text(encoding="utf-8").splitlines()
    note = json.loads(line)
    assert (note["dataset"], note["query"], note["note"]) == ("mini/ru", query, "a </script> translation that misled")
    assert list(note["scores"]) == ["bm25", "bm25(profile=raw)"]
    assert note["fingerprint"] == rusbeir.load("mini/ru").fingerprint


def test_only_the_rows_that_are_seen_are_drawn(page):
    page.evaluate(MANY)
    assert page.inner_text("#count") == "5,000 of 5,000 queries"
    assert page.locator("#queries button").count() < 100
    page.focus("#scroll")
    page.keyboard.press("End")
    page.wait_for_function("document.querySelector('#queries li:last-child').getAttribute('aria-posinset') === '5000'")
    assert page.locator("#queries button").count() < 100


def test_a_query_leads_to_itself_in_another_language(page):
    page.click("#summary a")
    page.wait_for_function("document.title.startsWith('mini/en')")
    assert page.evaluate("data.queries[current].id === state.get('q')")


def test_pages_with_an_open_query_are_accessible(page):
    page.fill("#note", "a note")
    page.hover("#hits li[data-doc]")
    assert browser.violations(page) == []


def test_recall_is_that_of_the_measures(site, page, tmp_path):
    """At 1 and at 50 hits, as deep as the fusion goes, it is R@1 and R@50, which bench computes by trec_eval."""
    label = page.get_attribute("svg[aria-label^='Recall']", "aria-label")
    measures = rusbeir.bench("mini/ru", "bm25", measures=["R@1", "R@50"], out=tmp_path)["measures"]
    assert f"bm25 from {100 * measures['R@1']:.1f} at 1 to {100 * measures['R@50']:.1f} at 50" in label


@pytest.mark.parametrize(
    ("ranking", "relevant", "recall"),
    [
        ("abc", "b", {1: 0, 2: 1, 1000: 1}),
        ("abc", "cx", {2: 0, 3: 0.5, 1000: 0.5}),
        ("abc", "", dict.fromkeys(DEPTHS, 0)),
        ("", "a", dict.fromkeys(DEPTHS, 0)),
    ],
)
def test_recall(ranking, relevant, recall):
    assert recall.items() <= dict(zip(DEPTHS, measure_recall(ranking, set(relevant)), strict=True)).items()


def test_the_labels_of_twenty_lines_do_not_collide():
    chart = chart_recall({f"s{n}": [0.5] * 8 + [0.8] for n in range(20)}, 100)
    heights = sorted(line.label_y for line in chart.lines)
    step = 100 * 18 / chart.height
    assert all(above - below >= step - 1e-9 for below, above in itertools.pairwise(heights))
    assert heights[0] >= 0
    assert chart_recall({"s": [0.5]}, 1) is None

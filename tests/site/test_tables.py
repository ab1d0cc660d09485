"""Tables of the report: searched, sorted, copied and saved, with what was chosen in the address."""

from __future__ import annotations

import csv
import io
import struct
from xml.etree import ElementTree

import pytest

from tests.support.browser import open_page
from tests.support.report_pages import dataset_page

RAW = "bm25(profile=raw)"


def paste(page) -> str:
    """Paste what was copied, as a reader does."""
    page.evaluate("document.body.append(Object.assign(document.createElement('textarea'), { id: 'pasted' }))")
    page.focus("#pasted")
    page.keyboard.press("Control+V")
    return page.input_value("#pasted")


def names(page, table: str) -> list[str]:
    return page.locator(f"#{table} tbody tr:visible td.system").all_inner_texts()


def test_the_address_leads_back_to_what_was_chosen(site, chromium):
    page = open_page(chromium, dataset_page(site, "mini-ru"))
    tools = page.locator(".tools").first
    page.locator("#systems th button").first.click()
    tools.locator("summary").click()
    tools.get_by_label("tied").uncheck()
    tools.get_by_label("Find").fill("bm25(")
    chosen, address = names(page, "systems"), page.evaluate("location.hash")
    assert chosen == sorted(chosen, reverse=True)
    assert RAW in chosen
    assert "bm25" not in chosen
    page.click("text=Look at the queries")
    assert names(page, "systems") == chosen, "a link within the page changes nothing"
    again = open_page(chromium, dataset_page(site, "mini-ru"), address)
    assert names(again, "systems") == chosen
    assert not again.locator("#systems").get_by_text("tied").is_visible()
    again.locator(".tools").first.get_by_label("Find").fill("no such system")
    assert again.locator(".tools").first.get_by_role("status").inner_text() == "Nothing matches."
    assert page.problems == again.problems == []
    page.close()
    again.close()


@pytest.mark.parametrize("form", ["CSV", "Markdown", "LaTeX"])
def test_copies(site, chromium, form: str):
    """A copy has the columns and rows that are shown, in their order, and the best in bold."""
    page = open_page(chromium, site / "index.html")
    page.get_by_text("Find, choose columns, copy, save").first.click()
    tools = page.locator(".tools").first
    mean = page.locator("#Russian tbody tr").first.locator("td.lead").inner_text()
    tools.get_by_role("button", name=form).click()
    tools.get_by_text(f"Copied as {form}.").wait_for()
    text = paste(page)
    if form == "CSV":
        rows = list(csv.reader(io.StringIO(text)))
        assert rows[0] == ["system", "mean ×100", "95 %"]
        assert [row[0] for row in rows[1:]] == names(page, "Russian")
        assert rows[1][:2] == ["bm25", mean]
    elif form == "Markdown":
        assert text.splitlines()[:2] == ["| system | mean ×100 | 95 % |", "| --- | ---: | ---: |"]
        assert text.splitlines()[2].startswith(f"| bm25 | **{mean}** | ")
    else:
        assert text.startswith(
            "\\begin{tabular}{lrr}\n\\toprule\nsystem & mean $\\times$100 & 95 \\% \\\\\n\\midrule\n"
        )
        assert f"bm25 & \\textbf{{{mean}}} & " in text
        assert text.endswith("\\bottomrule\n\\end{tabular}\n")
    page.close()


def test_charts_and_heat_maps_are_saved_as_files(site, chromium, tmp_path):
    """The SVG holds the words that are shown, needs no stylesheet, and the PNG has twice its size."""
    page = open_page(chromium, site / "index.html", color_scheme="dark")
    for table in ("Russian", "grid"):
        assert names(page, table) != []
        if table != "grid":
            page.locator(f".wide:has(> #{table}) + details > summary").click()
        tools = page.locator(f".wide:has(> #{table}) + details .tools, .tools:has(+ .wide > #{table})")
        with page.expect_download() as saved:
            tools.get_by_role("button", name="SVG").click()
        saved.value.save_as(tmp_path / "a.svg")
        root = ElementTree.parse(tmp_path / "a.svg").getroot()
        words = "".join(str(text.text) for text in root.iter("{http://www.w3.org/2000/svg}text"))
        assert all(name.replace(" ", "") in words for name in names(page, table))
        assert "var(" not in (tmp_path / "a.svg").read_text(encoding="utf-8")
        assert root[0].get("fill") == "rgb(20, 23, 27)", "as it is seen: dark"
        with page.expect_download() as saved:
            tools.get_by_role("button", name="PNG").click()
        saved.value.save_as(tmp_path / "a.png")
        width, height = struct.unpack(">II", (tmp_path / "a.png").read_bytes()[16:24])
        assert (width, height) == (2 * int(root.get("width")), 2 * int(root.get("height")))
    assert page.problems == []
    page.close()

"""What hostile translations do to a report and to sheets: nothing. And what a real browser makes of both."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

from rusbeir.audit import audit_port
from rusbeir.audit.port_checks import scores
from rusbeir.audit.port_checks.pages import clean_text, find_differences
from rusbeir.errors import BadInput
from rusbeir.people.agreement import agree
from rusbeir.people.judge import DIMENSIONS
from rusbeir.people.sheet_files import read_sheet
from rusbeir.people.sheets import FORMS, make_sheets
from tests.support.browser import violations

CHROMIUM = Path("/usr/bin/chromium")
HOSTILE = [
    "</script><script>document.title='owned'</script>",
    "<img src=x onerror=\"document.title='owned'\">",
    '=HYPERLINK("http://example.org";"click")',
    "]]>{{ 7 * 7 }}{% raw %}",
    "@SUM(A1:A9)",
    "+1+1",
    "\x00\x01\x1b[31m\x7f\u202egnirts\ufffe",
    "<!--<script>",
    "'\"`\u2028\u2029",
]


@pytest.fixture
def hostile(make_port, back_translator) -> Path:
    """A checked port in which every text is hostile."""
    folder = make_port()
    queries = [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]
    docs = [json.loads(line) for line in (folder / "corpus.jsonl").read_text().splitlines()]
    rest = iter(HOSTILE)
    for record in (*queries, *docs):
        for name in ("title", "text"):
            if record.get(name) and (text := next(rest, None)):
                record[name] = text
    for name, records in (("queries", queries), ("corpus", docs)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    audit_port(folder, source=folder.parent / "small", back_translator=back_translator, processes=1)
    return folder


def test_clean_text():
    assert clean_text("\x00a\u202eb") == "�a�b"
    assert clean_text("a" * 2000).endswith("a … (2,000 characters)")


def test_report_in_a_browser(hostile, browser):
    page = browser.new_page()
    problems, requests = [], []
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto((hostile / "qa" / "report.html").as_uri())
    assert page.title() == "Audit of small@ru"
    assert problems == []
    assert len(requests) == 1, "the page loads nothing else"
    text = page.inner_text("body")
    assert "<img src=x onerror=" in text
    assert "{{ 7 * 7 }}" in text
    assert page.locator("script").count() == 0
    assert page.inner_text("h1").startswith("No gate was set: ")
    assert page.locator("svg.histogram").count() == 3
    counts = page.locator("svg.histogram").first.locator("rect title").all_text_contents()
    assert (
        sum(int(text.split(": ")[1]) for text in counts)
        == json.loads((hostile / "qa" / "report.json").read_text(encoding="utf-8"))["n_segments"]
    )
    for width in (420, 1200):
        page.set_viewport_size({"width": width, "height": 900})
        assert not page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"), width
        lines = (
            "cell => { const r = document.createRange(); r.selectNodeContents(cell); return r.getClientRects().length }"
        )
        numbers = page.locator("td.n").all()
        assert len(numbers) > 20
        assert {cell.evaluate(lines) for cell in numbers} <= {0, 1}, "a number is never broken"
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert violations(page) == []


def test_sheet_in_a_browser(hostile, browser, tmp_path):
    """Filled in, left, opened again, exported, and read back."""
    paths = make_sheets(hostile, n=6, raters=1, duplicates=1, source=hostile.parent / "small")
    url = next(path for path in paths if path.suffix == ".html").as_uri()
    context = browser.new_context()
    page = context.new_page()
    problems = []
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(url)
    assert page.title() == "Translations to score: rater-1"
    assert page.inner_text("#state") == "1 of 7; 0 scored"
    assert violations(page) == []
    for n, score in enumerate([1, 2, 3]):
        for name in DIMENSIONS:
            page.check(f"input[name={name}][value='{score}']")
        page.fill("#comments", f"=note {n}")
        page.click("#next")
    page.close()
    page = context.new_page()
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(url)
    assert page.inner_text("#state") == "4 of 7; 3 scored", "the browser has kept it"
    page.click("#previous")
    assert page.is_checked("input[name=fluency][value='3']")
    assert page.input_value("#comments") == "=note 2"
    page.click("#open")
    for _ in range(4):
        for name in DIMENSIONS:
            page.check(f"input[name={name}][value='5']")
        page.click("#open")
    assert "7 scored" in page.inner_text("#state")
    with page.expect_download() as download:
        page.click("#export")
    assert download.value.suggested_filename == "rater-1.csv"
    download.value.save_as(tmp_path / "anna.csv")
    context.close()
    assert problems == []
    sheet = read_sheet(tmp_path / "anna.csv", FORMS)
    assert [set(row.values()) for row in sheet.scores.values()] == [{1}, {2}, {3}, {5}, {5}, {5}, {5}]
    assert agree([tmp_path / "anna.csv"], port=hostile)["raters"] == {"anna": 6}
    data = (tmp_path / "anna.csv").read_text(encoding="utf-8-sig")
    cells = [cell for row in csv.reader(data.splitlines(keepends=True)) for cell in row]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))]


def test_a_sheet_is_filled_in_by_keys(hostile, browser, tmp_path):
    """Digits answer the questions in their order, arrows lead on and back; a comment may have digits."""
    paths = make_sheets(hostile, n=6, raters=1, duplicates=0, source=hostile.parent / "small")
    page = browser.new_page()
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(next(path for path in paths if path.suffix == ".html").as_uri())
    assert "send the file rater-1.csv to the person who gave you this page" in " ".join(page.inner_text("body").split())
    for key in ("5", "4", "3", "9", "2", "1", "ArrowRight", "1", "ArrowRight", "ArrowLeft"):
        page.keyboard.press(key)
    assert page.inner_text("#state") == "2 of 6; 1 scored"
    page.keyboard.press("3")
    assert page.is_checked("input[name=accuracy][value='1']"), "the first open question is the second"
    assert page.is_checked("input[name=fluency][value='3']")
    page.focus("input[name=accuracy][value='1']")
    page.keyboard.press("2")
    page.focus("#comments")
    page.keyboard.type("4 of 5")
    assert page.input_value("#comments") == "4 of 5"
    with page.expect_download() as download:
        page.click("#export")
    download.value.save_as(tmp_path / "rater-1.csv")
    page.close()
    assert problems == []
    first, second, *others = (list(row.values()) for row in read_sheet(tmp_path / "rater-1.csv", FORMS).scores.values())
    assert (first, second, others) == ([5, 4, 3, 2], [2, 3], [[]] * 4)


def test_texts_of_one_word_are_not_compared_for_minutes():
    """Word by word takes 40 s, and 210 s for twice as many; the page then shows one replacement."""
    old, new = "a " * 400, "b a " * 200
    assert find_differences(old, new) == [("replace", old, new)]
    assert find_differences("a red cat", "a cat")[1] == ("delete", "red ", "")


def test_sheets_calculate_nothing(hostile):
    import openpyxl

    paths = make_sheets(hostile, n=6, raters=1, source=hostile.parent / "small")
    rows = list(csv.reader(paths[0].read_text(encoding="utf-8-sig").splitlines(keepends=True)))
    cells = [cell for row in rows[1:] for cell in row]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))]
    assert any(cell.startswith("'=HYPERLINK") for cell in cells)
    sheet = openpyxl.load_workbook(paths[1]).active
    values = [cell for row in sheet.iter_rows(min_row=2) for cell in row if cell.value is not None]
    assert {cell.data_type for cell in values} == {"s"}
    assert any(str(cell.value).startswith("=HYPERLINK") for cell in values)
    assert not re.search(r"<script>document|onerror=\"", paths[2].read_text())


def test_ten_megabytes(make_port, tmp_path):
    """A translation of one line of 10 MB: counted, flagged, shown short."""
    folder = make_port()
    line = "Вода кипит ночь. " * 350_000
    text = (folder / "queries.jsonl").read_text().replace("лёд тает", line)
    (folder / "queries.jsonl").write_text(text)
    report = audit_port(folder, source=tmp_path / "small", processes=1)
    assert report["flags"]["repetition"]["queries"] == 1
    assert (folder / "qa" / "report.html").stat().st_size < 200_000
    paths = make_sheets(folder, n=6, raters=1, source=tmp_path / "small")
    assert all(path.stat().st_size < 200_000 for path in paths)
    assert scores.chrf(scores.count_chrf([line], ["Water boils."]))[0] < 0.001


@pytest.mark.parametrize("link", ["journal.sqlite.lock", "qa/round-trip"])
def test_a_port_with_links_changes_nothing_outside_of_it(link: str, make_port, back_translator, tmp_path: Path):
    folder = make_port()
    victim = tmp_path / "victim"
    (victim / "back").mkdir(parents=True)
    (victim / "back" / "thesis.tex").write_text("years")
    (victim / "bashrc").write_text("export PATH\n")
    (folder / link).unlink(missing_ok=True)
    (folder / link).symlink_to(victim / "bashrc" if link.endswith("lock") else victim)
    with pytest.raises(BadInput, match=rf"{link} is a symbolic link"):
        audit_port(folder, source=tmp_path / "small", back_translator=back_translator, processes=1)
    assert (victim / "back" / "thesis.tex").read_text() == "years"
    assert (victim / "bashrc").read_text() == "export PATH\n"

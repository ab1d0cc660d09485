"""The figures that pages quote: each is on its page once, and agrees with what is claimed or was measured."""

from __future__ import annotations

import tomllib

import pytest

from benchmarks.quotes import PROJECT, Quote, read_quotes, write_pages

CLAIMS = {
    (f"rusbeir {figure['command']}", claim["path"].removeprefix("rows.0.")): claim
    for figure in tomllib.loads((PROJECT / "benchmarks" / "figures.toml").read_text(encoding="utf-8"))["figure"]
    for claim in figure["values"]
}
CELLS = [line.split("|") for line in (PROJECT / "docs" / "results.md").read_text(encoding="utf-8").splitlines()]
RESULTS = {(cells[1].strip(), cells[2].strip()): cells[3].strip() for cells in CELLS if len(cells) > 4}


@pytest.mark.parametrize("quote", read_quotes(), ids=lambda quote: f"{quote.page} {quote.text}")
def test_what_a_page_quotes_is_what_was_measured(quote: Quote):
    piece = quote.find((PROJECT / quote.page).read_text(encoding="utf-8"))
    assert len(quote.figures) == quote.text.count("{}")
    for figure, number in zip(quote.figures, piece.groups(), strict=True):
        value = float(number.replace(",", ""))
        source = (figure.what, figure.measure)
        assert number == figure.print(value), f"{source} is printed with {figure.digits} decimals"
        if source not in CLAIMS:
            assert number == figure.print(float(RESULTS[source].replace(",", ""))), source
            continue
        claim, rounding = CLAIMS[source], 0.5 * 10**-figure.digits
        if "expected" in claim:
            assert value == pytest.approx(claim["expected"], abs=claim["within"] + rounding), source
        else:
            assert value >= claim["at_least"] - rounding, source


def test_measured_figures_are_written_and_the_others_stay(tmp_path):
    quote = next(quote for quote in read_quotes() if quote.page == "docs/port.md")
    for page in {quote.page for quote in read_quotes()}:
        (tmp_path / page).parent.mkdir(exist_ok=True)
        (tmp_path / page).write_text((PROJECT / page).read_text(encoding="utf-8"), encoding="utf-8")
    _, spanish = quote.figures
    changed = write_pages({(spanish.what, spanish.measure): 12.345}, tmp_path)
    assert set(changed) == {"docs/figures.md", "docs/port.md"}
    before = quote.find((PROJECT / quote.page).read_text(encoding="utf-8")).groups()
    assert quote.find((tmp_path / quote.page).read_text(encoding="utf-8")).groups() == (before[0], "12.3")
    assert write_pages({(spanish.what, spanish.measure): 12.345}, tmp_path) == []


@pytest.mark.parametrize("page", ["", "a 1 b\na 2 b\n"])
def test_a_piece_that_is_missing_or_there_twice_is_refused(page):
    with pytest.raises(ValueError, match="not 1; see quotes"):
        Quote(page="docs/x.md", text="a {} b", figures=()).find(page)

"""The pictures of README and docs/, from what is measured on the spot: `make picture`.

docs/analysis.svg is drawn; those in docs/pictures/ are screenshots of the pages themselves. None of them ages.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import rusbeir
from rusbeir.audit import audit_port
from rusbeir.experiment import bench
from rusbeir.people import make_esa_sheets
from rusbeir.site import write_site
from tests.support import browser

DOCS = Path(__file__).parent.parent / "docs"
TARGET, PICTURES = DOCS / "analysis.svg", DOCS / "pictures"
DATASETS = ["xquad/ru", "xquad/ru/sentences", "mini/ru"]
SYSTEMS = {
    "bm25(profile=raw)": ("words unchanged", "#b9c4cc"),
    "bm25(profile=snowball)": ("Snowball stems", "#6f9bb8"),
    "bm25": ("lemmas, then stems (the default)", "#1f5f8b"),
}
LEFT, SCALE, BAR, GAP = 170, 4.6, 20, 18
LANGUAGES = ("ru", "en", "es", "de")
COMPARED = ("bm25", "bm25(profile=blend)", "bm25(profile=snowball)", "bm25(profile=raw)")
WIDTH, HEIGHT = 1280, 720


def draw(scores: dict[str, list[float]]) -> str:
    """The picture: a group of bars a dataset, nDCG@10 ×100."""
    parts, y = [], 46
    for row, (label, colour) in enumerate(SYSTEMS.values()):
        x = LEFT + row * 165
        parts.append(f'<rect x="{x}" y="14" width="12" height="12" fill="{colour}"/>')
        parts.append(f'<text x="{x + 18}" y="24">{label}</text>')
    for dataset, values in scores.items():
        parts.append(f'<text x="{LEFT - 12}" y="{y + 1.5 * BAR + 4:.0f}" text-anchor="end">{dataset}</text>')
        for (_, colour), value in zip(SYSTEMS.values(), values, strict=True):
            parts.append(
                f'<rect x="{LEFT}" y="{y}" width="{SCALE * value:.1f}" height="{BAR - 3}" fill="{colour}"/>'
                f'<text x="{LEFT + SCALE * value + 6:.1f}" y="{y + 13}">{value:.1f}</text>'
            )
            y += BAR
        y += GAP
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 700 {y}" font-family="sans-serif" font-size="12">'
    title = "<title>BM25 on Russian, nDCG@10: words unchanged, stems, lemmas</title>"
    return "\n".join([head, title, f'<rect width="700" height="{y}" fill="#fff"/>', *parts, "</svg>\n"])


def _photograph(chromium: Any, name: str, path: Path, prepare: Callable[[Any], object] = lambda page: None) -> None:
    """Write docs/pictures/NAME-light.png and NAME-dark.png: what one sees first on a page."""
    for scheme in ("light", "dark"):
        page = chromium.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=scheme)
        page.goto(path.as_uri())
        prepare(page)
        page.screenshot(path=PICTURES / f"{name}-{scheme}.png")
        page.close()


def _open_query(page: Any) -> None:
    page.select_option("#first", label="bm25")
    page.select_option("#second", label="bm25(profile=raw)")
    page.evaluate("openQuery(shown[0])")
    page.locator("#strip").evaluate("strip => scrollTo(0, strip.getBoundingClientRect().top + scrollY - 12)")


def photograph(folder: Path) -> None:
    """Make a report of XQuAD, an audited port and a sheet in a folder, and photograph them."""
    for language in LANGUAGES:
        for system in COMPARED:
            bench(f"xquad/{language}", system, out=folder / "results")
    write_site([folder / "results"], folder / "site")
    memory = Path(rusbeir.__file__).parent / "datasets" / "mini" / "memory.en-ru.tsv"
    rusbeir.port("mini/en", to="ru", translator="memory", memory=memory, out=folder / "port")
    audit_port(folder / "port", reference="mini/ru")
    make_esa_sheets(folder / "port", n=8)
    PICTURES.mkdir(exist_ok=True)
    (russian,) = (folder / "site" / "datasets").glob("xquad-ru-*.html")
    with browser.launched() as chromium:
        _photograph(chromium, "report", folder / "site" / "index.html")
        _photograph(chromium, "explorer", russian, _open_query)
        _photograph(chromium, "audit", folder / "port" / "qa" / "report.html")
        _photograph(chromium, "sheet", folder / "port" / "qa" / "esa" / "rater-1.html")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        scores = {
            dataset: [100 * bench(dataset, system, out=Path(name))["measures"]["nDCG@10"] for system in SYSTEMS]
            for dataset in DATASETS
        }
        TARGET.write_text(draw(scores), encoding="utf-8")
        photograph(Path(name, "pages"))


if __name__ == "__main__":
    main()

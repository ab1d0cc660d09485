"""How pages look: small screenshots against those in tests/site/looks/, which are made again where one is missing."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from tests.support import browser
from tests.support.browser import open_page
from tests.support.report_pages import dataset_page

LOOKS = Path(__file__).parent / "looks"
SCALE = 0.25
TOLERANCE = 4
"""The greatest mean difference of a pixel, of 255, in any of 8 times 8 parts of a picture; other fonts are nearer."""
ROWS = [
    # name, page, width, media
    ("first-view", "index", 1280, {"color_scheme": "light"}),
    ("first-view-wide", "index", 1920, {"color_scheme": "dark"}),
    ("first-view-narrow", "index", 390, {"color_scheme": "dark"}),
    ("dataset", "dataset", 1280, {"color_scheme": "light"}),
    ("forced-colours", "dataset", 1280, {"forced_colors": "active"}),
    ("print", "index", 800, {"media": "print"}),
]
COMPARE = """async ([first, second]) => {
  const read = async (picture) => {
    const image = new Image();
    image.src = `data:image/png;base64,${picture}`;
    await image.decode();
    const canvas = Object.assign(document.createElement("canvas"), { width: image.width, height: image.height });
    canvas.getContext("2d").drawImage(image, 0, 0);
    return canvas.getContext("2d").getImageData(0, 0, image.width, image.height);
  };
  const [a, b] = [await read(first), await read(second)];
  if (a.width !== b.width || a.height !== b.height) return 255;
  const sums = new Float64Array(64), counts = new Float64Array(64);
  for (let y = 0; y < a.height; y++) for (let x = 0; x < a.width; x++) {
    const part = 8 * Math.floor(8 * y / a.height) + Math.floor(8 * x / a.width), place = 4 * (y * a.width + x);
    for (let c = 0; c < 3; c++) { sums[part] += Math.abs(a.data[place + c] - b.data[place + c]) / 3; }
    counts[part]++;
  }
  return Math.max(...sums.map((sum, part) => sum / counts[part]));
}"""


@pytest.mark.parametrize(("name", "kind", "width", "media"), ROWS, ids=[row[0] for row in ROWS])
def test_looks(site, chromium, name, kind, width, media):
    path = site / "index.html" if kind == "index" else dataset_page(site, "mini-ru")
    page = open_page(chromium, path, viewport={"width": width, "height": 900}, device_scale_factor=SCALE)
    page.emulate_media(**media)
    picture = page.screenshot()
    stored = LOOKS / f"{name}.png"
    if not stored.exists():
        LOOKS.mkdir(exist_ok=True)
        stored.write_bytes(picture)
        pytest.fail(f"{stored} was missing and has been made: look at it, and commit it if it is right.")
    pair = [base64.b64encode(content).decode() for content in (picture, stored.read_bytes())]
    page.emulate_media(media="screen")
    assert page.evaluate(COMPARE, pair) <= TOLERANCE, f"{name} looks different; remove {stored} to make it again"
    page.close()


@pytest.mark.parametrize("width", [390, 1280, 1920])
@pytest.mark.parametrize("media", [{"forced_colors": "active"}, {"media": "print"}])
def test_pages_fit_in_every_medium(site, chromium, width, media):
    for path in (site / "index.html", dataset_page(site, "mini-ru")):
        page = open_page(chromium, path, viewport={"width": width, "height": 900})
        page.emulate_media(**media)
        assert browser.violations(page) == []
        if "media" in media:
            assert page.locator(".tools:visible, .controls:visible, .explorer:visible").count() == 0
        else:
            assert not page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
        page.close()


def test_nothing_moves_while_a_page_is_loaded(site, chromium):
    """No layout shift, as browsers measure it."""
    for path in (site / "index.html", dataset_page(site, "mini-ru")):
        page = open_page(chromium, path, viewport={"width": 1280, "height": 900})
        shift = page.evaluate(
            """() => new Promise((resolve) => {
              let sum = 0;
              const add = (list) => { for (const entry of list.getEntries()) sum += entry.value; };
              const observer = new PerformanceObserver(add);
              observer.observe({ type: "layout-shift", buffered: true });
              setTimeout(() => resolve(sum), 200);
            })"""
        )
        assert shift == 0
        page.close()

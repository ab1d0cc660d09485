"""The system's Chromium, driven by Playwright, and axe-core for accessibility."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

CHROMIUM = Path("/usr/bin/chromium")
REMEDY = "apt-get install chromium"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]


@contextmanager
def launched() -> Iterator[Any]:
    """A running Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        yield browser
        browser.close()


def violations(page: Any) -> list[str]:
    """What axe finds against WCAG 2.1 AA on the page as it is, a line each."""
    spec = find_spec("axe_playwright_python")
    assert spec is not None
    assert spec.origin is not None
    script = (Path(spec.origin).parent / "axe.min.js").read_text(encoding="utf-8")
    # The page's own policy allows no script from elsewhere, and often none at all: the debugger runs it.
    page.evaluate(f"() => {{ {script}; }}")
    found = page.evaluate("rules => axe.run(document, { runOnly: rules })", RULES)
    return [f"{one['id']}: {one['nodes'][0]['html'][:120]}" for one in found["violations"]]


def open_page(chromium: Any, path: Path, fragment: str = "", **options: Any) -> Any:
    """Open a page whose `problems` lists what it says on the console, raises, or asks for."""
    page = chromium.new_page(**options)
    page.problems = []
    page.on("console", lambda message: page.problems.append(message.text))
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    # What a page makes itself has an address, too, such as the picture that it saves.
    own = ("file:", "data:", "blob:")
    page.on("request", lambda request: None if request.url.startswith(own) else page.problems.append(request.url))
    page.on("dialog", lambda dialog: page.problems.append("dialog"))
    page.goto(path.as_uri() + fragment)
    return page

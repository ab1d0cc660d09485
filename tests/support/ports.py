"""What the tests of the audit share: a small port, with damage where a test plants it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rusbeir.translation.porting.api import port
from tests.support.backwards import back
from tests.support.browser import CHROMIUM
from tests.support.small_port import Fake, write_source


@pytest.fixture
def make_port(tmp_path: Path) -> Callable[..., Path]:
    """Port the small source into a folder; answer is Fake's."""

    def make(**fake: object) -> Path:
        source = write_source(tmp_path / "small") if not (tmp_path / "small").exists() else tmp_path / "small"
        out = tmp_path / f"port-{len(list(tmp_path.glob('port-*')))}"
        port(source, to="ru", out=out, translator=Fake(**fake))
        return out

    return make


@pytest.fixture
def back_translator() -> Fake:
    return Fake(answer=back, signature="back-1")


@pytest.fixture(scope="module")
def browser(needs):
    needs("Chromium", CHROMIUM.exists(), "apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        yield browser
        browser.close()

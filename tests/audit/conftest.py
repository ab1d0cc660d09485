"""What the tests of the audit share: a small port, with damage where a test plants it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent
sys.path[:0] = [str(TESTS / "translation"), str(Path(__file__).parent)]

from backwards import back  # noqa: E402
from porters import Fake, write_source  # noqa: E402

from rusbeir.translation.port.api import port  # noqa: E402


@pytest.fixture
def make_port(tmp_path: Path) -> Callable[..., Path]:
    """Port the small source into a folder; answer is porters.Fake's."""

    def make(**fake: object) -> Path:
        source = write_source(tmp_path / "small") if not (tmp_path / "small").exists() else tmp_path / "small"
        out = tmp_path / f"port-{len(list(tmp_path.glob('port-*')))}"
        port(source, to="ru", out=out, translator=Fake(**fake))
        return out

    return make


@pytest.fixture
def back_translator() -> Fake:
    return Fake(answer=back, signature="back-1")

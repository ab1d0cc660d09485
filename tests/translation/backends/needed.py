"""Parts of the system that a test needs."""

from __future__ import annotations

import os

import pytest


def needs(what: str, present: bool, remedy: str) -> None:
    """Skip a test for a missing part, saying which; in CI a missing part is a failure."""
    if not present and os.environ.get("CI"):
        pytest.fail(f"{what} is missing; CI must have it. {remedy}")
    if not present:
        pytest.skip(f"needs {what}: {remedy}")

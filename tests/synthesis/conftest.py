"""The command line, for the tests of this folder."""

from __future__ import annotations

from tests.cli.conftest import rusbeir

__all__ = ["rusbeir"]

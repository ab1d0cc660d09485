"""Fixtures that the tests of several rooms share."""

from __future__ import annotations

from tests.support.result_folders import results

__all__ = ["results"]

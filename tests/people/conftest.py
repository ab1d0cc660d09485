"""Fixtures that the tests of several rooms share."""

from __future__ import annotations

from tests.support.ports import back_translator, browser, make_port

__all__ = ["back_translator", "browser", "make_port"]

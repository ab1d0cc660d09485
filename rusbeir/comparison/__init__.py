"""Comparison of systems, made from result rows alone."""

from rusbeir.comparison.comparison import Comparison, compare

__all__ = ["Comparison", "compare"]

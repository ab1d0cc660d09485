"""Synthesis: datasets that a language model makes of others."""

from rusbeir.synthesis.rewrite import estimate_rewrite, rewrite
from rusbeir.synthesis.splits import split_dev_test

__all__ = ["estimate_rewrite", "rewrite", "split_dev_test"]

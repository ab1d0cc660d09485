"""Synthesis: datasets that a language model makes of others."""

from rusbeir.synthesis.rewrite import estimate_rewrite, rewrite

__all__ = ["estimate_rewrite", "rewrite"]

"""Synthesis: datasets that a language model makes of others."""

from rusbeir.synthesis.quality.control import QualityEstimate, control_quality, estimate_quality
from rusbeir.synthesis.quality.splits import split_dev_test
from rusbeir.synthesis.quality.steps import Rules
from rusbeir.synthesis.queries.estimates import QueriesEstimate, estimate_queries
from rusbeir.synthesis.queries.make import make_queries
from rusbeir.synthesis.rewriting.rewrite import estimate_rewrite, rewrite

__all__ = [
    "QualityEstimate",
    "QueriesEstimate",
    "Rules",
    "control_quality",
    "estimate_quality",
    "estimate_queries",
    "estimate_rewrite",
    "make_queries",
    "rewrite",
    "split_dev_test",
]

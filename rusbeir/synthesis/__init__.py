"""Synthesis: datasets that a language model makes of others."""

from rusbeir.synthesis.control import Rules
from rusbeir.synthesis.estimates import QueriesEstimate, estimate_queries
from rusbeir.synthesis.quality import QualityEstimate, control_quality, estimate_quality
from rusbeir.synthesis.queries import make_queries
from rusbeir.synthesis.rewrite import estimate_rewrite, rewrite
from rusbeir.synthesis.splits import split_dev_test

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

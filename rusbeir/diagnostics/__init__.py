"""Diagnostics: what an average over queries hides, such as a preference for texts of one source."""

from rusbeir.diagnostics.position import PositionBias, diagnose_position
from rusbeir.diagnostics.saliency import Saliency, diagnose_saliency
from rusbeir.diagnostics.source_bias import SourceBias, average_source_bias, diagnose_source_bias

__all__ = [
    "PositionBias",
    "Saliency",
    "SourceBias",
    "average_source_bias",
    "diagnose_position",
    "diagnose_saliency",
    "diagnose_source_bias",
]

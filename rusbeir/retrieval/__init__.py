"""Systems that answer queries: named by a spec, prepared on a corpus, searched."""

from rusbeir.retrieval.resolve import check_names, resolve
from rusbeir.retrieval.spec import Spec, Stage, parse
from rusbeir.retrieval.system import ChecksAvailability, LimitsDepth, Metered, Prepared, RunSettings, System

__all__ = [
    "ChecksAvailability",
    "LimitsDepth",
    "Metered",
    "Prepared",
    "RunSettings",
    "Spec",
    "Stage",
    "System",
    "check_names",
    "parse",
    "resolve",
]

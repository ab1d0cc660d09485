"""Reports: tables and pages made from result rows alone."""

from rusbeir.report.compare import Comparison, compare

__all__ = ["Comparison", "compare"]

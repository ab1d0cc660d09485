"""Reports: tables and pages made from result rows alone."""

from rusbeir.report.comparison import Comparison, compare

__all__ = ["Comparison", "compare"]

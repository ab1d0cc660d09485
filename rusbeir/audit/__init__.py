"""The audit: how good a port is, according to checks, a judge and people."""

from rusbeir.audit.published import check_published
from rusbeir.audit.report import check_port

__all__ = ["check_port", "check_published"]

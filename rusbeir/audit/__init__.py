"""The audit: how good a port is, by machine and by people."""

from rusbeir.audit.report import check_port

__all__ = ["check_port"]

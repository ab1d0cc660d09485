"""The audit: how good a port is, by machine and by people."""

from rusbeir.audit.check import check_port

__all__ = ["check_port"]

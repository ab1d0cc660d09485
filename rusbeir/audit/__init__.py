"""The audit: how good a port is, according to checks, a judge and people."""

from rusbeir.audit.port_checks.report import check_port
from rusbeir.audit.published_ports.published import check_published

__all__ = ["check_port", "check_published"]

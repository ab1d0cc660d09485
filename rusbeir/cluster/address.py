"""Read the address of a Ray cluster as a user writes it."""

from __future__ import annotations

import math
import os
import re
import socket
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from rusbeir.errors import BackendError, BadInput, option
from rusbeir.text import shorten

_WHERE = re.compile(r"ray(://(?P<host>[^/?:\[\]]+|\[[^/?\[\]]+\]):(?P<port>\d{1,5})/?)?(\?(?P<options>.*))?")
_OPTIONS = ("workers", "cpus", "gpus")
CONNECT_SECONDS = 10
"""The longest wait for an answer from the address."""


@dataclass(frozen=True, kw_only=True)
class Address:
    """The address of a Ray cluster, and what one worker takes of it.

    >>> Address.parse("ray://10.0.0.1:10001?workers=4")
    Address(host='10.0.0.1', port=10001, workers=4, cpus=None, gpus=None)
    """

    host: str = ""
    """The host of the cluster; "" is the Ray of RAY_ADDRESS or of this machine, which is started if needed."""
    port: int = 0
    workers: int | None = None
    cpus: float | None = None
    gpus: float | None = None
    """A fraction lets several workers share a card; 0 uses none."""

    @classmethod
    def parse(cls, text: str) -> Address:
        """Read ray or ray://HOST:PORT, perhaps with ?workers=4&cpus=2&gpus=0.5. Raises BadInput."""
        match = _WHERE.fullmatch(text)
        if match is None or int(match["port"] or 1) not in range(1, 1 << 16):
            raise BadInput(f"{option('on')} is {text!r}: write ray, or ray://HOST:PORT.")
        values: dict[str, Any] = {}
        for name, value in parse_qsl(match["options"] or "", keep_blank_values=True):
            if name not in _OPTIONS:
                raise BadInput(f"{option('on')} has no option {name!r}. Its options are: {', '.join(_OPTIONS)}.")
            try:
                number = int(value) if name == "workers" else float(value)
            except ValueError:
                number = -1
            if not 0 <= number < math.inf or (number == 0 and name != "gpus"):
                raise BadInput(f"{option('on')}: {name} is {value!r}; it must be a number above 0.")
            values[name] = number
        return cls(host=(match["host"] or "").strip("[]"), port=int(match["port"] or 0), **values)

    def check(self) -> None:
        """Raise BackendError where nothing answers at the address."""
        host, port, default = self.host, self.port, os.environ.get("RAY_ADDRESS", "")
        if not host and ":" in default:
            host, _, digits = default.removeprefix("ray://").rpartition(":")
            port = int(digits) if digits.isdecimal() else 0
        try:
            if host:
                socket.create_connection((host, port), CONNECT_SECONDS).close()
        except (OSError, OverflowError, UnicodeError) as error:
            raise BackendError(
                f"No Ray answers at {host}:{port} ({shorten(str(error))}). Start it there with `ray start --head`, "
                "whose port for ray:// is 10001, and open that port to this machine."
            ) from error

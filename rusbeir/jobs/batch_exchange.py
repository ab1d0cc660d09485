"""What a client of language models needs to know of batches: answers that came, and requests that wait for theirs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class Postponed(Exception):
    """A request is not sent now: its answer comes with a batch, or in a file."""


class Exchange(Protocol):
    """Keeps answers that came in batches, and collects the requests that have none."""

    @property
    def is_offline(self) -> bool:
        """Return whether nothing is sent by this process, so that neither a key nor an address is needed."""
        ...

    def fetch(self, request: Mapping[str, Any], chars: int, cost: float, repeat: bool) -> tuple[int, str] | None:
        """Return (HTTP status, body) of the answer to a request; None where it is to be sent now.

        chars and cost are what it takes at most; repeat says that it asks again for what an answered one did not bring.
        Raises Postponed where its answer comes later.
        """
        ...

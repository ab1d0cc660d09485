"""The actor that runs in a process of the cluster."""

from __future__ import annotations

import asyncio
import inspect
import pickle
from typing import Any, NamedTuple

from rusbeir import __version__
from rusbeir.errors import BackendError, BadInput, MissingExtra, UnknownName, require
from rusbeir.text import shorten

NEEDED_BY = "Work on a cluster", "ray"


class Met(NamedTuple):
    """A worker's answer to the first call: its node, and its version of rusbeir."""

    node: str
    version: str


class Worker:
    """Makes one object at a time, and calls its methods."""

    def __init__(self) -> None:
        self._key = ""
        self._thing: Any = None
        self._making = asyncio.Lock()

    async def meet(self) -> Met:
        return Met(self._node, __version__)

    async def ask(self, key: str, made_by: list[Any], signature: str, method: str, args: tuple[Any, ...]) -> Any:
        """Return (True, what the method returns, or the attribute) or (False, an error), as Ray wraps raised errors.

        Without a method, only make the object.
        """
        try:
            async with self._making:
                if key != self._key:
                    await self._make(made_by, signature)
                    self._key = key
            answer = getattr(self._thing, method) if method else None
            answer = answer(*args) if callable(answer) else answer
            return True, await answer if inspect.isawaitable(answer) else answer
        except Exception as error:
            return False, self._portable(error)

    @property
    def _node(self) -> str:
        return str(require("ray", *NEEDED_BY).util.get_node_ip_address())

    async def _make(self, made_by: list[Any], signature: str) -> None:
        # The memory of the last object is free before the next is made.
        self._key, self._thing = "", None
        thing = pickle.loads(await made_by[0])()
        if signature and thing.signature != signature:
            theirs, ours = thing.signature.split("|"), signature.split("|")
            raise BadInput(
                f"it has {'|'.join(part for part in theirs if part not in ours)}, and this process "
                f"{'|'.join(part for part in ours if part not in theirs)}. Install the same model and versions on both."
            )
        self._thing = thing

    def _portable(self, error: Exception) -> Exception:
        """Return the error as it can be sent: rusbeir's own errors with the node in their message."""
        kind = type(error)
        if kind in (BackendError, BadInput, MissingExtra, UnknownName):
            return kind(f"The worker on {self._node}: {error}")
        if isinstance(error, TimeoutError) or kind.__module__.startswith("rusbeir."):
            return error
        return BackendError(f"The worker on {self._node} failed: {kind.__name__}: {shorten(str(error), 300)}")

"""A translation memory as a translator: what is not in it has no translation."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from rusbeir.datasets import checksum_of
from rusbeir.errors import BadInput, option
from rusbeir.jobs import Limits
from rusbeir.translation.backends.common import ask_sendable
from rusbeir.translation.backends.registry import preset
from rusbeir.translation.tm.memory import TranslationMemory, open_memory
from rusbeir.translation.translator import Capacity, Failure, Outcome, Translation

_MISSING = Failure("no-entry", "the memory has no translation of this text", False)


@dataclass(frozen=True, kw_only=True)
class Memory:
    """The pairs of one file. It is asked for whole fields, then paragraphs, then sentences."""

    name: str = "memory"
    memory: str | Path = ""
    """A .jsonl, .tsv or .tmx file, .gz too."""
    fuzzy: float | None = None
    """The lowest similarity, above 0 and up to 1, at which the translation of another text is taken, with the flag
    fuzzy:0.93. None takes exact matches alone, and those that differ in white space alone."""
    limits: Limits = field(default_factory=lambda: preset("memory").limits)
    capacity: Capacity = field(default_factory=lambda: preset("memory").capacity)
    _open: dict[tuple[str, str], TranslationMemory] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def signature(self) -> str:
        """The signature has a digest of the file, whatever its name."""
        fuzzy = "" if self.fuzzy is None else f"|fuzzy:{self.fuzzy:g}"
        try:
            return f"memory|sha256:{checksum_of(self._path())[:16]}{fuzzy}"
        except OSError as error:
            raise BadInput(f"{self.memory}: {error.strerror or error}.") from error

    def check(self, source: str, target: str) -> None:
        """BadInput where the file is missing, broken or without pairs of these languages. Reads it whole."""
        if self.fuzzy is not None and not 0 < self.fuzzy <= 1:
            raise BadInput(f"fuzzy is {self.fuzzy:g}: it must be above 0 and at most 1, such as 0.9.")
        self._pairs(source, target)

    async def translate(self, texts: Sequence[str], source: str, target: str) -> list[Outcome]:
        """Look the texts up: the outcome of each is its translation, or the failure no-entry."""
        pairs = self._pairs(source, target)

        return await ask_sendable(texts, partial(self._look_up, pairs))

    async def _look_up(self, pairs: TranslationMemory, texts: list[str]) -> list[Outcome]:
        outcomes: list[Outcome] = []
        for text in texts:
            match = pairs.lookup(text)
            if match is None and self.fuzzy is not None:
                match = await asyncio.to_thread(pairs.fuzzy, text, self.fuzzy)
            if match is None:
                outcomes.append(_MISSING)
            elif match.kind == "fuzzy":
                outcomes.append(Translation(match.target, f"fuzzy:{match.score:.2f}"))
            else:
                outcomes.append(match.target)
        return outcomes

    def _pairs(self, source: str, target: str) -> TranslationMemory:
        if (source, target) not in self._open:
            self._open[source, target] = open_memory(self._path(), source, target)
        return self._open[source, target]

    def _path(self) -> Path:
        if not str(self.memory):
            raise BadInput(
                f"The translator memory needs a file: give {option('memory', 'FILE')} (.jsonl, .tsv or .tmx)."
            )
        path = Path(self.memory).expanduser()
        if not path.is_file():
            raise BadInput(f"{path} does not exist. {option('memory')} names the file of a translation memory.")
        return path

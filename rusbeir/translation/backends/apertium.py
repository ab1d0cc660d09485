"""The system's apertium, kept running as a stream for each mode."""

from __future__ import annotations

import asyncio
import hashlib
import re
import shutil
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path

from rusbeir.errors import BadInput
from rusbeir.jobs import Limits
from rusbeir.languages import iso639_3
from rusbeir.translation.backends.apertium_stream import Pool, Stream, StreamBroken
from rusbeir.translation.backends.common import Codes, ask_sendable, forbid_retry, judge_answer
from rusbeir.translation.backends.registry import codes_of, preset
from rusbeir.translation.translator import Capacity, Failure, Outcome

_TOOLS = ("apertium", "apertium-wblank-mode", "bash")
_QUOTED = re.compile(r"'([^']+)'")


@dataclass(frozen=True, kw_only=True)
class Apertium:
    """Rule-based translation, offline, by whatever pairs are installed. One language pair per object."""

    name: str = "apertium"
    source: str
    target: str
    modes: str = ""
    """The folder of the .mode files; "" is the one that belongs to the apertium on the PATH."""
    limits: Limits = field(default_factory=lambda: preset("apertium").limits)
    capacity: Capacity = field(default_factory=lambda: preset("apertium").capacity)
    _pools: list[Pool] = field(default_factory=list, init=False, repr=False, compare=False)

    @cached_property
    def signature(self) -> str:
        """The signature has a digest of the pair's data. Raises BadInput as check does."""
        mode = self._mode(self.source, self.target)
        digest = hashlib.blake2b(digest_size=4)
        text = mode.read_text(encoding="utf-8")
        digest.update(text.encode())
        for name in _QUOTED.findall(text):
            if (path := Path(name)).is_file():
                digest.update(path.read_bytes())
        return f"apertium-{_version()}|mode:{mode.stem}@{digest.hexdigest()}"

    def check(self, source: str, target: str) -> None:
        """Raise BadInput, with the installed pairs, where apertium is not installed or not for this pair."""
        self._mode(source, target)

    async def translate(self, texts: Sequence[str], source: str, target: str) -> list[Outcome]:
        """Translate the texts. A text that kills a process of the stream fails alone."""
        if not self._pools:
            streams = self.limits.concurrency
            make = partial(Stream, self._mode(source, target), self.limits.timeout_seconds)
            self._pools.append(Pool(make, ThreadPoolExecutor(streams, "apertium")))
        elif (source, target) != (self.source, self.target):
            raise BadInput(f"This apertium translates {self.source} into {self.target}, not {source} into {target}.")
        pool = self._pools[0]
        return await ask_sendable(
            texts, lambda sent: asyncio.get_running_loop().run_in_executor(pool.threads, _ask, pool, sent)
        )

    async def close(self) -> None:
        """End the processes. They are started again when they are needed."""
        while self._pools:
            await asyncio.to_thread(self._pools.pop().close)

    def _mode(self, source: str, target: str) -> Path:
        """Return the mode file of a pair."""
        if missing := [tool for tool in _TOOLS if shutil.which(tool) is None]:
            raise BadInput(
                f"The translator apertium needs the program {missing[0]}: "
                "apt-get install apertium and a pair such as apertium-eng-spa."
            )
        folder = self._modes_folder()
        pairs = _pairs(folder)
        codes = codes_of("apertium", "apertium-languages")
        for first in _codes(codes, source):
            for second in _codes(codes, target):
                if (first, second) in pairs:
                    return pairs[first, second]
        there_are = ", ".join(sorted(f"{first}-{second}" for first, second in pairs)) or "none"
        raise BadInput(
            f"apertium has no pair {iso639_3(source)}-{iso639_3(target)} in {folder}. There are: {there_are}. "
            f"Install another: apt-get install apertium-{iso639_3(source)}-{iso639_3(target)}, where there is one."
        )

    def _modes_folder(self) -> Path:
        if self.modes:
            return Path(self.modes).expanduser()
        program = shutil.which("apertium")
        return Path(program or "/usr/bin/apertium").resolve().parent.parent / "share" / "apertium" / "modes"


def _codes(codes: Codes, tag: str) -> list[str]:
    """List what a language may be called in a pair's name, the most exact first."""
    first, *rest = tag.split("-")
    names = [codes.aliases.get(tag.lower(), ""), *("_".join([iso639_3(first), *rest]), tag, iso639_3(first), first)]
    return [name for name in dict.fromkeys(names) if name]


def _pairs(folder: Path) -> dict[tuple[str, str], Path]:
    """Return (source, target) -> mode file, of the modes that are named as a pair."""
    parts = {path: path.stem.split("-") for path in sorted(folder.glob("*.mode"))}
    return {(names[0], names[1]): path for path, names in parts.items() if len(names) == 2}


def _version() -> str:
    done = subprocess.run(["apertium", "-V"], capture_output=True, text=True, check=False)
    match = re.search(r"\d+(?:\.\d+)+", done.stdout + done.stderr)
    return match[0] if match else "unknown"


def _ask(pool: Pool, texts: list[str]) -> list[Outcome]:
    with pool.stream() as stream:
        return _answers(stream, texts)


def _answers(stream: Stream, texts: list[str]) -> list[Outcome]:
    """Return one outcome a text; what broke the stream is found by asking the rest one by one."""
    failed = ""
    try:
        answers: Sequence[str] = stream.ask(texts)
    except StreamBroken as error:
        answers, failed = error.answers, str(error)
    outcomes = [forbid_retry(judge_answer(text, answer)) for text, answer in zip(texts, answers, strict=False)]
    if failed and len(texts) == 1:
        return [Failure("server", f"this text ends apertium: {failed}", False)]
    for text in texts[len(outcomes) :]:
        outcomes += _answers(stream, [text])
    return outcomes

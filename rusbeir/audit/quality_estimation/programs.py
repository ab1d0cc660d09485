"""Estimators in processes of their own: any program that speaks JSON lines, and rusbeir's workers for known models.

The program reads one line with the languages, `{"source": "en", "target": "kk"}`, and answers with one line that says
what decides its scores, `{"signature": "…"}`. From then on each line it reads is a list of pairs, `[[source,
translation], …]`, and each line it writes is a list of as many scores, numbers or null, higher for a better
translation. It ends when its input does.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import orjson

from rusbeir.audit.quality_estimation.estimators import Estimate, Pairs
from rusbeir.errors import BackendError, BadInput
from rusbeir.text import shorten

_WORKERS = Path(__file__).parent / "workers"
_END_SECONDS = 10.0
_MAX_LINE_BYTES = 1 << 24


@dataclass(frozen=True)
class Program:
    """A command that is started for one check."""

    command: tuple[str, ...]

    @classmethod
    def from_words(cls, words: str) -> Program:
        """The command as a shell would split it. Raises BadInput where it has no word, or an open quotation mark."""
        try:
            command = tuple(shlex.split(words))
        except ValueError as error:
            raise BadInput(f"The command {words!r} cannot be read: {error}.") from None
        if not command:
            raise BadInput("command: needs the program and its arguments, as in command:python score.py.")
        return cls(command)

    @contextlib.contextmanager
    def open(self, source: str, target: str) -> Iterator[RunningProgram]:
        """Start the program; it is ended with the block. Raises BadInput where the program is not installed."""
        program = os.path.expanduser(self.command[0])  # noqa: PTH111 (a command may be no path)
        if shutil.which(program) is None:
            raise BadInput(f"There is no program {self.command[0]!r}. Give its path, or install it.")
        with tempfile.TemporaryFile() as errors:
            process = subprocess.Popen(
                [program, *self.command[1:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
            )
            try:
                running = RunningProgram(self.command, process, errors)
                running.start(source, target)
                yield running
            finally:
                _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        assert process.stdin is not None
        process.stdin.close()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    assert process.stdout is not None
    process.stdout.close()


class RunningProgram:
    """An Estimator: a program that answers line by line."""

    def __init__(self, command: Sequence[str], process: subprocess.Popen[bytes], errors: IO[bytes]) -> None:
        self._name = shorten(shlex.join(command))
        self._process = process
        self._errors = errors
        self.signature = ""

    def start(self, source: str, target: str) -> None:
        """Tell it the languages, and read its signature."""
        answer = self._ask({"source": source, "target": target})
        signature = answer.get("signature") if isinstance(answer, dict) else None
        if not isinstance(signature, str) or not signature.strip():
            raise BackendError(
                f'{self._name}: the first line must be {{"signature": "…"}}; it was {shorten(repr(answer))}.'
            )
        self.signature = "".join(signature.split())

    def estimate(self, pairs: Pairs) -> Estimate:
        """Estimate the scores that the program gives."""
        answer: Any = self._ask(pairs)
        return answer if isinstance(answer, list) else [answer]

    def _ask(self, question: object) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(orjson.dumps(question) + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise self._report_end() from error
        line = self._process.stdout.readline(_MAX_LINE_BYTES)
        if not line:
            raise self._report_end()
        try:
            return orjson.loads(line)
        except orjson.JSONDecodeError:
            raise BackendError(f"{self._name}: {shorten(repr(line.decode(errors='replace')))} is not JSON.") from None

    def _report_end(self) -> BackendError:
        """Make the error of a program that has ended, with its last words."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_SECONDS)
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "it printed no reason")
        return BackendError(f"{self._name} ended before it had scored everything: {shorten(last, 200)}")


def make_worker(script: str, python: str, *arguments: str) -> Program:
    """Make one of rusbeir's workers, run by the Python of the environment in which the model's package is."""
    return Program((python, str(_WORKERS / script), *arguments))

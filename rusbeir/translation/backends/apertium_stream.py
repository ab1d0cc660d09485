"""A pipeline of apertium's programs that translates one text after the other, ended by a zero byte each."""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

_SPECIAL = re.compile(r"[\[\]{}^$/\\@<>]")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
# What the programs take for the end of a sentence and of a paragraph, so that the last word is not held back.
_END = "[][\n]"
# Sent behind every batch: what comes back for it shows that no answer is missing or too many.
_MARK = "1000001"
_CHUNK_BYTES = 1 << 16
_TAGGER = re.compile(r"\|\s*(apertium-tagger\s[^|]*)\|")
_LEARNED = re.compile(rb"^Word '(.*)'\.$", re.MULTILINE)
# $0, then $1, an option of the generator (-n: no marks at unknown words), and $2, one of the tagger.
_ARGUMENTS = ("apertium", "-n", "")


class StreamBroken(Exception):
    """A program of the pipeline ended, or gave no answer in time; the stream restarts with the next text.

    answers are those to the first texts, as far as they came.
    """

    def __init__(self, reason: str, answers: Sequence[str] = ()) -> None:
        super().__init__(reason)
        self.answers = answers


class Stream:
    """One pipeline. For one thread at a time.

    A word that the tagger has no class for teaches it one, and it tags other words otherwise from then on. It runs
    again after each such text, so that an answer depends on its text alone; the programs around it keep running.
    """

    def __init__(self, mode: Path, timeout_seconds: float) -> None:
        self._mode = mode
        self._timeout_seconds = timeout_seconds
        self._programs: list[Programs] = []
        self._tagger = ""
        self._mark: str | None = None

    def ask(self, texts: Sequence[str]) -> list[str]:
        """Return the translations, in order. Raises StreamBroken with those that came through."""
        answers: list[str] = []
        try:
            self._start()
            self._exchange([*texts, _MARK], answers)
            if answers.pop() != self._mark:
                # Nobody knows which text had none, or two.
                answers.clear()
                raise StreamBroken("the answers are not as many as the texts")
        except StreamBroken as error:
            self.close()
            raise StreamBroken(str(error), answers) from None
        except BaseException:
            self.close()
            raise
        return answers

    def close(self) -> None:
        """End the programs. Harmless when repeated."""
        while self._programs:
            self._programs.pop().close()

    @property
    def groups(self) -> list[int]:
        """The process groups of the programs that run."""
        return [programs.group for programs in self._programs]

    def _start(self) -> None:
        if self._programs:
            return
        script = subprocess.run(
            ["apertium-wblank-mode", "-z", str(self._mode)], capture_output=True, check=True, env=_environment()
        ).stdout.decode()
        before, self._tagger, behind = _around_tagger(script)
        self._programs = [Programs(part, self._timeout_seconds) for part in (before, behind) if part]
        answers: list[str] = []
        self._exchange([_MARK], answers)
        self._mark = answers[0]

    def _exchange(self, texts: Sequence[str], answers: list[str]) -> None:
        *before, behind = self._programs
        data = [_encoded(text) for text in texts]
        for programs in before:
            analysed: list[bytes] = []
            programs.exchange(data, analysed)
            data = self._tagged(analysed)
        translated: list[bytes] = []
        try:
            behind.exchange(data, translated)
        finally:
            answers += map(_decoded, translated)

    def _tagged(self, analysed: Sequence[bytes]) -> list[bytes]:
        """Return each text as a tagger gives it that has read nothing before."""
        tagged: list[bytes] = []
        while len(tagged) < len(analysed):
            tagged += self._tag_first(analysed[len(tagged) :])
        return tagged

    def _tag_first(self, analysed: Sequence[bytes]) -> list[bytes]:
        """Tag the first of the texts, at least one, up to one with a word from which the tagger learns."""
        try:
            done = subprocess.run(
                ["bash", "-c", self._tagger, *_ARGUMENTS],
                input=b"".join([text + b"\0" for text in analysed]),
                capture_output=True,
                env=_environment(),
                timeout=self._timeout_seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise StreamBroken(f"no answer within {self._timeout_seconds:g} seconds") from None
        # At the end of its input it writes one more zero byte.
        tagged = done.stdout.split(b"\0")
        if len(tagged) <= len(analysed) or any(tagged[len(analysed) :]):
            raise StreamBroken("a program of the pipeline ended")
        count = len(analysed)
        if learned := _LEARNED.search(done.stderr):
            word = b"^" + learned[1] + b"/"
            count = 1 + next((i for i, text in enumerate(analysed) if word in text), 0)
        return tagged[:count]


class Programs:
    """A part of the pipeline that keeps running."""

    def __init__(self, script: str, timeout_seconds: float) -> None:
        self._timeout_seconds = timeout_seconds
        self._process = subprocess.Popen(
            ["bash", "-c", script, *_ARGUMENTS],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(),
            start_new_session=True,
            bufsize=0,
        )
        for pipe in (self._process.stdin, self._process.stdout):
            os.set_blocking(_open(pipe), False)

    @property
    def group(self) -> int:
        return self._process.pid

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        self._process.wait()

    def exchange(self, texts: Sequence[bytes], answers: list[bytes]) -> None:
        """Write and read as the pipes allow: with large texts both would wait for each other else."""
        sending, receiving = _open(self._process.stdin), _open(self._process.stdout)
        partial = b""
        with selectors.DefaultSelector() as selector:
            selector.register(receiving, selectors.EVENT_READ)
            if selector.select(0):
                raise StreamBroken("a program of the pipeline ended, or answered what it was not asked")
            selector.register(sending, selectors.EVENT_WRITE)
            view = memoryview(b"".join([text + b"\0" for text in texts]))
            deadline = time.monotonic() + self._timeout_seconds
            while len(answers) < len(texts):
                ready = selector.select(max(deadline - time.monotonic(), 0))
                if not ready and time.monotonic() >= deadline:
                    raise StreamBroken(f"no answer within {self._timeout_seconds:g} seconds")
                for key, _ in ready:
                    if key.fd == sending:
                        view = view[_written(sending, view) :]
                        if not view:
                            selector.unregister(sending)
                        continue
                    chunk = os.read(receiving, _CHUNK_BYTES)
                    if not chunk:
                        raise StreamBroken("a program of the pipeline ended")
                    *complete, partial = (partial + chunk).split(b"\0")
                    if complete:
                        answers += complete
                        deadline = time.monotonic() + self._timeout_seconds
        if partial or len(answers) > len(texts):
            answers.clear()
            raise StreamBroken("more answers came than texts were sent")


class Pool:
    """Streams for as many threads, started when they are needed."""

    def __init__(self, make: Callable[[], Stream], threads: ThreadPoolExecutor) -> None:
        self.threads = threads
        self._make = make
        self._all: list[Stream] = []
        self._free: SimpleQueue[Stream] = SimpleQueue()

    @contextlib.contextmanager
    def stream(self) -> Iterator[Stream]:
        """Return a stream for one thread."""
        if self._free.empty():
            stream = self._make()
            self._all.append(stream)
        else:
            stream = self._free.get()
        try:
            yield stream
        finally:
            self._free.put(stream)

    def close(self) -> None:
        """End all streams, after what is under way."""
        self.threads.shutdown()
        for stream in self._all:
            stream.close()


def _encoded(text: str) -> bytes:
    # A zero byte inside would end the text; it says nothing to a translator.
    return (_SPECIAL.sub(r"\\\g<0>", text.replace("\0", " ")) + _END).encode()


def _decoded(answer: bytes) -> str:
    return _ESCAPED.sub(r"\1", answer.decode("utf-8", "replace").removesuffix(_END))


def _open(pipe: object) -> int:
    """Open the descriptor of a pipe that Popen has made."""
    fileno: Callable[[], int] = getattr(pipe, "fileno")  # noqa: B009
    return fileno()


def _written(descriptor: int, view: memoryview) -> int:
    try:
        return os.write(descriptor, view[:_CHUNK_BYTES])
    except BrokenPipeError:
        raise StreamBroken("a program of the pipeline ended") from None
    except BlockingIOError:
        return 0


def _around_tagger(script: str) -> tuple[str, str, str]:
    """Split a mode's script at its tagger: before, the tagger, behind; all is behind where it has none."""
    parts = _TAGGER.split(script.strip(), maxsplit=1)
    if len(parts) < 3:
        return "", "", script
    # With -d it says which words are new to it.
    return parts[0], parts[1].replace(" ", " -d ", 1), parts[2]


def _environment() -> dict[str, str]:
    return {**os.environ, "LC_ALL": "C.UTF-8"}

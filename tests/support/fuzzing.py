"""Mutated inputs: bytes, lines, values of JSON and TOML, and what archives and tables hold; and what may come of them.

Whatever the input, a reader returns or raises a RusbeirError whose message is one printable line of bounded length.
"""

from __future__ import annotations

import contextlib
import copy
import gzip
import io
import json
import random
import resource
import signal
import time
import tomllib
import traceback
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from rusbeir.errors import RusbeirError

MAX_MESSAGE_CHARS = 1000
MAX_SECONDS = 5.0
_STOP_SECONDS = 120.0

Mutate: TypeAlias = Callable[[random.Random, bytes], bytes]

TOKENS: Sequence[bytes] = (
    *(b"", b" ", b"\t", b"\n", b"\r\n", b"\r", b"\x00", b"\x1b[31m", b"\x9b", b"\xff", b"\xc3", b"\xef\xbb\xbf"),
    *(b"\xe2\x80\xae", b"\xe2\x80\xa8", b"\xed\xa0\x80", b"\xc2\x85", b"\\ud800", b"\\u0000", b"\xff\xfe", b"\\"),
    *(b"0", b"-1", b"1e999", b"nan", b"-inf", b"1_0", b"9" * 25, b"9" * 5000, b"1.5", b"true", b"null", b"=", b","),
    *(b"{", b"}", b"[", b"]", b'"', b"'", b":", b"(", b")", b">>", b"#", b"---", b"&", b"<", b">", b"%", b"/", b".."),
    *(b"[" * 2000, b"x" * 20000, b"<!DOCTYPE a [<!ENTITY b 'c'>]>", b"&b;", b"{}", b"[]", b'""', b"q1", b"d1", b"1"),
)
VALUES: Sequence[Any] = (
    *(None, True, False, 0, -1, 1.5, 2**31, 2**63, 2**70, -(10**18), 10**400, float("nan"), float("inf"), 1e-320),
    *("", " ", "a b", "\x00", "\x1b[31mred", "\u202e", "\ud800", "x" * 20000, "nan", "1", "../../etc/passwd", "/"),
    *([], {}, [[]], [None], ["a", "a"], {"a": 1}, {"": {}}, [{}], [[1, 2], [3]], "é" * 300, "2020-01-01", "%s%n{0}"),
)


def mutate_bytes(draw: random.Random, data: bytes) -> bytes:
    """The data after one to three changes: flipped bits, bytes cut or repeated, tokens inserted, words swapped."""
    for _ in range(draw.choice((1, 1, 2, 3))):
        start = draw.randrange(len(data) + 1)
        length = min(draw.choice((1, 1, 2, 4, 16, 64, 1024)), len(data) - start)
        end = start + length
        way = draw.randrange(6)
        if way == 0 and length:
            flipped = bytearray(data)
            for _ in range(draw.choice((1, 1, 4))):
                flipped[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
            data = bytes(flipped)
        elif way == 1:
            data = data[:start] + data[end:]
        elif way == 2:
            data = data[:end] + data[start:end] * draw.choice((1, 1, 2, 40)) + data[end:]
        elif way == 3:
            data = data[:start] + draw.choice(TOKENS) + data[draw.choice((start, end)) :]
        elif way == 4:
            data = data[:start]
        else:
            lines = data.split(draw.choice((b"\n", b" ", b"\t", b",", b'"')))
            i, j = draw.randrange(len(lines)), draw.randrange(len(lines))
            lines[i], lines[j] = lines[j], lines[i]
            separator = draw.choice((b"\n", b" ", b"\t", b",", b'"'))
            data = separator.join(lines)
    return data


def mutate_value(draw: random.Random, value: Any) -> Any:
    """A copy of a JSON-like value in which a node is replaced, removed, renamed or doubled."""
    root = [copy.deepcopy(value)]
    nodes: list[tuple[Any, Any]] = []
    waiting: list[Any] = [root]
    while waiting:
        node = waiting.pop()
        for key in list(node) if isinstance(node, dict) else range(len(node)):
            nodes.append((node, key))
            if isinstance(node[key], (dict, list)):
                waiting.append(node[key])
    holder, key = draw.choice(nodes)
    way = draw.randrange(6)
    if way == 0 and holder is not root:
        del holder[key]
    elif way == 1 and isinstance(holder, dict):
        other = draw.choice([k for h, k in nodes if isinstance(k, str)])
        holder[other] = holder.pop(key)
    elif way == 2:
        other, name = draw.choice(nodes)
        holder[key] = copy.deepcopy(other[name])
    elif way == 3 and isinstance(holder, list) and holder is not root:
        holder.append(holder[key])
    else:
        holder[key] = draw.choice(VALUES)
    return root[0]


def mutate_json(draw: random.Random, data: bytes) -> bytes:
    """One JSON document with a changed value, or changed bytes."""
    if draw.random() < 0.3:
        return mutate_bytes(draw, data)
    return json.dumps(mutate_value(draw, json.loads(data)), ensure_ascii=draw.random() < 0.5).encode(
        "utf-8", "surrogatepass"
    )


def mutate_jsonl(draw: random.Random, data: bytes) -> bytes:
    """JSON lines, one of which has a changed value, is swapped or repeated; or changed bytes."""
    if draw.random() < 0.3:
        return mutate_bytes(draw, data)
    lines = data.splitlines()
    place = draw.randrange(len(lines))
    if draw.random() < 0.1:
        lines.append(lines[place])
    elif draw.random() < 0.1:
        lines.pop(place)
    else:
        lines[place] = mutate_json(draw, lines[place])
    return b"".join(line + b"\n" for line in lines)


def mutate_toml(draw: random.Random, data: bytes) -> bytes:
    """TOML with a changed value, or changed bytes."""
    if draw.random() < 0.4:
        return mutate_bytes(draw, data)
    table = mutate_value(draw, tomllib.loads(data.decode()))
    if not isinstance(table, dict):
        return mutate_bytes(draw, data)
    return "".join(f"{json.dumps(key)} = {_toml(value)}\n" for key, value in table.items()).encode(
        "utf-8", "surrogatepass"
    )


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False).replace("NaN", "nan").replace("Infinity", "inf")


def inside_gzip(mutate: Mutate) -> Mutate:
    """A gz file whose content is changed before it is packed, or whose bytes are changed after it."""

    def changed(draw: random.Random, data: bytes) -> bytes:
        if draw.random() < 0.5:
            return mutate_bytes(draw, data)
        return gzip.compress(mutate(draw, gzip.decompress(data)), 1)

    return changed


def inside_zip(mutate: Mutate, method: int = zipfile.ZIP_DEFLATED) -> Mutate:
    """A zip in which one member is changed before it is packed."""

    def changed(draw: random.Random, data: bytes) -> bytes:
        out = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w", method) as new:
            names = old.namelist()
            chosen = draw.choice(names)
            for name in names:
                content = old.read(name)
                new.writestr(name, mutate(draw, content) if name == chosen else content)
        return out.getvalue()

    return changed


def mutate_parquet(draw: random.Random, data: bytes) -> bytes:
    """A parquet file whose rows or columns are changed before they are written, or whose bytes are changed."""
    import pyarrow
    from pyarrow import parquet

    if draw.random() < 0.4:
        return mutate_bytes(draw, data)
    rows = mutate_value(draw, parquet.read_table(io.BytesIO(data)).to_pylist())
    out = io.BytesIO()
    try:
        if draw.random() < 0.3:
            # All values of a column at once: mixed ones have no type.
            name = draw.choice(list(rows[0]))
            value = draw.choice(VALUES)
            rows = [{**row, name: value} for row in rows]
        parquet.write_table(pyarrow.Table.from_pylist(rows), out)
    except (pyarrow.ArrowException, TypeError, AttributeError, ValueError, OverflowError, KeyError, IndexError):
        return mutate_bytes(draw, data)
    return out.getvalue()


class _TooSlow(BaseException):
    """An input took so long that it was stopped."""


@dataclass(kw_only=True)
class Outcome:
    """What became of the inputs of one parser."""

    inputs: int = 0
    refused: int = 0
    slow: int = 0
    """Inputs that took over MAX_SECONDS of the processor."""
    slowest_seconds: float = 0.0
    longest_message: int = 0
    peak_mb: float = 0.0
    """Of the whole process, so far."""
    grown_mb: float = 0.0
    """By how much that rose after the first fifth of the inputs."""
    wrong: Counter[str] = field(default_factory=Counter)
    """Where a traceback came from, or what is wrong with a message -> how often."""
    examples: dict[str, bytes] = field(default_factory=dict)


def find_message_fault(message: str) -> str:
    """What is wrong with the message of an error; "" for one printable line of at most MAX_MESSAGE_CHARS."""
    if len(message) > MAX_MESSAGE_CHARS:
        return f"a message of over {MAX_MESSAGE_CHARS} characters"
    if not message.strip():
        return "an empty message"
    return "" if message.isprintable() else "a message with characters that cannot be printed"


def fuzz(read: Callable[[bytes], object], inputs: Iterator[bytes]) -> Outcome:
    """Give each input to the reader, and tell what came of it."""
    outcome = Outcome()
    peaks = []
    for data in inputs:
        # Of this process, not of the clock: the machine may be busy with others.
        started = time.process_time()
        fault = ""
        try:
            with _time_limit():
                read(data)
        except RusbeirError as error:
            outcome.refused += 1
            outcome.longest_message = max(outcome.longest_message, len(str(error)))
            fault = find_message_fault(str(error))
        except (_TooSlow, Exception) as error:
            fault = _describe(error)
        except BaseException as error:  # a panic in Rust is not an Exception
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
            fault = _describe(error)
        seconds = time.process_time() - started
        outcome.inputs += 1
        outcome.slow += seconds > MAX_SECONDS
        outcome.slowest_seconds = max(outcome.slowest_seconds, seconds)
        peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        if fault:
            outcome.wrong[fault] += 1
            outcome.examples.setdefault(fault, data)
    if peaks:
        outcome.peak_mb, outcome.grown_mb = peaks[-1], peaks[-1] - peaks[len(peaks) // 5]
    return outcome


def draw_inputs(seeds: Sequence[bytes], mutate: Mutate, n: int, seed: int) -> Iterator[bytes]:
    """n changed copies of the seeds, the same for the same number."""
    draw = random.Random(seed)
    return (mutate(draw, draw.choice(seeds)) for _ in range(n))


def _describe(error: BaseException) -> str:
    """The kind of an unexpected error, and the last place in rusbeir that it passed."""
    frames = traceback.extract_tb(error.__traceback__)
    places = [frame for frame in frames if "/rusbeir/" in frame.filename and "/tests/" not in frame.filename]
    place = f"{places[-1].filename.rpartition('/rusbeir/')[2]}:{places[-1].lineno}" if places else "outside"
    return (
        f"{type(error).__name__} at {place}: {str(error)[:80]!r}"
        if not places
        else f"{type(error).__name__} at {place}"
    )


@contextlib.contextmanager
def _time_limit() -> Iterator[None]:
    def stop(number: int, frame: object) -> None:
        raise _TooSlow

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, _STOP_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

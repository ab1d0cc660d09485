"""Systems as values: `bm25(k1=0.9,b=0.4) >> rerank(bge-reranker-v2-m3,depth=100)`, read and printed."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

from rusbeir.errors import BadInput

Value: TypeAlias = "str | int | float | Spec"
"""A word, a number, or a nested system; `rrf(bm25,dense(bge-m3))` holds the word 'bm25' and a Spec.

A word with white space or marks in it stands in double quotes, as JSON writes a string: `query_prefix="query: "`.
"""

_WORD = re.compile(r"[^\s(),=<>'\"]+")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_DEEPEST = 16


@dataclass(frozen=True)
class Stage:
    """One step of a system: a name with positional arguments and options in the order given."""

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

    def __str__(self) -> str:
        return " >> ".join(map(str, self.stages))


def parse(text: str) -> Spec:
    """The system that the text names; str() of it parses back to an equal value.

    Raises BadInput with the column where the text stops making sense.

    >>> str(parse("bm25( k1=.9, b=0.4 )>>rerank(bge-reranker-v2-m3,depth=100)"))
    'bm25(k1=0.9,b=0.4) >> rerank(bge-reranker-v2-m3,depth=100)'
    """
    reader = _Reader(text)
    spec = reader.spec(0)
    if not reader.at_end():
        reader.fail("'>>' or the end")
    return spec


def as_spec(value: Value) -> Spec:
    """The nested system that an argument means: the word 'bm25' in `rrf(bm25,…)` is one of one stage."""
    return value if isinstance(value, Spec) else parse(str(value))


def _print(value: Value) -> str:
    if isinstance(value, str) and (not _WORD.fullmatch(value) or _NUMBER.fullmatch(value)):
        return json.dumps(value, ensure_ascii=False)
    return repr(value) if isinstance(value, (int, float)) else str(value)


class _Reader:
    """The text and how far it has been read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0

    def spec(self, depth: int) -> Spec:
        stages = [self.stage(depth)]
        while self.take(">>"):
            stages.append(self.stage(depth))
        return Spec(tuple(stages))

    def stage(self, depth: int) -> Stage:
        start = self.skip_space()
        name = self.word("the name of a system")
        if _NUMBER.fullmatch(name):
            self.position = start
            self.fail("the name of a system")
        return self.finish_stage(name, depth)

    def finish_stage(self, name: str, depth: int) -> Stage:
        """The stage of that name; what follows the name, if anything, is its arguments in brackets."""
        if not self.take("("):
            return Stage(name)
        if depth == _DEEPEST:
            self.fail(f"at most {_DEEPEST} levels of brackets")
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
                self.fail(f"another option; {value!r} stands here twice")
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
                self.fail("a number of usual size")
            return number
        first = self.finish_stage(word, depth)
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
        """Whether the mark comes next; it is then passed."""
        if not self.text.startswith(mark, self.skip_space()):
            return False
        self.position += len(mark)
        return True

    def skip_space(self) -> int:
        while self.position < len(self.text) and self.text[self.position].isspace():
            self.position += 1
        return self.position

    def at_end(self) -> bool:
        return self.skip_space() == len(self.text)

    def fail(self, expected: str) -> NoReturn:
        found = repr(self.text[self.position]) if self.position < len(self.text) else "the end"
        shown = self.text if len(self.text) <= 80 else self.text[:77] + "…"
        raise BadInput(
            f"Cannot read the system {shown!r} at column {self.position + 1}: expected {expected}, found {found}."
        )

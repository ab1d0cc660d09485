"""Pattern rules: a file of regular expressions, in steps, that fold a word's letters or stem it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import Stemmer

from rusbeir.analysis.stemmers import SNOWBALL, STEMMERS
from rusbeir.analysis.user_rules import NEXT_STEP, NOTHING, Fold, digest_rules, read_lines
from rusbeir.errors import BadInput

EVERY = "every"
"""Ends the header of a step all of whose rules apply, one after the other."""
END = "end"
"""Follows a rule after which no other is applied."""


class PatternRule(NamedTuple):
    """A rule that replaces what a pattern matches, everywhere in a word."""

    pattern: str
    replacement: str
    next_step: int | None
    """The index of the step after the rule; None for the next one."""


class Step(NamedTuple):
    """Rules of which the first that matches is applied, or every one that does; or an algorithm of Snowball."""

    rules: Sequence[PatternRule]
    every: bool
    snowball: str
    """The name of the algorithm; empty where the step has rules."""


@dataclass(frozen=True, kw_only=True)
class PatternRules:
    """A file of pattern rules: steps that are taken one after the other, unless a rule leads elsewhere."""

    name: str
    digest: str
    steps: Sequence[Step] = field(compare=False, repr=False)

    def prepare(self, fold: Fold) -> Callable[[Sequence[str]], list[str]]:
        """The function that applies the rules to folded words; the patterns themselves are not folded."""
        steps = [
            (
                [(re.compile(pattern), text, target) for pattern, text, target in step.rules],
                step.every,
                Stemmer.Stemmer(step.snowball, 0) if step.snowball else None,
            )
            for step in self.steps
        ]

        def apply(word: str) -> str:
            index = 0
            while index < len(steps):
                rules, every, snowball = steps[index]
                next_step = index + 1
                if snowball:
                    word = snowball.stemWord(word)
                for pattern, text, target in rules:
                    changed, n_matches = pattern.subn(text, word)
                    if not n_matches:
                        continue
                    if target is not None and (target > index or len(changed) < len(word)):
                        next_step = target
                    word = changed
                    if not every or target is not None:
                        break
                index = next_step
            return word

        return lambda words: list(map(apply, words))


def read_patterns(name: str, path: Path) -> PatternRules:
    """Read a file of pattern rules: a pattern, what replaces it, and where the word goes next.

    The columns are separated by white space; - is nothing, and the last column may be missing. A line --- NAME begins a
    step, whose first rule that matches is applied; --- NAME every one whose rules are all applied; and --- NAME
    snowball:ALGORITHM one that stems the word. The last column is the name of a later step or of the same one, which
    then begins again if the word became shorter; or end.

    Raises:
        BadInput: A line is wrong; the message names file and line.
    """
    headers: list[list[str]] = [[""]]
    lines: list[list[tuple[int, list[str]]]] = [[]]
    for number, line in read_lines(path, "A file of pattern rules"):
        cells = line.split()
        if cells[0] == NEXT_STEP:
            headers.append(_check_header(cells[1:], headers, f"{path}:{number}"))
            lines.append([])
        elif len(cells) > 3:
            raise BadInput(
                f"{path}:{number}: {len(cells)} columns instead of at most 3: pattern, replacement, next step."
            )
        else:
            lines[-1].append((number, cells))
    names = {header[0]: index for index, header in enumerate(headers)} | {END: len(headers)}
    steps = [
        Step(
            [_read_rule(cells, index, names, f"{path}:{number}") for number, cells in rules],
            EVERY in header[1:],
            next((cell.removeprefix(SNOWBALL) for cell in header[1:] if cell.startswith(SNOWBALL)), ""),
        )
        for index, (header, rules) in enumerate(zip(headers, lines, strict=True))
    ]
    if not any(step.rules for step in steps):
        raise BadInput(f"{path}: there is no rule in it. Write one a line, such as: (?<=...)s$ {NOTHING}")
    parts = [
        *(
            f"{index}\t{step.every}\t{rule.pattern}\t{rule.replacement}\t{rule.next_step}"
            for index, step in enumerate(steps)
            for rule in step.rules
        ),
        *(f"{index}\t{step.snowball}\t{version('PyStemmer')}" for index, step in enumerate(steps) if step.snowball),
    ]
    return PatternRules(name=name, digest=digest_rules(parts), steps=steps)


def _check_header(header: list[str], others: Sequence[list[str]], position: str) -> list[str]:
    """The name of a step, which no other one has, and what kind it is."""
    kinds = (EVERY, *(name for name in STEMMERS if name.startswith(SNOWBALL)))
    if not header or any(kind not in kinds for kind in header[1:]) or len(header) > 2:
        raise BadInput(f"{position}: write {NEXT_STEP}, the name of a step, and nothing or one of: {', '.join(kinds)}.")
    if header[0] in (END, *(other[0] for other in others)):
        reason = "ends all steps" if header[0] == END else "is the name of an earlier step"
        raise BadInput(f"{position}: {header[0]!r} {reason}. Choose another name.")
    return header


def _read_rule(cells: Sequence[str], index: int, names: dict[str, int], position: str) -> PatternRule:
    pattern, replacement, target = (*cells, *("", NOTHING, "")[len(cells) :])
    try:
        compiled = re.compile(pattern)
        re.sub(compiled, "" if replacement == NOTHING else replacement, "")
    except (re.error, IndexError, OverflowError, RecursionError) as error:
        raise BadInput(f"{position}: {pattern} {replacement} is not a pattern of Python's re: {error}.") from error
    if target and names.get(target, -1) < index:
        raise BadInput(f"{position}: no step {target!r} here or later. Steps: {', '.join(filter(None, names))}.")
    return PatternRule(pattern, "" if replacement == NOTHING else replacement, names[target] if target else None)

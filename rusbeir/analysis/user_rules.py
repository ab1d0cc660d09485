"""A user's own rules for words, which language files name: lemma lists, suffix rules, synonyms and functions.

Each has a digest of its content, which is part of the signature of the recipe that names it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from rusbeir.errors import BackendError, BadInput
from rusbeir.text import digest, shorten
from rusbeir.user_sources import digest_sources, import_function

if TYPE_CHECKING:
    from rusbeir.analysis.patterns import PatternRules

FILE = "file:"
"""Begins the name of a file of lemmas, stop words or synonyms; the path is relative to the language file."""
SUFFIXES = "suffixes:"
"""Begins the name of a file of suffix rules."""
PATTERNS = "patterns:"
"""Begins the name of a file of pattern rules."""

Fold: TypeAlias = Callable[[Collection[str]], list[str]]
"""Folds words as the recipe folds tokens."""

NOTHING = "-"
"""Stands for an empty cell in a file of suffix rules."""
NEXT_STEP = "---"
DEFAULT_LEAST_CHARS = 3
_DIGEST_CHARS = 8


@dataclass(frozen=True, kw_only=True)
class LemmaList:
    """A file of words with their lemmas."""

    name: str
    digest: str
    lemmas: Mapping[str, str] = field(compare=False, repr=False)

    def prepare(self, fold: Fold) -> Callable[[Collection[str]], dict[str, str]]:
        """The look-up of folded words; it answers only the words that the file has."""
        words = dict(zip(fold(list(self.lemmas)), self.lemmas.values(), strict=True)) if self.lemmas else {}
        return lambda tokens: {token: words[token] for token in tokens if token in words}


class SuffixRule(NamedTuple):
    """A rule that replaces a word's suffix."""

    replacement: str
    least_chars: int
    """The rule applies where at least as many characters come before the suffix."""
    exceptions: frozenset[str]
    """Words that the rule leaves as they are."""


@dataclass(frozen=True, kw_only=True)
class SuffixRules:
    """A file of suffix rules: steps that are taken one after the other, each with its rules by suffix."""

    name: str
    digest: str
    steps: Sequence[Mapping[str, SuffixRule]] = field(compare=False, repr=False)

    def prepare(self, fold: Fold) -> Callable[[list[str]], list[str]]:
        """The stemmer: in each step the longest suffix whose rule applies is replaced."""
        steps = []
        for rules in self.steps:
            folded = dict(zip(fold(list(rules)), rules.values(), strict=True))
            steps.append((max(map(len, folded)), folded))

        def stem(word: str) -> str:
            for longest, rules in steps:
                for length in range(min(longest, len(word) - 1), 0, -1):
                    rule = rules.get(word[-length:])
                    if rule and len(word) - length >= rule.least_chars and word not in rule.exceptions:
                        word = word[:-length] + rule.replacement
                        break
            return word

        return lambda words: list(map(stem, words))


class SynonymLine(NamedTuple):
    """A line of a file of synonyms."""

    number: int
    words: tuple[str, ...]
    replacement: str
    """One word or several; each of the words is replaced by it."""


@dataclass(frozen=True, kw_only=True)
class Synonyms:
    """A file of synonyms."""

    name: str
    digest: str
    path: Path = field(compare=False)
    lines: Sequence[SynonymLine] = field(compare=False, repr=False)


@dataclass(frozen=True, kw_only=True)
class UserFunction:
    """A function that takes a word and returns its lemma or stem; None where it does not know the word."""

    name: str
    digest: str
    folder: Path = field(compare=False)
    """The folder of the language file, where a worker process looks for the module, too."""

    def prepare(self) -> Callable[[str], str | None]:
        """The function. Failures and answers that are not text are raised as BackendError, in one line."""
        function, _ = import_function(self.name, self.folder)

        def call(word: str) -> str | None:
            try:
                answer = function(word)
            except Exception as error:
                raise BackendError(f"{self.name} fails for {word!r}: {type(error).__name__}: {error}.") from error
            if not (answer is None or isinstance(answer, str)):
                raise BackendError(
                    f"{self.name} returned {shorten(repr(answer))} for {word!r}. It must return text, or None."
                )
            # White space would end the term.
            return "".join(answer.split()) if answer else None

        return call


Rules: TypeAlias = "LemmaList | SuffixRules | PatternRules | Synonyms | UserFunction"


def describe_rules(rules: Rules) -> str:
    """The kind and the digest of the rules, and the name of a function, for signatures."""
    kind, _, name = rules.name.partition(":")
    return "-".join([kind, *([name] if kind == "python" else []), rules.digest])


def read_lemmas(name: str, path: Path) -> LemmaList:
    """Read a file of lines of a word, a tab and its lemma; lines that start with # are comments."""
    lemmas: dict[str, str] = {}
    lines: dict[str, int] = {}
    for number, line in read_lines(path, "A list of lemmas"):
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) != 2 or not all(cells):
            raise BadInput(f"{path}:{number}: {line!r} is not a word, a tab and its lemma. Separate them by one tab.")
        for cell in cells:
            _check_word(cell, path, number)
        word, lemma = cells
        if word in lines:
            raise BadInput(f"{path}:{number}: {word!r} is in line {lines[word]} already. Remove one of them.")
        lines[word], lemmas[word] = number, lemma
    parts = (f"{word}\t{lemma}" for word, lemma in lemmas.items())
    return LemmaList(name=name, digest=digest_rules(parts), lemmas=lemmas)


def read_suffixes(name: str, path: Path) -> SuffixRules:
    """Read a file of suffix rules: suffixes, replacement, least characters of the stem, exceptions.

    The columns are separated by white space, and the last three may be missing; suffixes and exceptions are separated
    by commas, - is nothing, and a line --- ends a step.
    """
    steps: list[dict[str, SuffixRule]] = [{}]
    lines: dict[str, int] = {}
    for number, line in read_lines(path, "A file of suffix rules"):
        if line.strip() == NEXT_STEP:
            steps.append({})
            lines.clear()
            continue
        suffixes, rule = _read_suffix_rule(line.partition(" #")[0], path, number)
        for suffix in suffixes:
            if suffix in lines:
                raise BadInput(
                    f"{path}:{number}: the suffix {suffix!r} is in line {lines[suffix]} already, in the same step. "
                    f"Remove one of them, or separate two steps by a line {NEXT_STEP}."
                )
            lines[suffix] = number
            steps[-1][suffix] = rule
    steps = [rules for rules in steps if rules]
    if not steps:
        raise BadInput(f"{path}: there is no rule in it. Write one a line, such as: lar,ler {NOTHING} 3")
    parts = [
        f"{number}\t{suffix}\t{rule.replacement}\t{rule.least_chars}\t{' '.join(sorted(rule.exceptions))}"
        for number, rules in enumerate(steps)
        for suffix, rule in rules.items()
    ]
    return SuffixRules(name=name, digest=digest_rules(parts), steps=steps)


def _read_suffix_rule(line: str, path: Path, number: int) -> tuple[list[str], SuffixRule]:
    cells = line.split()
    if len(cells) > 4:
        raise BadInput(
            f"{path}:{number}: {len(cells)} columns instead of at most 4: suffixes, replacement, least characters of "
            "the stem, exceptions. Separate suffixes by commas, without spaces."
        )
    suffixes, replacement, least, exceptions = [*cells, *[NOTHING] * 3][:4]
    if least != NOTHING and not (least.isdecimal() and int(least) > 0):
        raise BadInput(f"{path}:{number}: the stem cannot have at least {least!r} characters. Write a number, from 1.")
    words = {"suffixes": suffixes, "exceptions": exceptions}
    lists = {key: [] if cell == NOTHING else cell.split(",") for key, cell in words.items()}
    if not lists["suffixes"]:
        raise BadInput(f"{path}:{number}: the suffix is missing. Write it first, such as: lar,ler {NOTHING} 3")
    for word in (*lists["suffixes"], *lists["exceptions"], replacement):
        if not word:
            raise BadInput(f"{path}:{number}: there is nothing between two commas. Remove one of them.")
        _check_word(word, path, number)
    rule = SuffixRule(
        "" if replacement == NOTHING else replacement,
        DEFAULT_LEAST_CHARS if least == NOTHING else int(least),
        frozenset(lists["exceptions"]),
    )
    return lists["suffixes"], rule


def read_synonyms(name: str, path: Path) -> Synonyms:
    """Read a file of synonyms, in the format of Solr: words with one meaning, or words => what replaces them."""
    lines: list[SynonymLine] = []
    for number, text in read_lines(path, "A file of synonyms"):
        left, arrow, right = text.partition("=>")
        words = [word.strip() for word in left.split(",")]
        replacement = " ".join(word.strip() for word in right.split(",")) if arrow else words[0]
        if not all(words) or not replacement.strip() or (not arrow and len(words) < 2):
            raise BadInput(
                f"{path}:{number}: {text.strip()!r} needs two words. Write: car, automobile or: tv => television"
            )
        for word in words:
            if len(word.split()) > 1:
                raise BadInput(
                    f"{path}:{number}: {word!r} is more than one word. An analyzer sees one word at a time; only what "
                    "follows => may have several."
                )
        lines.append(SynonymLine(number, tuple(words), replacement))
    parts = (f"{','.join(words)}\t{replacement}" for _, words, replacement in lines)
    return Synonyms(name=name, digest=digest_rules(parts), path=path, lines=lines)


def read_function(name: str, folder: Path) -> UserFunction:
    """Find the function; its digest is that of its module's source, and of what the module imports from its folder."""
    _, module = import_function(name, folder)
    return UserFunction(name=name, digest=digest_sources(module)[:_DIGEST_CHARS], folder=folder)


def read_lines(path: Path, kind: str) -> Iterator[tuple[int, str]]:
    """The number and the text of each line that is neither blank nor a comment."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, ValueError) as error:
        reason = "the file does not exist" if isinstance(error, FileNotFoundError) else error
        raise BadInput(
            f"{path}: {reason}. {kind} is text in UTF-8, next to the language file that names it."
        ) from error
    for number, line in enumerate(lines, start=1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield number, line


def _check_word(word: str, path: Path, number: int) -> None:
    if len(word.split()) > 1:
        raise BadInput(f"{path}:{number}: {word!r} is more than one word. Write one.")
    if word != unicodedata.normalize("NFC", word):
        raise BadInput(f"{path}:{number}: {word!r} is not in Unicode's normal form C. Save the file in NFC.")
    if word != word.lower():
        raise BadInput(f"{path}:{number}: {word!r} has capitals and would match nothing. Write it in lower case.")


def digest_rules(parts: Collection[str] | Iterator[str]) -> str:
    """The digest of rules, for signatures."""
    return digest(*parts, chars=_DIGEST_CHARS)

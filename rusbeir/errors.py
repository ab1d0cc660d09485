"""The errors a caller can meet.

RusbeirError
├── UnknownName(LookupError)     a name nobody registered; the message lists what exists
├── BadInput(ValueError)         data or options that cannot be right; the message says where and what to do
├── MissingExtra(ImportError)    an optional package is not installed
├── BackendError(RuntimeError)   a server, a disk or an index failed
└── Suspended                    nothing failed: the work waits for answers that come later
"""

from __future__ import annotations

import contextlib
import difflib
import importlib
import logging
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rusbeir.text import make_line, write_command


class RusbeirError(Exception):
    """The base of all of them."""

    def __str__(self) -> str:
        """Return the message as one printable line, whatever names and ids of a file it quotes."""
        return make_line(super().__str__())


class UnknownName(RusbeirError, LookupError):
    """A name nobody registered."""


class BadInput(RusbeirError, ValueError):
    """Data or options that cannot be right."""


class MissingExtra(RusbeirError, ImportError):
    """An optional package is not installed."""


class BackendError(RusbeirError, RuntimeError):
    """Something outside of this process failed."""


class Suspended(RusbeirError):
    """The work waits for answers that come later; the message says how it is resumed."""


def unknown(
    kind: str, name: str, known: Iterable[str], *, owner: str = "", listing: str = "", n_listed: int = 0
) -> UnknownName:
    """Return an UnknownName that says what was asked, what exists and what was probably meant.

    n_listed is how many the listing has, if that is not one for each known name.

    Examples:
        >>> str(unknown("language", "kz", ["en", "kk", "ru"]))
        "No language 'kz'. Did you mean 'kk'? Available: en, kk, ru."
    """
    names = sorted(set(known))
    by_lower = {known_name.lower(): known_name for known_name in names}
    near = [by_lower[known_name] for known_name in difflib.get_close_matches(name.lower(), by_lower, n=3, cutoff=0.5)]
    parts = [f"No {kind} {name!r}{f' of {owner}' if owner else ''}."]
    if near:
        parts.append("Did you mean " + " or ".join(repr(n) for n in near) + "?")
    if len(names) <= 16:
        parts.append(f"Available: {', '.join(names)}.")
    elif listing:
        parts.append(f"`{listing}` lists all {n_listed or len(names)}.")
    return UnknownName(" ".join(parts))


@cache
def warn_once(logger: logging.Logger, message: str) -> None:
    """Log a warning the first time that it is given in this process."""
    logger.warning("%s", message)


_options: Mapping[str, str] | None = None
"""How the command line spells parameters; None for callers from Python."""


@contextlib.contextmanager
def speak_options(spellings: Mapping[str, str]) -> Iterator[None]:
    """Within the block, messages name options instead of parameters, those in spellings as they are there."""
    global _options
    before, _options = _options, spellings
    try:
        yield
    finally:
        _options = before


def option(name: str, value: object = "", *, python: str = "") -> str:
    """Name a parameter in a message: split=dev, on the command line --split dev; python is used instead, if given.

    Examples:
        >>> option("retry_failed", True), option("k")
        ('retry_failed=True', 'k=')
    """
    if _options is None:
        return python or f"{name}={value}"
    spelling = _options.get(name, f"--{name.replace('_', '-')}")
    return spelling if value is True or value == "" else f"{spelling} {value}"


def name_command() -> str:
    """Name what the reader of a message has just run, to run it again."""
    return "the same call" if _options is None else f"`{write_command(*sys.argv[1:])}`"


def require(module: str, purpose: str, extra: str) -> Any:
    """Return the optional module, imported now. Raises MissingExtra, which names the extra to install.

    Examples:
        >>> require("json", "This example", "none").loads("1")
        1
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise missing_extra(module.partition(".")[0], purpose, extra) from error


def require_version(package: str, purpose: str, extra: str) -> str:
    """Return the installed version of an optional package. Raises MissingExtra, which names the extra to install."""
    try:
        return version(package)
    except PackageNotFoundError as error:
        raise missing_extra(package, purpose, extra) from error


def missing_extra(package: str, purpose: str, extra: str) -> MissingExtra:
    """Return the error for an optional package that is not installed: who needs it, and the command that installs it.

    Where rusbeir is installed, pip takes the extra from the installed version, whether an index has it or not. For a
    package that no extra has, extra is "".
    """
    # The pip on the path may be that of another environment.
    pip = shutil.which("pip")
    ours = pip is not None and Path(pip).parent == Path(sys.executable).parent
    command = "pip" if ours else f"{sys.executable} -m pip"
    requirement = f"'rusbeir[{extra}]'" if extra else package
    return MissingExtra(f"{purpose} needs the package {package}: {command} install {requirement}")

"""The kinds of queries that are made, and how often: attributes with shares, drawn for each query by itself."""

from __future__ import annotations

import hashlib
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import orjson

from rusbeir.errors import BackendError, BadInput, option, unknown
from rusbeir.storage import data_folder
from rusbeir.text import shorten

T = TypeVar("T")

KINDS: Mapping[str, tuple[str, ...]] = {
    "qa": ("length", "type", "information", "style", "negatives"),
    "long-doc": ("length", "type", "information", "style"),
    "position": ("third", "type", "style"),
}
"""kind of test set -> the attributes of its queries."""
THIRDS = ("first", "middle", "last")
MAX_NEGATIVES = 10
"""Hard negatives that one answer can hold."""
MAX_SHARE = 1_000_000
_MAX_CHARS, _MAX_LINE_CHARS = 100_000, 1_000
"""Bounds of a file of shares. A key of many parts is on one line, and takes time by the square of their number."""
_LENGTH = re.compile(r"([1-9]\d{0,3})-([1-9]\d{0,3})?")
_REMEDY = "see translation/queries.toml of rusbeir for an example"


@dataclass(frozen=True, kw_only=True)
class Attributes:
    """The shares of one kind's attributes."""

    shares: Mapping[str, Mapping[str, float]]
    """attribute -> value -> share, above 0."""

    @property
    def signature(self) -> str:
        """Eight hex digits that change with the shares."""
        data = orjson.dumps({name: dict(shares) for name, shares in self.shares.items()}, option=orjson.OPT_SORT_KEYS)
        return hashlib.blake2b(data, digest_size=4).hexdigest()

    def draw(self, seed: int, doc_id: str, number: int) -> dict[str, str]:
        """Draw attribute -> value of the number-th query of a document, the same in whatever order queries are made."""
        return {
            name: draw_one(list(shares), list(shares.values()), seed, doc_id, number, name)
            for name, shares in self.shares.items()
        }


def draw_one(values: Sequence[T], shares: Sequence[float] | None, seed: int, *key: object) -> T:
    """Draw one of the values, by the seed and the key; shares None draws each as often.

    >>> draw_one(["a", "b"], [1, 0], 0, "d1")
    'a'
    """
    data = "\0".join(map(str, (seed, *key))).encode("utf-8", "surrogatepass")
    left = int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big") / 2**64
    weights = shares or [1.0] * len(values)
    left *= math.fsum(weights)
    for value, weight in zip(values, weights, strict=True):
        left -= weight
        if left < 0:
            return value
    return [value for value, weight in zip(values, weights, strict=True) if weight][-1]


def read_length(name: str) -> tuple[int, int | None]:
    """Read (fewest, most) words of a length; no most where it has no upper end.

    >>> read_length("1-9"), read_length("20-")
    ((1, 9), (20, None))
    """
    match = _LENGTH.fullmatch(name)
    low, high = (int(match[1]), int(match[2]) if match[2] else None) if match else (1, 0)
    if high is not None and high < low:
        raise ValueError(name)
    return low, high


def read_attributes(kind: str, file: str | Path | None = None) -> Attributes:
    """The attributes of a kind: those of the file, and of rusbeir's own translation/queries.toml where it has none.

    Raises UnknownName for another kind, and BadInput, naming file and key, for what is not a table of shares.
    """
    if kind not in KINDS:
        raise unknown("kind", kind, KINDS, owner=option("kind"))
    tables = _read(data_folder("translation") / "queries.toml")[kind]
    if file is not None:
        tables = tables | _read(Path(file)).get(kind, {})
    return Attributes(shares={name: tables[name] for name in KINDS[kind]})


def _read(path: Path) -> dict[str, dict[str, dict[str, float]]]:
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(_MAX_CHARS + 1)
        if len(text) > _MAX_CHARS or any(len(line) > _MAX_LINE_CHARS for line in text.splitlines()):
            raise BadInput(
                f"{path} is not a file of shares: it has more than {_MAX_CHARS:,} characters, or a line of more than "
                f"{_MAX_LINE_CHARS:,}; {_REMEDY}."
            )
        tables_by_kind = tomllib.loads(text)
    except BadInput:
        raise
    except OSError as error:
        raise BackendError(f"Cannot read {path}: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path} is not TOML ({error}); {_REMEDY}.") from error
    return {
        kind: {name: _read_shares(path, kind, name, shares) for name, shares in _table(path, kind, tables).items()}
        for kind, tables in tables_by_kind.items()
    }


def _table(path: Path, kind: str, tables: Any) -> dict[str, Any]:
    if kind not in KINDS:
        raise BadInput(f"{path}: {kind!r} is not a kind of test set; expected one of {', '.join(KINDS)}; {_REMEDY}.")
    if not isinstance(tables, dict):
        raise BadInput(f"{path}: {kind} is not a table; write [{kind}.{KINDS[kind][0]}]; {_REMEDY}.")
    if wrong := [name for name in tables if name not in KINDS[kind]]:
        raise BadInput(
            f"{path}: [{kind}.{wrong[0]}] is not an attribute of this kind; expected {', '.join(KINDS[kind])}; "
            f"{_REMEDY}."
        )
    return tables


def _read_shares(path: Path, kind: str, name: str, shares: Any) -> dict[str, float]:
    where = f"{path}: [{kind}.{name}]"
    if not isinstance(shares, dict):
        raise BadInput(f"{where} is not a table of shares; {_REMEDY}.")
    for value, share in shares.items():
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= MAX_SHARE:
            raise BadInput(
                f"{where} {value} = {shorten(repr(share), 40)}: a share is a number from 0 to {MAX_SHARE:,}; {_REMEDY}."
            )
        if name == "length":
            try:
                read_length(value)
            except ValueError:
                raise BadInput(f'{where} {value!r}: a length is a range of words, such as "5-9" or "20-".') from None
        elif name == "third" and value not in THIRDS:
            raise BadInput(f"{where} {value!r}: a third is one of {', '.join(THIRDS)}.")
        elif name == "negatives" and value not in map(str, range(1, MAX_NEGATIVES + 1)):
            raise BadInput(f"{where} {value!r}: a query has 1 to {MAX_NEGATIVES} hard negatives.")
    positive = {value: float(share) for value, share in shares.items() if share}
    if not positive:
        raise BadInput(f"{where} has no share above 0; {_REMEDY}.")
    return positive

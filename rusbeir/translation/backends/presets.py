"""What translation/backends.toml says of each translator."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from rusbeir.errors import unknown
from rusbeir.jobs import Limits
from rusbeir.storage import data_folder
from rusbeir.translation.languages import Codes
from rusbeir.translation.translator import Capacity


@dataclass(frozen=True, kw_only=True)
class Preset:
    """One row: what to tell a user before anything is sent, and the defaults of a translator's fields."""

    name: str
    about: str
    sends: str
    """Who receives the texts; "" where they stay on this machine."""
    source: str
    """Where limits and prices are from, and as of when."""
    limits: Limits
    capacity: Capacity


def names() -> tuple[str, ...]:
    """The translators that have a row, sorted."""
    return tuple(sorted(name for name, row in _table().items() if "about" in row))


@cache
def preset(name: str) -> Preset:
    """The row of that name; UnknownName where there is none.

    >>> preset("google").sends
    'Google'
    """
    if name not in names():
        raise unknown("translator", name, names())
    row = _table()[name]
    capacity = dict(row["capacity"])
    capacity["levels"] = tuple(capacity.get("levels", ("segment",)))
    return Preset(
        name=name,
        about=row["about"],
        sends=row["sends"],
        source=row["source"],
        limits=Limits(**row["limits"]),
        capacity=Capacity(**capacity),
    )


def limits_of(name: str) -> Limits:
    """The limits of a row."""
    return preset(name).limits


def capacity_of(name: str) -> Capacity:
    """The capacity of a row."""
    return preset(name).capacity


@cache
def codes_of(translator: str, table: str = "") -> Codes:
    """The language codes that a row, or another table, gives a translator."""
    row = _table()[table or translator]
    return Codes(translator=translator, codes=tuple(row.get("codes", ())), aliases=row.get("aliases", {}))


@cache
@cache
def _table() -> Mapping[str, Mapping[str, Any]]:
    with (data_folder("translation") / "backends.toml").open("rb") as file:
        return tomllib.load(file)

"""The registered datasets: rows of registry.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rusbeir.errors import BadInput, UnknownName, unknown

_FILE = Path(__file__).parent / "registry.toml"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One dataset that has a name: where its file is, how it is read, and what it must hold."""

    name: str
    format: str
    language: str
    split: str
    aliases: tuple[str, ...] = ()
    path: str = ""
    """Below a folder of RUSBEIR_DATA or of the cache."""
    url: str = ""
    """Empty where no stable address is known."""
    sha256: str = ""
    bundled: str = ""
    """Below rusbeir/datasets, for data that comes with the package; needs no path, url and sha256."""
    options: Mapping[str, Any] = field(default_factory=dict)
    licence: str = ""
    source: str = ""
    revision: str = ""
    ignore_titles: bool = False
    self_retrieval: bool = False
    """True where queries are documents too: a hit that is the query itself is removed before the cut-off."""
    n_docs: int
    n_queries: int
    n_qrels: int


def registry() -> Mapping[str, Row]:
    """name -> row, in the order of the file; aliases are no keys (`find` knows them).

    >>> registry()["xquad/ru"].n_docs
    240
    """
    return read_rows(_FILE)


def find(name: str) -> Row | None:
    """The row of that name or alias; None where there is none."""
    return registry().get(name) or next((row for row in registry().values() if name in row.aliases), None)


def row_of(name: str) -> Row:
    """The row of that name or alias. Raises UnknownName with near names."""
    row = find(name)
    if row is None:
        raise unknown_dataset(name)
    return row


def unknown_dataset(name: str) -> UnknownName:
    """The error for a name that is no row's."""
    return unknown("dataset", name, _all_names(registry().values()), listing="rusbeir datasets")


@cache
def read_rows(path: Path) -> Mapping[str, Row]:
    files = tomllib.loads(path.read_text(encoding="utf-8"))["file"]
    rows = [
        _row({**{k: v for k, v in file.items() if k != "views"}, **view}) for file in files for view in file["views"]
    ]
    seen: set[str] = set()
    for name in _all_names(rows):
        if name in seen:
            raise BadInput(f"{path}: the name {name!r} stands twice; names and aliases must be unique.")
        seen.add(name)
    return MappingProxyType({row.name: row for row in rows})


def _all_names(rows: Iterable[Row]) -> list[str]:
    return [name for row in rows for name in (row.name, *row.aliases)]


def _row(keys: dict[str, Any]) -> Row:
    known = {f.name for f in fields(Row)}
    if extra := keys.keys() - known:
        raise BadInput(f"registry.toml: {keys.get('name')}: no such key: {', '.join(sorted(extra))}.")
    row = Row(**{**keys, "aliases": tuple(keys.get("aliases", ()))})
    if not row.bundled and not (row.path and row.sha256):
        raise BadInput(f"registry.toml: {row.name}: a row needs path and sha256, or bundled.")
    return row

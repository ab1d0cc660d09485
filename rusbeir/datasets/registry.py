"""The registered datasets: the rows of registry/*.toml.

A file of the registry holds one family: [family] has the keys that all its rows inherit, each [[file]] is one
download (or some repositories of the Hugging Face hub) and inherits from the family, each of its views is one dataset
and inherits from the file. registry/md5sums.txt has what is published of the files of repositories.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rusbeir.errors import BadInput, UnknownName, unknown

_FOLDER = Path(__file__).parent / "registry"
_LISTS = ("aliases", "hub")


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
    md5: str = ""
    """Where that is all that is published."""
    hub: tuple[str, ...] = ()
    """Repositories of the Hugging Face hub, owner/name or owner/name@revision; the first that has a part gives it."""
    bundled: str = ""
    """Below rusbeir/datasets, for data that comes with the package; needs no path, url and sha256."""
    options: Mapping[str, Any] = field(default_factory=dict)
    licence: str = ""
    source: str = ""
    revision: str = ""
    ignore_titles: bool = False
    self_retrieval: bool = False
    """True where queries are documents too: a hit that is the query itself is removed before the cut-off."""
    n_docs: int = 0
    """This and the other two counts: 0 where none is published."""
    n_queries: int = 0
    n_qrels: int = 0

    @property
    def verified(self) -> bool:
        """Whether there is a published or measured checksum for every file; else the first download sets it."""
        if self.hub:
            roles = [role for role in ("corpus", "queries", "qrels", "pairs") if role in self.options]
            return bool(roles) and all(self._is_listed(role) for role in roles)
        return bool(self.bundled or self.sha256 or self.md5)

    def _is_listed(self, role: str) -> bool:
        repositories = [repository.partition("@")[0] for repository in self.hub]
        patterns = [f"{repository}/{self.options[role]}" for repository in repositories]
        return any(fnmatchcase(file, pattern) for file in md5sums() for pattern in patterns)


def read_registry() -> Mapping[str, Row]:
    """name -> row, in the order of the files; aliases are no keys (`find` knows them).

    >>> read_registry()["xquad/ru"].n_docs
    240
    """
    return read_rows(_FOLDER)


def find(name: str) -> Row | None:
    """The row of that name or alias; None where there is none."""
    return read_registry().get(name) or next((row for row in read_registry().values() if name in row.aliases), None)


def row_of(name: str) -> Row:
    """The row of that name or alias. Raises UnknownName with near names."""
    row = find(name)
    if row is None:
        raise unknown_dataset(name)
    return row


def unknown_dataset(name: str) -> UnknownName:
    """The error for a name that is no row's."""
    return unknown("dataset", name, _all_names(read_registry().values()), listing="rusbeir datasets")


@cache
def md5sums() -> Mapping[str, str]:
    """owner/name/file -> md5, of files in repositories of the hub."""
    lines = (_FOLDER / "md5sums.txt").read_text(encoding="ascii").splitlines()
    return {file: md5 for md5, _, file in (line.partition("  ") for line in lines)}


@cache
def read_rows(path: Path) -> Mapping[str, Row]:
    """The rows of one TOML file, or of all in a folder, in the order of their names. Raises BadInput for a slip."""
    rows = [row for file in (sorted(path.glob("*.toml")) if path.is_dir() else [path]) for row in _read_file(file)]
    seen: set[str] = set()
    for name in _all_names(rows):
        if name in seen:
            raise BadInput(f"{path}: the name {name!r} stands twice; names and aliases must be unique.")
        seen.add(name)
    return MappingProxyType({row.name: row for row in rows})


def _read_file(path: Path) -> list[Row]:
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    family = tables.get("family", {})
    rows = []
    for file in tables["file"]:
        inherited = _inherited(family, {key: value for key, value in file.items() if key != "views"})
        rows += [_row(path.name, _inherited(inherited, view)) for view in file.get("views", [{}])]
    return rows


def _inherited(above: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    options = {**above.get("options", {}), **own.get("options", {})}
    return {**above, **own, **({"options": options} if options else {})}


def _all_names(rows: Iterable[Row]) -> list[str]:
    return [name for row in rows for name in (row.name, *row.aliases)]


def _row(file: str, keys: dict[str, Any]) -> Row:
    if extra := keys.keys() - {f.name for f in fields(Row)}:
        raise BadInput(f"{file}: {keys.get('name')}: no such key: {', '.join(sorted(extra))}.")
    if missing := {"name", "format", "language", "split"} - keys.keys():
        raise BadInput(f"{file}: {keys.get('name')}: it needs {', '.join(sorted(missing))}.")
    row = Row(**{**keys, **{key: tuple(keys.get(key, ())) for key in _LISTS}})
    if not (row.bundled or row.path or row.hub):
        raise BadInput(f"{file}: {row.name}: a row needs path, hub or bundled.")
    return row

"""The registered datasets: the entries of registry/*.toml.

A file of the registry holds one family: [family] has the keys that all its entries inherit, each [[file]] is one
download (or some repositories of the Hugging Face hub) and inherits from the family, each of its views is one dataset
and inherits from the file. registry/md5sums.txt has the published checksums of files in repositories.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rusbeir.errors import BadInput, unknown

FOLDER = Path(__file__).parent / "registry"
IRDS = "irds:"
"""What precedes an id of ir_datasets in the name of a dataset."""
_LISTS = ("aliases", "hub")


@dataclass(frozen=True, kw_only=True)
class RegistryEntry:
    """One dataset that has a name: where its file is, how it is read, and what it must hold."""

    name: str
    format: str
    language: str
    split: str
    aliases: tuple[str, ...] = ()
    path: str = ""
    """Below a folder of RUSBEIR_DATA or of the cache."""
    url: str = ""
    """Empty if no stable address is known."""
    sha256: str = ""
    md5: str = ""
    """If no sha256 is published."""
    hub: tuple[str, ...] = ()
    """Repositories of the Hugging Face hub, owner/name or owner/name@revision; the first that has a part is used."""
    bundled: str = ""
    """Below rusbeir/datasets, for data that comes with the package; needs no path, url and sha256."""
    options: Mapping[str, Any] = field(default_factory=dict)
    licence: str = ""
    source: str = ""
    revision: str = ""
    ignore_titles: bool = False
    judged: bool = True
    """False where the judgements of this split are not published: it has queries that systems can be run on."""
    self_retrieval: bool = False
    """True if a hit with the id of the query is removed before the cut-off, as where queries are documents, too."""
    group: str = ""
    """The name that stands for all entries that have it, such as ntrex/all."""
    n_docs: int = 0
    """This and the other two counts: 0 if none is published."""
    n_queries: int = 0
    n_qrels: int = 0

    @property
    def verified(self) -> bool:
        """True if every file has a published or measured checksum; if not, the first download sets it."""
        if self.hub:
            roles = [role for role in ("corpus", "queries", "qrels", "pairs") if role in self.options]
            return bool(roles) and all(self._is_listed(role) for role in roles)
        return bool(self.bundled or self.sha256 or self.md5)

    def _is_listed(self, role: str) -> bool:
        repositories = [repository.partition("@")[0] for repository in self.hub]
        patterns = [f"{repository}/{self.options[role]}" for repository in repositories]
        return any(fnmatchcase(file, pattern) for file in md5sums() for pattern in patterns)


def find_entry(name: str) -> RegistryEntry | None:
    """Find the entry of that name or alias; None if there is none."""
    entries = read_registry()
    return entries.get(name) or next((entry for entry in entries.values() if name in entry.aliases), None)


def get_entry(name: str) -> RegistryEntry:
    """Return the entry of that name or alias. Raises UnknownName with near names."""
    if entry := find_entry(name):
        return entry
    names = [known for entry in read_registry().values() for known in (entry.name, *entry.aliases)]
    raise unknown("dataset", name, names, listing="rusbeir datasets", n_listed=len(read_registry()))


def expand_group(name: str) -> list[str]:
    """List the names of the entries of a group, in the registry's order; the name itself where it names none.

    Examples:
        >>> expand_group("ntrex/all")[:3], expand_group("xquad/ru")
        (['ntrex/af', 'ntrex/am', 'ntrex/ar'], ['xquad/ru'])
    """
    return [entry.name for entry in read_registry().values() if entry.group == name] or [name]


@cache
def md5sums() -> Mapping[str, str]:
    """Return owner/name/file -> md5, of files in repositories of the hub."""
    lines = (FOLDER / "md5sums.txt").read_text(encoding="ascii").splitlines()
    return {file: md5 for md5, _, file in (line.partition("  ") for line in lines)}


@cache
def read_registry(path: Path = FOLDER) -> Mapping[str, RegistryEntry]:
    """Read name -> entry, of one TOML file or of all in a folder; aliases are not keys (`find_entry` knows them).

    Entries are in the order of the files' names. Raises BadInput for a slip in a file.

    Examples:
        >>> read_registry()["xquad/ru"].n_docs
        240
    """
    entries: dict[str, RegistryEntry] = {}
    seen: set[str] = set()
    for file in sorted(path.glob("*.toml")) if path.is_dir() else [path]:
        try:
            tables = tomllib.loads(file.read_text(encoding="utf-8"))
            views = [(download, view) for download in tables["file"] for view in download.pop("views", [{}])]
            for download, view in views:
                # The later levels override the earlier; their options are joined.
                levels = (tables.get("family", {}), download, view)
                keys = {key: value for level in levels for key, value in level.items()}
                keys["options"] = {key: value for level in levels for key, value in level.get("options", {}).items()}
                where = f"{file.name}: {keys.get('name')}"
                if extra := keys.keys() - {field.name for field in fields(RegistryEntry)}:
                    raise BadInput(f"{where}: unknown key {', '.join(sorted(extra))}.")
                if missing := {"name", "format", "language", "split"} - keys.keys():
                    raise BadInput(f"{where}: the key {', '.join(sorted(missing))} is missing.")
                entry = RegistryEntry(**{**keys, **{key: tuple(keys.get(key, ())) for key in _LISTS}})
                if not (entry.bundled or entry.path or entry.hub or "id" in entry.options):
                    raise BadInput(f"{where}: an entry needs path, hub or bundled, or options.id of ir_datasets.")
                for name in (entry.name, *entry.aliases):
                    if name in seen:
                        raise BadInput(f"{path}: the name {name!r} is repeated; names and aliases must be unique.")
                    seen.add(name)
                entries[entry.name] = entry
        except BadInput:
            raise
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
            raise BadInput(f"{file}: not a file of the registry ({error!r}). Compare it with {FOLDER}.") from error
    return MappingProxyType(entries)

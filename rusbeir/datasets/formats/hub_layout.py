"""Which files of a repository, or of a folder like one, are its corpus, its queries and its judgements.

In this order: by the patterns given; by the configurations in the YAML head of README.md, as the package datasets
reads it, under the names that BEIR, MTEB and AIR-Bench use; by file names such as corpus.jsonl, queries/*.parquet,
qrels/test.tsv and test.tsv.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from rusbeir.datasets.extras import optional
from rusbeir.errors import BadInput

READABLE = (".jsonl", ".jsonl.gz", ".jsonl.zip", ".tsv", ".tsv.gz", ".csv", ".parquet", ".arrow")
_SPLIT = r"(?P<split>[A-Za-z0-9_.]*?[A-Za-z0-9_])"
_ENDING = r"(?:-\d+-of-\d+)?(?:" + "|".join(re.escape(ending) for ending in READABLE) + ")"
_SHARD = re.compile(r"-\d+-of-(\d+)\.[a-z.]+$")

Configs = Mapping[str, Mapping[str, tuple[str, ...]]]
"""Configuration -> split -> patterns of files."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The files of one repository, and what its README.md says of them."""

    names: frozenset[str]
    configs: Configs = field(default_factory=dict)

    def matching(self, patterns: Iterable[str]) -> list[str]:
        """The readable files that match one of the patterns, 2 before 10."""
        wanted = [pattern.removeprefix("./") for pattern in patterns]
        found = [name for name in self.names if any(fnmatchcase(name, pattern) for pattern in wanted)]
        return sorted((name for name in found if name.endswith(READABLE)), key=_natural)

    def files(self, role: str, split: str | None, config: str | None) -> list[str]:
        """The files of corpus, queries or qrels; [] where there are none. split None: the only one there is."""
        by_split = self.by_split(role, config)
        chosen = by_split.get(split or "") or (next(iter(by_split.values())) if len(by_split) == 1 else [])
        return chosen if role != "qrels" or split is None or split in by_split else []

    def by_split(self, role: str, config: str | None) -> dict[str, list[str]]:
        """split -> files of that role; {} where there are none."""
        return self._configured(role, config) or self._conventional(role, config)

    def _configured(self, role: str, config: str | None) -> dict[str, list[str]]:
        names = _config_names(role, config)
        found = next((self.configs[name] for name in names if name in self.configs), None)
        if found is None:
            # AIR-Bench: one configuration a version, whose splits are corpus_<name>, queries_<name>_<split>, …
            prefix = f"{role}_{config}" if config else f"{role}_"
            splits = {k: v for version in self.configs.values() for k, v in version.items() if k.startswith(prefix)}
            found = {key.rpartition("_")[2]: patterns for key, patterns in splits.items()}
        matched = {split: self.matching(patterns) for split, patterns in found.items()}
        return {split: files for split, files in matched.items() if files}

    def _conventional(self, role: str, config: str | None) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for pattern in _conventions(role, config):
            for name in sorted(self.names, key=_natural):
                if match := re.fullmatch(pattern, name):
                    found.setdefault(match.groupdict().get("split") or role, []).append(name)
            if found:
                break
        return found


def layout_of(folder: Path) -> Layout:
    """The layout of a folder on disk."""
    names = frozenset(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())
    readme = folder / "README.md"
    return Layout(names=names, configs=read_configs(readme.read_text(encoding="utf-8")) if readme.is_file() else {})


def read_configs(readme: str) -> Configs:
    """The configurations in the YAML head of a README.md; {} where it has none."""
    head = re.match(r"---\n(.*?)\n---", readme, re.DOTALL)
    if not head or "configs:" not in head[1]:
        return {}
    listed = optional("yaml", "Reading the configurations of a README.md").safe_load(head[1]).get("configs") or []
    return {str(entry["config_name"]): _data_files(entry.get("data_files")) for entry in listed}


def complain_of_missing_shards(folder: Path, files: Iterable[str]) -> None:
    """Raise BadInput where only some of the parts -00000-of-00004 of a table are there."""
    counts: dict[str, list[int]] = {}
    for name in files:
        if match := _SHARD.search(name):
            counts.setdefault(f"{name[: match.start()]}-*-of-{match[1]}", []).append(int(match[1]))
    for table, parts in counts.items():
        if len(parts) != parts[0]:
            raise BadInput(f"{folder}/{table}: only {len(parts)} of {parts[0]} parts are there; get the others.")


def _data_files(value: Any) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for entry in value if isinstance(value, list) else [value]:
        split, paths = (entry["split"], entry["path"]) if isinstance(entry, dict) else ("train", entry)
        if paths:
            found[str(split)] = (*found.get(str(split), ()), *([paths] if isinstance(paths, str) else paths))
    return found


def _config_names(role: str, config: str | None) -> list[str]:
    """What BEIR (corpus), MTEB (ru-corpus, corpus-ru) and its judgements (default, ru) call the configuration."""
    if role == "pairs":
        return [config or "default"]
    if config is None:
        return {"queries": ["queries", "query"], "qrels": ["qrels", "default"]}.get(role, [role])
    return [f"{config}-{role}", f"{role}-{config}", *([config] if role == "qrels" else [])]


def _conventions(role: str, config: str | None) -> list[str]:
    if role == "pairs":
        return [f"(?:data/)?{re.escape(config or 'pairs')}{_ENDING}"]
    folder = f"(?:.*/)?{re.escape(config)}/" if config else "(?:data/)?"
    if role == "qrels":
        bare = f"{folder}(?!corpus|queries|qrels){_SPLIT}{_ENDING}"
        return [f"{folder}qrels/{_SPLIT}{_ENDING}", f"{folder}qrels[-_.]{_SPLIT}{_ENDING}", bare]
    return [f"{folder}{role}{_ENDING}", f"{folder}{role}[-/]{_SPLIT}{_ENDING}"]


def _natural(name: str) -> list[tuple[int, int | str]]:
    return [(0, int(part)) if part.isdigit() else (1, part) for part in re.split(r"(\d+)", name)]

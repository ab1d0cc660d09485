"""The files of a repository, or of a folder in the same layout: its corpus, its queries and its judgements.

They are found, in this order, by the patterns given; by the configurations in the YAML head of README.md, as the
package datasets reads it, under the names that BEIR, MTEB and AIR-Bench use; by file names such as corpus.jsonl,
queries/*.parquet, qrels/test.tsv and test.tsv.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from rusbeir.errors import BadInput, require
from rusbeir.text import shorten

_TEXTS = (".jsonl", ".tsv", ".csv")
READABLE = (
    *(f"{ending}{packing}" for ending in _TEXTS for packing in ("", ".gz", ".zst")), ".jsonl.zip", ".parquet", ".arrow",
)  # fmt: skip
"""The endings of tables that can be read."""
_SPLIT = r"(?P<split>[A-Za-z0-9_.]*?[A-Za-z0-9_])"
_ENDING = r"(?:-\d+-of-\d+)?(?:" + "|".join(re.escape(ending) for ending in READABLE) + ")"
_SHARD = re.compile(r"-\d+-of-(\d+)\.[a-z.]+$")

_CONFIGS = {
    "corpus": ("corpus",),
    "queries": ("queries", "query"),
    "qrels": ("qrels", "default"),
    "pairs": ("default",),
}
"""role -> what BEIR (corpus), its judgements (default) and MTEB call the configuration."""
_CONFIGS_OF_VIEW = {
    "corpus": ("{view}-corpus", "corpus-{view}"),
    "queries": ("{view}-queries", "queries-{view}"),
    "qrels": ("{view}-qrels", "qrels-{view}", "{view}"),
    "pairs": ("{view}",),
}
"""The configurations of one of several datasets in a repository, such as MTEB's ru-corpus and ru."""
_FILES = {
    "corpus": ("{folder}corpus{ending}", "{folder}corpus[-/]{split}{ending}"),
    "queries": ("{folder}queries{ending}", "{folder}queries[-/]{split}{ending}"),
    "qrels": (
        "{folder}qrels/{split}{ending}",
        "{folder}qrels[-_.]{split}{ending}",
        "{folder}qrels{ending}",
        "{folder}(?!corpus|queries|qrels){split}{ending}",
    ),
    "pairs": ("(?:data/)?{view}{ending}",),
}
"""role -> patterns of file names by convention."""

_ONLY = {"qrels": "test"}
"""The split that a file without one is of."""

Configs = Mapping[str, Mapping[str, tuple[str, ...]]]
"""Configuration -> split -> patterns of files."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The files of one repository, and what its README.md says about them."""

    names: frozenset[str]
    configs: Configs = field(default_factory=dict)

    def parts(self, roles: Iterable[str], split: str | None, options: Mapping[str, Any]) -> dict[str, list[str]]:
        """Return role -> its files, by the pattern of the options, else by the layout; without missing roles."""
        view, version = options.get("view"), options.get("version")
        files_by_role = {
            role: self.match([options[role]])
            if role in options
            else self._of_version(version, role, split, view)
            if version
            else self.files(role, split, view)
            for role in roles
        }
        return {role: files for role, files in files_by_role.items() if files}

    def match(self, patterns: Iterable[str]) -> list[str]:
        """Find the readable files that match one of the patterns, 2 before 10."""
        globs = [pattern.removeprefix("./") for pattern in patterns]
        matching = [name for name in self.names if any(fnmatchcase(name, pattern) for pattern in globs)]
        return sorted((name for name in matching if name.endswith(READABLE)), key=_natural)

    def files(self, role: str, split: str | None, view: str | None) -> list[str]:
        """Return the files of that role; [] if there are none. split None means the only one."""
        by_split = self.by_split(role, view)
        chosen = by_split.get(split or "") or (next(iter(by_split.values())) if len(by_split) == 1 else [])
        return chosen if role != "qrels" or split is None or split in by_split else []

    def _of_version(self, version: str, role: str, split: str | None, view: str | None) -> list[str]:
        """Return the files of one version of AIR-Bench: its splits are corpus_<name> and queries_<name>_<split>.

        In version 24.04, which has one split, queries_<name>.
        """
        splits = self.configs.get(version, {})
        name = f"{role}_{view}".replace("-", "_")
        return self.match(splits.get(f"{name}_{split}") or splits.get(name) or ())

    def by_split(self, role: str, view: str | None) -> dict[str, list[str]]:
        """Return split -> files of that role; {} if there are none."""
        return self._configured(role, view) or self._conventional(role, view)

    def _configured(self, role: str, view: str | None) -> dict[str, list[str]]:
        names = [name.format(view=view) for name in (_CONFIGS_OF_VIEW if view else _CONFIGS)[role]]
        patterns_by_split = next((self.configs[name] for name in names if name in self.configs), None)
        if patterns_by_split is None:
            # AIR-Bench: a configuration for each version, of which a folder without a registered name gives the newest.
            prefix = f"{role}_{view}" if view else f"{role}_"
            versions = (self.configs[name] for name in sorted(self.configs, reverse=True))
            named = (
                {key: patterns for key, patterns in splits.items() if key.startswith(prefix)} for splits in versions
            )
            patterns_by_split = {
                key.rpartition("_")[2]: patterns for key, patterns in next(filter(None, named), {}).items()
            }
        matched = {split: self.match(patterns) for split, patterns in patterns_by_split.items()}
        return {split: files for split, files in matched.items() if files}

    def _conventional(self, role: str, view: str | None) -> dict[str, list[str]]:
        files_by_split: dict[str, list[str]] = {}
        folder = f"(?:.*/)?{re.escape(view)}/" if view else "(?:data/)?"
        for template in _FILES[role]:
            pattern = template.format(folder=folder, view=re.escape(view or role), split=_SPLIT, ending=_ENDING)
            for name in sorted(self.names, key=_natural):
                if match := re.fullmatch(pattern, name):
                    files_by_split.setdefault(match.groupdict().get("split") or _ONLY.get(role, role), []).append(name)
            if files_by_split:
                break
        return files_by_split


def read_layout(folder: Path) -> Layout:
    """Read the layout of a folder on disk."""
    names = frozenset(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())
    readme = folder / "README.md"
    return Layout(names=names, configs=read_configs(readme.read_bytes()) if readme.is_file() else {})


def read_configs(readme: bytes) -> Configs:
    """Read the configurations in the YAML head of a README.md; {} if it has none."""
    # Prose in another encoding does no harm.
    head = re.match(r"---\n(.*?)\n---", readme.decode("utf-8", "replace").replace("\r\n", "\n"), re.DOTALL)
    if not head or "configs:" not in head[1]:
        return {}
    yaml = require("yaml", "Reading the configurations of a README.md", "hf")
    try:
        listed = yaml.safe_load(head[1]).get("configs") or []
        return {str(entry["config_name"]): _data_files(entry.get("data_files")) for entry in listed}
    except (yaml.YAMLError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise BadInput(
            f"README.md: its configurations cannot be read ({shorten(str(error))}). Mend its head."
        ) from error


def refuse_missing_shards(folder: Path, files: Iterable[str]) -> None:
    """Raise BadInput if only some of the parts -00000-of-00004 of a table are there."""
    counts: dict[str, list[int]] = {}
    for name in files:
        if match := _SHARD.search(name):
            counts.setdefault(f"{name[: match.start()]}-*-of-{match[1]}", []).append(int(match[1]))
    for table, parts in counts.items():
        if len(parts) != parts[0]:
            raise BadInput(f"{folder}/{table}: only {len(parts)} of {parts[0]} parts are there; add the others.")


def _data_files(value: Any) -> dict[str, tuple[str, ...]]:
    patterns_by_split: dict[str, tuple[str, ...]] = {}
    for entry in value if isinstance(value, list) else [value]:
        split, paths = (entry["split"], entry["path"]) if isinstance(entry, dict) else ("train", entry)
        if paths:
            patterns_by_split[str(split)] = (
                *patterns_by_split.get(str(split), ()),
                *([paths] if isinstance(paths, str) else paths),
            )
    return patterns_by_split


def _natural(name: str) -> list[tuple[int, int | str]]:
    return [(0, int(part)) if part.isdigit() else (1, part) for part in re.split(r"(\d+)", name)]

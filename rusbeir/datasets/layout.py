"""What BEIR's and Cocktail's layouts share: queries.jsonl and qrels/<split>.tsv, in a folder or a zip."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from rusbeir.datasets.files import Bundle, Folder, Zip
from rusbeir.datasets.records import Complain, Judgement, Place, Query, read_whole_queries
from rusbeir.datasets.trec import read_judgements
from rusbeir.errors import BadInput, unknown


def bundle_of(path: Path, within: str = "") -> Bundle | None:
    """The files below a folder or in a zip, or in a folder of that; None for anything else."""
    if path.is_dir():
        return Folder(path / within)
    return Zip(path, within) if path.is_file() and (path.suffix == ".zip" or zipfile.is_zipfile(path)) else None


def either(bundle: Bundle, name: str) -> str | None:
    """The name, plain or with .gz, that the bundle has; None where it has neither."""
    return next((found for found in (name, f"{name}.gz") if found in bundle.names), None)


def splits_of(bundle: Bundle) -> dict[str, str]:
    """split -> file of its qrels, sorted by split."""
    files = (PurePosixPath(name) for name in sorted(bundle.names))
    return {
        file.name.split(".tsv")[0]: str(file)
        for file in files
        if str(file.parent) == "qrels" and file.name.endswith((".tsv", ".tsv.gz"))
    }


def choose_split(path: Path, bundle: Bundle, split: str | None) -> str:
    """The split asked for, else the only one. Raises UnknownName or BadInput, listing those there are."""
    splits = splits_of(bundle)
    if not splits:
        raise BadInput(f"{path}: no qrels/<split>.tsv in it; a dataset needs judgements.")
    if split is None:
        if len(splits) > 1:
            raise BadInput(f"{path} has the splits {', '.join(splits)}: choose one with --split.")
        return next(iter(splits))
    if split not in splits:
        raise unknown("split", split, splits)
    return split


def queries_in(bundle: Bundle, complain: Complain) -> Iterator[tuple[Place, Query]]:
    """The queries of queries.jsonl or queries.jsonl.gz."""
    return ((place, query) for place, query, _ in whole_queries_in(bundle, complain))


def whole_queries_in(bundle: Bundle, complain: Complain) -> Iterator[tuple[Place, Query, dict[str, Any]]]:
    """The same, each with the keys that its record has besides."""
    name = either(bundle, "queries.jsonl")
    if name is None:
        raise BadInput(f"{bundle.label}queries.jsonl does not exist; a dataset needs queries.")
    with bundle.open(name) as lines:
        yield from read_whole_queries(lines, f"{bundle.label}{name}", complain)


def judgements_in(bundle: Bundle, split: str, complain: Complain) -> Iterator[tuple[Place, Judgement]]:
    """The judgements of that split, which must exist."""
    name = splits_of(bundle)[split]
    with bundle.open(name) as lines:
        yield from read_judgements(lines, f"{bundle.label}{name}", complain)

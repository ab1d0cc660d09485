"""`rusbeir cache`: what the cache holds, and how to empty it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from rusbeir.cli import options, output
from rusbeir.storage import cache_folder

app = typer.Typer(no_args_is_help=True, help="Show what the cache holds, and empty it.")


@app.command()
def info(as_json: options.Json = False) -> None:
    """Show where the cache is and what it holds.

    Example: rusbeir cache info
    """
    folder = cache_folder()
    parts = {part.name: _count_bytes(part) for part in sorted(folder.iterdir())} if folder.is_dir() else {}
    if as_json:
        output.print_json({"folder": str(folder), "bytes": parts})
        return
    output.print_table(["part", "bytes"], [[name, f"{size:,}"] for name, size in parts.items()], right=["bytes"])
    output.note(f"{folder}: {sum(parts.values()):,} bytes")


@app.command()
def clear(
    part: Annotated[
        str | None, typer.Argument(metavar="[PART]", help="A part that `cache info` lists; default: everything.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Remove files that can be made or fetched again: downloads, corpora, lemmas, indexes.

    Example: rusbeir cache clear indexes
    """
    from rusbeir.errors import unknown

    folder = cache_folder()
    parts = {entry.name: entry for entry in folder.iterdir()} if folder.is_dir() else {}
    if part is not None and part not in parts:
        raise unknown("part of the cache", part, parts)
    chosen = [parts[part]] if part is not None else list(parts.values())
    freed = sum(_count_bytes(entry) for entry in chosen)
    for entry in chosen:
        if entry.is_dir():
            shutil.rmtree(entry)
        else:
            entry.unlink()
    if as_json:
        output.print_json({"folder": str(folder), "freed_bytes": freed})
        return
    output.note(f"{folder}: {freed:,} bytes freed")


def _count_bytes(path: Path) -> int:
    if path.is_file():
        return path.stat().st_size
    return sum(entry.stat().st_size for entry in path.rglob("*") if entry.is_file())

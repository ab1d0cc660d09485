"""`rusbeir cache`: what the cache holds, and how to empty it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Annotated

import typer

from rusbeir.cli import options, output
from rusbeir.storage import CACHE_PARTS, cache_folder
from rusbeir.text import shorten

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
    rows = [[name, f"{size / 1e6:,.1f}", CACHE_PARTS.get(name, "")] for name, size in parts.items()]
    output.print_table(["part", "MB", "what"], rows, right=["MB"])
    output.note(f"{folder}: {sum(parts.values()) / 1e6:,.1f} MB")


@app.command()
def clear(
    part: Annotated[
        str | None,
        typer.Argument(metavar="[PART]", help=f"One of {', '.join(CACHE_PARTS)}; default: all of them."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Remove what rusbeir made in the cache and can make or fetch again; other files there stay.

    Embeddings and scores that a paid endpoint computed must be paid for again.

    Example: rusbeir cache clear indexes
    """
    from rusbeir.errors import BackendError, unknown

    if part is not None and part not in CACHE_PARTS:
        raise unknown("part of the cache", part, CACHE_PARTS)
    folder = cache_folder()
    freed = 0
    for entry in (folder / name for name in ([part] if part else CACHE_PARTS)):
        if not os.path.lexists(entry):
            continue
        size = _count_bytes(entry)
        try:
            # What a link leads to is not in the cache.
            entry.unlink() if entry.is_symlink() or entry.is_file() else shutil.rmtree(entry)
        except OSError as error:
            raise BackendError(f"Cannot remove {error.filename or entry}: {error.strerror or error}.") from error
        freed += size
        output.note(f"removed {entry}: {size:,} bytes")
    if as_json:
        output.print_json({"folder": str(folder), "freed_bytes": freed})
        return
    output.note(f"{folder}: {freed:,} bytes freed")
    left = sorted(path.name for path in folder.iterdir()) if folder.is_dir() and part is None else []
    if left:
        output.note(f"not removed, since rusbeir did not make it: {shorten(', '.join(left))}")


def _count_bytes(path: Path) -> int:
    if path.is_symlink() or path.is_file():
        return path.lstat().st_size
    return sum(entry.lstat().st_size for entry in path.rglob("*") if entry.is_file())

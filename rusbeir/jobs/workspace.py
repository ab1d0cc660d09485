"""The folder of a long job: its subfolder of work, held by one process at a time, and its coroutines."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from rusbeir.errors import BadInput, option
from rusbeir.storage import hold, refuse_links

T = TypeVar("T")
Tell: TypeAlias = Callable[[str], None]
"""Called with a line that a person should read before something is sent."""

WORK = "work"
"""The subfolder with the files that resuming needs."""
JOURNAL = "journal.sqlite"
CORPUS = "corpus"
"""The name in a journal under which it has the digest of the source's documents."""
_LOCK = "port.lock"
# A temporary file of rusbeir.storage.atomic_file.
_TEMPORARY = re.compile(r"\..+\.(?:jsonl|json|tsv|txt)\.[a-z0-9_]{8}")


@contextlib.contextmanager
def hold_folder(out: Path, *, more: bool = False) -> Iterator[None]:
    """Hold a folder with a journal in its subfolder WORK, or a new one; what a killed process left there is removed.

    Raises BadInput where out contains something else, or a symbolic link, and BackendError while another process uses
    it.
    """
    refuse_foreign(out, more=more)
    work = out / WORK
    with contextlib.closing(hold(work / _LOCK, out)):
        for path in (
            path for folder in (out, work, out / "corpus", out / "qrels", out / "qa") for path in folder.glob(".*")
        ):
            if _TEMPORARY.fullmatch(path.name):
                path.unlink(missing_ok=True)  # A killed process left it.
        yield


def refuse_foreign(out: Path, *, more: bool) -> None:
    """Raise BadInput where out contains something else than a port or, with more, nothing."""
    if out.exists() and not out.is_dir():
        raise BadInput(f"{out} is a file; {option('out')} names a folder.")
    refuse_links(out)
    work = out / WORK
    paths = [path for folder in (out, work) if folder.is_dir() for path in folder.iterdir()]
    names = {path.name for path in paths if path.suffix != ".lock" and path != work}
    if names and not any(name.startswith("journal") and name.endswith(".sqlite") for name in names):
        raise BadInput(f"{out} contains files but no port to resume. Choose another folder.")
    if more and not names:
        raise BadInput(
            f"{out} contains no port, so there is nothing to retry. Leave {option('retry_failed', True)} and "
            f"{option('retry_segments', True)} out to make one."
        )


def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """Run the coroutine and return its result, also where an event loop is already running, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()

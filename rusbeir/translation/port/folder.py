"""The folder of a port: its journal, those of other translators, set aside until used again, and its layout."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from rusbeir.datasets.formats.files import open_file
from rusbeir.errors import BadInput
from rusbeir.jobs import Journal
from rusbeir.storage import atomic_file, hold, refuse_links
from rusbeir.translation.port.plan import TranslatorEntry, continue_chain, dump_entries, read_entries
from rusbeir.translation.segments.segment import Piece

JOURNAL = "journal.sqlite"
LAYOUT = "layout.txt"
SOURCE = "source.txt"
"""The path of a source that is not a registered dataset. It is not in the card, which is the same on all machines."""
_LOCK = "port.lock"
# A temporary file of rusbeir.storage.atomic_file.
_TEMPORARY = re.compile(r"\..+\.(?:jsonl|json|tsv|txt)\.[a-z0-9_]{8}")
_TRANSLATORS = "translators"


@contextlib.contextmanager
def open_port_folder(
    out: Path, meta: Mapping[str, str], given: Sequence[TranslatorEntry], *, more: bool
) -> Iterator[tuple[Journal, tuple[TranslatorEntry, ...]]]:
    """Open the journal of a port by these translators into out; also yields the translators that continue it.

    A journal of other translators is set aside, and found again when they come back. With more, the given ones
    continue where the journal's own have failed. Raises BadInput where out contains something else than a port, a
    port of something else, or a symbolic link, and BackendError while another process uses it.
    """
    _refuse_foreign(out, more=more)
    with contextlib.closing(hold(out / _LOCK, out)):
        for path in (path for folder in (out, out / "qrels", out / "qa") for path in folder.glob(".*")):
            if _TEMPORARY.fullmatch(path.name):
                path.unlink(missing_ok=True)  # A killed process left it.
        with _open_journal(out, meta, given, more=more) as (journal, chain):
            journal.set_meta({_TRANSLATORS: dump_entries(chain)})
            yield journal, chain


@contextlib.contextmanager
def _open_journal(
    out: Path, meta: Mapping[str, str], given: Sequence[TranslatorEntry], *, more: bool
) -> Iterator[tuple[Journal, tuple[TranslatorEntry, ...]]]:
    """Open the journal that these translators continue, after moving it into its place, or a new one."""
    place = out / JOURNAL
    if place.exists():
        with Journal.open(place, meta) as journal:
            stored = _read_translators(journal)
            chain = continue_chain(stored, given, more=more) if stored else tuple(given)
            if chain is not None:
                yield journal, chain
                return
        digest = hashlib.sha256("\n".join(entry.signature for entry in stored).encode()).hexdigest()[:8]
        _move(out, "", f"-{digest}")
    chain = None
    for path in sorted(out.glob("journal-*.sqlite")):
        with Journal.open(path, meta) as journal:
            chain = continue_chain(_read_translators(journal), given, more=False)
        if chain is not None:
            _move(out, path.stem.removeprefix("journal"), "")
            break
    with Journal.open(place, meta) as journal:
        yield journal, chain or tuple(given)


def _read_translators(journal: Journal) -> tuple[TranslatorEntry, ...]:
    """The translators that a journal was created with; () where a kill prevented that note."""
    return read_entries(journal.get_meta(_TRANSLATORS) or "[]")


def read_translator_names(out: Path) -> list[str]:
    """The names of the translators of the port in out. Raises BadInput where there is none."""
    _refuse_foreign(out, more=True)
    with Journal.open(out / JOURNAL, {}) as journal:
        return [entry.name for entry in _read_translators(journal)]


def _refuse_foreign(out: Path, *, more: bool) -> None:
    if out.exists() and not out.is_dir():
        raise BadInput(f"{out} is a file; --out names a folder.")
    refuse_links(out)
    found = {path.name for path in out.iterdir() if path.suffix != ".lock"} if out.is_dir() else set()
    if found and not any(name.startswith("journal") and name.endswith(".sqlite") for name in found):
        raise BadInput(f"{out} contains files but no port to resume. Choose another folder.")
    if more and not found:
        raise BadInput(f"{out} contains no port, so there are no failures to retry. Leave --retry-failed out.")


def _move(out: Path, old: str, new: str) -> None:
    """Rename a journal, which nobody has open, and its layout, which is made again where it is missing."""
    for name in (LAYOUT, JOURNAL):
        stem, _, ending = name.partition(".")
        path = out / f"{stem}{old}.{ending}"
        if path.exists():
            path.replace(out / f"{stem}{new}.{ending}")
    (out / f"journal{old}.sqlite.lock").unlink(missing_ok=True)


def write_source_path(out: Path, path: Path) -> None:
    """Record where the source of the port in out is."""
    with atomic_file(out / SOURCE) as file:
        file.write(os.fsencode(path.expanduser().absolute()))


def read_source_path(out: Path) -> Path | None:
    """The recorded path of the port's source; None where none can be read, as of a source that has a name."""
    try:
        return Path(os.fsdecode((out / SOURCE).read_bytes()))
    except OSError:
        return None


def encode_cut(pieces: Iterable[Piece]) -> bytes:
    """The line of a text that was cut into these pieces."""
    return b"%s\n" % " ".join([str(len(text) if sent else -len(text)) for text, sent in pieces]).encode()


def apply_cuts(lines: Iterable[Sequence[int]], texts: Iterable[str], path: Path) -> Iterator[list[Piece]]:
    """The pieces of each text. Raises BadInput, naming the file, where it was made of other texts."""
    lengths = iter(lines)
    for text in texts:
        pieces = []
        start = 0
        for length in next(lengths, ()):
            end = start + abs(length)
            pieces.append(Piece(text[start:end], length > 0))
            start = end
        if start != len(text):
            raise BadInput(f"{path} no longer fits its source. Remove it, and the texts are cut again.")
        yield pieces


def read_cuts(path: Path) -> Iterator[list[int]]:
    """The lengths of each text's pieces."""
    with open_file(path) as file:
        for line in file:
            try:
                lengths = list(map(int, line.split()))
            except ValueError as error:
                raise BadInput(f"{path} is damaged. Remove it, and the texts are cut again.") from error
            yield lengths

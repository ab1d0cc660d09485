"""The folder of a port: its journal, those of other translators, set aside until used again, and its layout."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from rusbeir.datasets.formats.beir import read_card
from rusbeir.datasets.formats.files import open_file
from rusbeir.datasets.loading import split_view
from rusbeir.errors import BadInput, option
from rusbeir.jobs import Journal
from rusbeir.storage import atomic_file, hold, refuse_links
from rusbeir.translation.backends.python import PREFIX
from rusbeir.translation.port.plan import (
    TRANSLATORS,
    TranslatorEntry,
    continue_chain,
    dump_entries,
    read_entries,
)
from rusbeir.translation.segments.segment import Piece

WORK = "work"
"""The subfolder of a port with the files that resuming needs; earlier versions had them in the port itself."""
JOURNAL = "journal.sqlite"
LAYOUT = "layout.txt"
"""The lengths of the pieces of each text of a document, one line for each; those not sent are negative."""
QUERY_LAYOUT = "layout-queries.txt"
"""The same for queries, behind the digest of the text, so that queries can be added."""
SOURCE = "source.txt"
"""The path of a source that is not a registered dataset. It is not in the card, which is the same on all machines."""
_LOCK = "port.lock"
_WORKING = re.compile(r"journal(-\w+)?\.sqlite|layout(-\w+)?\.txt|source\.txt")
# A temporary file of rusbeir.storage.atomic_file.
_TEMPORARY = re.compile(r"\..+\.(?:jsonl|json|tsv|txt)\.[a-z0-9_]{8}")
CORPUS = "corpus"
"""The name in a journal under which it has the digest of the source's documents."""


NAME = "source"
"""The name in a journal under which it has that of its source."""
SPLITS = "source splits"
"""The same for the fingerprints of its splits, separated by spaces."""


@contextlib.contextmanager
def open_port_folder(
    out: Path,
    meta: Mapping[str, str],
    given: Sequence[TranslatorEntry],
    *,
    more: bool,
    formerly: Collection[str] = (),
    tell: Callable[[str], None] = lambda line: None,
) -> Iterator[tuple[Journal, tuple[TranslatorEntry, ...]]]:
    """Open the journal of a port by these translators into out; also yields the translators that continue it.

    A journal of other translators is set aside, which tell is told, and found again when they come back. With more, the
    given ones continue where the journal's own have failed. A journal of an earlier version is known by one of the
    fingerprints in formerly. Raises BadInput where out contains something else than a port, a port of something else,
    or a symbolic link, and BackendError while another process uses it.
    """
    with hold_folder(out, more=more):
        if any(_WORKING.fullmatch(path.name) for path in out.iterdir()):
            _gather(out, meta, formerly)
        with _open_journal(out / WORK, meta, given, more=more, tell=tell) as (journal, chain):
            journal.set_meta({TRANSLATORS: dump_entries(chain)})
            yield journal, chain


@contextlib.contextmanager
def hold_folder(out: Path, *, more: bool = False) -> Iterator[None]:
    """Hold a folder with a journal in its subfolder WORK, or a new one; what a killed process left there is removed.

    Raises BadInput where out contains something else, or a symbolic link, and BackendError while another process uses
    it.
    """
    _refuse_foreign(out, more=more)
    work = out / WORK
    with contextlib.closing(hold(work / _LOCK, out)):
        for path in (
            path for folder in (out, work, out / "corpus", out / "qrels", out / "qa") for path in folder.glob(".*")
        ):
            if _TEMPORARY.fullmatch(path.name):
                path.unlink(missing_ok=True)  # A killed process left it.
        yield


def _gather(out: Path, meta: Mapping[str, str], formerly: Collection[str]) -> None:
    """Move the working files of a port of an earlier version into their folder.

    Its journals know the source by a fingerprint over queries, too, which is one of formerly where it is the same.
    """
    with contextlib.closing(hold(out / _LOCK, out)):
        # Closing a journal empties its log, which must not be left behind.
        for path in out.glob("journal*.sqlite"):
            with Journal.open(path, {}) as journal:
                if journal.get_meta("source fingerprint") in formerly:
                    journal.set_meta({CORPUS: meta[CORPUS]})
        for path in [path for path in out.iterdir() if _WORKING.fullmatch(path.name)]:
            path.replace(out / WORK / path.name)
    for path in out.glob("*.lock"):
        path.unlink()


def _advise_whole() -> str:
    return (
        f"Translations of a sample serve the whole: write them with {option('export', 'pairs.tmx')}, then port into "
        f"another folder with {option('translator', 'memory,NAME')} {option('memory', 'pairs.tmx')}."
    )


@contextlib.contextmanager
def _open_journal(
    work: Path,
    meta: Mapping[str, str],
    given: Sequence[TranslatorEntry],
    *,
    more: bool,
    tell: Callable[[str], None],
) -> Iterator[tuple[Journal, tuple[TranslatorEntry, ...]]]:
    """Open the journal that these translators continue, after moving it into its place, or a new one."""
    place = work / JOURNAL
    if place.exists():
        with Journal.open(place, meta, advice={"sample": _advise_whole}) as journal:
            stored = read_entries(journal)
            if not stored and (work / LAYOUT).exists():
                raise BadInput(
                    f"{place} is empty, although texts were cut for it: its translations are lost. "
                    f"Restore a copy of it, or remove {LAYOUT} next to it to start over."
                )
            if not (stored or given):
                raise BadInput(f"{place} names no translators: its port never started. Make the port first.")
            chain = continue_chain(stored, given, more=more) if stored else tuple(given)
            if chain is not None:
                yield journal, chain
                return
            _tell_set_aside(journal, stored, tell)
        digest = hashlib.sha256("\n".join(entry.signature for entry in stored).encode()).hexdigest()[:8]
        _move(work, "", f"-{digest}")
    chain = None
    for path in sorted(work.glob("journal-*.sqlite")):
        with Journal.open(path, meta) as journal:
            chain = continue_chain(read_entries(journal), given, more=False)
        if chain is not None:
            _move(work, path.stem.removeprefix("journal"), "")
            break
    with Journal.open(place, meta, advice={"sample": _advise_whole}) as journal:
        yield journal, chain or tuple(given)


def _tell_set_aside(journal: Journal, stored: Sequence[TranslatorEntry], tell: Callable[[str], None]) -> None:
    """Say how many answers are paid for and not used by the translators of this run."""
    for entry in stored:
        ((n_answers,),) = journal.read(
            "SELECT count(*) FROM standing JOIN worker ON worker.number = standing.worker "
            "WHERE signature = ? AND state = 'done'",
            (entry.signature,),
        )
        if n_answers:
            tell(
                f"{n_answers:,} answers of {entry.signature} are set aside: this run asks another translator for all "
                f"texts. They come back with that translator; {option('retry_failed', True)} keeps them and asks the "
                "new one only for what they lack."
            )


def read_translator_names(out: Path) -> list[str]:
    """The names of the translators of the port in out.

    Raises BadInput where there is no port, and for a function of the user's: only a caller names code to be imported.
    """
    _refuse_foreign(out, more=True)
    with Journal.open(find_work(out) / JOURNAL, {}) as journal:
        names = [entry.name for entry in read_entries(journal)]
    if own := next((name for name in names if name.startswith(PREFIX)), None):
        raise BadInput(
            f"{out} was made by {own}, and rusbeir imports no code that a folder names. "
            f"Name it yourself with {option('translator', ','.join(names))}."
        )
    return names


def read_note(out: Path, name: str) -> str | None:
    """What the journal of the port in out has under a name. Raises BadInput where there is no port."""
    _refuse_foreign(out, more=True)
    with Journal.open(find_work(out) / JOURNAL, {}) as journal:
        return journal.get_meta(name)


def _refuse_foreign(out: Path, *, more: bool) -> None:
    if out.exists() and not out.is_dir():
        raise BadInput(f"{out} is a file; {option('out')} names a folder.")
    refuse_links(out)
    work = out / WORK
    paths = [path for folder in (out, work) if folder.is_dir() for path in folder.iterdir()]
    found = {path.name for path in paths if path.suffix != ".lock" and path != work}
    if found and not any(name.startswith("journal") and name.endswith(".sqlite") for name in found):
        raise BadInput(f"{out} contains files but no port to resume. Choose another folder.")
    if more and not found:
        raise BadInput(
            f"{out} contains no port, so there is nothing to retry. Leave {option('retry_failed', True)} and "
            f"{option('retry_segments', True)} out to make one."
        )


def _move(work: Path, old: str, new: str) -> None:
    """Rename a journal, which nobody has open, and its layouts, which are made again where they are missing."""
    for name in (LAYOUT, QUERY_LAYOUT, JOURNAL):
        stem, _, ending = name.partition(".")
        path = work / f"{stem}{old}.{ending}"
        if path.exists():
            path.replace(work / f"{stem}{new}.{ending}")
    (work / f"journal{old}.sqlite.lock").unlink(missing_ok=True)


def record_source(out: Path, journal: Journal, name: str, fingerprints: Mapping[str, str]) -> None:
    """Record what the source is called and the fingerprints of its splits.

    The same documents under another name are the same source where a split is the same. Raises BadInput where none is,
    and nothing is changed.
    """
    stored, known = journal.get_meta(NAME), set((journal.get_meta(SPLITS) or "").split())
    if stored not in (None, name):
        source = read_card(out).get("provenance", {}).get("source")
        if not known and isinstance(source, dict) and isinstance(splits := source.get("splits"), dict):
            known = set(map(str, splits.values()))  # An earlier version has them only there.
        if known.isdisjoint(fingerprints.values()):
            raise BadInput(
                f"{journal.path} was created with different settings: source was {stored!r} and is now {name!r}, whose "
                "queries and judgements are other ones. Choose another folder, or move the journal away to start over."
            )
    journal.set_meta({NAME: name, SPLITS: " ".join(sorted(known | set(fingerprints.values())))})


def find_work(out: Path) -> Path:
    """The folder of a port's working files: its subfolder, or where an earlier version left them, the port itself."""
    return out / WORK if (out / WORK).is_dir() else out


def write_source_path(out: Path, path: Path) -> None:
    """Record where the source of the port in out is, unless that is no path but a name that several splits share."""
    if split_view(str(path))[0] is None:
        return
    with atomic_file(out / WORK / SOURCE) as file:
        file.write(os.fsencode(path.expanduser().absolute()))


def read_source_path(out: Path) -> Path | None:
    """The recorded path of the port's source; None where none can be read, as of a source that has a name."""
    try:
        return Path(os.fsdecode((find_work(out) / SOURCE).read_bytes()))
    except OSError:
        return None


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


def read_cuts(path: Path) -> Iterator[tuple[str, list[int]]]:
    """The lengths of each text's pieces, behind the text's digest in the layout of queries, "" in that of documents.

    Raises BadInput, with the line, for a damaged file.
    """
    with open_file(path) as file:
        for number, line in enumerate(file, 1):
            key, _, lengths = line.rpartition(b"\t")
            try:
                yield key.decode(), list(map(int, lengths.split()))
            except ValueError as error:
                raise BadInput(f"{path}:{number} is damaged. Remove the file, and the texts are cut again.") from error

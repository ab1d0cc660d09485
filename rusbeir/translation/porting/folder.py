"""The folder of a port: its journal, those of other translators, set aside until used again, and its layout."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import orjson

from rusbeir.datasets import FIELDS, Material, open_file, split_view
from rusbeir.errors import BadInput, option
from rusbeir.jobs import JOURNAL, WORK, Budget, Journal, Spent, hold_folder, refuse_foreign
from rusbeir.storage import atomic_file
from rusbeir.translation.porting.plan import (
    TRANSLATORS,
    TranslatorEntry,
    continue_chain,
    dump_entries,
    read_entries,
)
from rusbeir.translation.segments.segment import Piece
from rusbeir.types import Doc
from rusbeir.user_sources import PYTHON

LAYOUT = "layout.txt"
"""The lengths of the pieces of each text of a document, one line for each; those not sent are negative."""
QUERY_LAYOUT = "layout-queries.txt"
"""The lengths of the pieces of each query, behind the digest of its text, so that queries can be added."""
SOURCE = "source.txt"
"""The path of a source that is not a registered dataset. It is not in the card, which is the same on all machines."""
NAME = "source"
"""The name in a journal under which it has that of its source."""
SPLITS = "source splits"
"""The name in a journal under which it has the fingerprints of its splits, separated by spaces."""
ORDER = "order"
"""The name in a journal under which it has the last order of the port, as JSON."""


@dataclass(frozen=True, kw_only=True)
class Order:
    """The content asked of a port, as far as its source does not say it; the values of `rusbeir.port`."""

    language: str | None = None
    split: str | None = None
    all_queries: bool = False
    fields: tuple[str, ...] = FIELDS
    sample: int | None = None
    seed: int = 0
    glossary: Mapping[str, str | None] | None = None
    """The terms."""
    keep_untranslated: bool = False

    def record(self, journal: Journal, name: str, fingerprints: Mapping[str, str]) -> None:
        """Write it into the journal of the port, with the source's name and the fingerprints of its splits.

        The same documents under another name are the same source where a split is the same. Raises BadInput where none
        is, and nothing is changed.
        """
        before, known = journal.get_meta(NAME), set((journal.get_meta(SPLITS) or "").split())
        if before not in (None, name) and known.isdisjoint(fingerprints.values()):
            raise BadInput(
                f"{journal.path} was created with different settings: source was {before!r} and is now {name!r}, whose "
                "queries and judgements are other ones. Choose another folder, or move the journal away to start over."
            )
        splits = " ".join(sorted(known | set(fingerprints.values())))
        journal.set_meta({NAME: name, SPLITS: splits, ORDER: orjson.dumps(asdict(self)).decode()})

    def complete(self, out: Path) -> Order:
        """The order with what the port in out was made with in place of what this one leaves open.

        So the command of a retry need not repeat it. Raises BadInput where out contains no port.
        """
        try:
            row = orjson.loads(read_note(out, ORDER) or "{}")
            recorded = Order(**row | {"fields": tuple(row.get("fields", FIELDS))})
        except (AttributeError, TypeError, ValueError) as error:
            raise BadInput(f"{out}: The journal is damaged: it does not say what was asked for ({error!r}).") from error
        default = asdict(Order())
        return replace(recorded, **{name: value for name, value in asdict(self).items() if value != default[name]})


@contextlib.contextmanager
def open_port_folder(
    out: Path,
    meta: Mapping[str, str],
    entries: Sequence[TranslatorEntry],
    *,
    more: bool,
    tell: Callable[[str], None] = lambda line: None,
) -> Iterator[tuple[Journal, tuple[TranslatorEntry, ...]]]:
    """Open the journal of a port by these translators into out; also yields the translators that continue it.

    A journal of other translators is set aside, which tell is told, and found again when they come back. With more, the
    given ones continue where the journal's own have failed. Raises BadInput where out contains something else than a
    port, a port of something else, or a symbolic link, and BackendError while another process uses it.
    """
    work = out / WORK
    with hold_folder(out, more=more):
        others = any(work.glob("journal*.sqlite"))
        chain = _bring_back(work, meta, entries, more=more, tell=tell) if others else tuple(entries)
        with Journal.open(work / JOURNAL, meta, advice={"sample": _advise_whole}) as journal:
            journal.set_meta({TRANSLATORS: dump_entries(chain)})
            yield journal, chain


def _advise_whole() -> str:
    return (
        f"Translations of a sample serve the whole: write them with {option('export', 'pairs.tmx')}, then port into "
        f"another folder with {option('translator', 'memory,NAME')} {option('memory', 'pairs.tmx')}."
    )


def _bring_back(
    work: Path,
    meta: Mapping[str, str],
    entries: Sequence[TranslatorEntry],
    *,
    more: bool,
    tell: Callable[[str], None],
) -> tuple[TranslatorEntry, ...]:
    """Move the journal that these translators continue into its place, and return those that continue it.

    Where none of those that there are is theirs, the place is left empty.
    """
    path = work / JOURNAL
    if path.exists():
        with Journal.open(path, meta, advice={"sample": _advise_whole}) as journal:
            stored = read_entries(journal)
            if not stored and (work / LAYOUT).exists():
                raise BadInput(
                    f"{path} is empty, although texts were cut for it: its translations are lost. "
                    f"Restore a copy of it, or remove {LAYOUT} next to it to start over."
                )
            if not (stored or entries):
                raise BadInput(f"{path} names no translators: its port never started. Make the port first.")
            chain = continue_chain(stored, entries, more=more) if stored else tuple(entries)
            if chain is not None:
                return chain
            _tell_set_aside(journal, stored, tell)
        digest = hashlib.sha256("\n".join(entry.signature for entry in stored).encode()).hexdigest()[:8]
        _move(work, "", f"-{digest}")
    for path in sorted(work.glob("journal-*.sqlite")):
        with Journal.open(path, meta) as journal:
            chain = continue_chain(read_entries(journal), entries, more=False)
        if chain is not None:
            _move(work, path.stem.removeprefix("journal"), "")
            return chain
    return tuple(entries)


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
    refuse_foreign(out, more=True)
    with Journal.open(out / WORK / JOURNAL, {}) as journal:
        names = [entry.name for entry in read_entries(journal)]
    if function := next((name for name in names if name.startswith(PYTHON)), None):
        raise BadInput(
            f"{out} was made by {function}, and rusbeir imports no code that a folder names. "
            f"Name it yourself with {option('translator', ','.join(names))}."
        )
    return names


def read_note(out: Path, name: str) -> str | None:
    """Read what the journal of the port in out has under a name. Raises BadInput where there is no port."""
    refuse_foreign(out, more=True)
    with Journal.open(out / WORK / JOURNAL, {}) as journal:
        return journal.get_meta(name)


def _move(work: Path, old: str, new: str) -> None:
    """Rename a journal, which nobody has open, and its layouts, which are made again where they are missing."""
    for name in (LAYOUT, QUERY_LAYOUT, JOURNAL):
        stem, _, ending = name.partition(".")
        path = work / f"{stem}{old}.{ending}"
        if path.exists():
            path.replace(work / f"{stem}{new}.{ending}")
    (work / f"journal{old}.sqlite.lock").unlink(missing_ok=True)


def read_spent(out: str | Path) -> Spent:
    """Read what the port in that folder has spent, if there is one. Raises BackendError while it is made."""
    path = Path(out) / WORK / JOURNAL
    if not path.is_file():
        return Spent()
    with Journal.open(path, {}) as journal:
        return Budget(journal).spent


def write_source_path(out: Path, path: Path) -> None:
    """Record where the source of the port in out is, unless that is no path but a name that several splits share."""
    if split_view(str(path))[0] is None:
        return
    with atomic_file(out / WORK / SOURCE) as file:
        file.write(os.fsencode(path.expanduser().absolute()))


def read_source_path(out: Path) -> Path | None:
    """The recorded path of the port's source; None where none can be read, as of a source that has a name."""
    try:
        return Path(os.fsdecode((out / WORK / SOURCE).read_bytes()))
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


def cut_documents(material: Material, work: Path) -> Iterator[tuple[Doc, dict[str, list[str]]]]:
    """The documents, each with the segments of its fields, as they were cut for the port; {} where it has no text."""
    lines = (lengths for _, lengths in read_cuts(work / LAYOUT))
    cuts = apply_cuts(lines, material.document_texts(material.dataset.corpus), work / LAYOUT)
    for doc in material.dataset.corpus:
        names = [name for name, text in (("title", doc.title), ("text", doc.text)) if text and name in material.fields]
        yield doc, {name: [piece.text for piece in next(cuts) if piece.sent] for name in names}


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

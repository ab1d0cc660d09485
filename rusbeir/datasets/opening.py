"""From a name or a path to an open source: what is known before any content is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rusbeir.datasets.cards import CARD, read_card
from rusbeir.datasets.fetching import fetch_row
from rusbeir.datasets.formats import FORMATS, format_of
from rusbeir.datasets.rows import Row, find, unknown_dataset
from rusbeir.datasets.source import Request, Source
from rusbeir.errors import BadInput
from rusbeir.types import Card, Progress

COUNTS = ("n_docs", "n_queries", "n_qrels")
_PATH_ENDINGS = (".zip", ".json", ".json.gz", ".jsonl")


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A dataset whose files are found and whose content has not been read."""

    source: Source
    known: Mapping[str, Any]
    """Fields of Card, all but the fingerprint."""
    expected: Mapping[str, Any]
    """What the row or the card promises: counts by the names in COUNTS, a fingerprint; any may be missing."""

    @property
    def ignore_titles(self) -> bool:
        return bool(self.known["ignore_titles"])

    def card(self, fingerprint: str) -> Card:
        """The card, once the fingerprint of the content is known."""
        return Card(**self.known, fingerprint=fingerprint)


def open_source(name_or_path: str | Path, *, language: str | None, split: str | None, progress: Progress) -> Opened:
    """The source behind a registered name or a path. Raises UnknownName or BadInput where there is none."""
    name = str(name_or_path)
    row = find(name) if isinstance(name_or_path, str) else None
    if row is not None:
        return _open_row(row, language, split, progress)
    path, view = _path_and_view(name)
    if path is not None:
        return _open_path(path, view, language, split)
    if isinstance(name_or_path, Path) or name.startswith((".", "/", "~")) or name.endswith(_PATH_ENDINGS):
        raise BadInput(f"No file or folder {name}.")
    raise unknown_dataset(name)


def _open_row(row: Row, language: str | None, split: str | None, progress: Progress) -> Opened:
    _agree(row.name, "language", row.language, language)
    _agree(row.name, "split", row.split, split)
    path, *also = fetch_row(row, progress)
    request = Request(path=path, also=tuple(also), language=row.language, split=row.split, options=row.options)
    source = FORMATS[row.format].open(request)
    fields = ("name", "language", "split", "licence", "source", "revision", "ignore_titles")
    known = {key: getattr(row, key) for key in fields}
    known["revision"] = row.revision or " ".join(entry for entry in row.hub if "@" in entry)
    known["self_suffixes"] = source.id_suffixes if row.self_retrieval else ()
    return Opened(source=source, known=known, expected={key: getattr(row, key) for key in COUNTS if getattr(row, key)})


def _open_path(path: Path, view: str | None, language: str | None, split: str | None) -> Opened:
    kind = format_of(path)
    card = read_card(path)
    _agree(f"{path / CARD}", "language", card.get("language"), language)
    _agree(f"{path / CARD}", "split", card.get("split"), split)
    language = card.get("language") or language
    if not language:
        raise BadInput(f"{path} has no card.json that names its language: name it with --lang, as --lang ru.")
    options = {"view": view} if view else {}
    split = card.get("split") or split
    source = kind.open(Request(path=path, language=language, split=split, options=options))
    name = card.get("name") or path.resolve().name.split(".")[0]
    known: dict[str, Any] = {key: card[key] for key in ("licence", "source", "revision", "provenance") if key in card}
    known["name"] = f"{name}/{view}" if view else name
    known["language"] = language
    known["split"] = source.split
    known["ignore_titles"] = card.get("ignore_titles", kind.ignore_titles)
    known["self_suffixes"] = tuple(card.get("self_suffixes", ()))
    expected = {} if view else {key: card[key] for key in (*COUNTS, "fingerprint") if key in card}
    return Opened(source=source, known=known, expected=expected)


def _path_and_view(name: str) -> tuple[Path | None, str | None]:
    try:
        path = Path(name).expanduser()
        holder = path.parent
        is_view = len(path.parts) > 1 and holder.exists() and not _is_claimed(path) and _is_claimed(holder)
        if is_view and not path.is_file():
            return holder, path.name
        if path.exists():
            return path, None
    except (OSError, RuntimeError):
        # A name that no file can have: too long, in a folder closed to us, below the home of nobody.
        return None, None
    return None, None


def _is_claimed(path: Path) -> bool:
    return any(kind.claims(path) for kind in FORMATS.values())


def _agree(where: str, key: str, own: str | None, asked: str | None) -> None:
    if own and asked and own != asked:
        option = "--lang" if key == "language" else "--split"
        raise BadInput(f"{where} says that the {key} is {own!r}, not {asked!r}: leave {option} out.")

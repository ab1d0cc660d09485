"""The seam between formats and everything else: a dataset as three streams of records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from rusbeir.datasets.formats.records import Complain, Judgement, Place, Query
from rusbeir.types import Doc


class Source(Protocol):
    """Where a dataset lies, read in one format. The streams give records and their places, in file order."""

    @property
    def split(self) -> str:
        """The split that the judgements are of."""
        ...

    @property
    def id_suffixes(self) -> tuple[str, ...]:
        """What the format adds to ids: ("",) for nothing, several where a document has several copies."""
        ...

    @property
    def plain_corpus(self) -> Path | None:
        """The corpus as a JSONL file that can be used where it lies; None where it must be copied first."""
        ...

    @property
    def corpus_files(self) -> tuple[Path, ...]:
        """The files that the documents come from."""
        ...

    @property
    def recipe(self) -> str:
        """What makes these documents of those files: with their checksums, the key of the copy."""
        ...

    def documents(self, complain: Complain) -> Iterator[tuple[Place, Doc]]: ...

    def queries(self, complain: Complain) -> Iterator[tuple[Place, Query]]: ...

    def judgements(self, complain: Complain) -> Iterator[tuple[Place, Judgement]]: ...


@runtime_checkable
class WholeSource(Protocol):
    """A Source whose records may have keys besides those that everyone reads, such as metadata."""

    def whole_documents(self, complain: Complain) -> Iterator[tuple[Place, Doc, dict[str, Any]]]:
        """The documents, each with the keys that its record has besides."""
        ...

    def whole_queries(self, complain: Complain) -> Iterator[tuple[Place, Query, dict[str, Any]]]:
        """The queries, each with the keys that its record has besides."""
        ...


@dataclass(frozen=True, kw_only=True)
class Request:
    """How a path is to be read. split is None where the only one is meant; options are the format's own."""

    path: Path
    language: str
    split: str | None = None
    also: tuple[Path, ...] = ()
    """Other folders that hold parts of the same dataset, as repositories of judgements do."""
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def view(self) -> str | None:
        """Which of several datasets made of the same files is meant; None for the format's first."""
        return self.options.get("view")

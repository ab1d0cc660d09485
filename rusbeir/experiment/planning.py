"""Decide what is to be measured: load datasets, resolve systems for them, and pair them in every query language."""

from __future__ import annotations

import contextlib
import logging
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypedDict

import orjson

from rusbeir.datasets import (
    expand_languages,
    find_entry,
    find_parallel,
    label_dataset,
    load_splits,
    take_queries,
)
from rusbeir.errors import BadInput, RusbeirError, option
from rusbeir.evaluation import DEFAULT_MEASURES
from rusbeir.ledger import ROWS, ResultRow, read_rows
from rusbeir.retrieval import (
    ChecksAvailability,
    Encoder,
    Reranker,
    Spec,
    System,
    read_system,
    resolve,
)
from rusbeir.storage import append_line
from rusbeir.types import MULTILINGUAL, Dataset, Progress, Retriever, needs_judgements, silent

if TYPE_CHECKING:
    from rusbeir.cluster import On

logger = logging.getLogger(__name__)

SystemLike: TypeAlias = str | Spec | System | Retriever | Encoder | Reranker | Callable[..., Any]
"""A system, or an object of the caller's that is one: see `compose`."""


class MeasuringOptions(TypedDict, total=False):
    """Options that a diagnosis passes on to its measurements; `bench` documents them."""

    engine: str
    k: int
    out: str | Path
    force: bool
    budget_chars: int | None
    progress: Progress


@dataclass(frozen=True, kw_only=True)
class Request:
    """Options of a measurement that do not depend on the system and the dataset; `bench` documents them."""

    engine: str = "auto"
    language: str | None = None
    split: str | None = None
    k: int = 100
    measures: Sequence[str] = DEFAULT_MEASURES
    out: Path = Path("results")
    force: bool = False
    accept_difference: bool = False
    budget_chars: int | None = None
    query_languages: Sequence[str] = ()
    """Every dataset is asked in each of them; "all" stands for the languages of all datasets."""
    on: On = None
    batching: Mapping[str, Any] = field(default_factory=dict)
    """The jobs.BatchOptions that say something, for rerankers at an endpoint."""
    progress: Progress = silent


class Ledger:
    """Holds the rows of a results folder, which are read once, and those that this process adds.

    Without reuse nothing is read, not even a damaged file, and no row is reused.
    """

    def __init__(self, out: Path, *, reuse: bool = True) -> None:
        """Read the rows of the folder. Raises BadInput for a path that no row can hold."""
        if os.fsencode(str(out)).decode("utf-8", "replace") != str(out):
            raise BadInput(f"{option('out')} is {str(out)!r}, which is not UTF-8, as paths in rows must be. Rename it.")
        self.file = out / ROWS
        self._reuse = reuse
        self.rows = list(read_rows(out)) if reuse and self.file.exists() else []
        """Rows that may be reused."""

    def add(self, row: ResultRow) -> None:
        """Append a row to the file."""
        append_line(self.file, orjson.dumps(row))
        if self._reuse:
            self.rows.append(row)


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """One system to be measured on one dataset with queries in one language."""

    documents: Dataset
    """The dataset with its own queries; queries in other languages share its index."""
    dataset: Dataset
    """The dataset with the queries that are asked."""
    query_language: str
    system: System
    short_name: str
    """The short name of the system in tables; empty where it has none."""
    request: Request

    @property
    def label(self) -> str:
        card = self.documents.card
        return label_dataset(card.name, card.language, self.query_language)

    @property
    def signature(self) -> str:
        """Everything that decides the scores, except for the dataset."""
        left_out = "|self:left-out" if self.documents.card.self_suffixes else ""
        return f"{self.system.signature}{left_out}|k:{self.request.k}"

    def find_row(self, ledger: Ledger, measures: Sequence[str]) -> ResultRow | None:
        """Find the newest row of the same recipe on the same data that holds all measures and still has its run."""
        card, system = self.dataset.card, self.system.name
        recipe = (card.name, card.split, system, self.signature, self.dataset.fingerprint, self.query_language)
        for row in reversed(ledger.rows):
            same = recipe == (
                *(row[name] for name in ("dataset", "split", "system", "signature", "fingerprint")),
                row.get("query_language", row["language"]),
            )
            # A damaged row may have a name that no file can have.
            with contextlib.suppress(OSError):
                if same and all(name in row["measures"] for name in measures) and Path(row["run"]).exists():
                    logger.debug("%s on %s: the row in %s is reused", system, card.name, ledger.file)
                    if self.short_name and row.get("label") != self.short_name:
                        # Rows are never changed; the newest one counts.
                        row = row | {"label": self.short_name}
                        ledger.add(row)
                    return row
        return None


class Failed(NamedTuple):
    """A system that could not be measured on a dataset, and why."""

    system: str
    dataset: str
    error: RusbeirError


def plan_measurements(
    datasets: Sequence[str | Path | Dataset], systems: Sequence[SystemLike], request: Request, ledger: Ledger
) -> tuple[list[Measurement], list[Failed]]:
    """List what is to be measured: every system on every dataset in every query language; and what cannot be.

    Raises the error of the first dataset where none of them can be used.
    """
    specs = [read_system(system) for system in systems]
    short_names = [spec.label if isinstance(spec, Spec) else "" for spec in specs]
    measured = {row["system"] for row in ledger.rows}
    loaded: list[tuple[Dataset, list[System]]] = []
    sources: dict[str, str] = {}
    failed: list[Failed] = []
    for dataset in datasets:
        try:
            loaded.append(
                resolve_on(
                    dataset, specs, request.k, request.engine, request.language, request.split, request.progress,
                    request.accept_difference, measured,
                )
            )  # fmt: skip
        except RusbeirError as error:
            label = dataset.card.name if isinstance(dataset, Dataset) else str(dataset)
            failed += [Failed(str(spec) if isinstance(spec, Spec) else spec.name, label, error) for spec in specs]
            continue
        if not isinstance(dataset, Dataset):
            sources[loaded[-1][0].card.asked_in] = str(dataset)
    if failed and not loaded:
        raise failed[0].error
    cards = [documents.card for documents, _ in loaded]
    languages = expand_languages(request.query_languages, cards) if request.query_languages else []
    planned: list[Measurement] = []
    for documents, resolved in loaded:
        for source in [find_parallel(documents.card, language, sources) for language in languages] or [None]:
            dataset, asked_in = documents, documents.card.asked_in
            if source:
                dataset, asked_in = take_queries(documents, source, progress=request.progress)
            planned += [
                Measurement(
                    documents=documents,
                    dataset=dataset,
                    query_language=asked_in,
                    system=system,
                    short_name=short_name,
                    request=request,
                )
                for system, short_name in zip(resolved, short_names, strict=True)
            ]
    if across := [entry.system for entry in planned if entry.query_language != entry.documents.card.language]:
        _warn_of_words(across)
    elif languages:
        logger.warning(
            "%s: these are %s own queries.",
            "; ".join(f"{card.name} is in {card.asked_in}" for card in cards),
            "its" if len(cards) == 1 else "their",
        )
    return planned, failed


def resolve_on(
    dataset: str | Path | Dataset | Iterable[Any],
    systems: Sequence[SystemLike],
    k: int,
    engine: str,
    language: str | None,
    split: str | None,
    progress: Progress,
    accept_difference: bool = False,
    measured: Collection[str] = (),
    judged: bool = True,
) -> tuple[Dataset, list[System]]:
    """Load the dataset, and resolve the systems for its language; a resolved system stays as it is.

    A single system that lacks an extra, a key or a model is refused before a registered dataset is fetched, unless its
    name is in measured: a row that can be reused needs nothing. judged=False takes datasets without judgements, too.
    """
    if not isinstance(k, int) or k < 1:
        raise BadInput(f"k is {k!r}; ask for at least 1 hit per query.")
    if not isinstance(dataset, (str, Path, Dataset)):
        raise BadInput(
            f"A dataset is a name, a path or a rusbeir.Dataset, which {type(dataset).__name__!r} is not. "
            "rusbeir.Dataset.of makes one of your documents."
        )
    specs = [read_system(system) for system in systems]
    entry = find_entry(dataset) if isinstance(dataset, str) else None
    if entry and entry.language != MULTILINGUAL:
        # This comes before the download: the language may have no analyzer, and a key or an extra may be missing.
        early = [
            resolve(spec, language=entry.language, engine=engine) if isinstance(spec, Spec) else spec for spec in specs
        ]
        if len(early) == 1 and isinstance(early[0], ChecksAvailability) and early[0].name not in measured:
            early[0].check_available()
        specs = specs if entry.self_retrieval else [*early]
    if not isinstance(dataset, Dataset):
        dataset = load_splits(
            dataset, language=language, split=split, judged=judged, accept_difference=accept_difference,
            progress=progress,
        ).dataset  # fmt: skip
    elif judged and not dataset.qrels:
        raise needs_judgements(dataset.card.name)
    card = dataset.card
    return dataset, [
        resolve(
            spec, language=card.language, engine=engine, self_suffixes=card.self_suffixes, languages=dataset.languages
        )
        if isinstance(spec, Spec)
        else spec
        for spec in specs
    ]


def _warn_of_words(systems: Sequence[System]) -> None:
    """Warn of systems that compare words, as queries in another language share words with few documents."""
    names = dict.fromkeys(system.name for system in systems if re.search(r"\bbm25\b", system.name))
    if names:
        logger.warning(
            "%s: BM25 analyses all queries as texts in the language of the documents; of those in another language it "
            "matches only what both spell alike, such as names and numbers.", ", ".join(names),
        )  # fmt: skip

"""Documents and a system for them, as the verbs that need no judgements take them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rusbeir.cli import output

if TYPE_CHECKING:
    from rusbeir.retrieval import System
    from rusbeir.types import Dataset, Progress


def resolve_documents(
    dataset: str,
    system: str,
    *,
    k: int,
    engine: str,
    language: str | None,
    split: str | None,
    columns: str | None,
    progress: Progress,
) -> tuple[Dataset, System]:
    """Load a dataset or a table, and resolve the system for its language; say which columns were taken."""
    from rusbeir.datasets import find_entry
    from rusbeir.experiment import resolve_on

    source: str | Dataset = dataset
    if columns or not find_entry(dataset):
        source = load_documents(dataset, language=language, split=split, columns=columns, progress=progress)
    loaded, (resolved,) = resolve_on(source, [system], k, engine, language, split, progress, judged=False)
    return loaded, resolved


def load_documents(
    dataset: str, *, language: str | None, split: str | None, columns: str | None, progress: Progress
) -> Dataset:
    """Load a dataset or a table, perhaps without judgements; say which columns were taken."""
    from rusbeir.datasets import describe_table, load, read_columns

    named = read_columns(columns)
    loaded = load(dataset, language=language, split=split, judged=False, columns=columns, progress=progress)
    if chosen := describe_table(Path(dataset), named):
        output.note(f"Columns: {chosen}")
    return loaded

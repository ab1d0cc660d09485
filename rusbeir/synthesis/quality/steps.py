"""The steps of quality control: each decides about a query and a document, and keeps the evidence.

What a step decides does not depend on what a person has undone.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from rusbeir.errors import BadInput, option
from rusbeir.retrieval import RunSettings
from rusbeir.synthesis.quality import candidates, span_checks
from rusbeir.synthesis.quality.decisions import Action, Decision, Kind, apply_decisions
from rusbeir.synthesis.quality.relevance import POSITIVE, Labeller, Labelling, Pair, check_scale
from rusbeir.synthesis.queries.generated import list_negatives, refuse_wrong_spans
from rusbeir.types import Dataset, Queries


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The rules that decide. Raises BadInput for what cannot be right."""

    retriever: str = "bm25"
    rankers: Sequence[str] = ()
    """Two systems or more; none are needed where span_rankers or false_negatives are given."""
    engine: str = "auto"
    depth: int = candidates.DEPTH
    """The depth of the retriever and of the rankers."""
    threshold: int = candidates.THRESHOLD
    negative_threshold: int = candidates.NEGATIVE_THRESHOLD
    positive: int = POSITIVE
    """The least label that counts as positive."""
    grade: int | None = 1
    """The grade of judgements that are added; None takes the label."""
    span_rankers: Sequence[str] = ()
    false_negatives: Sequence[str] = ()
    """Rerankers: documents that one of them scores above a query's positive go, with the queries whose positive they
    are."""

    def __post_init__(self) -> None:
        check_scale(self.positive)
        for name in ("depth", "threshold", "negative_threshold", "grade"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise BadInput(f"{option(name, value)}: it must be at least 1.")
        alone = self.span_rankers or self.false_negatives
        if len(self.rankers) < candidates.MIN_RANKERS and not (alone and not self.rankers):
            raise BadInput(
                f"Rankers given: {len(self.rankers)}. A candidate is what most of several put first: give at "
                f"least {candidates.MIN_RANKERS}, better three: {option('ranker', 'bm25')}."
            )


@dataclass(kw_only=True)
class Control:
    """The steps on one dataset, with all of its splits."""

    dataset: Dataset
    generated: Mapping[str, Mapping[str, Any]]
    """What a made set says of its queries; {} for others."""
    rules: Rules
    settings: RunSettings
    decisions: list[Decision] = field(default_factory=list)
    """The decisions of the steps that have run."""
    stages: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What each step took."""

    def run(self, labeller: Labeller) -> None:
        """Return all steps. Systems that cannot run are found before anything is asked."""
        rules, language = self.rules, self.dataset.card.language
        pool = candidates.Pool.open(
            self.dataset, rules.retriever, rules.rankers, engine=rules.engine, depth=rules.depth
        )
        spans = span_checks.open_scorers("span_ranker", rules.span_rankers, language, self.settings)
        others = span_checks.open_scorers("false_negatives", rules.false_negatives, language, self.settings)
        if spans:
            refuse_wrong_spans(self.generated, self.dataset.corpus)
        labelling = labeller.label(self.positives)
        self._keep("source", self.check_sources(labelling), labelling)
        if spans:
            self._keep("span", self.check_spans(spans))
        if others:
            self._keep("false-negative", self.check_false_negatives(pool, others))
        if pool.rankers:
            started = time.perf_counter()
            hits = self.find_candidates(pool)
            ranked = time.perf_counter() - started
            labelling = labeller.label([(candidate.query_id, candidate.doc_id) for candidate in hits])
            self._keep("candidate", self.check_candidates(hits, labelling), labelling)
            self.stages["candidate"]["seconds"] += ranked

    def _keep(self, step: str, decisions: Iterable[Decision], labelling: Labelling | None = None) -> None:
        started = time.perf_counter()
        made = list(decisions)
        self.decisions += made
        self.stages[step] = {
            "decisions": len(made),
            **(labelling.to_dict() if labelling else {}),
            "seconds": time.perf_counter() - started + (labelling.seconds if labelling else 0.0),
        }

    @cached_property
    def positives(self) -> list[Pair]:
        return list_positives(self.dataset)

    def queries_left(self) -> Queries:
        """Return those that no decision so far has dropped."""
        left = apply_decisions(self.dataset.qrels, self.decisions, 1).qrels
        return {query_id: text for query_id, text in self.dataset.queries.items() if query_id in left}

    def check_sources(self, labelling: Labelling) -> Iterator[Decision]:
        """Judgements below the least positive label go, and the queries that have no other."""
        pairs = self.positives
        lost = {pair for pair, label in labelling.labels.items() if label.label < self.rules.positive}
        left = {query_id for query_id, doc_id in pairs if (query_id, doc_id) not in lost}
        for pair in pairs:
            label = labelling.labels.get(pair)
            decision = Decision(step="source", query_id=pair[0], doc_id=pair[1], kind="positive")
            if label:
                decision = replace(decision, label=label.label, reason=label.reason)
            if pair in lost:
                decision = replace(decision, action="drop-judgement" if pair[0] in left else "drop-query")
            yield decision

    def check_spans(self, scorers: Sequence[span_checks.Scorer]) -> Iterator[Decision]:
        """Drop queries whose document some reranker scores no higher with the span than without it."""
        left = self.queries_left()
        rows = [row for query_id, row in self.generated.items() if row["span"] and query_id in left]
        for n, row in enumerate(rows, 1):
            query_id, doc_id = row["query_id"], row["doc_id"]
            start, end = row["span"]
            scores = span_checks.score_span(scorers, left[query_id], self.dataset.corpus[doc_id], (start, end))
            yield Decision(
                step="span",
                query_id=query_id,
                doc_id=doc_id,
                kind="positive",
                scores=scores,
                action="keep" if span_checks.carries_answer(scores) else "drop-query",
            )
            self.settings.progress("spans", n, len(rows))

    def check_false_negatives(self, pool: candidates.Pool, scorers: Sequence[span_checks.Scorer]) -> Iterator[Decision]:
        """Documents that some reranker scores above a query's positive go, and the queries whose positive they are."""
        left = apply_decisions(self.dataset.qrels, self.decisions, 1).qrels
        corpus, positives = self.dataset.corpus, set(self.positives)
        for texts, run, _ in replace(pool, rankers={}).search(self.queries_left(), self.settings):
            for query_id, text in texts.items():
                judged = [doc_id for doc_id in left[query_id] if (query_id, doc_id) in positives]
                others = [corpus[doc_id] for doc_id in run[query_id] if doc_id not in judged]
                outscoring = span_checks.find_outscoring(scorers, text, [corpus[doc_id] for doc_id in judged], others)
                for doc_id, scores in outscoring:
                    yield Decision(
                        step="false-negative",
                        query_id=query_id,
                        doc_id=doc_id,
                        kind=self.kind_of(query_id, doc_id),
                        scores=scores,
                        action="drop-query-and-document",
                    )

    def find_candidates(self, pool: candidates.Pool) -> list[candidates.Candidate]:
        """Find the documents that are neither judged positive nor were labelled or removed by an earlier step."""
        settled = {(decision.query_id, decision.doc_id) for decision in self.decisions} | set(self.positives)
        gone = {decision.doc_id for decision in self.decisions if decision.action == "drop-query-and-document"}
        hits = candidates.find_candidates(
            pool,
            self.queries_left(),
            list_negatives(self.generated),
            threshold=self.rules.threshold,
            negative_threshold=self.rules.negative_threshold,
            settings=self.settings,
        )
        return [
            candidate
            for candidate in hits
            if (candidate.query_id, candidate.doc_id) not in settled and candidate.doc_id not in gone
        ]

    def check_candidates(self, hits: Sequence[candidates.Candidate], labelling: Labelling) -> Iterator[Decision]:
        """Hard negatives that are judged positive go; other documents that are get a judgement."""
        for candidate in hits:
            kind = self.kind_of(candidate.query_id, candidate.doc_id)
            decision = Decision(
                step="candidate",
                query_id=candidate.query_id,
                doc_id=candidate.doc_id,
                kind=kind,
                ranks=candidate.ranks,
                threshold=candidate.threshold,
            )
            label = labelling.labels.get((candidate.query_id, candidate.doc_id))
            if label:
                decision = replace(decision, label=label.label, reason=label.reason)
                if label.label >= self.rules.positive:
                    action: Action = "drop-document" if kind == "hard-negative" else "add-judgement"
                    decision = replace(decision, action=action)
            yield decision

    def kind_of(self, query_id: str, doc_id: str) -> Kind:
        """Say what the document was to the query."""
        if query_id in self.generated and doc_id in self.generated[query_id]["negatives"]:
            return "hard-negative"
        grade = self.dataset.qrels[query_id].get(doc_id)
        return "unjudged" if grade is None else "positive" if grade > 0 else "negative"


def list_positives(dataset: Dataset) -> list[Pair]:
    """List the pairs that are judged relevant, in the order of the queries, without documents that the corpus lacks."""
    pairs = []
    for query_id in dataset.queries:
        for doc_id, grade in dataset.qrels[query_id].items():
            with contextlib.suppress(KeyError):
                if grade > 0 and dataset.corpus[doc_id]:
                    pairs.append((query_id, doc_id))
    return pairs

"""Language models that rerank in batches: the pairs of many queries are sent together, at a lower price."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rusbeir.errors import BackendError, BadInput, option
from rusbeir.jobs import Budget, CharBudget, Journal, Llm, Postponed, Rejected, open_batches
from rusbeir.retrieval.rerank.llm import LIMITS, YesNoReranker, read_log_odds
from rusbeir.retrieval.rerank.reranker import Reranker, score_alone
from rusbeir.storage import cache_folder
from rusbeir.text import digest
from rusbeir.types import Progress

logger = logging.getLogger(__name__)

_POOL_PAIRS = 50_000
"""A batch of OpenAI's has at most so many requests."""


@dataclass(frozen=True, kw_only=True)
class Prompts:
    """The prompts of pairs, as tokens are for other models."""

    texts: list[str]
    over_length: list[bool]

    def take(self, indices: Sequence[int]) -> Prompts:
        """Return those of some pairs."""
        return Prompts(
            texts=[self.texts[index] for index in indices], over_length=[self.over_length[index] for index in indices]
        )


@dataclass(frozen=True, kw_only=True)
class BatchedReranker:
    """Scores as the reranker does, by requests that are answered in batches or in files."""

    reranker: YesNoReranker
    batching: Mapping[str, Any]
    """The jobs.BatchOptions that say something."""
    progress: Progress
    clients: list[Llm] = field(repr=False, compare=False)
    pointwise: bool = True
    pool_pairs: int = _POOL_PAIRS

    @property
    def signature(self) -> str:
        return self.reranker.signature

    @property
    def truncation(self) -> str:
        return self.reranker.truncation

    def are_truncated(self, query: str, documents: Sequence[str]) -> list[bool]:
        """Return for each document whether it is cut."""
        return self.reranker.are_truncated(query, documents)

    def score(self, query: str, documents: Sequence[str]) -> list[float]:
        """Return the scores of one query's documents, in a batch of their own."""
        return score_alone(self, query, documents)

    def tokenize_pairs(self, pairs: Iterable[tuple[str, str]]) -> Prompts:
        """Write the prompt of each pair."""
        texts, over_length = [], []
        for query, document in pairs:
            texts.append(self.reranker.write_prompt(query, document))
            over_length += self.reranker.are_truncated(query, [document])
        return Prompts(texts=texts, over_length=over_length)

    def score_tokens(self, tokens: Prompts, keep: Callable[[Any, Any], None]) -> None:
        """Call keep once all answers are there. Raises Suspended where they come later."""
        model = self.reranker.model
        path = find_journal(self.reranker)
        path.parent.mkdir(parents=True, exist_ok=True)
        with Journal.open(path, {"reranker": self.signature}) as journal:
            run = open_batches(
                self.batching, journal, Budget(journal), model.price, logger.warning, LIMITS, self.progress
            )
            # The scores are in the cache only after the run.
            run.keeps_answers = True
            llm = Llm(model=model.name, endpoint="", key="", price=model.price, exchange=run)
            scores: dict[int, float | None] = {}
            asyncio.run(run.run(lambda: self._ask(llm, tokens, scores)))
            llm.meter.spent = run.spent
        self.clients.append(llm)
        if unjudged := sum(score is None for score in scores.values()):
            logger.warning("%s %s", model.name, self.reranker.describe_unjudged(unjudged))
        keep(range(len(tokens.texts)), [scores[index] or 0.0 for index in range(len(tokens.texts))])

    async def _ask(self, llm: Llm, tokens: Prompts, scores: dict[int, float | None]) -> None:
        for index, prompt in enumerate(tokens.texts):
            if index in scores:
                continue
            try:
                scores[index] = await read_log_odds(llm, prompt)
            except Postponed:
                continue
            except Rejected as error:
                raise BackendError(f"{llm.model} did not judge. {error} Scores received so far are kept.") from error


def find_journal(reranker: Reranker) -> Path:
    """Find the journal of a reranker's batches in the cache."""
    return cache_folder() / "scores" / f"batches-{digest(reranker.signature, chars=12)}.sqlite"


def batch_reranker(
    reranker: Reranker, batching: Mapping[str, Any], budget: CharBudget | None, progress: Progress, clients: list[Llm]
) -> Reranker:
    """Return the reranker that is asked in batches; itself without options, where no batch is under way.

    Raises BadInput for a reranker that cannot be asked in batches, and where batches are under way that would be paid
    a second time.
    """
    if not batching:
        if isinstance(reranker, YesNoReranker) and (path := find_journal(reranker)).exists():
            with Journal.open(path, {"reranker": reranker.signature}) as journal:
                open_batches({}, journal, Budget(journal), reranker.model.price, logger.warning, LIMITS, progress)
        return reranker
    if not isinstance(reranker, YesNoReranker):
        raise BadInput(
            "Only language models that score each document (runtime=llm) are asked in batches: others need one answer "
            "for the next question, or run on this machine. Leave the options of batches out."
        )
    if budget is not None:
        raise BadInput(
            f"{option('budget_chars', budget.chars)} bounds requests that are sent one by one: leave it out here."
        )
    return BatchedReranker(reranker=reranker, batching=batching, progress=progress, clients=clients)

"""Rerank with a language model at an OpenAI-compatible endpoint: by the log-odds of yes, or by sorting a list.

Pointwise, a score is that of "yes" against "no" as the first token of the answer. Listwise, windows of hits are sorted
one after the other, from the last to the first (Sun et al., EMNLP 2023). Each answer is kept as soon as it arrives.
"""

from __future__ import annotations

import asyncio
import logging
import math
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import ClassVar, Self, TypeVar

from rusbeir.errors import BackendError, RusbeirError, option, require_version
from rusbeir.jobs import CHARS_PER_TOKEN, Answer, CharBudget, Exhausted, Limits, Llm, Meter, Rejected, Throttle
from rusbeir.retrieval.models.settings import Model, escape
from rusbeir.retrieval.rerank.reranker import Unjudged

logger = logging.getLogger(__name__)

T = TypeVar("T")

LIMITS = Limits(concurrency=8, timeout_seconds=120)
TOP_LOGPROBS = 20
TOKENS_TO_THINK = 2048
"""The tokens for models that think before they sort: with a window and the answer, they fit into 8,192."""

_YES_NO = (
    "You judge whether a document answers a search query. Documents and queries may be in any language. "
    "Answer with one word, yes or no."
)
_LIST = (
    "You sort documents by how well they answer a search query, the best first. Documents and queries may be in any "
    "language. Answer with their numbers alone, such as: [2] > [1] > [3]"
)


@dataclass(frozen=True, kw_only=True)
class _LlmReranker:
    """Shared by both rerankers: a model at the endpoint, and the length at which documents are cut."""

    model: Model
    budget: CharBudget | None = None
    clients: list[Llm] = field(default_factory=list, repr=False, compare=False)
    max_tokens: ClassVar[int]
    """The tokens of a document that are read, where neither models.toml nor the stage sets them."""

    def with_meter(self, budget: CharBudget | None, clients: list[Llm]) -> Self:
        """Return a copy of the reranker that reserves each request in the budget before it sends it."""
        return replace(self, budget=budget, clients=clients)

    def check_available(self) -> None:
        """Raise MissingExtra without the package openai, and BadInput without an endpoint or a key."""
        require_version("openai", f"The model {self.model.name} at an endpoint", "llm")
        Llm.from_environment(self.model.name)

    @property
    def truncation(self) -> str:
        return f"cut at {self._chars:,} characters"

    def are_truncated(self, query: str, documents: Sequence[str]) -> list[bool]:
        """Return for each document whether it is cut; queries never are."""
        return [len(text) > self._chars for text in documents]

    @property
    def _chars(self) -> int:
        return CHARS_PER_TOKEN * (self.model.max_tokens or self.max_tokens)

    @property
    def _ending(self) -> str:
        """The end of both signatures. The revision distinguishes models that a server gives the same name."""
        revision = f"|revision:{escape(self.model.revision)}" if self.model.revision else ""
        return f"chars:{self._chars}{revision}"

    @cached_property
    def _llm(self) -> Llm:
        llm = replace(Llm.from_environment(self.model.name, price=self.model.price), meter=Meter(budget=self.budget))
        self.clients.append(llm)
        logger.warning("Queries and documents are sent to %s, to be judged by %s.", llm.endpoint, llm.model)
        return llm


@dataclass(frozen=True, kw_only=True)
class YesNoReranker(_LlmReranker):
    """Scores a document by log P(yes) - log P(no) over the likeliest first tokens of the answer."""

    pointwise: bool = True
    max_tokens: ClassVar[int] = 1024

    @property
    def signature(self) -> str:
        return f"{self.model.name}|runtime:llm|yes-no:1|{self._ending}"

    def describe_unjudged(self, count: int) -> str:
        return f"said neither yes nor no of {count} documents: they score 0."

    def write_prompt(self, query: str, document: str) -> str:
        """Write what the model is asked about a document."""
        return f"Query: {query}\n\nDocument: {document[: self._chars]}\n\nIs it relevant?"

    def score(self, query: str, documents: Sequence[str]) -> list[float]:
        """Return one difference of log-probabilities per document; 0 where the model says neither."""
        scores = [0.0] * len(documents)
        self.score_each(query, documents, lambda index, score: scores.__setitem__(index, score or 0.0))
        return scores

    def score_each(self, query: str, documents: Sequence[str], keep: Callable[[int, float | None], None]) -> None:
        """Call keep(index, score) as the answers arrive, with None where the model says neither."""
        prompts = [self.write_prompt(query, text) for text in documents]
        asyncio.run(_judge(self._llm, prompts, keep))


@dataclass(frozen=True, kw_only=True)
class ListReranker(_LlmReranker):
    """Sorts a window of documents; a document's score says only where it ended up."""

    window: int = 20
    step: int = 10
    max_tokens: ClassVar[int] = 256

    @property
    def signature(self) -> str:
        return f"{self.model.name}|runtime:llm-list|window:{self.window}/{self.step}|{self._ending}"

    def describe_unjudged(self, count: int) -> str:
        return (
            f"did not sort {count} lists: its answers name no document, or were cut off before naming all. "
            f"They keep their order. The next run (of bench, with {option('force', True)}) asks about them again."
        )

    def score(self, query: str, documents: Sequence[str]) -> list[float]:
        """Return how many documents ended up behind each. Raises Unjudged where the answer does not sort them."""
        lines = [f"[{n}] {' '.join(text[: self._chars].split())}" for n, text in enumerate(documents, start=1)]
        prompt = f"Query: {query}\n\n" + "\n".join(lines)
        answer = asyncio.run(_ask_once(self._llm, _LIST, prompt, TOKENS_TO_THINK + 6 * len(documents)))
        named = _find_indices(answer.text, len(documents))
        if not named or (answer.finish_reason == "length" and len(named) < len(documents)):
            raise Unjudged(f"{self.model.name} did not sort the {len(documents)} documents.")
        scores = [0.0] * len(documents)
        for rank, index in enumerate(read_order(answer.text, len(documents))):
            scores[index] = float(len(documents) - 1 - rank)
        return scores


def read_order(answer: str, n: int) -> list[int]:
    """Return 0 to n - 1 in the order in which the answer names them (from 1), and then those that it left out.

    >>> read_order("[2] > [3] > [2] > [9]", 4)
    [1, 2, 0, 3]
    """
    return list(dict.fromkeys([*_find_indices(answer, n), *range(n)]))


def _find_indices(answer: str, n: int) -> list[int]:
    """Return those of 0 to n - 1 that the answer names (from 1), each once; its reasoning does not count."""
    verdict = re.sub(r"(?s)^.*</think>|<think>.*", "", answer)
    indices = [int(number) - 1 for number in re.findall(r"\d{1,6}", verdict)]
    return list(dict.fromkeys(index for index in indices if 0 <= index < n))


def _log_odds(top: Sequence[tuple[str, float]]) -> float | None:
    """Return log P(yes) - log P(no); a missing word counts as the least likely token. None where both are missing."""
    logprobs: dict[str, list[float]] = {"yes": [], "no": []}
    for token, logprob in top:
        logprobs.get(token.strip().lower(), []).append(logprob)
    if not any(logprobs.values()):
        return None
    least = min(logprob for _, logprob in top)
    return _log_sum(logprobs["yes"] or [least]) - _log_sum(logprobs["no"] or [least])


def _log_sum(logprobs: Sequence[float]) -> float:
    """Return the logarithm of a sum of probabilities that may each be too small for a float."""
    largest = max(logprobs)
    return largest + math.log(sum(math.exp(logprob - largest) for logprob in logprobs))


async def _judge(llm: Llm, prompts: Sequence[str], keep: Callable[[int, float | None], None]) -> None:
    """Call keep with the score of each prompt's document. Raise what stopped a request once all answers are in."""
    throttle = Throttle(LIMITS)
    stopped: list[RusbeirError] = []

    async def ask(prompt: str) -> tuple[tuple[str, float], ...]:
        if stopped:
            raise stopped[0]
        return await _first_tokens(llm, prompt)

    async def judge(index: int, prompt: str) -> None:
        try:
            keep(index, _log_odds(await _ask(llm, throttle, partial(ask, prompt))))
        except RusbeirError as error:
            stopped.append(error)

    async with llm:
        # Requests under way have been paid for: wait for them, also when another request failed.
        await asyncio.gather(*(judge(index, prompt) for index, prompt in enumerate(prompts)))
    if stopped:
        raise stopped[0]


async def _ask(llm: Llm, throttle: Throttle, call: Callable[[], Awaitable[T]]) -> T:
    try:
        return await throttle.run(call)
    except (Exhausted, Rejected) as error:
        raise BackendError(f"{llm.endpoint} did not judge. {error} Scores received so far are kept.") from error


async def _first_tokens(llm: Llm, prompt: str) -> tuple[tuple[str, float], ...]:
    answer = await llm.chat(_messages(_YES_NO, prompt), max_tokens=1, top_logprobs=TOP_LOGPROBS)
    # A model that ends at once, or starts with half a character, says neither and leaves no token to look at.
    if answer.text.strip("\ufffd") and not answer.first_tokens:
        raise BackendError(
            f"{llm.endpoint} answered without log-probabilities, which runtime=llm needs. Use runtime=llm-list."
        )
    return answer.first_tokens


async def read_log_odds(llm: Llm, prompt: str) -> float | None:
    """Ask once, and return log P(yes) - log P(no); None where the model says neither."""
    return _log_odds(await _first_tokens(llm, prompt))


async def _ask_once(llm: Llm, system: str, prompt: str, max_tokens: int) -> Answer:
    async with llm:
        request = partial(llm.chat, _messages(system, prompt), max_tokens=max_tokens)
        return await _ask(llm, Throttle(LIMITS), request)


def _messages(system: str, prompt: str) -> list[dict[str, str]]:
    return [{"role": "system", "content": system}, {"role": "user", "content": prompt}]

"""Language models as rerankers, at any OpenAI-compatible endpoint: by the log-odds of yes, or by sorting a list.

Pointwise: "yes" against "no" as the first token of the answer. Listwise: windows of hits from the last to the first,
sorted one after the other (Sun et al., EMNLP 2023). Each answer is kept when it is there.
"""

from __future__ import annotations

import asyncio
import logging
import math
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TypeVar

from rusbeir.errors import BackendError
from rusbeir.jobs import Exhausted, Limits, Llm, Throttle, spending
from rusbeir.retrieval.models import Model

logger = logging.getLogger(__name__)

T = TypeVar("T")

LIMITS = Limits(concurrency=8, timeout_seconds=120)
TOP_LOGPROBS = 20
CHARS_A_TOKEN = 3
"""Texts are cut by characters, as the endpoint's tokenizer is not at hand; Cyrillic has about three to a token."""
MAX_TOKENS = {"llm": 1024, "llm-list": 256}

_YES_NO = (
    "You judge whether a document answers a search query. Documents and queries may be in any language. "
    "Answer with one word, yes or no."
)
_LIST = (
    "You sort documents by how well they answer a search query, the best first. Documents and queries may be in any "
    "language. Answer with their numbers alone, such as: [2] > [1] > [3]"
)


@dataclass(frozen=True, kw_only=True)
class YesNoReranker:
    """Scores a document by log P(yes) - log P(no) over the likeliest first tokens of the answer."""

    model: Model
    pointwise: bool = True

    @property
    def signature(self) -> str:
        return f"{self.model.name}|runtime:llm|yes-no:1|chars:{_chars(self.model, 'llm')}"

    @property
    def over_length(self) -> str:
        return f"cut at {_chars(self.model, 'llm'):,} characters"

    def are_over_length(self, query: str, documents: Sequence[str]) -> list[bool]:
        """Which documents are cut; queries never are."""
        return [len(text) > _chars(self.model, "llm") for text in documents]

    def score(self, query: str, documents: Sequence[str]) -> list[float]:
        """One difference of log-probabilities a document; 0 where the model says neither, which is reported."""
        scores = [0.0] * len(documents)
        self.score_each(query, documents, scores.__setitem__)
        return scores

    def score_each(self, query: str, documents: Sequence[str], keep: Callable[[int, float], None]) -> None:
        """The same, handed over one by one as the answers come."""
        chars = _chars(self.model, "llm")
        prompts = [f"Query: {query}\n\nDocument: {text[:chars]}\n\nIs it relevant?" for text in documents]
        llm = self._llm
        spending.spend(sum(len(_YES_NO) + len(prompt) for prompt in prompts))
        silent = asyncio.run(_judge(llm, prompts, keep))
        if silent:
            logger.warning("%s said neither yes nor no of %d documents: they score 0.", self.model.name, silent)

    @cached_property
    def _llm(self) -> Llm:
        return _announced(self.model)


@dataclass(frozen=True, kw_only=True)
class ListReranker:
    """Sorts a window of documents; a document's score says only where it ended up."""

    model: Model
    window: int = 20
    step: int = 10

    @property
    def signature(self) -> str:
        windows = f"window:{self.window}/{self.step}"
        return f"{self.model.name}|runtime:llm-list|{windows}|chars:{_chars(self.model, 'llm-list')}"

    @property
    def over_length(self) -> str:
        return f"cut at {_chars(self.model, 'llm-list'):,} characters"

    def are_over_length(self, query: str, documents: Sequence[str]) -> list[bool]:
        """Which documents are cut; queries never are."""
        return [len(text) > _chars(self.model, "llm-list") for text in documents]

    def score(self, query: str, documents: Sequence[str]) -> list[float]:
        """The number of documents that ended up behind each."""
        chars = _chars(self.model, "llm-list")
        lines = [f"[{n}] {' '.join(text[:chars].split())}" for n, text in enumerate(documents, start=1)]
        prompt = f"Query: {query}\n\n" + "\n".join(lines)
        llm = self._llm
        spending.spend(len(_LIST) + len(prompt))
        answer = asyncio.run(_answered(llm, _LIST, prompt, 6 * len(documents)))
        scores = [0.0] * len(documents)
        for rank, place in enumerate(permutation(answer, len(documents))):
            scores[place] = float(len(documents) - 1 - rank)
        return scores

    @cached_property
    def _llm(self) -> Llm:
        return _announced(self.model)


def permutation(answer: str, n: int) -> list[int]:
    """The places 0 to n - 1 in the order that the answer names them (from 1); those left out follow as they stood.

    >>> permutation("[2] > [3] > [2] > [9]", 4)
    [1, 2, 0, 3]
    """
    named = [int(number) - 1 for number in re.findall(r"\d{1,6}", answer)]
    return list(dict.fromkeys([place for place in named if 0 <= place < n] + list(range(n))))


def make_yes_no(model: Model) -> YesNoReranker:
    """The pointwise reranker; the environment is read when it is first needed."""
    return YesNoReranker(model=model)


def make_listwise(model: Model) -> ListReranker:
    """The listwise reranker; the environment is read when it is first needed."""
    return ListReranker(model=model)


def _odds(top: Sequence[tuple[str, float]]) -> float | None:
    """log P(yes) - log P(no); a word that is missing counts as the least likely token. None where both are."""
    chances = {"yes": 0.0, "no": 0.0}
    for token, logprob in top:
        word = token.strip().lower()
        if word in chances:
            chances[word] += math.exp(logprob)
    if not any(chances.values()):
        return None
    least = math.exp(min(logprob for _, logprob in top))
    return math.log(chances["yes"] or least) - math.log(chances["no"] or least)


async def _judge(llm: Llm, prompts: Sequence[str], keep: Callable[[int, float], None]) -> int:
    """Hands over the score of each prompt's document; how many were answered by neither yes nor no."""
    throttle = Throttle(LIMITS)
    silent = 0

    async def judge(place: int, prompt: str) -> None:
        nonlocal silent
        odds = _odds(await _patiently(llm, throttle, partial(_first_tokens, llm, prompt)))
        silent += odds is None
        keep(place, odds or 0.0)

    async with llm:
        await asyncio.gather(*(judge(place, prompt) for place, prompt in enumerate(prompts)))
    return silent


async def _patiently(llm: Llm, throttle: Throttle, call: Callable[[], Awaitable[T]]) -> T:
    try:
        return await throttle.run(call)
    except Exhausted as error:
        raise BackendError(f"{llm.endpoint} does not judge. {error} What was scored is kept.") from error


async def _first_tokens(llm: Llm, prompt: str) -> tuple[tuple[str, float], ...]:
    answer = await llm.chat(_messages(_YES_NO, prompt), max_tokens=1, top_logprobs=TOP_LOGPROBS)
    # A model that ends at once, or begins with half a character, has said neither and leaves no token to look at.
    if answer.text.strip("\ufffd") and not answer.first_tokens:
        raise BackendError(
            f"{llm.endpoint} answers without log-probabilities, which runtime=llm needs. Use runtime=llm-list."
        )
    return answer.first_tokens


async def _answered(llm: Llm, system: str, prompt: str, max_tokens: int) -> str:
    async with llm:
        asked = partial(llm.chat, _messages(system, prompt), max_tokens=max_tokens)
        return (await _patiently(llm, Throttle(LIMITS), asked)).text


def _messages(system: str, prompt: str) -> list[dict[str, str]]:
    return [{"role": "system", "content": system}, {"role": "user", "content": prompt}]


def _announced(model: Model) -> Llm:
    llm = Llm.from_environment(model.name)
    logger.warning("Queries and documents are sent to %s, to be judged by %s.", llm.endpoint, llm.model)
    return llm


def _chars(model: Model, runtime: str) -> int:
    return CHARS_A_TOKEN * (model.max_tokens or MAX_TOKENS[runtime])

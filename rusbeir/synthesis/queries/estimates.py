"""The requests that making queries would send to a model, and what they may cost, before anything is sent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

from rusbeir.errors import BadInput, option
from rusbeir.jobs import (
    CHARS_PER_TOKEN,
    Asker,
    LlmJob,
    Task,
    bound_request,
    describe_time,
    estimate_seconds,
    list_missing_prices,
    read_llm_options,
)
from rusbeir.synthesis.likeness import count_words
from rusbeir.synthesis.queries.drafts import STEPS, Draft
from rusbeir.synthesis.queries.questions import NEGATIVE_WORDS, Writer
from rusbeir.synthesis.queries.request import Order, QueriesRequest, make_order, split_request
from rusbeir.types import Dataset

_SENTENCE_CHARS = 80
"""The usual length of a query, a character or a scenario."""
_ANSWER_CHARS = {"characters": 240, "scenarios": 480, "query": 100, "rewrites": 300, "question": 240, "span": 150}
_CHARS_PER_WORD = 7


@dataclass(frozen=True, kw_only=True)
class QueriesEstimate:
    """The requests to a model if it answered every question at once."""

    source: str
    kind: str
    documents: int
    queries: int
    requests: int
    input_tokens: int
    """Estimated, as the tokens received, at CHARS_PER_TOKEN."""
    output_tokens: int
    cost: float
    batch_cost: float | None
    """None where nothing is known of batches."""
    cached_cost: float | None
    """None where the price of a provider's cache is not known. Each kind of question has a short prompt of its own."""
    cost_at_most: float
    """The cost with one token a byte, and the longest answers that are allowed."""
    seconds: float
    missing_options: tuple[str, ...]
    """Options without which the costs are not known."""
    assumption: str
    """A sentence that says what the time depends on."""


def estimate_queries(
    corpus: str | Path | Dataset,
    **request: Unpack[QueriesRequest],
) -> QueriesEstimate:
    """Estimate what make_queries would ask of the model; nothing is sent, no credentials are needed."""
    wish, asking = split_request(request)
    job = LlmJob.of("", "", asking)
    price, limits = read_llm_options(job.options)
    order = make_order(corpus, **wish)
    writer = order.writer
    requests = sent = received = 0
    at_most = 0.0
    seen: set[bytes] = set()
    for done, draft in enumerate(order.begin(), 1):
        for step, payload in _payloads(order, draft):
            if (key := Task.of(step, payload).key) in seen:
                continue
            seen.add(key)
            question = writer.question(step)
            chars, cost = bound_request(question, question.write(payload), price)
            requests += 1
            sent += chars
            received += _guess_answer(writer, draft, step)
            at_most += cost
        job.progress("estimate", done, order.n)
    tokens = sent // CHARS_PER_TOKEN, received // CHARS_PER_TOKEN
    return QueriesEstimate(
        source=order.source.card.name,
        kind=order.kind,
        documents=len(order.drawn.doc_ids),
        queries=order.n,
        requests=requests,
        input_tokens=tokens[0],
        output_tokens=tokens[1],
        cost=price.of(*tokens),
        **price.compare(requests, *tokens, 0)._asdict(),
        cost_at_most=at_most,
        seconds=estimate_seconds(requests, tokens[1], limits),
        missing_options=list_missing_prices(job.options),
        assumption=describe_time(limits),
    )


def refuse_small_budget(order: Order, asker: Asker) -> None:
    """Raise BadInput where the budget may end before the first query is made, so that it would buy nothing."""
    budget = asker.budget
    draft = next(order.begin())
    chars, cost = 0, 0.0
    for step, payload in _payloads(order, draft):
        question = order.writer.question(step)
        bound = bound_request(question, question.write(payload), asker.client.price)
        chars, cost = chars + bound[0], cost + bound[1]
    for name, limit, need, unit in (
        ("budget_chars", budget.chars, chars, "characters"),
        ("budget_cost", budget.cost, cost, "in money"),
    ):
        if limit is not None and limit < need:
            raise BadInput(
                f"The budget of {limit:,} {unit} may not suffice for one query: that of {draft.doc_id!r} takes up "
                f"to {need:,.6g}. Give a larger {option(name)}."
            )


def _payloads(order: Order, draft: Draft) -> Iterator[tuple[str, str]]:
    """Yield (step, payload) of a draft whose answers are all of a usual length."""
    # Two queries of a document have different ones.
    sentence = f"{'x' * _SENTENCE_CHARS}{draft.number}"
    typical: dict[str, Any] = {
        "characters": [sentence],
        "scenarios": [sentence],
        "query": sentence,
        "rewrites": [sentence],
        "negatives": [],
        "question": {"question": sentence, "answer": sentence},
        "span": [0, 1],
    }
    for step in STEPS[order.kind]:
        yield step, draft.payload(step)
        draft.made[step] = typical[step]


def _guess_answer(writer: Writer, draft: Draft, step: str) -> int:
    """Return the characters of a usual answer."""
    if step != "negatives":
        return _ANSWER_CHARS[step]
    words = min(count_words(writer.corpus[draft.doc_id].text), NEGATIVE_WORDS)
    return int(draft.attributes["negatives"]) * words * _CHARS_PER_WORD

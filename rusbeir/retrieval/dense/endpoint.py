"""Encode texts at any endpoint with OpenAI's embeddings API, set by OPENAI_BASE_URL and OPENAI_API_KEY."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from rusbeir.errors import BackendError, require_version
from rusbeir.jobs import CHARS_PER_TOKEN, CharBudget, Exhausted, Limits, Llm, Meter, Rejected, Throttle, Transient
from rusbeir.retrieval.encoding.encoder import Vectors
from rusbeir.retrieval.models.settings import Model, escape

logger = logging.getLogger(__name__)

LIMITS = Limits(concurrency=1, timeout_seconds=120)
MAX_ANSWER_BYTES = 64 << 20
"""The longest answer that is read: 64 texts (BLOCK_TEXTS) of 16,384 dimensions of 64 characters."""


@dataclass(frozen=True, kw_only=True)
class EndpointEncoder:
    """Encodes texts with one model, by its name at the endpoint."""

    model: Model
    budget: CharBudget | None = None
    clients: list[Llm] = field(default_factory=list, repr=False, compare=False)

    def with_meter(self, budget: CharBudget | None, clients: list[Llm]) -> EndpointEncoder:
        """Return a copy of the encoder that reserves each request in the budget before it sends it."""
        return replace(self, budget=budget, clients=clients)

    def check_available(self) -> None:
        """Raise MissingExtra without the package openai, and BadInput without an endpoint or a key."""
        require_version("openai", f"The model {self.model.name} at an endpoint", "llm")
        Llm.from_environment(self.model.name)

    @property
    def signature(self) -> str:
        """Everything that decides the vectors; not the endpoint's address, as the same model may move."""
        revision = self.model.revision
        # The model's signature has its first eight letters: enough for a commit, too few for "default-qwen3-8b".
        whole = "" if len(revision) <= 8 or re.fullmatch("[0-9a-f]{40}", revision) else f"|revision:{escape(revision)}"
        return f"{self.model.signature}|runtime:openai{whole}"

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """Return float32 [n, dim], rows L2-normalised."""
        return self._encode([self.model.query_prefix + text for text in texts])

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """Return float32 [n, dim], rows L2-normalised."""
        return self._encode([self.model.document_prefix + text for text in texts])

    @property
    def truncation(self) -> str:
        return f"it cuts or refuses them (estimated, at {CHARS_PER_TOKEN} characters a token)"

    def count_truncated(self, texts: Sequence[str]) -> int:
        """Estimate how many documents are longer than max_tokens of models.toml or of the stage."""
        if self.model.max_tokens is None:
            return 0
        max_chars = CHARS_PER_TOKEN * self.model.max_tokens
        return sum(len(self.model.document_prefix) + len(text) > max_chars for text in texts)

    def _encode(self, texts: list[str]) -> Vectors:
        llm = self._llm
        if llm not in self.clients:
            self.clients.append(llm)
            logger.warning("Texts are sent to %s, to be encoded by %s.", llm.endpoint, llm.model)
        # OpenAI refuses a whole block because of one empty text.
        return asyncio.run(_ask(llm, [text if text.strip() else " " for text in texts]))

    @cached_property
    def _llm(self) -> Llm:
        llm = Llm.from_environment(self.model.name, price=self.model.price)
        return replace(llm, max_answer_bytes=MAX_ANSWER_BYTES, meter=Meter(budget=self.budget))


async def _ask(llm: Llm, texts: list[str]) -> Vectors:
    async with llm:
        try:
            answer = await Throttle(LIMITS).run(lambda: _embeddings(llm, texts))
        except (Exhausted, Rejected) as error:
            raise BackendError(f"{llm.endpoint} returned no embeddings. {error} Earlier ones are kept.") from error
    return answer


async def _embeddings(llm: Llm, texts: list[str]) -> Vectors:
    rows = await llm.embed(texts)
    if len(rows) != len(texts):
        raise BackendError(f"{llm.endpoint} returned {len(rows)} vectors for {len(texts)} texts. Nothing was kept.")
    if len({len(row) for row in rows}) != 1:
        raise Transient("malformed", detail="the vectors have different lengths")
    # What is too large for a float becomes infinity or NaN, which check_vectors refuses.
    with np.errstate(over="ignore", invalid="ignore"):
        vectors = np.array(rows, dtype=np.float32)
        # Not every server normalises, and the Protocol promises unit length.
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors /= np.where(lengths == 0, 1, lengths)
    return vectors

"""Weigh terms with models that sentence-transformers loads as a SparseEncoder: SPLADE, and those with a router."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from typing import Any

from scipy import sparse

from rusbeir.errors import BadInput, require
from rusbeir.retrieval.encoding.encoder import Weights, collect
from rusbeir.retrieval.models.batches import Tokens
from rusbeir.retrieval.models.library_encoder import NEEDED_BY, LibraryEncoder, name_task, refuse_remote_code
from rusbeir.retrieval.models.settings import Model

VOCABULARY = 32_768
"""The terms beyond which a batch has fewer tokens: a number for each token and term is in memory."""
SIMILARITIES = ("dot", "cosine")
"""Cosines become inner products of weights divided by their length."""


@dataclass(frozen=True, kw_only=True)
class SpladeEncoder(LibraryEncoder):
    """Encodes texts as csr_array, float32 [n, vocabulary], as the model's own files say."""

    kind = "sparse"
    library_class = "SparseEncoder"

    def encode_queries(self, texts: Sequence[str]) -> Weights:
        """Return a row for each text."""
        return collect(self, self.tokenize(texts, queries=True))

    def encode_documents(self, texts: Sequence[str]) -> Weights:
        """Return a row for each text."""
        return collect(self, self.tokenize(texts, queries=False))

    def encode_tokens(self, tokens: Tokens, done: Set[int], keep: Callable[[Any, Weights], None]) -> None:
        """Call keep(indices, weights) for each batch that is not done."""
        limit = self.transformer.max_active_dims
        select = require("sentence_transformers.util", *NEEDED_BY).select_max_active_dims

        def compute(device: str, _: Any, features: Any) -> Any:
            weights = self.copies[device](dict(features), task=name_task(tokens.queries))["sentence_embedding"]
            weights = weights.float() if limit is None else select(weights.float(), max_active_dims=limit)
            if self.transformer.similarity_fn_name == "cosine":
                weights = weights / weights.norm(dim=1, keepdim=True).clamp(min=1e-12)
            return weights

        self.devices.run(tokens, done, compute, lambda indices, rows: keep(indices, sparse.csr_array(rows)))

    def read(self, chunk: list[str], prefix: str, *, queries: bool) -> Any:
        """Return lists of what the model reads; a module that looks weights up returns padded tensors."""
        encoding = super().read(chunk, prefix, queries=queries)
        if isinstance(encoding["input_ids"], list):
            return encoding
        mask = encoding.pop("attention_mask").bool()
        return {
            name: [row[read].tolist() for row, read in zip(rows, mask, strict=True)] if name.endswith("_ids") else rows
            for name, rows in encoding.items()
        }

    @property
    def batch_tokens(self) -> int:
        vocabulary = max(1, self.transformer.get_embedding_dimension() or VOCABULARY)
        return max(1, self.devices.batch_tokens * VOCABULARY // max(VOCABULARY, vocabulary))

    def configure(self, transformer: Any) -> None:
        """Set the length. Raises BadInput for a similarity that no inner product gives."""
        super().configure(transformer)
        if transformer.similarity_fn_name not in SIMILARITIES:
            raise BadInput(
                f"{self.model.name} compares weights by {transformer.similarity_fn_name}. "
                f"sparse computes {' and '.join(SIMILARITIES)}."
            )


def make_encoder(*, model: Model) -> SpladeEncoder:
    """Make the encoder of that model. Raises BadInput for a model that needs remote code."""
    refuse_remote_code(model)
    return SpladeEncoder(model=model)

"""Score pairs by the vectors of their tokens, which a model computes of queries and documents separately."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

from rusbeir.retrieval.encoding.token_vectors import TokenVectors
from rusbeir.retrieval.models.batches import Devices, Keep, load_torch
from rusbeir.retrieval.rerank.reranker import PairTokens

EMPTY_SCORE = -1e9
"""The score of a document without vectors, as sentence-transformers has it."""

Embed: TypeAlias = Callable[..., tuple[Any, Any]]
"""Called with a device, features and queries=; returns vectors [texts, tokens, dim] and which count [texts, tokens]."""


def mark(vectors: Any, mask: Any) -> Any:
    """Return the vectors with one more number, which is 0 for those that do not count."""
    return load_torch().cat([vectors.float(), mask.float()[..., None]], dim=-1)


def score_token_vectors(tokens: PairTokens, devices: Devices, embed: Embed, keep: Keep) -> None:
    """Call keep(indices, scores) for each batch of pairs.

    A score is the sum, over the query's vectors, of the greatest inner product with one of the document's.
    """
    torch = load_torch()
    vectors: dict[int, Any] = {}

    def keep_queries(indices: Any, rows: Any) -> None:
        vectors.update(zip(indices.tolist(), TokenVectors.of_masked(rows), strict=True))

    def compute(device: str, indices: Any, features: Mapping[str, Any]) -> Any:
        documents, mask = embed(device, features, queries=False)
        query_of = tokens.query_of[indices]
        scores = torch.empty(len(indices), device=device)
        for query in set(query_of.tolist()):
            mine = torch.from_numpy(query_of == query).to(device)
            likeness = (torch.from_numpy(vectors[query]).to(documents) @ documents[mine].mT).float()
            # Padding must not compete with tokens, or scores would depend on the batch.
            greatest = likeness.masked_fill(~mask[mine][:, None], -torch.inf).amax(dim=2).sum(dim=1)
            scores[mine] = greatest.masked_fill(~mask[mine].any(dim=1), EMPTY_SCORE)
        return scores

    embed_queries = partial(embed, queries=True)
    devices.run(
        tokens.queries, frozenset(), lambda device, _, features: mark(*embed_queries(device, features)), keep_queries
    )
    devices.run(tokens.documents, frozenset(), compute, keep)

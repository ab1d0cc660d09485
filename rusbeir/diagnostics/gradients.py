"""The strength with which each token of a document moves its similarity to a query: norms of gradients, by torch."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rusbeir.errors import BackendError, BadInput
from rusbeir.retrieval import Encoder, SentenceTransformerEncoder
from rusbeir.text import shorten

_SPECIAL = "special_tokens_mask"


class TokenNorms(NamedTuple):
    """One number for each token of a document that the model reads, in the order of the document."""

    norms: NDArray[np.float64]
    """The L2 norm of the gradient of the similarity with respect to the token's input embedding."""
    is_text: NDArray[np.bool_]
    """False for the tokens that the tokenizer or the model's prefix adds."""


@dataclass(frozen=True, kw_only=True)
class GradientModel:
    """An encoder whose similarities can be differentiated, by whatever pooling its vectors are made."""

    encoder: SentenceTransformerEncoder

    @property
    def max_tokens(self) -> int | None:
        """The tokens of a document that the model reads, special tokens and prefix included; None for all."""
        limit: int | None = self.encoder.transformer.max_seq_length
        return limit

    def count_tokens(self, documents: Sequence[str]) -> list[int]:
        """Count the tokens of each document, special tokens and prefix included, without a limit on their number."""
        if not documents:
            return []
        prefixed = [self.encoder.prompted.document_prefix + text for text in documents]
        return [len(ids) for ids in self.encoder.transformer.tokenizer(prefixed, verbose=False)["input_ids"]]

    def differentiate(self, queries: Sequence[str], documents: Sequence[str]) -> tuple[list[TokenNorms], list[float]]:
        """The gradients of the cosine of each query and its document, and the cosines; the documents are one batch.

        Raises BackendError for gradients that are not finite.
        """
        torch: Any = importlib.import_module("torch")
        encoder, transformer = self.encoder, self.encoder.transformer
        vectors = encoder.encode_queries(queries)
        if encoder.model.adapters:
            transformer.set_adapter(list(encoder.model.adapters[1:]))
        processing = {"text": {"return_special_tokens_mask": True}}
        features = transformer.preprocess(
            list(documents), prompt=encoder.prompted.document_prefix, processing_kwargs=processing
        )
        special, token_ids = features.pop(_SPECIAL).bool().numpy(), features["input_ids"].numpy()
        read = features["attention_mask"].bool().numpy()
        features = {key: value.to(transformer.device) if hasattr(value, "to") else value
                    for key, value in features.items()}  # fmt: skip
        embedded = []

        def detach(_layer: Any, _ids: Any, output: Any) -> Any:
            """Make what the embedding layer returns a leaf, from which the rest of the model is differentiated."""
            embedded.append(output.detach().requires_grad_())
            return embedded[-1]

        hook = transformer.transformers_model.get_input_embeddings().register_forward_hook(detach)
        try:
            with torch.enable_grad():
                output = transformer(features)["sentence_embedding"][:, : transformer.truncate_dim]
                output = torch.nn.functional.normalize(output, dim=1)
                cosines = (output * torch.from_numpy(vectors).to(output)).sum(dim=1)
                (gradient,) = torch.autograd.grad(cosines.sum(), embedded[0])
        finally:
            hook.remove()
        norms = gradient.norm(dim=2).double().cpu().numpy()
        if not np.isfinite(norms).all():
            text = shorten(documents[int(np.isfinite(norms).all(axis=1).argmin())], 40)
            raise BackendError(f"{encoder.model.name} has a gradient that is NaN or infinite for the text {text!r}.")
        # Shared first tokens, not their number: a space at the end of a prefix may be a token, or part of the text's.
        prefix = np.array(transformer.tokenizer(encoder.prompted.document_prefix)["input_ids"], dtype=np.int64)
        norms_by_document = []
        for row, added, ids, mask in zip(norms, special, token_ids, read, strict=True):
            is_text, n = ~added[mask], min(len(prefix), int(mask.sum()))
            is_text[:n] &= np.cumsum(ids[mask][:n] != prefix[:n]) > 0
            norms_by_document.append(TokenNorms(row[mask], is_text))
        return norms_by_document, cosines.tolist()


def open_gradient_model(name: str, encoder: Encoder) -> GradientModel:
    """Open the encoder with its gradients, loaded. Raises BadInput for one that cannot be differentiated."""
    if not isinstance(encoder, SentenceTransformerEncoder):
        raise BadInput(
            f"{name} has no gradients. Models that the runtime sentence-transformers runs have them; not endpoints, "
            "converted weights or encoders of your own."
        )
    encoder.check_available()
    transformer = encoder.transformer
    body = transformer.transformers_model
    layer = None if body is None else body.get_input_embeddings()
    if layer is None:
        raise BadInput(
            f"{name} has no gradients with respect to its tokens: its embeddings are static, without an encoder that "
            "reads them in their context. Name a model with a transformer."
        )
    # Only the inputs are differentiated: the weights' gradients would take as much memory as the weights.
    transformer.requires_grad_(False)
    transformer.eval()
    return GradientModel(encoder=encoder)

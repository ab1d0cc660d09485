"""Encode tokens with models that sentence-transformers loads as a MultiVectorEncoder, or score pairs with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from rusbeir.retrieval.encoding.encoder import collect
from rusbeir.retrieval.encoding.token_vectors import TokenVectors
from rusbeir.retrieval.models.batches import Keep, Tokens
from rusbeir.retrieval.models.library_encoder import LibraryEncoder, name_task, refuse_remote_code
from rusbeir.retrieval.models.settings import PREFIXES, Model
from rusbeir.retrieval.rerank.reranker import PairTokens, score_alone
from rusbeir.retrieval.rerank.token_scores import mark, score_token_vectors

EXPANDED = "query_expansion_positions"
"""The input that says which tokens fill a query up to the length of the model."""

OWN_PROMPT = "\N{REPLACEMENT CHARACTER}own"
"""Stands for the prompt of a model's own files in signatures."""


class LateModel(LibraryEncoder):
    """Shared by the encoder and the reranker: vectors of tokens, as the model's own files say.

    Lengths, skipped words and what fills queries up are those of its files; so are prefixes that no option sets.
    """

    kind = "late"
    library_class = "MultiVectorEncoder"

    @property
    def signed(self) -> Model:
        """The settings without the prompts in the model's own files, of which there is a revision or a digest."""
        # Not as if there were none, which an option can say.
        prefixes: dict[str, Any] = dict.fromkeys(self.model.own_prompts, OWN_PROMPT)
        return replace(self.model, own_prompts=(), **prefixes)

    @property
    def prompted(self) -> Model:
        # Older files have prefixes in other places, which only the library knows.
        prompts = self.transformer.prompts
        of_prefix = dict(zip(PREFIXES, (prompts.get("query"), prompts.get("document")), strict=True))
        prefixes: dict[str, Any] = {name: of_prefix[name] or "" for name in self.model.own_prompts}
        return replace(self.model, own_prompts=(), **prefixes)

    def find_length(self, *, queries: bool) -> int | None:
        """Return how many tokens the model reads of a query, or document."""
        reader, length = self.find_input(queries=queries), super().find_length(queries=queries)
        if queries and reader.query_expansion and reader.query_expansion["strategy"] == "fixed":
            return int(reader.query_expansion["length"])
        return (reader.query_length if queries else reader.document_length) or length

    def configure(self, transformer: Any) -> None:
        """Set the length of documents."""
        if self.model.max_tokens:
            transformer[0].document_length = self.model.max_tokens

    def tokenize(self, texts: Iterable[str], *, queries: bool) -> Tokens:
        """Return what the model reads of each text, its prefix and, in a query, what fills it up included."""
        if not (queries and self.find_input(queries=True).query_expansion):
            return super().tokenize(texts, queries=queries)
        batch = list(texts)
        # Whether a text was cut cannot be seen in what is filled up.
        return replace(super().tokenize(batch, queries=True), over_length=self.find_truncated(batch, queries=True))

    def read(self, chunk: list[str], prefix: str, *, queries: bool) -> Any:
        """Return lists of what the model reads of some texts, cut but not padded."""
        if not (queries and self.find_input(queries=True).query_expansion):
            return super().read(chunk, prefix, queries=queries)
        encoding = self.transformer.preprocess(chunk, prompt=prefix, task=name_task(queries))
        chosen = (encoding.pop("attention_mask") | encoding[EXPANDED]).bool()
        return {
            name: [row[mask].tolist() for row, mask in zip(rows, chosen, strict=True)]
            if getattr(rows, "shape", None) == chosen.shape
            else rows
            for name, rows in encoding.items()
        }

    def embed(self, device: str, features: Mapping[str, Any], *, queries: bool) -> tuple[Any, Any]:
        """Return vectors [texts, tokens, dim] and which of them count [texts, tokens]."""
        inputs = dict(features)
        if EXPANDED in inputs and not self.find_input(queries=True).query_expansion["attend"]:
            inputs["attention_mask"] = inputs["attention_mask"] * (1 - inputs[EXPANDED])
        outputs = self.copies[device](inputs, task=name_task(queries))
        vectors, mask = outputs["token_embeddings"].float(), outputs["attention_mask"].bool()
        if queries and self.transformer.similarity_fn_name == "meanmaxsim":
            # A sum of these is the mean of the others.
            vectors = vectors / mask.sum(dim=1).clamp(min=1)[:, None, None]
        return vectors, mask


class LateModelEncoder(LateModel):
    """Encodes texts as vectors of their tokens."""

    def encode_queries(self, texts: Sequence[str]) -> TokenVectors:
        """Return the vectors of each text."""
        vectors: TokenVectors = collect(self, self.tokenize(texts, queries=True))
        return vectors

    def encode_documents(self, texts: Sequence[str]) -> TokenVectors:
        """Return the vectors of each text."""
        vectors: TokenVectors = collect(self, self.tokenize(texts, queries=False))
        return vectors

    def encode_tokens(self, tokens: Tokens, done: Set[int], keep: Callable[[Any, TokenVectors], None]) -> None:
        """Call keep(indices, vectors) for each batch that is not done."""
        embed = partial(self.embed, queries=tokens.queries)
        self.devices.run(
            tokens, done, lambda device, _, features: mark(*embed(device, features)),
            lambda indices, rows: keep(indices, TokenVectors.of_masked(rows)),
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class LateModelReranker(LateModel):
    """Scores pairs by MaxSim of their vectors, in single precision."""

    pointwise: bool = True

    @property
    def signature(self) -> str:
        return f"{super().signature}|maxsim"

    def score(self, query: str, documents: Sequence[str]) -> list[float]:
        """Return one score per document."""
        return score_alone(self, query, documents)

    def tokenize_pairs(self, pairs: Iterable[tuple[str, str]]) -> PairTokens:
        """Return what the model reads of each document and, once, of each query."""
        return PairTokens.read(pairs, self.tokenize)

    def score_tokens(self, tokens: PairTokens, keep: Keep) -> None:
        """Call keep(indices, scores) for each batch of pairs."""
        score_token_vectors(tokens, self.devices, self.embed, keep)

    @property
    def truncation(self) -> str:
        lengths = self.find_length(queries=True), self.find_length(queries=False)
        return f"queries are cut at {lengths[0]} tokens, documents at {lengths[1]}"

    def are_truncated(self, query: str, documents: Sequence[str]) -> list[bool]:
        """Return for each pair whether one of its sides has more tokens than the model reads."""
        (query_cut,) = self.find_truncated([query], queries=True)
        return [query_cut or cut for cut in self.find_truncated(documents, queries=False)]


def make_encoder(*, model: Model) -> LateModelEncoder:
    """Make the encoder of that model. Raises BadInput for a model that needs remote code."""
    refuse_remote_code(model)
    return LateModelEncoder(model=model)


def make_reranker(*, model: Model) -> LateModelReranker:
    """Make the reranker of that model. Raises BadInput for a model that needs remote code."""
    refuse_remote_code(model)
    return LateModelReranker(model=replace(model, own_prompts=PREFIXES))

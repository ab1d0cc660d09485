"""Run BGE-M3 by its authors' package FlagEmbedding: one model gives dense vectors, term weights and pairs' scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy import sparse

from rusbeir.errors import BadInput, require, require_version
from rusbeir.retrieval.dense.sentence_transformers import MODELS_IN_MEMORY, load_transformer
from rusbeir.retrieval.encoding.encoder import Weights, collect, gather
from rusbeir.retrieval.encoding.token_vectors import TokenVectors
from rusbeir.retrieval.models import files as model_files
from rusbeir.retrieval.models.batches import (
    Devices,
    Keep,
    Tokens,
    check_runnable,
    copy_to,
    find_devices,
    load_torch,
    tokenize,
)
from rusbeir.retrieval.models.settings import INT8, Model
from rusbeir.retrieval.rerank.reranker import PairTokens, score_alone
from rusbeir.retrieval.rerank.token_scores import mark, score_token_vectors

MAX_TOKENS = 8192
"""The package's default, for a model without max_tokens in models.toml."""
HEADS = ("colbert_linear.pt", "sparse_linear.pt")

NEEDED_BY = "The runtime flagembedding", "flagembedding"


@dataclass(frozen=True, kw_only=True)
class BgeM3:
    """Shared by the encoders and the reranker of one model, which also share the loaded model."""

    model: Model

    @property
    def signature(self) -> str:
        return f"{model_files.sign(self.model)}|runtime:FlagEmbedding-{find_version()}{self._precision}"

    def check_available(self) -> None:
        check_runnable(self.model)

    @property
    def max_tokens(self) -> int:
        return self.model.max_tokens or MAX_TOKENS

    @property
    def truncation(self) -> str:
        return f"cut at {self.max_tokens} tokens"

    def count_truncated(self, texts: Sequence[str]) -> int:
        """Count the documents that are longer, with their prefix, than the model reads."""
        prefixed = [self._prompted.document_prefix + text for text in texts]
        return sum(model_files.are_truncated(self._m3.tokenizer, self.max_tokens, prefixed))

    def tokenize(self, texts: Iterable[str], *, queries: bool) -> Tokens:
        """Return what the model reads of each text, its prefix included."""
        prefix = self._prompted.query_prefix if queries else self._prompted.document_prefix
        return self._read((prefix + text for text in texts), queries=queries)

    def _read(self, texts: Iterable[str], *, queries: bool) -> Tokens:
        tokenizer, max_tokens = self._m3.tokenizer, self.max_tokens

        def read(chunk: list[str]) -> Any:
            return tokenizer(chunk, truncation=True, max_length=max_tokens)

        return tokenize(read, texts, tokenizer, max_tokens, batch_tokens=self._m3.devices.batch_tokens, queries=queries)

    @property
    def _precision(self) -> str:
        if self.model.precision == INT8:
            raise BadInput(f"The heads of {self.model.name} are not computed in int8: precision=bfloat16 is.")
        # Vectors were cached before there was a choice.
        return "" if self.model.precision == "float32" else f"|precision:{self.model.precision}"

    @property
    def _prompted(self) -> Model:
        return model_files.add_own_prompts(self.model)

    @cached_property
    def _m3(self) -> M3:
        """The model with its three heads.

        Raises BadInput where a head's file is missing: the package would use an untrained head instead.
        """
        require("FlagEmbedding", *NEEDED_BY)
        folder = model_files.fetch(self.model)
        if missing := [name for name in HEADS if not (Path(folder) / name).is_file()]:
            raise BadInput(
                f"{folder} lacks {' and '.join(missing)}, so it is not a BGE-M3 model. "
                f"Copy all files of {self.model.hub}."
            )
        with model_files.explain_failure(self.model):
            devices = find_devices(self.model.device, self.model.precision)
            return _load(folder, *model_files.locate(self.model), self.model.precision, devices)

    def embed(self, device: str, features: Mapping[str, Any], *, queries: bool) -> tuple[Any, Any]:
        """Return vectors of tokens [texts, tokens, dim] and which of them count; the first token has none."""
        vectors, mask = self._m3.compute(device, features, "colbert"), features["attention_mask"][:, 1:] > 0
        # BGE-M3 takes the mean over a query's tokens, which is the sum of these.
        return (vectors.float() / mask.sum(dim=1).clamp(min=1)[:, None, None] if queries else vectors), mask

    def _weigh(self, tokens: Tokens, indices: Sequence[int], weights: Any) -> Weights:
        """Return each term's greatest weight in a text, from the weights of the tokens [n, longest]."""
        columns, values, ends = [], [], [0]
        for line, index in zip(weights, indices, strict=True):
            ids = tokens.features["input_ids"][index]
            terms, term_of = np.unique(ids, return_inverse=True)
            greatest = np.zeros(len(terms), np.float32)
            np.maximum.at(greatest, term_of, line[-len(ids) :] if tokens.left else line[: len(ids)])
            weighed = (greatest > 0) & ~np.isin(terms, self._m3.unused)
            columns.append(terms[weighed])
            values.append(greatest[weighed])
            ends.append(ends[-1] + int(weighed.sum()))
        shape = len(indices), len(self._m3.tokenizer)
        return sparse.csr_array((np.concatenate(values), np.concatenate(columns), ends), shape=shape)

    def _compute_weights(self, tokens: Tokens, done: Set[int], keep: Callable[[Any, Weights], None]) -> None:
        self._m3.devices.run(
            tokens,
            done,
            lambda device, _, features: self._m3.compute(device, features, "sparse").squeeze(-1),
            lambda indices, weights: keep(indices, self._weigh(tokens, indices.tolist(), weights)),
        )


class BgeM3Encoder(BgeM3):
    """Encodes texts as the model's dense vectors."""

    def encode_queries(self, texts: Sequence[str]) -> Any:
        """Return float32 [n, dim], rows L2-normalised."""
        return collect(self, self.tokenize(texts, queries=True))

    def encode_documents(self, texts: Sequence[str]) -> Any:
        """Return float32 [n, dim], rows L2-normalised."""
        return collect(self, self.tokenize(texts, queries=False))

    def encode_tokens(self, tokens: Tokens, done: Set[int], keep: Keep) -> None:
        """Call keep(indices, vectors) for each batch that is not done."""
        self._m3.devices.run(
            tokens, done, lambda device, _, features: self._m3.compute(device, features, "dense"), keep
        )


class BgeM3SparseEncoder(BgeM3Encoder):
    """Encodes texts as csr_array, float32 [n, vocabulary]: each token's greatest weight, none for special tokens."""

    @property
    def signature(self) -> str:
        return f"{super().signature}|part:lexical_weights"

    def encode_tokens(self, tokens: Tokens, done: Set[int], keep: Callable[[Any, Weights], None]) -> None:
        """Call keep(indices, weights) for each batch that is not done."""
        self._compute_weights(tokens, done, keep)


class BgeM3LateEncoder(BgeM3Encoder):
    """Encodes texts as the vectors of their tokens."""

    @property
    def signature(self) -> str:
        return f"{super().signature}|part:colbert_vecs"

    def encode_tokens(self, tokens: Tokens, done: Set[int], keep: Callable[[Any, Any], None]) -> None:
        """Call keep(indices, vectors) for each batch that is not done."""
        self._m3.devices.run(
            tokens, done,
            lambda device, _, features: mark(*self.embed(device, features, queries=tokens.queries)),
            lambda indices, rows: keep(indices, TokenVectors.of_masked(rows)),
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class BgeM3Reranker(BgeM3):
    """Scores pairs by the model's term weights ("sparse") or its vectors of tokens ("colbert")."""

    mode: Literal["sparse", "colbert"]
    pointwise: bool = True

    @property
    def signature(self) -> str:
        return f"{model_files.sign(self.model)}|runtime:bge-m3-{self.mode}-{find_version()}{self._precision}"

    def score(self, query: str, documents: Sequence[str]) -> list[float]:
        """Return one score per document."""
        return score_alone(self, query, documents)

    def tokenize_pairs(self, pairs: Iterable[tuple[str, str]]) -> PairTokens:
        """Return what the model reads of each document and, once, of each query."""
        return PairTokens.read(pairs, self._read)

    def score_tokens(self, tokens: PairTokens, keep: Keep) -> None:
        """Call keep(indices, scores) for each batch of pairs."""
        if self.mode == "sparse":
            self._score_weights(tokens, keep)
        else:
            score_token_vectors(tokens, self._m3.devices, self.embed, keep)

    def _score_weights(self, tokens: PairTokens, keep: Keep) -> None:
        queries = gather(partial(self._compute_weights, tokens.queries, frozenset()))
        self._compute_weights(
            tokens.documents,
            frozenset(),
            lambda indices, weights: keep(indices, (weights * queries[tokens.query_of[indices]]).sum(axis=1)),
        )

    @property
    def truncation(self) -> str:
        return f"query and document are cut at {self.max_tokens} tokens each"

    def are_truncated(self, query: str, documents: Sequence[str]) -> list[bool]:
        """Return for each pair whether one of its sides has more tokens than the model reads."""
        texts = [query, *documents]
        query_cut, *documents_cut = model_files.are_truncated(self._m3.tokenizer, self.max_tokens, texts)
        return [query_cut or document_cut for document_cut in documents_cut]


make_sparse_reranker = partial(BgeM3Reranker, mode="sparse")
make_multivector_reranker = partial(BgeM3Reranker, mode="colbert")


@dataclass(frozen=True, kw_only=True)
class M3:
    """A loaded model: a copy with its three heads on each device."""

    tokenizer: Any
    devices: Devices
    copies: Mapping[str, Any]
    unused: Sequence[int]
    """Special tokens, which get no weight."""

    def compute(self, device: str, features: Mapping[str, Any], part: Literal["dense", "sparse", "colbert"]) -> Any:
        """Return vectors of texts, or weights or vectors of their tokens."""
        outputs = self.copies[device](
            dict(features),
            return_dense=part == "dense",
            return_sparse=part == "sparse",
            return_colbert_vecs=part == "colbert",
        )
        (rows,) = outputs.values()
        return load_torch().nn.functional.normalize(rows.float(), dim=-1) if part == "dense" else rows


def find_version() -> str:
    """Return the installed version of FlagEmbedding. Raises MissingExtra where it is not installed."""
    return require_version("FlagEmbedding", *NEEDED_BY)


@lru_cache(maxsize=MODELS_IN_MEMORY)
def _load(folder: str, where: str, revision: str | None, precision: str, devices: tuple[str, ...]) -> M3:
    """Load the model with the heads in the folder; `dense(MODEL)` shares its weights."""
    torch = load_torch()
    package = "FlagEmbedding.finetune.embedder.encoder_only.m3.modeling"
    make = require(package, *NEEDED_BY).EncoderOnlyEmbedderM3ModelForInference
    transformer = load_transformer(where, revision, precision, devices[0]).transformer
    heads = {}
    for name in HEADS:
        weights = torch.load(Path(folder) / name, map_location="cpu", weights_only=True)
        heads[name[:-3]] = torch.nn.Linear(*reversed(weights["weight"].shape))
        heads[name[:-3]].load_state_dict(weights)
    parts = {"model": transformer.transformers_model, **heads}
    first = make(parts, tokenizer=transformer.tokenizer, sentence_pooling_method="cls", normalize_embeddings=True)
    first = first.to(devices[0], getattr(torch, precision)).eval()
    tokenizer = transformer.tokenizer
    unused = {tokenizer.cls_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id, tokenizer.unk_token_id}
    return M3(
        tokenizer=tokenizer,
        devices=Devices(names=devices, model=where),
        copies=copy_to(first, devices),
        unused=sorted(unused - {None}),
    )

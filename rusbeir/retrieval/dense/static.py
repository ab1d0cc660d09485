"""Encode texts with static embeddings: the mean of a vector for each token, without torch or a transformer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rusbeir.errors import BadInput, require, require_version
from rusbeir.retrieval.encoding.encoder import Vectors
from rusbeir.retrieval.models import files as model_files
from rusbeir.retrieval.models.settings import Model

MODULES = "modules.json"
_MODULE = "StaticEmbedding"
_NEEDED_BY = "The runtime static", "sentence-transformers"


class _Loaded(NamedTuple):
    tokenizer: Any
    vectors: npt.NDArray[np.float32]
    """float32 [tokens, dim]."""


@dataclass(frozen=True, kw_only=True)
class StaticEncoder:
    """Encodes texts of any length with the table of vectors of one model."""

    model: Model

    @property
    def signature(self) -> str:
        version = require_version("tokenizers", *_NEEDED_BY)
        return f"{model_files.sign(self.model)}|runtime:static-tokenizers-{version}"

    def check_available(self) -> None:
        """Raise MissingExtra without the package tokenizers, and BackendError where the model is missing."""
        require_version("tokenizers", *_NEEDED_BY)
        model_files.check_present(self.model)

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """Return float32 [n, dim], rows L2-normalised; those of texts without tokens are zeros."""
        return self._encode([self._prompted.query_prefix + text for text in texts])

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """Return float32 [n, dim], rows L2-normalised; those of texts without tokens are zeros."""
        return self._encode([self._prompted.document_prefix + text for text in texts])

    def _encode(self, texts: list[str]) -> Vectors:
        tokenizer, table = self._loaded
        rows = [encoding.ids for encoding in tokenizer.encode_batch(texts, add_special_tokens=False)]
        vectors = np.zeros((len(texts), table.shape[1]), np.float32)
        for vector, ids in zip(vectors, rows, strict=True):
            if ids:
                table[ids].mean(axis=0, out=vector)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors /= np.where(lengths == 0, 1, lengths)
        return vectors

    @property
    def _prompted(self) -> Model:
        return model_files.add_own_prompts(self.model)

    @cached_property
    def _loaded(self) -> _Loaded:
        library = require("tokenizers", *_NEEDED_BY)
        safetensors = require("safetensors.numpy", *_NEEDED_BY)
        folder = _find_module(Path(model_files.fetch(self.model)), self.model)
        with model_files.explain_failure(self.model):
            tokenizer = library.Tokenizer.from_file(str(folder / "tokenizer.json"))
            tokenizer.no_padding()
            tokenizer.no_truncation()
            weights = safetensors.load_file(folder / "model.safetensors")
        return _Loaded(tokenizer, _read_table(weights, self.model))


def _find_module(folder: Path, model: Model) -> Path:
    """Return the folder with the table. Raises BadInput for a model that has none."""
    modules = json.loads((folder / MODULES).read_bytes()) if (folder / MODULES).is_file() else []
    for module in modules:
        if str(module.get("type", "")).endswith(_MODULE):
            return folder / str(module.get("path", ""))
    if modules or not (folder / "tokenizer.json").is_file():
        raise BadInput(f"{model.name} has no static embeddings: write dense({model.name}) without runtime=static.")
    return folder


def _read_table(weights: dict[str, npt.NDArray[Any]], model: Model) -> npt.NDArray[np.float32]:
    """Return a vector for each token, from the files of sentence-transformers or of model2vec."""
    if "embedding.weight" in weights:
        return weights["embedding.weight"].astype(np.float32)
    if "embeddings" not in weights:
        raise BadInput(f"{model.name} has no static embeddings: write dense({model.name}) without runtime=static.")
    table = weights["embeddings"].astype(np.float32)
    if "mapping" in weights:
        table = table[weights["mapping"].astype(np.int64)]
    return table * weights["weights"].astype(np.float32)[:, None] if "weights" in weights else table

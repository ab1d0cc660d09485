"""BGE-M3 by its authors' package: what its dense, sparse and multi-vector answers share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rusbeir.errors import BadInput
from rusbeir.retrieval import model_files
from rusbeir.retrieval.models import Model

MAX_TOKENS = 8192
"""What a model without a length of its own in models.toml is read to: the package's default."""

HEADS = ("colbert_linear.pt", "sparse_linear.pt")

_PURPOSE = "The runtime flagembedding"
_EXTRA = "flagembedding"


def version() -> str:
    """Of the package FlagEmbedding."""
    return model_files.version_of("FlagEmbedding", _PURPOSE, _EXTRA)


def load(model: Model) -> Any:
    """The package's BGEM3FlagModel, its three heads present.

    Raises BadInput where a head's file is missing: the package would answer from untrained ones.
    """
    library = model_files.module("FlagEmbedding", _PURPOSE, _EXTRA)
    model_files.quieten()
    where = model_files.fetched(model)
    if missing := [name for name in HEADS if not (Path(where) / name).is_file()]:
        raise BadInput(
            f"{where} lacks {' and '.join(missing)}, so it is no BGE-M3 model: copy all files of {model.hub}."
        )
    with model_files.loading(model):
        return library.BGEM3FlagModel(where, use_fp16=False, normalize_embeddings=True)

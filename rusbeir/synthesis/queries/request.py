"""The request to make queries about a corpus: which of its documents are asked about, and how."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict, cast

from rusbeir.errors import BadInput, option
from rusbeir.jobs import LlmRequest
from rusbeir.synthesis.queries.attributes import Attributes, read_attributes
from rusbeir.synthesis.queries.documents import Drawn, Source, draw_documents, open_source
from rusbeir.synthesis.queries.drafts import Draft
from rusbeir.synthesis.queries.questions import Writer
from rusbeir.types import Dataset, Progress, silent


class Wish(TypedDict, total=False):
    """The test set that a caller wants."""

    kind: str
    n: int
    sample: int | None
    language: str | None
    seed: int
    attributes: str | Path | None
    progress: Progress


class QueriesRequest(Wish, LlmRequest, total=False):
    """The test set that a caller wants, and how the model is asked."""


def split_request(request: QueriesRequest) -> tuple[Wish, LlmRequest]:
    """Split a request into what is to be made, and how the model is asked; seed and progress are in both."""
    wish = {name: value for name, value in request.items() if name in Wish.__annotations__}
    only_wish = Wish.__annotations__.keys() - LlmRequest.__annotations__.keys()
    asking = {name: value for name, value in request.items() if name not in only_wish}
    return cast(Wish, wish), cast(LlmRequest, asking)


@dataclass(frozen=True, kw_only=True)
class Order:
    """The queries to make: the documents, which of them are asked about, and how."""

    kind: str
    source: Source
    drawn: Drawn
    attributes: Attributes
    n: int
    """Queries that are started."""
    seed: int

    def begin(self) -> Iterator[Draft]:
        """Yield the drafts: one of each document, then a second one of each, and so on."""
        for ordinal in range(self.n):
            number, row = divmod(ordinal, len(self.drawn.doc_ids))
            doc_id = self.drawn.doc_ids[row]
            attributes = self.attributes.draw(self.seed, doc_id, number)
            yield Draft(doc_id=doc_id, number=number, attributes=attributes, seed=self.seed)

    @property
    def writer(self) -> Writer:
        return Writer(corpus=self.source.corpus, language=self.source.card.language)


def make_order(
    corpus: str | Path | Dataset,
    *,
    kind: str = "qa",
    n: int = 100,
    sample: int | None = None,
    language: str | None = None,
    seed: int = 0,
    attributes: str | Path | None = None,
    progress: Progress = silent,
) -> Order:
    """Make the order of make_queries with the same arguments. Raises as it does."""
    for name, value in (("n", n), ("sample", sample)):
        if value is not None and value < 1:
            raise BadInput(f"{option(name, value)}: give at least 1.")
    shares = read_attributes(kind, attributes)
    source = open_source(corpus, kind, language=language, progress=progress)
    drawn = draw_documents(source, kind, min(n, sample or n), seed, progress)
    order = Order(kind=kind, source=source, drawn=drawn, attributes=shares, n=n, seed=seed)
    _refuse_made(order)
    return order


def _refuse_made(order: Order) -> None:
    """Raise BadInput where the hard negatives of the documents would have ids that the corpus has already."""
    for doc_id in order.drawn.doc_ids:
        name = f"{doc_id}-q0-neg0"
        try:
            order.source.corpus[name]
        except KeyError:
            continue
        raise BadInput(
            f"{order.source.card.name} has a document {name!r}, as `rusbeir synth queries` makes them. "
            "Make queries of the corpus that it was made from."
        )

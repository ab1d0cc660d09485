"""The places in documents at which queries are answered: as a dataset says, or a list of spans."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

from rusbeir.datasets import SPANS, Column, GivesSpans, Place, Span, count_tokens, open_reader, read_records, refuse
from rusbeir.errors import BadInput, option
from rusbeir.text import shorten
from rusbeir.types import Dataset, Progress

logger = logging.getLogger(__name__)

_COLUMNS = tuple(Column(name.replace("_", " "), (name,)) for name in ("query_id", "doc_id", "start", "end"))


def load_spans(
    source: str | Path | Dataset,
    dataset: Dataset,
    file: Path | None,
    *,
    language: str | None,
    split: str | None,
    progress: Progress,
) -> dict[str, Span]:
    """Load query id -> the span that answers it, for the queries of the dataset; source is what it was loaded from.

    Of a file, the columns are query_id, doc_id, start and end, in characters of the document's text; a header is
    optional; a made test set has such a file. Raises BadInput for a dataset without spans, and for spans outside of
    their texts.
    """
    name = dataset.card.name
    spans_by_query: dict[str, Span] = {}
    if file is None and not isinstance(source, Dataset) and (list_of_dataset := Path(source) / SPANS).is_file():
        file = list_of_dataset
    if file is not None:
        spans = _read_file(file, dataset)
    else:
        reader = None if isinstance(source, Dataset) else open_reader(
            source, language=language, split=split, progress=progress
        )[0]  # fmt: skip
        spans = reader.spans(refuse) if isinstance(reader, GivesSpans) else iter(())
    for where, span in spans:
        if span.query_id in spans_by_query:
            refuse("repeat", where, f"query {span.query_id!r} has a second span; keep one")
        if span.query_id in dataset.queries:
            spans_by_query[span.query_id] = span
    if not spans_by_query and file is not None:
        raise BadInput(f"{file}: none of its queries is judged in {name}.")
    if not spans_by_query:
        raise BadInput(
            f"{name} does not say where its documents answer its queries. Sets of paragraphs in SQuAD's format do "
            f"(xquad/ru), and PosIR's (posir/ru/aerospace). For others, list the spans: {option('spans', 'FILE')}."
        )
    if missing := len(dataset.queries) - len(spans_by_query):
        logger.warning("%s: %s of %s queries have no span.", name, f"{missing:,}", f"{len(dataset.queries):,}")
    return spans_by_query


def _read_file(file: Path, dataset: Dataset) -> Iterator[tuple[Place, Span]]:
    for where, record in read_records((file,), _COLUMNS, refuse):
        query_id, doc_id, *ends = (str(record.get(column.names[0], "")).strip() for column in _COLUMNS)
        try:
            text = dataset.corpus[doc_id].text
        except KeyError:
            refuse("document", where, f"document {shorten(repr(doc_id))} is not in the corpus of {dataset.card.name}")
        if not all(end_text.isdecimal() and len(end_text) < 19 for end_text in ends):
            refuse("span", where, f"the span {shorten(repr(ends))} is not two whole numbers of characters")
        start, end = map(int, ends)
        if not start <= end <= len(text):
            refuse(
                "span",
                where,
                f"the span {start:,} to {end:,} is not in document {doc_id!r} of {len(text):,} characters",
            )
        yield where, Span(query_id, start, end, len(text), count_tokens(text), doc_id)

"""The records of a made test set in qa/generated.jsonl: the sources of its queries, hard negatives and spans."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rusbeir.datasets import read_jsonl
from rusbeir.errors import BadInput, option
from rusbeir.synthesis.queries.writing import GENERATED
from rusbeir.types import Corpus, Dataset

_ROW = {
    "query_id": str, "doc_id": str, "kind": str, "negatives": [str], "span": ([int], None), "model": str,
}  # fmt: skip


def read_generated(dataset: str | Path | Dataset) -> dict[str, dict[str, Any]]:
    """Read query id -> its line; {} for a dataset that no model made. Raises BadInput for a damaged line."""
    if isinstance(dataset, Dataset) or not (path := Path(dataset) / GENERATED).is_file():
        return {}
    return {row["query_id"]: row for row in read_jsonl(path, _ROW, "Make the set again.")}


def refuse_wrong_spans(generated: Mapping[str, Mapping[str, Any]], corpus: Corpus) -> None:
    """Raise BadInput where no query has a span, and for a span that is not in its document."""
    rows = [row for row in generated.values() if row["span"]]
    if not rows:
        raise BadInput(
            f"This dataset has no spans, which only sets made with {option('kind', 'position')} have: leave out "
            f"{option('span_ranker')}."
        )
    for row in rows:
        try:
            text = corpus[row["doc_id"]].text
        except KeyError:
            text = ""
        if not (len(row["span"]) == 2 and 0 <= row["span"][0] < row["span"][1] <= len(text)):
            raise BadInput(
                f"{GENERATED}: the span {row['span']} of query {row['query_id']!r} is not in document "
                f"{row['doc_id']!r}. Make the set again."
            )


def list_negatives(generated: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """List query id -> the documents that were made to mislead about it."""
    return {query_id: row["negatives"] for query_id, row in generated.items()}


def without(
    generated: Mapping[str, Mapping[str, Any]], queries: Iterable[str], documents: Iterable[str]
) -> list[dict[str, Any]]:
    """Return the lines of these queries, without these documents among their hard negatives."""
    remaining, gone = set(queries), set(documents)
    return [
        {**row, "negatives": [doc_id for doc_id in row["negatives"] if doc_id not in gone]}
        for query_id, row in generated.items()
        if query_id in remaining
    ]

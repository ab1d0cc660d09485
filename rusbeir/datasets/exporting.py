"""A dataset as the Hugging Face library has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rusbeir.errors import require
from rusbeir.storage import atomic_file, cache_folder
from rusbeir.text import batched, digest
from rusbeir.types import Dataset, MultilingualQueries, count_languages

_PURPOSE = "Dataset.to_hf"
_BATCH_ROWS = 1_000
_LANGUAGE = {"lang": "string"}


def export_tables(dataset: Dataset) -> Any:
    """Export a dataset as a `datasets.DatasetDict` of corpus, queries and qrels, whose tables are in the cache."""
    hub = require("datasets", _PURPOSE, extra="")
    # A dataset in one language has no column for it.
    languages = dataset.queries.languages if isinstance(dataset.queries, MultilingualQueries) else {}
    of_queries = _LANGUAGE if languages else {}
    of_documents = _LANGUAGE if any(count_languages(dataset.corpus)) else {}
    documents = ((doc.doc_id, doc.title, doc.text, doc.language)[: 3 + len(of_documents)] for doc in dataset.corpus)
    queries = (
        (query_id, text, languages.get(query_id, ""))[: 2 + len(of_queries)]
        for query_id, text in dataset.queries.items()
    )
    judgements = (
        (query_id, doc_id, grade) for query_id, grades in dataset.qrels.items() for doc_id, grade in grades.items()
    )
    tables: dict[str, tuple[dict[str, str], Iterable[tuple[Any, ...]]]] = {
        "corpus": ({"_id": "string", "title": "string", "text": "string", **of_documents}, documents),
        "queries": ({"_id": "string", "text": "string", **of_queries}, queries),
        "qrels": ({"query-id": "string", "corpus-id": "string", "score": "int32"}, judgements),
    }
    key = dataset.fingerprint
    return hub.DatasetDict(
        {
            name: hub.Dataset.from_file(str(_write_table(digest(key, name), columns, rows)))
            for name, (columns, rows) in tables.items()
        }
    )


def _write_table(key: str, columns: dict[str, str], rows: Iterable[tuple[Any, ...]]) -> Path:
    """Write a table in Arrow's format where the cache does not have it, and return its file."""
    pyarrow = require("pyarrow", _PURPOSE, "hf")
    path = cache_folder() / "copies" / f"{key}.arrow"
    if path.is_file():
        return path
    schema = pyarrow.schema([(name, getattr(pyarrow, kind)()) for name, kind in columns.items()])
    with atomic_file(path) as file, pyarrow.ipc.new_stream(file, schema) as table:
        for batch in _batches(rows):
            arrays = [pyarrow.array(values, type=field.type) for values, field in zip(batch, schema, strict=True)]
            table.write_batch(pyarrow.record_batch(arrays, schema=schema))
    return path


def _batches(rows: Iterable[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    """Return the columns of the rows, batch by batch."""
    return (list(zip(*batch, strict=True)) for batch in batched(rows, _BATCH_ROWS))

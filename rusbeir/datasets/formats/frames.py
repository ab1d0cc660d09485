"""Tables in memory: data frames of pandas and polars, Arrow tables, and datasets of the Hugging Face library.

They are told apart by what they can do, so that none of these packages is imported for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from rusbeir.errors import BadInput, require

_BATCH_ROWS = 1000


class Frame(NamedTuple):
    """A table in memory. rows has a tuple for each row, in the order of names; a missing value is None."""

    names: list[str]
    rows: Iterator[tuple[Any, ...]]

    def records(self) -> Iterator[dict[str, Any]]:
        """Return the rows as column -> value."""
        return (dict(zip(self.names, row, strict=True)) for row in self.rows)


def open_frame(table: Any) -> Frame | None:
    """Open a table in memory; None for what is not one, such as a list.

    Raises BadInput for several tables in one object, and MissingExtra where pyarrow is missing for Arrow's data.
    """
    if isinstance(table, Mapping):
        if table and all(hasattr(part, "column_names") for part in table.values()):
            raise BadInput(
                f"This is a {type(table).__name__} with the splits {', '.join(map(str, table))}: pass one of them, "
                f"such as data[{next(iter(table))!r}]."
            )
        return None
    if hasattr(table, "itertuples"):  # pandas
        named = [name for name in table.index.names if name is not None]
        whole = table.reset_index() if named else table
        return Frame(list(map(str, whole.columns)), _read_pandas(whole))
    if hasattr(table, "iter_rows") and hasattr(table, "columns"):  # polars
        return Frame(list(table.columns), iter(table.iter_rows()))
    if hasattr(table, "collect_schema"):  # polars, not computed yet
        raise BadInput("This is a lazy frame, which has no rows yet: pass frame.collect().")
    if hasattr(table, "column_names") and hasattr(table, "with_format"):  # datasets
        if names := table.column_names:
            return Frame(list(names), (tuple(map(record.get, names)) for record in table))
        return None  # An IterableDataset of unknown columns is read as records.
    if hasattr(table, "__arrow_c_stream__") or hasattr(table, "__arrow_c_array__"):
        pyarrow = require("pyarrow", "Reading Arrow tables", "hf")
        source = pyarrow.table(table) if hasattr(table, "__arrow_c_array__") else table
        reader = pyarrow.RecordBatchReader.from_stream(source)
        return Frame(list(reader.schema.names), _read_batches(reader))
    return None


def _read_batches(batches: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
    for batch in batches:
        for start in range(0, batch.num_rows, _BATCH_ROWS):
            part = batch.slice(start, _BATCH_ROWS)
            yield from zip(*(column.to_pylist() for column in part.columns), strict=True)


def _read_pandas(frame: Any) -> Iterator[tuple[Any, ...]]:
    """The rows with None for pandas' missing values: NaN, NaT and NA.

    By lists of a block's columns: to iterate a column whose strings Arrow holds takes several times as long.
    """
    for start in range(0, len(frame), _BATCH_ROWS):
        part = frame.iloc[start : start + _BATCH_ROWS]
        columns: list[list[Any]] = []
        for number in range(part.shape[1]):
            column = part.iloc[:, number]
            columns.append(column.tolist())
            if (missing := column.isna()).any():
                pairs = zip(columns[-1], missing, strict=True)
                columns[-1] = [None if is_missing else value for value, is_missing in pairs]
        yield from zip(*columns, strict=True)

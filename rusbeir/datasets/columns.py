"""The columns of a table: named by the caller, else recognised by the names that people use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from rusbeir.errors import BadInput, option, unknown

_ID = ("_id", "id", "docid", "doc_id", "document_id", "docno", "pid", "passage_id")
_QUERY_ID = ("_id", "id", "query_id", "query-id", "qid", "queryid", "topic_id")

Columns: TypeAlias = Mapping[str, tuple[str, ...]]
"""Key of a column (those of KEYS) -> the columns of the table; several are joined."""


class Column(NamedTuple):
    """The meaning of a column, and the names it goes by; the first of them that a table has is taken."""

    meaning: str
    names: tuple[str, ...]
    optional: bool = False
    key: str = ""
    """What the caller calls it; "" where it cannot be chosen."""


DOCUMENT = (
    Column("document id", _ID, key="id"),
    Column("text", ("text", "contents", "content", "body", "passage"), key="text"),
    Column("title", ("title", "headline", "heading"), True, key="title"),
    Column("language", ("lang",), True, key="language"),
)
QUERY = (
    Column("query id", _QUERY_ID, key="query_id"),
    Column("text", ("text", "query", "question", "topic_title"), key="query"),
    Column("language", ("lang",), True, key="query_language"),
)
JUDGEMENT = (
    Column("query id", ("query-id", "query_id", "qid", "queryid"), key="query_id"),
    Column(
        "document id",
        ("corpus-id", "corpus_id", "docid", "doc_id", "document_id", "docno", "pid", "passage_id"),
        key="doc_id",
    ),
    Column("grade", ("score", "relevance", "label", "grade", "rel"), key="grade"),
)
KEYS = tuple(dict.fromkeys(column.key for column in (*DOCUMENT, *QUERY, *JUDGEMENT)))


def read_columns(columns: str | Mapping[str, str | Sequence[str]] | None) -> Columns:
    """Read which columns a caller names. Raises BadInput or UnknownName for what names none.

    >>> read_columns("id=sku,text=name+description")
    {'id': ('sku',), 'text': ('name', 'description')}
    >>> read_columns({"text": ["name", "description"]})
    {'text': ('name', 'description')}
    """
    if not columns:
        return {}
    if isinstance(columns, str):
        pairs = [part.partition("=") for part in columns.split(",")]
        if any(not separator or not names.strip() for _, separator, names in pairs):
            raise BadInput(
                f"{option('columns', columns)}: expected KEY=COLUMN, several separated by commas, such as "
                "id=sku,text=name+description."
            )
        columns = {key.strip(): names for key, _, names in pairs}
    for key in columns:
        if key not in KEYS:
            raise unknown("column", str(key), KEYS, owner=option("columns"))
    return {
        key: tuple(name.strip() for name in names.split("+")) if isinstance(names, str) else tuple(names)
        for key, names in columns.items()
    }


def choose_columns(
    table: str, roles: tuple[Column, ...], present: Iterable[str], named: Columns
) -> list[tuple[str, ...]]:
    """Choose the columns of a table that hold what is wanted, in that order; () for an optional one that is missing.

    Raises BadInput, with the columns that are there, for one that is missing.
    """
    names = list(present)
    folded = {name.strip().casefold(): name for name in reversed(names)}
    listed = ", ".join(names)
    chosen: list[tuple[str, ...]] = []
    for column in roles:
        if parts := named.get(column.key, ()):
            if missing := [part for part in parts if part not in names]:
                raise BadInput(f"{table} has no column {missing[0]!r} for the {column.meaning}; it has {listed}.")
            chosen.append(parts)
            continue
        known = next((name for name in column.names if name in names), None)
        known = known or next((folded[name] for name in column.names if name in folded), None)
        if known is None and not column.optional:
            example = option("columns", f"{column.key}=COLUMN", python=f"columns={{{column.key!r}: 'COLUMN'}}")
            remedy = f" Name it: {example}." if column.key else ""
            names_of_column = " or ".join(column.names)
            raise BadInput(
                f"{table} has no column for the {column.meaning} ({names_of_column}); it has {listed}.{remedy}"
            )
        chosen.append(() if known is None else (known,))
    return chosen


def join_values(record: Mapping[str, Any], parts: tuple[str, ...]) -> Any:
    """Read the value of one column as it is, or join those of several as text; None where there is none."""
    if len(parts) == 1:
        return record.get(parts[0])
    values = [record.get(part) for part in parts]
    joined = " ".join(str(value) for value in values if value is not None and value != "")
    return joined if parts else None


def describe_columns(roles: tuple[Column, ...], chosen: Sequence[tuple[str, ...]]) -> str:
    """Describe which columns were chosen, as the caller would name them.

    >>> describe_columns(DOCUMENT, [("sku",), ("name", "description"), (), ()])
    'id=sku,text=name+description'
    """
    pairs = zip(roles, chosen, strict=True)
    return ",".join(f"{column.key or column.meaning}={'+'.join(parts)}" for column, parts in pairs if parts)

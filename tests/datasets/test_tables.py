"""Tables as people have them: files and objects of other libraries, as documents, queries and judgements."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas
import pyarrow
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given

import rusbeir
from rusbeir.datasets import load, open_corpus, read_columns, write_beir
from rusbeir.datasets.columns import DOCUMENT, choose_columns
from rusbeir.errors import BadInput, UnknownName
from rusbeir.types import Dataset, Doc
from tests.datasets.test_parser_fuzz import ANY_BYTES, FUZZ, refusal

ROWS = [
    {"sku": "p1", "name": "Red jacket", "description": "Warm, with a hood.", "price": 10},
    {"sku": "p2", "name": "Boots", "description": "For snow; waterproof.", "price": 20},
    {"sku": "p3", "name": "Blue jacket", "description": None, "price": 30},
]
COLUMNS = "id=sku,text=name+description,title=name"
DOCS = [
    Doc("p1", "Red jacket Warm, with a hood.", "Red jacket"),
    Doc("p2", "Boots For snow; waterproof.", "Boots"),
    Doc("p3", "Blue jacket", "Blue jacket"),
]


def write_csv(path: Path, separator: str = ",") -> None:
    pandas.DataFrame(ROWS).to_csv(path, index=False, sep=separator)


def write_jsonl(path: Path) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))


def write_parquet(path: Path) -> None:
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(ROWS), path)


def pack(path: Path, packed: Path) -> None:
    data = path.read_bytes()
    zstd = pyarrow.Codec("zstd").compress(data, asbytes=True)
    packed.write_bytes(gzip.compress(data) if packed.suffix == ".gz" else zstd)


FILES: list[tuple[str, Callable[[Path], None]]] = [
    ("products.csv", write_csv),
    ("semicolons.csv", lambda path: write_csv(path, ";")),
    ("products.tsv", lambda path: write_csv(path, "\t")),
    ("products.jsonl", write_jsonl),
    ("products.parquet", write_parquet),
]


@pytest.mark.parametrize("packing", ["", ".gz", ".zst"])
@pytest.mark.parametrize(("name", "write"), FILES)
def test_files(name, write, packing, tmp_path):
    path = tmp_path / name
    write(path)
    if packing:
        if path.suffix == ".parquet":
            pytest.skip("Parquet is packed by itself")
        pack(path, tmp_path / (name + packing))
        path = tmp_path / (name + packing)
    dataset = load(path, language="en", judged=False, columns=COLUMNS)
    assert list(dataset.corpus) == DOCS
    assert (dataset.queries, dataset.qrels, dataset.corpus["p2"]) == ({}, {}, DOCS[1])
    assert dataset.fingerprint == Dataset.of(path, language="en", columns=COLUMNS).fingerprint


def test_a_copy_is_indexed_while_it_is_written(tmp_path, fresh_cache):
    """The same index as that of the finished copy."""
    write_csv(tmp_path / "products.csv")
    corpus = load(tmp_path / "products.csv", language="en", judged=False, columns=COLUMNS).corpus
    (folder,) = (fresh_cache / "corpora").iterdir()
    index = {file.name: file.read_bytes() for file in folder.iterdir()}
    shutil.rmtree(folder)
    assert open_corpus(corpus.path).sha256 == corpus.sha256
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == index


class Polars:
    """What a data frame of polars can do."""

    columns = ("sku", "name", "description", "price")

    def iter_rows(self, *, named: bool = False) -> Any:
        return (tuple(row.values()) for row in ROWS)


class Stream:
    """A table of which only Arrow's interface is known."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return pyarrow.Table.from_pylist(ROWS).__arrow_c_stream__(requested_schema)


def _hub_dataset() -> object:
    import datasets

    return datasets.Dataset.from_list(ROWS)


OBJECTS = {
    "records": lambda: ROWS,
    "a generator": lambda: (row for row in ROWS),
    "pandas": lambda: pandas.DataFrame(ROWS),
    "pandas, ids in the index": lambda: pandas.DataFrame(ROWS).set_index("sku"),
    "pyarrow": lambda: pyarrow.Table.from_pylist(ROWS),
    "record batches": lambda: pyarrow.RecordBatch.from_pylist(ROWS),
    "Arrow's stream": Stream,
    "polars, by what it can do": Polars,
    "datasets": _hub_dataset,
}


@pytest.mark.parametrize("name", OBJECTS)
def test_objects(name, request):
    if name == "datasets":
        request.getfixturevalue("datasets_library")
    dataset = Dataset.of(OBJECTS[name](), language="en", columns=COLUMNS)
    assert list(dataset.corpus) == DOCS


def test_polars_itself():
    polars = pytest.importorskip("polars")
    assert list(Dataset.of(polars.DataFrame(ROWS), language="en", columns=COLUMNS).corpus) == DOCS
    with pytest.raises(BadInput, match=r"lazy frame, which has no rows yet: pass frame.collect\(\)"):
        Dataset.of(polars.DataFrame(ROWS).lazy(), language="en")


@pytest.mark.parametrize(
    ("names", "chosen", "why"),
    [
        (["_id", "title", "text"], ["_id", "text", "title"], "BEIR's"),
        (["id", "contents"], ["id", "contents"], "Anserini's"),
        (["docid", "body", "headline"], ["docid", "body", "headline"], "news"),
        (["ID", "Text", "Title"], ["ID", "Text", "Title"], "a spreadsheet's capitals"),
        (["id", "doc_id", "text"], ["id", "text"], "the first of several names"),
        (["pid", "passage"], ["pid", "passage"], "MS MARCO's"),
    ],
)
def test_obvious_names(names, chosen, why):
    assert [part for parts in choose_columns("t", DOCUMENT, names, {}) for part in parts] == chosen, why


QUERIES = {"q1": "red jacket", "q2": "boots"}
QRELS = {"q1": {"p1": 2, "p3": 1}, "q2": {"p2": 1}}
TRIPLES = [("q1", "p1", 2), ("q1", "p3", 1), ("q2", "p2", 1)]


@pytest.mark.parametrize(
    ("queries", "why"),
    [
        (QUERIES, "a mapping"),
        (["red jacket", "boots"], "texts, whose ids are q1 and q2"),
        (list(QUERIES.items()), "pairs"),
        ([{"_id": "q1", "text": "red jacket"}, {"_id": "q2", "text": "boots"}], "BEIR's records"),
        ([{"qid": "q1", "query": "red jacket"}, {"qid": "q2", "query": "boots"}], "PyTerrier's names"),
        (pandas.DataFrame({"qid": ["q1", "q2"], "query": ["red jacket", "boots"]}), "a topics frame"),
    ],
)
def test_queries(queries, why):
    assert Dataset.of(ROWS, queries, QRELS, language="en", columns=COLUMNS).queries == QUERIES, why


@pytest.mark.parametrize(
    ("qrels", "expected", "why"),
    [
        (QRELS, QRELS, "grades"),
        (TRIPLES, QRELS, "triples"),
        ({"q1": ["p1", "p3"], "q2": {"p2"}}, {"q1": {"p1": 1, "p3": 1}, "q2": {"p2": 1}}, "lists and sets of ids"),
        ([("q1", "p1"), ("q2", "p2")], {"q1": {"p1": 1}, "q2": {"p2": 1}}, "pairs"),
        (pandas.DataFrame(TRIPLES, columns=["qid", "docno", "label"]), QRELS, "a frame of PyTerrier"),
        (pandas.DataFrame(TRIPLES, columns=["query-id", "corpus-id", "score"]), QRELS, "BEIR's names"),
    ],
)
def test_judgements(qrels, expected, why):
    assert Dataset.of(ROWS, QUERIES, qrels, language="en", columns=COLUMNS).qrels == expected, why


def test_a_folder_of_tables_is_a_dataset(tmp_path):
    write_csv(tmp_path / "corpus.csv")
    (tmp_path / "queries.csv").write_text("query_id,query\nq1,red jacket\nq2,boots\n")
    (tmp_path / "qrels.csv").write_text("query_id,doc_id,grade\nq1,p1,2\nq1,p3,1\nq2,p2,1\n")
    dataset = load(tmp_path, language="en", columns="id=sku,text=name")
    assert (dataset.queries, dataset.qrels, dataset.card.split) == (QUERIES, QRELS, "test")
    paths = [tmp_path / name for name in ("corpus.csv", "queries.csv", "qrels.csv")]
    assert Dataset.of(*paths, language="en", columns="id=sku,text=name").fingerprint == dataset.fingerprint


def test_documents_alone_can_be_indexed_and_searched_but_not_measured(tmp_path, fresh_cache):
    alone = Dataset.of(ROWS, language="en", columns=COLUMNS)
    assert [*rusbeir.search(alone, "bm25", "red jackets")["red jackets"]] == ["p1", "p3"]
    assert [*rusbeir.search(alone, queries=["boots"])] == ["boots"]
    frame = pandas.DataFrame(ROWS).rename(columns={"sku": "id", "name": "text"})
    assert [*rusbeir.search(frame, queries="boots", language="en")["boots"]] == ["p2"]
    for action in (lambda: rusbeir.bench(alone, out=tmp_path), lambda: load(write(alone, tmp_path / "alone"))):
        with pytest.raises(BadInput, match=r"no judgements, so nothing can be measured on it\. Add qrels/test\.tsv"):
            action()
    assert load(tmp_path / "alone", judged=False).fingerprint == alone.fingerprint
    with pytest.raises(BadInput, match="has no queries of its own: pass some"):
        rusbeir.search(alone)


def write(dataset: Dataset, folder: Path) -> Path:
    write_beir(dataset, folder)
    return folder


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: Dataset.of(ROWS), BadInput, "The language of the documents is missing"),
        (lambda: Dataset.of(ROWS, language="en"), BadInput, "no column for the document id .* it has sku, name, desc"),
        (
            lambda: Dataset.of(pandas.DataFrame(ROWS), language="en", columns={"id": "SKU"}),
            BadInput,
            "The table has no column 'SKU' for the document id; it has sku, name, description, price",
        ),
        (
            lambda: Dataset.of(ROWS, language="en", columns="id=sku,text=description"),
            BadInput,
            r"Document 3 of the corpus \('p3'\) has no text. Give it one, or join columns",
        ),
        (lambda: Dataset.of("absent.csv", language="en"), BadInput, "No file or folder absent.csv"),
        (lambda: Dataset.of({"p1": "text"}, language="en"), BadInput, "The corpus is a mapping; expected documents"),
        (lambda: Dataset.of(ROWS, [1], language="en", columns=COLUMNS), BadInput, "Query 1 is 1; expected a text"),
        (
            lambda: Dataset.of(ROWS, 5, language="en", columns=COLUMNS),
            BadInput,
            "Query: a int is not a table; pass a table or a list",
        ),
        (
            lambda: Dataset.of(ROWS, QUERIES, [("q1",)], language="en", columns=COLUMNS),
            BadInput,
            r"Judgement 1 is \('q1',\); expected \(query id, document id, grade\)",
        ),
        (
            lambda: Dataset.of(ROWS, QUERIES, [*TRIPLES, TRIPLES[0]], language="en", columns=COLUMNS),
            BadInput,
            "Query 'q1' and document 'p1' are paired a second time",
        ),
        (lambda: read_columns("id"), BadInput, "expected KEY=COLUMN, several separated by commas"),
        (lambda: read_columns("ident=sku"), UnknownName, "No column 'ident' of columns=. Did you mean 'id'"),
        (lambda: load("mini/ru", columns="id=sku"), BadInput, "is registered, and its columns are known"),
    ],
)
def test_refused(call, error, message):
    with pytest.raises(error, match=message) as refused:
        call()
    assert "\n" not in str(refused.value)


def test_several_splits_of_datasets_are_refused(datasets_library):
    import datasets

    splits = datasets.DatasetDict({"train": _hub_dataset()})
    with pytest.raises(BadInput, match=r"DatasetDict with the splits train: pass one of them, such as data\['train'\]"):
        Dataset.of(splits, language="en")


def test_datasets_are_given_back(fresh_cache, datasets_library):
    dataset = Dataset.of(ROWS, QUERIES, QRELS, language="en", columns=COLUMNS)
    tables = dataset.to_hf()
    assert {name: table.num_rows for name, table in tables.items()} == {"corpus": 3, "queries": 2, "qrels": 3}
    assert tables["corpus"][0] == {"_id": "p1", "title": DOCS[0].title, "text": DOCS[0].text}
    again = Dataset.of(tables["corpus"], tables["queries"], tables["qrels"], language="en")
    assert again.fingerprint == dataset.fingerprint


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".jsonl", ".parquet", ".csv.zst", ".csv.gz"])
@FUZZ
@given(data=ANY_BYTES)
def test_any_bytes_are_read_or_refused(ending, data, tmp_path):
    path = tmp_path / f"table{ending}"
    path.write_bytes(data)
    assert "\n" not in refusal(lambda: load(path, language="en", judged=False))

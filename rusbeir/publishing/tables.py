"""The files of a published dataset: Parquet for the hub, BEIR's zip, and tables for TREC's tools and ir_datasets."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rusbeir.datasets import Query, name_qrels_file, qrels_lines, record_line, write_qrels
from rusbeir.errors import require
from rusbeir.text import batched
from rusbeir.types import Dataset, MultilingualQueries, Progress, Qrels, count_languages, query_language

CORPUS, QUERIES, BEIR, TREC = "corpus.parquet", "queries.parquet", "beir.zip", "trec"
NANO_CORPUS, NANO_QRELS = "nanobeir/corpus.parquet", "nanobeir/qrels.parquet"
_NANO_NAMES = {
    "arguana": "ArguAna", "climate-fever": "ClimateFEVER", "climatefever": "ClimateFEVER", "dbpedia": "DBPedia",
    "dbpedia-entity": "DBPedia", "fever": "FEVER", "fiqa": "FiQA2018", "fiqa2018": "FiQA2018", "hotpotqa": "HotpotQA",
    "msmarco": "MSMARCO", "nfcorpus": "NFCorpus", "nq": "NQ", "quora": "QuoraRetrieval",
    "quoraretrieval": "QuoraRetrieval", "scidocs": "SCIDOCS", "scifact": "SciFact", "touche2020": "Touche2020",
    "webis-touche2020": "Touche2020",
}  # fmt: skip
"""BEIR's names, and those by which sentence-transformers' NanoBEIREvaluator knows them, after "Nano"."""
_DOCUMENT = {"_id": "string", "title": "string", "text": "string"}
_LANGUAGE = {"lang": "string"}
"""A column of documents and of queries in several languages."""
_JUDGEMENT = {"query-id": "string", "corpus-id": "string", "score": "int32"}
_BATCH_ROWS = 1_000
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of every file in the zip: the same dataset gives the same bytes."""


def name_qrels_table(split: str) -> str:
    """Name the path of a split's judgements in the folder. Raises BadInput if the split cannot name a file."""
    return str(Path(name_qrels_file(split)).with_suffix(".parquet"))


def find_nano_split(name: str) -> str | None:
    """Find the split in which NanoBEIREvaluator looks for a dataset of that name; None where it does not know the name.

    >>> find_nano_split("beir/scifact/test@ru"), find_nano_split("xquad/ru")
    ('NanoSciFact', None)
    """
    parts = re.split(r"[/@]", name.lower())
    return next((f"Nano{_NANO_NAMES[part.removeprefix('nano')]}" for part in parts
                 if part.removeprefix("nano") in _NANO_NAMES), None)  # fmt: skip


def write_nanobeir(dataset: Dataset, qrels: Qrels, folder: Path) -> None:
    """Write the files of NanoBEIREvaluator: titles joined to their texts, and the relevant documents alone.

    It reads no titles, and takes every judgement for one of relevance.
    """
    (folder / NANO_CORPUS).parent.mkdir()
    documents = ({"_id": doc.doc_id, "title": "", "text": doc.full_text} for doc in dataset.corpus)
    _write_table(folder / NANO_CORPUS, _DOCUMENT, documents)
    rows = (
        {"query-id": query_id, "corpus-id": doc_id, "score": 1}
        for query_id, grades in qrels.items()
        for doc_id, grade in grades.items()
        if grade > 0
    )
    _write_table(folder / NANO_QRELS, _JUDGEMENT, rows)


def write_parquet(dataset: Dataset, splits: Mapping[str, Qrels], folder: Path, progress: Progress) -> None:
    """Write corpus.parquet, queries.parquet and qrels/<split>.parquet with the columns that BEIR and MTEB use."""
    total = len(dataset.corpus)

    def documents() -> Iterator[dict[str, str]]:
        for n, doc in enumerate(dataset.corpus, 1):
            progress("write documents", n, total)
            yield {"_id": doc.doc_id, "title": doc.title, "text": doc.text, "lang": doc.language}

    languages = dataset.queries.languages if isinstance(dataset.queries, MultilingualQueries) else {}
    queries = (
        {"_id": query_id, "text": text, "lang": languages.get(query_id, "")}
        for query_id, text in dataset.queries.items()
    )
    of_documents = _LANGUAGE if any(count_languages(dataset.corpus)) else {}
    _write_table(folder / CORPUS, {**_DOCUMENT, **of_documents}, documents())
    _write_table(folder / QUERIES, {"_id": "string", "text": "string", **(_LANGUAGE if languages else {})}, queries)
    (folder / "qrels").mkdir()
    for split, qrels in splits.items():
        rows = (
            {"query-id": query_id, "corpus-id": doc_id, "score": grade}
            for query_id, grades in qrels.items()
            for doc_id, grade in grades.items()
        )
        _write_table(folder / name_qrels_table(split), _JUDGEMENT, rows)


def write_zip(dataset: Dataset, splits: Mapping[str, Qrels], card: bytes, folder: Path) -> None:
    """Write beir.zip: corpus.jsonl, queries.jsonl, qrels/<split>.tsv and card.json."""
    members: dict[str, Iterable[bytes]] = {
        "corpus.jsonl": map(record_line, dataset.corpus),
        "queries.jsonl": (
            record_line(Query(query_id, text, query_language(dataset.queries, query_id, "")))
            for query_id, text in dataset.queries.items()
        ),
        **{name_qrels_file(split): qrels_lines(qrels) for split, qrels in splits.items()},
        "card.json": [card],
    }
    with zipfile.ZipFile(folder / BEIR, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, lines in members.items():
            info = zipfile.ZipInfo(name, _EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            with bundle.open(info, "w", force_zip64=True) as file:
                for line in lines:
                    file.write(line)


def write_trec(dataset: Dataset, splits: Mapping[str, Qrels], folder: Path) -> None:
    """Write docs.tsv, queries.tsv and qrels.<split>.txt into trec/.

    A title precedes its text; line breaks and tabs become spaces, as a table cannot hold them.
    """
    (folder / TREC).mkdir()
    with (folder / TREC / "docs.tsv").open("wb") as file:
        file.writelines(f"{doc.doc_id}\t{_cell(doc.full_text)}\n".encode() for doc in dataset.corpus)
    with (folder / TREC / "queries.tsv").open("wb") as file:
        file.writelines(f"{query_id}\t{_cell(text)}\n".encode() for query_id, text in dataset.queries.items())
    for split, qrels in splits.items():
        write_qrels(folder / TREC / f"qrels.{split}.txt", qrels)


def _write_table(path: Path, columns: Mapping[str, str], rows: Iterable[Mapping[str, Any]]) -> None:
    pyarrow = require("pyarrow", "Publishing", "hf")
    parquet = require("pyarrow.parquet", "Publishing", "hf")
    schema = pyarrow.schema([(name, getattr(pyarrow, kind)()) for name, kind in columns.items()])
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in batched(rows, _BATCH_ROWS):
            writer.write_table(pyarrow.Table.from_pylist(list(batch), schema=schema))


def _cell(text: str) -> str:
    return " ".join(text.split())

"""Small repositories in each layout of the hub, all with the content of the sample in conftest.py."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from rusbeir.datasets import RegistryEntry

DOCS = [
    {"_id": "d1", "title": "Мост", "text": "Мост через реку."},
    {"_id": "d2", "title": "", "text": "Река под мостом."},
    {"_id": "d3", "title": "", "text": "Ёж и ель."},
]
QUERIES = [{"_id": "q2", "text": "ёж"}, {"_id": "q1", "text": "мост"}, {"_id": "q9", "text": "?"}]
QRELS = [
    {"query-id": "q1", "corpus-id": "d1", "score": 2},
    {"query-id": "q1", "corpus-id": "d2", "score": 1},
    {"query-id": "q2", "corpus-id": "d3", "score": 1},
]
Records = Iterable[Mapping[str, Any]]


def renamed(records: Records, **names: str) -> list[dict[str, Any]]:
    """The records with some keys called otherwise, those called "" left out; _id for id and the like."""
    back = {"_id": "id", "query-id": "query", "corpus-id": "corpus"}
    called = [{names.get(back.get(key, key), key): value for key, value in record.items()} for record in records]
    return [{key: value for key, value in record.items() if key} for record in called]


def put(path: Path, records: Records | str) -> Path:
    """A table of that name, in the format of its ending."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(records, str):
        path.write_text(records, encoding="utf-8")
        return path
    table = list(records)
    if path.suffix == ".parquet":
        import pyarrow
        from pyarrow import parquet

        parquet.write_table(pyarrow.Table.from_pylist(table), path)
    elif path.suffix == ".arrow":
        import pyarrow

        arrow = pyarrow.Table.from_pylist(table)
        with pyarrow.OSFile(str(path), "wb") as file, pyarrow.ipc.new_stream(file, arrow.schema) as out:
            out.write_table(arrow)
    elif path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(path.name.removesuffix(".zip"), lines(table))
            archive.writestr("__MACOSX/._corpus.jsonl", b"\0")
    elif path.suffix == ".tsv":
        path.write_text("".join("\t".join(map(str, row.values())) + "\n" for row in table), encoding="utf-8")
    else:
        path.write_text(lines(table), encoding="utf-8")
    return path


def lines(table: Records) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in table)


def readme(folder: Path, configs: Mapping[str, str | Mapping[str, str]]) -> None:
    """A README.md as the hub has them: configuration -> pattern, or split -> pattern."""
    entries = [f"- config_name: {name}\n  data_files:{_data_files(files)}\n" for name, files in configs.items()]
    put(folder / "README.md", "---\nlicense: mit\nconfigs:\n" + "".join(entries) + "---\n# A card\n")


def _data_files(files: str | Mapping[str, str]) -> str:
    if isinstance(files, str):
        return f"\n  - {files}"
    return "".join(f"\n  - split: {split}\n    path: {path}" for split, path in files.items())


def plain(folder: Path) -> Path:
    """parquet files in a plain folder."""
    put(folder / "corpus-00000-of-00002.parquet", DOCS[:2])
    put(folder / "corpus-00001-of-00002.parquet", DOCS[2:])
    put(folder / "queries.parquet", QUERIES)
    put(folder / "qrels" / "test.parquet", QRELS)
    return folder


def beir(folder: Path) -> Path:
    """BeIR/nfcorpus and BeIR/nfcorpus-qrels: the judgements are TSV in a repository of their own."""
    readme(folder, {"corpus": "corpus.jsonl", "queries": "queries.jsonl"})
    put(folder / "corpus.jsonl", DOCS)
    put(folder / "queries.jsonl", QUERIES)
    beside = folder.with_name(f"{folder.name}-qrels")
    # As in kaengreg/rus-scifact-qrels once: the card names a file that is not there.
    readme(beside, {"qrels": {"dev": "dev.tsv"}})
    put(beside / "test.tsv", [{"a": "query-id", "b": "corpus-id", "c": "score"}, *QRELS])
    return folder


def beir_converted(folder: Path) -> Path:
    """The same after the hub's conversion to parquet, each part in a folder."""
    readme(folder, {"corpus": {"corpus": "corpus/corpus-*"}, "queries": {"queries": "queries/queries-*"}})
    put(folder / "corpus" / "corpus-00000-of-00001.parquet", DOCS)
    put(folder / "queries" / "queries-00000-of-00001.parquet", QUERIES)
    put(folder.with_name(f"{folder.name}-qrels") / "test.tsv", QRELS)
    return folder


def mteb(folder: Path) -> Path:
    """One language: corpus, queries and default, grades as 64-bit integers, ids under another name."""
    readme(folder, {"default": {"test": "data/test.jsonl"}, "corpus": "c/*.parquet", "queries": "q/*.parquet"})
    put(folder / "data" / "test.jsonl", QRELS)
    put(folder / "c" / "test-00000-of-00001.parquet", renamed(DOCS, id="id"))
    put(folder / "q" / "test-00000-of-00001.parquet", renamed(QUERIES, id="id"))
    return folder


def mteb_languages(folder: Path) -> Path:
    """Several languages: the view is one of them."""
    configs: dict[str, str | dict[str, str]] = {}
    for language in ("en", "ru"):
        for role in ("corpus", "queries", "qrels"):
            configs[f"{language}-{role}"] = {"test": f"{language}-{role}/test-*", "dev": f"{language}-{role}/dev-*"}
    readme(folder, configs)
    for role, table in (("corpus", DOCS), ("queries", QUERIES), ("qrels", QRELS)):
        put(folder / f"ru-{role}" / "test-00000-of-00001.parquet", table)
        put(folder / f"en-{role}" / "test-00000-of-00001.parquet", table[:1])
    return folder / "ru"


def ruscibench(folder: Path) -> Path:
    """corpus-ru, queries-ru and ru."""
    readme(
        folder,
        {"ru": {"test": "ru/q.jsonl"}, "corpus-ru": {"corpus": "ru/c.jsonl"}, "queries-ru": {"queries": "ru/t.jsonl"}},
    )
    for name, table in (("c", DOCS), ("t", QUERIES), ("q", QRELS)):
        put(folder / "ru" / f"{name}.jsonl", table)
    return folder / "ru"


def air_bench(folder: Path) -> Path:
    """One configuration a version, its splits named for parts; the judgements in a repository of their own."""
    version = "AIR-Bench_24.05"
    splits = {"corpus_default": "corpus", "queries_default_test": "dev_queries", "queries_default_dev": "other"}
    readme(folder, {version: {split: f'"{version}/default/{name}.jsonl"' for split, name in splits.items()}})
    put(folder / version / "default" / "corpus.jsonl", renamed(DOCS, id="id"))
    put(folder / version / "default" / "dev_queries.jsonl", renamed(QUERIES, id="id"))
    put(folder / version / "default" / "other.jsonl", [{"id": "q7", "text": "?"}])
    beside = folder.with_name(f"qrels-{folder.name}-test")
    readme(beside, {version: {"qrels_default_test": f"{version}/default/qrels.jsonl"}})
    put(beside / version / "default" / "qrels.jsonl", renamed(QRELS, query="qid", corpus="docid", score="relevance"))
    return folder


def arrow(folder: Path) -> Path:
    """arrow files, as Dataset.save_to_disk leaves them."""
    put(folder / "corpus.arrow", DOCS)
    put(folder / "queries.arrow", QUERIES)
    put(folder / "qrels" / "test.arrow", QRELS)
    return folder


def air_bench_versions(folder: Path, name: str) -> Path:
    """A repository that has that dataset of both versions of AIR-Bench, and one of the judgements of dev."""
    name = name.replace("-", "_")
    new = {f"corpus_{name}": DOCS, f"queries_{name}_test": QUERIES[2:], f"queries_{name}_dev": QUERIES[:2]}
    old = {f"corpus_{name}": DOCS[:1], f"queries_{name}": QUERIES}
    for version, tables in (("AIR-Bench_24.04", old), ("AIR-Bench_24.05", new)):
        for split, table in tables.items():
            put(folder / version / f"{split}.jsonl", renamed(table, id="id"))
    readme(
        folder,
        {
            version: {split: f"{version}/{split}.jsonl" for split in tables}
            for version, tables in (("AIR-Bench_24.04", old), ("AIR-Bench_24.05", new))
        },
    )
    beside = folder.with_name(f"qrels-{folder.name}-dev")
    readme(beside, {"AIR-Bench_24.05": {f"qrels_{name}_dev": "dev.jsonl"}})
    put(beside / "dev.jsonl", renamed(QRELS, query="qid", corpus="docid", score="relevance"))
    return folder


def register_air_bench(monkeypatch: pytest.MonkeyPatch, data: Path) -> None:
    """Make the registry hold a dataset of each kind of AIR-Bench, of the content of the sample, below that folder."""
    entries = {}
    for repository, path, view in (
        ("qa_wiki_ru", "qa/wiki/ru", "default"),
        ("long-doc_book_ru", "long-doc/book/ru/long-book_1", "long-book_1"),
    ):
        air_bench_versions(data / "hub" / "AIR-Bench" / repository, view)
        for version, split, n_docs, n_queries in (
            ("24.05", "dev", 3, 2), ("24.05", "test", 3, 1), ("24.04", "test", 1, 3),
        ):  # fmt: skip
            name = f"air-bench/{version}/{path}/{split}"
            hub = (f"AIR-Bench/{repository}", *([f"AIR-Bench/qrels-{repository}-dev"] if split == "dev" else []))
            entries[name] = RegistryEntry(
                name=name, format="hub", language="ru", split=split, hub=hub, judged=split == "dev",
                options={"version": f"AIR-Bench_{version}", "view": view}, n_docs=n_docs, n_queries=n_queries,
            )  # fmt: skip
    for module in ("datasets.registry", "datasets.opening"):
        monkeypatch.setattr(f"rusbeir.{module}.read_registry", lambda: entries)
    monkeypatch.setenv("RUSBEIR_DATA", str(data))

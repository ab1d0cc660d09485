"""Datasets in the layouts of the Hugging Face hub: each layout, each kind of table, and each kind of error.

All of it is read from folders written here; the hub itself is spoken to in test_hub_server.py.
"""

from __future__ import annotations

import csv
import hashlib
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rusbeir.datasets import RegistryEntry, load, validate
from rusbeir.datasets import registry as registry_module
from rusbeir.datasets.formats import hub_layout
from rusbeir.errors import BadInput, MissingExtra, UnknownName
from rusbeir.types import Doc
from tests.support.hub_folders import (
    DOCS,
    QRELS,
    QUERIES,
    Records,
    air_bench,
    arrow,
    beir,
    beir_converted,
    mteb,
    mteb_languages,
    plain,
    put,
    renamed,
    ruscibench,
)

pytestmark = pytest.mark.usefixtures("hf_extra")

LAYOUTS = [plain, beir, beir_converted, mteb, mteb_languages, ruscibench, air_bench, arrow]


@pytest.fixture
def expected(samples) -> str:
    """The fingerprint of the same content in BEIR's layout."""
    return load(samples.beir(name="as-beir"), language="ru").fingerprint


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_same_dataset(layout: Callable[[Path], Path], expected: str, tmp_path: Path):
    path = layout(tmp_path / "repository")
    dataset = load(path, language="ru", split="test")
    assert next(iter(dataset.corpus)) == Doc("d1", "Мост через реку.", "Мост")
    assert dict(dataset.queries) == {"q2": "ёж", "q1": "мост"}
    assert dataset.qrels == {"q1": {"d1": 2, "d2": 1}, "q2": {"d3": 1}}
    assert dataset.fingerprint == expected
    assert validate(path, language="ru", split="test") == []


@pytest.mark.parametrize("layout", [plain, mteb, ruscibench, arrow])
def test_the_only_split_need_not_be_named(layout: Callable[[Path], Path], tmp_path: Path):
    assert load(layout(tmp_path / "repository"), language="ru").card.split == "test"


Register = Callable[..., Path]


@pytest.fixture
def register(monkeypatch: pytest.MonkeyPatch, fresh_cache: Path, tmp_path: Path) -> Register:
    """Make the registry hold one entry of the hub, and RUSBEIR_DATA a folder, which is returned."""

    def register(*hub: str, format: str = "hub", **options: str) -> Path:
        row = RegistryEntry(name="toy", format=format, language="ru", split="test", hub=hub, options=options)
        monkeypatch.setattr(registry_module, "read_registry", lambda: {"toy": row})
        monkeypatch.setenv("RUSBEIR_DATA", str(tmp_path / "data"))
        return tmp_path / "data" / "hub"

    return register


def test_an_entry_of_two_repositories_with_patterns(register: Register, expected: str):
    """MIRACL: corpora in one repository, topics and judgements in another, and other languages in the same folders."""
    hub = register(
        "miracl/corpus@0123456789abcdef0123456789abcdef01234567", "some/topics",
        corpus="v1-ru/docs-*.jsonl", queries="ru/topics/*-test.tsv", qrels="ru/qrels/*-test.tsv",
    )  # fmt: skip
    for n, doc in enumerate(renamed(DOCS, id="docid")):
        put(hub / "miracl/corpus/v1-ru" / f"docs-{9 + n}.jsonl", [doc])
    put(hub / "miracl/corpus/v1-de/docs-0.jsonl", [{"docid": "x", "text": "Igel", "title": ""}])
    put(hub / "some/topics/ru/topics/topics-test.tsv", QUERIES)
    trec = [{"q": r["query-id"], "i": "Q0", "d": r["corpus-id"], "g": r["score"]} for r in QRELS]
    put(hub / "some/topics/ru/qrels/qrels-test.tsv", trec)
    dataset = load("toy")
    assert dataset.fingerprint == expected
    assert dataset.card.revision == "miracl/corpus@0123456789abcdef0123456789abcdef01234567"


def test_tables_as_of_ms_marco(register: Register):
    hub = register("some/marco", corpus="c.tsv", queries="q.tsv", qrels="r.tsv")
    put(hub / "some/marco/c.tsv", renamed(DOCS, title=""))
    put(hub / "some/marco/q.tsv", QUERIES)
    put(hub / "some/marco/r.tsv", QRELS)
    assert next(iter(load("toy").corpus)) == Doc("d1", "Мост через реку.")


def test_a_packed_jsonl_and_numbers_for_ids(register: Register):
    hub = register("some/rubq", corpus="data/corpus.jsonl.zip", queries="data/queries.jsonl", qrels="data/test.jsonl")
    put(hub / "some/rubq/data/corpus.jsonl.zip", [{"_id": 7, "text": "a", "title": None}])
    put(hub / "some/rubq/data/queries.jsonl", [{"_id": 1, "text": "b"}])
    put(hub / "some/rubq/data/test.jsonl", [{"query-id": 1, "corpus-id": 7, "score": 1.0, "k": math.nan}])
    dataset = load("toy")
    assert (list(dataset.corpus), dataset.qrels) == ([Doc("7", "a")], {"1": {"7": 1}})


@pytest.mark.parametrize(
    ("name", "options"), [("ru.jsonl", {"view": "ru"}), ("data/russian.csv", {"pairs": "data/russian.csv"})]
)
def test_a_table_of_questions_and_passages(name: str, options: dict[str, str], register: Register):
    """Belebele and PublicHealthQA: passages and questions once each, half pairs left out."""
    hub = register("some/pairs", format="pairs", question="question", passage="passage", **options)
    table = [("Кто?", "Ёж."), ("Где?", "Ель,\nсосна."), ("Что?", "Ёж."), ("Кто?", "Ель,\nсосна.")]
    if name.endswith(".csv"):
        quoted = "".join(f'"{question}","{passage}"\n' for question, passage in table)
        put(hub / "some/pairs" / name, "question,passage\n" + quoted)
    else:
        put(hub / "some/pairs" / name, [{"question": q, "passage": p} for q, p in [*table, (None, "x")]])
    dataset = load("toy")
    assert list(dataset.corpus) == [Doc("C0", "Ёж."), Doc("C1", "Ель,\nсосна.")]
    assert list(dataset.queries.items()) == [("Q0", "Кто?"), ("Q1", "Где?"), ("Q2", "Что?")]
    assert dataset.qrels == {"Q0": {"C0": 1, "C1": 1}, "Q1": {"C1": 1}, "Q2": {"C0": 1}}


def test_a_cell_of_csv_may_be_long(register: Register):
    """Longer than Python reads by itself, whatever another reader allowed before."""
    csv.field_size_limit(1 << 17)
    hub = register("some/pairs", format="pairs", question="question", passage="passage", pairs="long.csv")
    put(hub / "some/pairs" / "long.csv", f"question,passage\nКто?,{'Ёж ' * 100_000}\n")
    assert len(next(iter(load("toy").corpus)).text) > 1 << 17


def test_a_published_md5_is_checked_and_a_missing_one_recorded(
    register: Register, monkeypatch: pytest.MonkeyPatch, fresh_cache: Path
):
    hub = register("some/marco", corpus="c.tsv", queries="q.tsv", qrels="r.tsv")
    corpus = put(hub / "some/marco/c.tsv", renamed(DOCS, title=""))
    put(hub / "some/marco/q.tsv", QUERIES)
    qrels = put(hub / "some/marco/r.tsv", QRELS)
    monkeypatch.setattr(
        "rusbeir.datasets.fetching.hub.md5sums", lambda: {"some/marco/c.tsv": hashlib.md5(b"").hexdigest()}
    )
    with pytest.raises(BadInput, match=rf"{corpus} is not the file that toy is made of: expected md5 d41d8"):
        load("toy")
    right = {"some/marco/c.tsv": hashlib.md5(corpus.read_bytes()).hexdigest()}
    monkeypatch.setattr("rusbeir.datasets.fetching.hub.md5sums", lambda: right)
    load("toy")
    put(qrels, QRELS[1:])
    with pytest.raises(BadInput, match=rf"{qrels} has changed since toy was first used: then sha256 .*, now "):
        load("toy")


@pytest.mark.parametrize(
    ("file", "table", "message"),
    [
        ("corpus-00001-of-00002.parquet", None, r"corpus-\*-of-00002: only 1 of 2 parts are there"),
        ("queries.parquet", None, r"the files of the queries are missing"),
        ("qrels/test.parquet", None, r"has no judgements"),
        (
            "corpus-00001-of-00002.parquet", [{"name": "d3", "text": "x"}],
            r"corpus-00001-of-00002\.parquet has no column for the document id \(_id or id or .*\); it has name, text",
        ),
        ("queries.parquet", [{"_id": "q1", "Texte": "x"}], r"queries\.parquet has no column for the text .*, Texte\."),
        ("qrels/test.parquet", [{"query-id": "q1", "score": 1}], r"test\.parquet has no column for the document id"),
        ("queries.parquet", [{"_id": "q1", "text": "x"}, {"_id": None, "text": "y"}], r"parquet, row 2: .*None"),
        ("queries.parquet", [{"_id": "q1", "text": None}], r"queries\.parquet, row 1: query 'q1' has no text"),
        ("corpus-00001-of-00002.parquet", [{"_id": "d9", "text": 5}], r"row 1: document 'd9' has no text"),
        ("corpus-00001-of-00002.parquet", [{"_id": "d1", "text": "x"}], r"02\.parquet, row 1: the id 'd1' is used alr"),
        ("qrels/test.parquet", [{**QRELS[0], "score": 0.5}], r"test\.parquet, row 1: the grade 0\.5 is not an integer"),
        ("qrels/test.parquet", [{**QRELS[0], "score": 2**31}], "row 1: the grade 2147483648 is not an integer from"),
        ("qrels/test.parquet", [{**QRELS[0], "score": 2**40}], "row 1: the grade 1099511627776 is not"),
        ("qrels/test.parquet", [{**QRELS[0], "score": float("nan")}], "row 1: the grade nan is not"),
        ("qrels/test.parquet", [{**QRELS[0], "score": float("-inf")}], "row 1: the grade -inf is not"),
        ("qrels/test.parquet", [{**QRELS[0], "score": "9" * 5000}], "row 1: the grade '9999"),
        ("qrels/test.parquet", [{**QRELS[0], "score": "١"}], "row 1: the grade '١' is not"),
        ("qrels/test.parquet", [{**QRELS[0], "query-id": ""}], r"row 1: the query id or the document id is empty"),
        ("queries.parquet", "not a table", r"queries\.parquet: cannot be read \(.*copy or download it again"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_in_one_line(file: str, table: Records | str | None, message: str, tmp_path: Path):
    folder = plain(tmp_path / "repository")
    if table is None:
        (folder / file).unlink()
    else:
        put(folder / file, table)
    with pytest.raises(BadInput, match=message) as caught:
        load(folder, language="ru")
    assert "\n" not in str(caught.value)


def test_several_splits_ask_for_one(tmp_path: Path):
    folder = plain(tmp_path / "repository")
    put(folder / "qrels" / "dev.parquet", QRELS[:1])
    with pytest.raises(BadInput, match="has the splits dev, test: choose one with split="):
        load(folder, language="ru")
    assert load(folder, language="ru", split="dev").qrels == {"q1": {"d1": 2}}
    with pytest.raises(UnknownName, match=r"No split 'train' of .*\. Available: dev, test\."):
        load(folder, language="ru", split="train")
    # Earlier versions published several splits under the name "all".
    (folder / "card.json").write_text('{"language": "ru", "split": "all"}')
    with pytest.raises(BadInput, match="has the splits dev, test: choose one with split="):
        load(folder)


def test_another_language_is_told(tmp_path: Path):
    folder = mteb_languages(tmp_path / "repository").parent
    with pytest.raises(UnknownName, match="No view 'kk'"):
        load(folder / "kk", language="kk")


def test_a_lone_jsonl_corpus_is_used_in_place(tmp_path: Path, fresh_cache: Path):
    load(beir(tmp_path / "repository"), language="ru", split="test")
    assert not (fresh_cache / "copies").exists()


def test_without_the_extra_its_name_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = plain(tmp_path / "repository")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"needs the package pyarrow: .*pip install 'rusbeir\[hf\]'"):
        load(folder, language="ru")


def test_the_hubs_packages_are_imported_only_for_what_needs_them(samples):
    code = "import sys; from rusbeir.datasets import load; load(sys.argv[1], language='ru'); print(*sys.modules)"
    command = [sys.executable, "-c", code, samples.beir()]
    loaded = set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    assert "rusbeir.datasets" in loaded
    assert not loaded & {"datasets", "huggingface_hub", "pyarrow", "pandas", "yaml", "requests"}


MEASURE = """
import re, sys
from pathlib import Path
from rusbeir.datasets import load
assert len(load(sys.argv[1], language="ru").corpus) == int(sys.argv[2])
# getrusage would count the process that started this one, too.
print(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
"""


def test_memory_does_not_grow_with_the_table(tmp_path: Path):
    import pyarrow
    from pyarrow import parquet

    schema = pyarrow.schema([("_id", pyarrow.string()), ("text", pyarrow.string())])
    environment = os.environ | {"RUSBEIR_CACHE": str(tmp_path / "cache"), "HF_HUB_OFFLINE": "1"}
    peaks = []
    # Some 100,000 rows are read ahead of need, whatever the table's length.
    for n_rows in (120_000, 280_000):
        folder = plain(tmp_path / str(n_rows))
        for part in folder.glob("corpus-*"):
            part.unlink()
        with parquet.ParquetWriter(folder / "corpus.parquet", schema, compression="zstd") as writer:
            for start in range(0, n_rows, 20_000):
                ids = [f"d{n}" for n in range(start, start + 20_000)]
                writer.write_table(
                    pyarrow.table({"_id": ids, "text": [f"{n} слово и ещё слово " * 20 for n in ids]}, schema)
                )
        command = [sys.executable, "-c", MEASURE, folder, str(n_rows)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        peaks.append(int(done.stdout) * 1024)
    sizes = sorted(path.stat().st_size for path in (tmp_path / "cache" / "copies").glob("*.jsonl"))
    assert sizes[1] - sizes[0] > 100 * 1024 * 1024
    assert peaks[1] - peaks[0] < 50 * 1024 * 1024


@pytest.mark.parametrize(
    "head", ["configs: [", "configs: 3", "configs: [3]", "configs: [{}]", "- configs: x", "a: !!x\nconfigs:"]
)
def test_a_readme_with_a_broken_head_is_told_in_one_line(head):
    with pytest.raises(BadInput, match=r"README\.md: its configurations cannot be read"):
        hub_layout.read_configs(f"---\n{head}\n---\n".encode())

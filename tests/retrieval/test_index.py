"""Indexes on disk: whole or not there, opened only by their own recipe, damage named in one line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import orjson
import pytest
import tantivy

from rusbeir.datasets import DocIds, write_ids
from rusbeir.errors import BackendError, BadInput
from rusbeir.retrieval.lexical import engines, index, tantivy_engine
from rusbeir.retrieval.lexical.bm25 import Bm25
from rusbeir.types import Doc, silent
from tests.support.stubs import Docs, Words, build, open_built, recipe, retriever

every_engine = pytest.mark.parametrize("engine", sorted({*engines.ENGINES} - {"opensearch"}), indirect=True)
"""What is kept on this machine is the same for both servers."""
DOCS = [Doc(f"d{number}", f"w{number} w{number % 7} shared", f"t{number % 3}") for number in range(50)]
REPOSITORY = Path(__file__).parent.parent.parent


@every_engine
def test_built_once_opened_often(tmp_path, engine):
    folder = tmp_path / "index"
    build(folder, DOCS, engine)
    held = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    runs = [open_built(folder, engine).search({"q": "shared w3"}, 9) for _ in range(3)]
    assert runs[0] == runs[1] == runs[2]
    assert next(iter(runs[0]["q"])) == "d3"
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == held, "opening changes nothing"


@pytest.mark.parametrize("writable", [False, True])
def test_an_index_on_a_file_system_that_cannot_be_written(tmp_path, monkeypatch, writable):
    """tantivy cannot lock there, and says so by a ValueError."""
    engine, folder = "tantivy", tmp_path / "index"
    build(folder, DOCS, engine)
    expected = open_built(folder, engine).search({"q": "shared w3"}, 9)
    held = sorted(path.name for path in folder.rglob("*"))

    def open_elsewhere(path: str) -> object:
        if Path(path) == folder:
            raise ValueError("Failed to acquire Lockfile: IoError(ReadOnlyFilesystem)")
        return tantivy.Index.open(path)

    fake = SimpleNamespace(**vars(tantivy) | {"Index": SimpleNamespace(open=open_elsewhere)})
    monkeypatch.setattr(tantivy_engine, "tantivy", fake)
    monkeypatch.setattr(tantivy_engine.os, "access", lambda path, mode: writable)
    if writable:
        with pytest.raises(BackendError, match=r"The index .* is damaged \(Failed to acquire Lockfile"):
            open_built(folder, engine)
        return
    assert open_built(folder, engine).search({"q": "shared w3"}, 9) == expected
    assert sorted(path.name for path in folder.rglob("*")) == held


@every_engine
def test_building_deletes_nothing(tmp_path, engine):
    (tmp_path / "notes.txt").write_text("mine")
    build(tmp_path / "one", DOCS, engine)
    held = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    build(tmp_path / "two", DOCS, engine)
    build(tmp_path / "one", DOCS[:3], engine)
    assert {path: path.read_bytes() for path in held} == held, "an index that is there already stays"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes.txt", "one", "two"]


@every_engine
def test_what_the_build_noted(tmp_path, engine):
    calls = []
    build(
        tmp_path / "index",
        [*DOCS, Doc("empty", "  ")],
        engine,
        progress=lambda stage, done, total: calls.append((stage, done, total)),
    )
    bm25 = Bm25()
    _, built = index.open_index(
        tmp_path / "index", recipe(engine, bm25, tmp_path / "index"), Words(), engines.load(engine), bm25
    )
    assert (built.documents, built.empty_documents) == (51, 1)
    assert built.analyse_seconds > 0
    assert built.index_seconds > 0
    assert built.bytes >= sum((tmp_path / "index" / name).stat().st_size for name in built.files)
    assert built.bytes > 1000
    assert calls[-1] == ("index", 51, 51)


@pytest.mark.parametrize(
    ("key", "parts"),
    [
        (("tantivy", Bm25(fields="sum"), "f"), ["fields:flat", "fields:sum", "was asked for"]),
        (("bm25s", Bm25(), "f"), ["tantivy-", "bm25s-"]),
        (("tantivy", Bm25(), "other"), ["has corpus f,", "but other was asked for"]),
    ],
)
def test_an_index_of_another_recipe(tmp_path, key, parts):
    build(tmp_path / "index", DOCS, "tantivy")
    engine, bm25, fingerprint = key
    with pytest.raises(BadInput) as error:
        index.open_index(
            tmp_path / "index",
            recipe(engine, bm25, tmp_path / "index", fingerprint),
            Words(),
            engines.load(engine),
            bm25,
        )
    assert all(part in str(error.value) for part in parts)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def flip_a_bit(path: Path) -> None:
    """Which would change scores or ids without a word."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


DAMAGE = [
    *((pattern, hurt) for pattern in ("doc_ids.*", "fields.json", "*") for hurt in (truncate, Path.unlink)),
    ("[!r]*", flip_a_bit),
]


@pytest.mark.parametrize(("pattern", "hurt"), DAMAGE)
@every_engine
def test_a_damaged_index(tmp_path, engine, pattern, hurt):
    folder = tmp_path / "index"
    build(folder, DOCS, engine)
    files = [path for path in sorted(folder.rglob(pattern)) if path.is_file() and path.stat().st_size]
    for path in files:
        held = path.read_bytes()
        hurt(path)
        with pytest.raises(BackendError) as error:
            open_built(folder, engine)
        message = str(error.value)
        assert path.name in message
        assert message.endswith("Remove it with `rusbeir cache clear indexes`; it is then built again.")
        assert "\n" not in message
        path.write_bytes(held)
    assert open_built(folder, engine).search({"q": "w3"}, 1)


@pytest.mark.parametrize("size", ["same", "none"])
@every_engine
def test_an_index_overwritten_with_zeros(tmp_path, engine, size):
    """Sizes are right; what the engine itself notices is still one line."""
    folder = tmp_path / "index"
    build(folder, DOCS, engine)
    name = {
        "tantivy": "meta.json",
        "bm25s": "text/indptr.csc.index.npy",
        "elasticsearch": "elasticsearch.json",
    }[engine]
    path = folder / name
    path.write_bytes(bytes(path.stat().st_size) if size == "same" else b"")
    with pytest.raises(BackendError, match="damaged") as error:
        open_built(folder, engine)
    assert "\n" not in str(error.value)


def test_no_index_at_all(tmp_path):
    (tmp_path / "index").mkdir()
    with pytest.raises(BackendError, match=r"recipe\.json cannot be read"):
        open_built(tmp_path / "index")


BUILDER = """
import itertools, resource, sys, time
from pathlib import Path
from tests.support import stubs
from tests.support.stubs import build
from rusbeir.errors import RusbeirError
from rusbeir.types import Doc
{before}
def docs():
    for number in range(60_000):
        if number == 40_000 and {wait}:
            print("half", flush=True)
            time.sleep(60)
        yield Doc(f"d{{number}}", " ".join(f"w{{number * place}}" for place in range(20)))
class Stream:
    def __len__(self): return 60_000
    def __iter__(self): return docs()
stubs.Docs = lambda docs: docs
try:
    build(Path({folder!r}), Stream(), {engine!r})
except RusbeirError as error:
    print(type(error).__name__, error)
"""


def start(folder: Path, engine: str, *, before: str = "", wait: bool = False) -> subprocess.Popen[str]:
    code = BUILDER.format(folder=str(folder), engine=engine, before=before, wait=wait)
    return subprocess.Popen([sys.executable, "-c", code], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)


@every_engine
def test_a_killed_build_leaves_nothing_that_opens(tmp_path, engine):
    folder = tmp_path / "index"
    process = start(folder, engine, wait=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "half\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert not folder.exists()
    for left in tmp_path.iterdir():
        with pytest.raises(BackendError):
            open_built(left, engine)
    process = start(folder, engine)
    out, _ = process.communicate(timeout=120)
    assert (process.returncode, out) == (0, ""), "the next build works"
    assert open_built(folder, engine).search({"q": "w38"}, 100_000)["q"].keys() >= {"d38", "d19", "d2"}


@every_engine
def test_a_full_disk(tmp_path, engine):
    """A limit on the size of files stands for it: writes fail with EFBIG half-way."""
    folder = tmp_path / "index"
    before = "resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))"
    process = start(folder, engine, before=before)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0, "no abort"
    assert out.startswith("BackendError Cannot write"), out
    assert len(out.splitlines()) == 1
    assert list(tmp_path.iterdir()) == [], "nothing half-written stays"


@every_engine
def test_a_folder_that_cannot_be_written(tmp_path, engine):
    (tmp_path / "file").write_text("")
    with pytest.raises(BackendError, match=r"Cannot write .*RUSBEIR_CACHE"):
        build(tmp_path / "file" / "index", DOCS, engine)


@every_engine
def test_an_error_of_the_corpus_comes_through(tmp_path, engine):
    class Spoiled(Docs):
        def __iter__(self):
            yield DOCS[0]
            raise BadInput("corpus.jsonl:2 is not JSON")

    bm25 = Bm25()
    with pytest.raises(BadInput, match=r"corpus\.jsonl:2"):
        index.build(
            tmp_path / "index",
            recipe(engine, bm25, tmp_path / "index"),
            Spoiled(DOCS),
            Words(),
            engines.load(engine),
            bm25,
            silent,
        )
    assert list(tmp_path.iterdir()) == []


@every_engine
def test_an_empty_corpus(tmp_path, engine):
    with pytest.raises(BadInput, match="corpus is empty"):
        build(tmp_path / "index", [], engine)
    assert list(tmp_path.iterdir()) == []


@every_engine
def test_a_corpus_of_empty_texts(tmp_path, engine):
    for fields in ("flat", "sum", "best_fields"):
        bm25 = Bm25(fields=fields)
        retrieve = retriever(tmp_path / fields, [Doc("a", ""), Doc("b", "")], engine, bm25)
        assert retrieve.search({"q": "word", "p": ""}, 3) == {"q": {}, "p": {}}


def test_index_names():
    key = engines.IndexKey(signature="bm25|…", fingerprint="f")
    name = key.name("bm25(k1=0.9) >> Юникод/..")
    assert name.startswith("bm25-k1-0.9-")
    assert os.sep not in name
    assert name != engines.IndexKey(signature="bm25|…", fingerprint="g").name("bm25(k1=0.9) >> Юникод/..")
    assert name == key.name("bm25(k1=0.9) >> Юникод/..")


@pytest.mark.parametrize("listed", [0, 10**6])
def test_doc_ids(tmp_path, monkeypatch, listed):
    monkeypatch.setattr("rusbeir.datasets.corpus._MAX_LISTED_ROWS", listed)
    ids = [f"id-{number}" for number in range(20_000)] + ["", "с пробелом", "new\nline", "\U0001f600"]
    assert [doc.doc_id for doc in write_ids(tmp_path, (Doc(doc_id, "") for doc_id in ids))] == ids
    stored = DocIds(tmp_path)
    assert stored.count == len(ids)
    assert stored.read(range(len(ids))) == ids
    assert stored.read([20_003, 0, 20_001]) == ["\U0001f600", "id-0", "с пробелом"]
    assert stored.read([]) == []


def test_the_recipe_is_readable(tmp_path):
    build(tmp_path / "index", DOCS)
    document = orjson.loads((tmp_path / "index" / index.RECIPE).read_bytes())
    assert document["recipe"]["fingerprint"] == "f"
    assert document["recipe"]["signature"].startswith("bm25|k1:1.2|b:0.75|fields:flat|tantivy-")


def test_time_is_split_between_analyzer_and_engine(tmp_path):
    class Slow(Words):
        def analyze_lines(self, texts, *, processes=None):
            for text in texts:
                time.sleep(0.01)
                yield text

    bm25 = Bm25()
    folder, tantivy = tmp_path / "index", engines.load("tantivy")
    index.build(folder, recipe("tantivy", bm25, folder), Docs(DOCS), Slow(), tantivy, bm25, silent)
    _, built = index.open_index(folder, recipe("tantivy", bm25, folder), Words(), tantivy, bm25)
    assert built.analyse_seconds >= 0.01 * len(DOCS)

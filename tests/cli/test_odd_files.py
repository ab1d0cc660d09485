"""Files as nobody makes them on purpose: what a terminal shows of them, and what is refused before any work."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path

import pytest

from rusbeir.cli.output import escape
from rusbeir.datasets import open_corpus
from rusbeir.datasets.formats import files
from rusbeir.errors import BackendError, BadInput
from rusbeir.text import LINE_CHARS
from tests.support.command_line import one_line

HOSTILE = "\x1b[2J\x07\x9b31m\u202e"
"""Clears a screen, rings, colours, and turns the direction of a text."""


def is_harmless(text: str) -> bool:
    return all(line.isprintable() for line in text.splitlines())


@pytest.fixture
def hostile(beir: Path) -> Path:
    """A dataset with that in its name, its texts and its metadata; the ids of documents cannot hold it."""
    card = {"name": f"na{HOSTILE}me", "language": "ru", "split": "test", "licence": HOSTILE}
    (beir / "card.json").write_text(json.dumps(card))
    lines = (beir / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    record = json.loads(lines[0])
    record |= {"text": record["text"] + HOSTILE, "title": HOSTILE}
    (beir / "corpus.jsonl").write_text("\n".join([json.dumps(record), *lines[1:]]) + "\n", encoding="utf-8")
    with (beir / "queries.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"_id": "q3", "text": " "}\n')
    with (beir / "qrels" / "test.tsv").open("a") as file:
        file.write("q3\tabsent\t1\n")
    return beir


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["search", "{beir}", "кошка"], "\\x1b[2J"),
        (["search", "{beir}", "кошка", "--json"], "\\u009b31m\\u202e"),
        (["bench", "{beir}"], "na\\x1b[2J"),
        (["bench", "{beir}", "--json"], "\\u009b31m\\u202e"),
        (["datasets", "info", "{beir}"], "na\\x1b[2J"),
        (["datasets", "validate", "{beir}"], "query 'q3' has no text"),
        (["bench", "{beir}", "--system", f"bm25({HOSTILE})"], "\\x1b"),
        (["bench", f"{HOSTILE}/none.json"], "\\x1b"),
        (["analyze", "--lang", "ru", HOSTILE], ""),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, list) else "",
)
def test_no_escape_reaches_the_terminal(rusbeir, hostile, fresh_cache, arguments, part):
    done = rusbeir(*(argument.replace("{beir}", str(hostile)) for argument in arguments))
    assert is_harmless(done.out)
    assert is_harmless(done.err)
    assert part in done.out + done.err


def test_bench_says_what_validate_says_of_queries_and_judgements(rusbeir, hostile, fresh_cache):
    done = rusbeir("bench", hostile)
    assert done.code == 0
    warnings = [line for line in done.err.splitlines() if line.startswith("rusbeir: warning:")]
    assert [line for line in warnings if "1 of 3 queries have no text, such as 'q3'" in line]
    assert [line for line in warnings if "1 of 3 judgements are of documents that the corpus lacks" in line]
    assert all("na\\x1b[2J" in line for line in warnings if "judgements" in line)


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("corpus.jsonl", '"d1"', '"d 1"'),
        ("corpus.jsonl", '"d1"', '"d\\n1"'),
        ("corpus.jsonl", '"d1"', '"d\\u00001"'),
        ("queries.jsonl", '"q1"', '"q\\t1"'),
    ],
)
@pytest.mark.parametrize("verb", [["bench"], ["port", "--to", "en", "--translator", "memory", "--memory", "tm.tsv"]])
def test_ids_that_no_run_can_hold_are_refused_before_any_work(rusbeir, beir, fresh_cache, verb, file, old, new):
    path = beir / file
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    Path("tm.tsv").write_text("а\tb\n", encoding="utf-8")
    out = ["--out", "out"]
    done = rusbeir(verb[0], beir, *verb[1:], *out)
    assert done.code == 2
    assert one_line(done.err, ["white space" if " " in new else "control character"])
    assert not Path("out").exists()
    assert not (fresh_cache / "indexes").exists()


def test_a_repeated_id_of_megabytes_is_not_printed_whole(rusbeir, beir, fresh_cache):
    line = json.dumps({"_id": "x" * 2_000_000, "text": "y"}) + "\n"
    (beir / "corpus.jsonl").write_text(line + line)
    done = rusbeir("bench", beir)
    assert done.code == 2
    assert one_line(done.err, ["corpus.jsonl:2", "is used already at", "ids must be unique."])
    assert len(done.err) <= LINE_CHARS + len("rusbeir: \n")


def test_a_path_that_is_not_utf_8(rusbeir, beir):
    done = rusbeir("bench", os.fsdecode(b"\xff"))
    assert done.code == 2
    assert one_line(done.err, ["'\\udcff' is not UTF-8", "Rename the file"])


def test_a_folder_whose_name_is_not_utf_8_gets_a_readable_name(beir):
    import rusbeir

    (beir / "card.json").unlink()
    folder = beir.rename(beir.with_name(os.fsdecode(b"sm\xffall")))
    assert rusbeir.load(folder, language="ru").card.name == "sm\ufffdall"


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"{}"])
@pytest.mark.parametrize("name", ["offsets.npy", "hashes.npy", "rows.npy", "meta.json"])
def test_a_damaged_index_of_a_corpus_is_told(rusbeir, beir, fresh_cache, name, content):
    assert rusbeir("datasets", "info", beir).code == 0
    (file,) = fresh_cache.rglob(name)
    file.write_bytes(content)
    done = rusbeir("bench", beir)
    assert done.code == 1
    assert one_line(done.err, [str(file.parent), "is damaged", "`rusbeir cache clear corpora`"])


def test_a_bit_that_flips_in_the_index_of_a_corpus(beir, fresh_cache):
    corpus = beir / "corpus.jsonl"
    assert open_corpus(corpus)["d2"].title == "Собаки"
    (file,) = fresh_cache.rglob("rows.npy")
    data = bytearray(file.read_bytes())
    data[-8] ^= 1
    file.write_bytes(data)
    with pytest.raises(BackendError, match="it has changed since it was written"):
        open_corpus(corpus)


def test_a_cache_that_can_only_be_read_serves(beir, fresh_cache, monkeypatch):
    """Root writes everywhere, so writing fails by a stand-in."""
    corpus = beir / "corpus.jsonl"
    checksum = files.checksum_of(corpus)

    def refuse(path: Path) -> None:
        raise BackendError(f"Cannot write {path}: Read-only file system.")

    monkeypatch.setattr(files, "atomic_file", refuse)
    for kept in (fresh_cache / "checksums").iterdir():
        assert files.checksum_of(corpus) == checksum
        kept.write_bytes(b"\xff")
        assert files.checksum_of(corpus) == checksum
        kept.write_bytes(b"0" * 64)
        # What was kept is wrong, and what it is compared with is right.
        files.verify_file(corpus, "small", "corpus.jsonl", sha256=checksum)


def test_a_zip_whose_names_are_not_utf_8(rusbeir):
    with zipfile.ZipFile("odd.zip", "w") as archive:
        archive.writestr("queries.jsonl", "{}")
        archive.writestr("é.jsonl", "{}")
    Path("odd.zip").write_bytes(Path("odd.zip").read_bytes().replace("é".encode(), b"\xc3("))
    done = rusbeir("bench", "odd.zip", "--lang", "ru")
    assert done.code == 2
    assert one_line(done.err, ["odd.zip: cannot be unpacked"])


def test_a_table_whose_texts_are_not_utf_8(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    from rusbeir.datasets.formats.records import refuse
    from rusbeir.datasets.formats.tables import read_queries

    ids = pyarrow.array([b"q1", b"\xc3("]).view(pyarrow.utf8())
    parquet.write_table(pyarrow.table({"_id": ids, "text": ["a", "b"]}), tmp_path / "q.parquet")
    with pytest.raises(BadInput, match=r"q\.parquet: cannot be read"):
        list(read_queries([tmp_path / "q.parquet"], refuse))


def test_a_model_with_a_name_that_no_file_can_have(rusbeir, beir):
    done = rusbeir("bench", beir, "--system", f"dense({'x' * 3000})")
    assert done.code == 2
    assert one_line(done.err, ["No dense model 'xxx"])


@pytest.mark.parametrize(
    ("text", "shown"),
    [("дом\n", "дом\n"), ("a\x1b[2J", "a\\x1b[2J"), ("\udcff\u202e", "\\udcff\\u202e"), ("a\tb", "a\\tb")],
)
def test_escapes(text, shown):
    assert escape(text) == shown

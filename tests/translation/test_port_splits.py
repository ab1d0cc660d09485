"""A port of a dataset with several splits, and the folder of its working files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import rusbeir
from rusbeir.audit.port_checks.aligned import open_port
from rusbeir.datasets import load_qrels, registry
from rusbeir.datasets.loading import load_splits
from rusbeir.errors import BadInput, UnknownName
from rusbeir.jobs import Journal
from rusbeir.translation.porting.api import port
from tests.support.small_port import Fake, add_split, dataset_bytes, records, write_source


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Queries q1 and q2 in test, q3 and q1 in train, q4 in no split."""
    return add_split(write_source(tmp_path / "small"))


def test_all_splits_are_one_port(source, tmp_path):
    fake = Fake()
    report = port(source, to="ru", translator=fake, out=tmp_path / "out")
    assert (report["split"], report["splits"], report["n_queries"]) == ("all", ["test", "train"], 3)
    assert sorted(fake.sent) == sorted(set(fake.sent))
    assert "hare [1]" not in fake.sent
    assert [row["_id"] for row in records(tmp_path / "out" / "queries.jsonl")] == ["q1", "q2", "q3"]
    for split in ("test", "train"):
        assert (tmp_path / "out" / "qrels" / f"{split}.tsv").read_text() == (source / f"qrels/{split}.tsv").read_text()
    test, train = (rusbeir.load(tmp_path / "out", split=split) for split in (None, "train"))
    assert (test.card.split, list(test.queries), list(train.queries)) == ("test", ["q1", "q2"], ["q1", "q3"])
    card = json.loads((tmp_path / "out" / "card.json").read_bytes())
    assert (card["split"], card["n_queries"], card["n_qrels"]) == ("test", 2, 3)
    assert card["fingerprint"] == test.fingerprint == report["fingerprint"]
    originals = {split: rusbeir.load(source, split=split).fingerprint for split in ("test", "train")}
    assert card["provenance"]["source"]["splits"] == originals
    assert card["provenance"]["source"]["fingerprint"] == originals["test"]


@pytest.mark.parametrize("splits", [("test", "train"), ("train", "test"), ("test", "all"), ("test", None)])
def test_a_split_is_added_to_a_finished_port(source, tmp_path, splits):
    first, second = Fake(), Fake()
    port(source, to="ru", translator=first, out=tmp_path / "out", split=splits[0])
    assert [path.stem for path in (tmp_path / "out" / "qrels").iterdir()] == [splits[0]]
    report = port(source, to="ru", translator=second, out=tmp_path / "out", split=splits[1])
    assert report["splits"] == ["test", "train"]
    assert second.sent == (["snow falls"] if splits[0] == "test" else ["mountain lake morning"])
    port(source, to="ru", translator=Fake(), out=tmp_path / "whole")
    assert dataset_bytes(tmp_path / "out") == dataset_bytes(tmp_path / "whole")
    # A split that is there already stays with the others.
    again = Fake()
    assert port(source, to="ru", translator=again, out=tmp_path / "out", split="test")["splits"] == ["test", "train"]
    assert again.sent == []


def test_queries_of_no_split_on_demand(source, tmp_path):
    port(source, to="ru", translator=Fake(), out=tmp_path / "out")
    fake = Fake()
    report = port(source, to="ru", translator=fake, out=tmp_path / "out", all_queries=True)
    assert (fake.sent, report["n_queries"]) == (["hare night"], 4)
    assert records(tmp_path / "out" / "queries.jsonl")[3] == {"_id": "q4", "text": "заяц ночь"}
    assert list(rusbeir.load(tmp_path / "out").queries) == ["q1", "q2"]


def test_a_changed_query_is_translated_again(source, tmp_path):
    port(source, to="ru", translator=Fake(), out=tmp_path / "out")
    lines = (source / "queries.jsonl").read_text().replace("snow falls", "rain falls")
    (source / "queries.jsonl").write_text(lines)
    fake = Fake()
    port(source, to="ru", translator=fake, out=tmp_path / "out")
    assert fake.sent == ["rain falls"]
    assert records(tmp_path / "out" / "queries.jsonl")[2]["text"] == "дождь падает"


def test_a_sample_of_all_splits(source, tmp_path):
    report = port(source, to="ru", translator=Fake(), out=tmp_path / "out", sample=2, seed=1)
    union = load_splits(tmp_path / "out", split="all")
    assert report["n_queries"] == len(union.dataset.queries)
    assert {doc_id for grades in union.dataset.qrels.values() for doc_id in grades} <= {
        doc.doc_id for doc in union.dataset.corpus
    }
    port(source, to="ru", translator=Fake(), out=tmp_path / "test", split="test", sample=2)
    with pytest.raises(BadInput, match="splits was 'test' and is now 'test,train'"):
        port(source, to="ru", translator=Fake(), out=tmp_path / "test", sample=2)


def test_no_such_split(source, tmp_path):
    with pytest.raises(UnknownName, match=r"No split 'tran'\. Did you mean 'train'"):
        port(source, to="ru", translator=Fake(), out=tmp_path / "out", split="tran")


def test_splits_of_different_documents_are_no_one_port(tmp_path):
    folder = tmp_path / "two"
    folder.mkdir()
    for split in ("dev", "test"):
        for part, row in (
            ("corpus", {"_id": "d1", "text": f"Ice of {split}"}),
            ("queries", {"_id": "q1", "text": "ice"}),
            ("qrels", {"query-id": "q1", "corpus-id": "d1", "score": 1}),
        ):
            (folder / f"{part}-{split}.jsonl").write_text(json.dumps(row) + "\n")
    (folder / "README.md").write_text("---\nconfigs:\n- config_name: other\n  data_files: x.jsonl\n---\n")
    with pytest.raises(BadInput, match="has the splits dev, test, of different documents: choose one with split="):
        port(folder, to="ru", language="en", translator=Fake(), out=tmp_path / "out")
    report = port(folder, to="ru", language="en", split="dev", translator=Fake(), out=tmp_path / "out")
    assert report["splits"] == ["dev"]


def test_registered_splits_are_ported_by_the_name_that_they_share(source, tmp_path, monkeypatch):
    shutil.make_archive(str(tmp_path / "small"), "zip", source)
    (tmp_path / "r.toml").write_text(
        '[family]\nformat = "beir"\nlanguage = "en"\n[[file]]\npath = "small.zip"\n'
        'views = [{name = "own/small/test", split = "test", n_queries = 2}, '
        '{name = "own/small/train", split = "train", n_queries = 2}]\n'
    )
    entries = registry.read_registry(tmp_path / "r.toml")
    for module in (registry, __import__("rusbeir.datasets.opening", fromlist=["opening"])):
        monkeypatch.setattr(module, "read_registry", lambda: entries)
    monkeypatch.setenv("RUSBEIR_DATA", str(tmp_path))
    report = port("own/small", to="ru", translator=Fake(), out=tmp_path / "out")
    assert (report["name"], report["splits"], report["n_queries"]) == ("own/small@ru", ["test", "train"], 3)
    assert open_port(tmp_path / "out").splits.keys() == {"test", "train"}
    for place, split in ((source, "all"), ("own/small", "all"), ("own/small/train", None)):
        assert load_qrels(place, split=split) == load_splits(place, split=split).dataset.qrels
    assert set(load_qrels("own/small", split="all")) == {"q1", "q2", "q3"}
    assert port("own/small/train", to="ru", translator=Fake(), out=tmp_path / "one")["splits"] == ["train"]


# Working files


def test_the_dataset_is_a_clean_folder(source, tmp_path):
    port(source, to="ru", translator=Fake(), out=tmp_path / "out")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"corpus.jsonl", "queries.jsonl", "qrels", "card.json", "qa", "work"}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("journal.sqlite", b"", r"journal.sqlite is empty, although texts were cut for it.* Restore a copy"),
        ("journal.sqlite", b"no database at all, but text of some length", "is not a journal, or is damaged"),
        ("layout.txt", b"12 x\n", r"layout.txt:1 is damaged. Remove the file, and the texts are cut again"),
        ("layout-queries.txt", b"\xff\t1\n", r"layout-queries.txt:1 is damaged"),
        ("layout-queries.txt", b"1" * 5000 + b"\n", r"layout-queries.txt:1 is damaged"),
    ],
)
def test_damaged_working_files(source, tmp_path, name, content, message):
    port(source, to="ru", translator=Fake(), out=tmp_path / "out")
    (tmp_path / "out" / "work" / name).write_bytes(content)
    fake = Fake()
    with pytest.raises(BadInput, match=message):
        port(source, to="ru", translator=fake, out=tmp_path / "out")
    assert fake.sent == []


@pytest.mark.parametrize("entries", ["{", "[1]", "{}", '[{"name": "x"}]', '[{"capacity": {"levels": 1}}]'])
def test_damaged_list_of_translators(source, tmp_path, entries):
    port(source, to="ru", translator=Fake(), out=tmp_path / "out")
    with Journal.open(tmp_path / "out" / "work" / "journal.sqlite", {}) as journal:
        journal.set_meta({"translators": entries})
    with pytest.raises(BadInput, match=r"journal.sqlite(: The journal is damaged| is empty)"):
        port(source, to="ru", translator=Fake(), out=tmp_path / "out")


# Functions of the user's own


OWN = "def upper(texts, source, target):\n    return [text.{}() for text in texts]\n"


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Write the module `own_function` as it is to be imported next."""

    def write(text: str) -> None:
        (tmp_path / "own_function.py").write_text(text)
        monkeypatch.delitem(__import__("sys").modules, "own_function", raising=False)

    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    return write


def signatures(source, tmp_path) -> list[str]:
    return port(source, to="de", translator="python:own_function.upper", out=tmp_path / "out")["translators"]


def test_an_edited_function_is_another_translator(source, tmp_path, own):
    own(OWN.format("upper"))
    first = signatures(source, tmp_path)
    own(OWN.format("swapcase"))
    second = signatures(source, tmp_path)
    assert first != second
    assert records(tmp_path / "out" / "queries.jsonl")[0]["text"] == "ICE MELTS"
    assert records(tmp_path / "out" / "corpus.jsonl")[0]["title"] == "wATER BOILS"
    own(OWN.format("upper"))
    assert signatures(source, tmp_path) == first
    assert records(tmp_path / "out" / "corpus.jsonl")[0]["title"] == "WATER BOILS"


def test_a_function_that_signs_itself_may_be_edited(source, tmp_path, own):
    own(OWN.format("upper") + "upper.signature = 'model-2'\n")
    assert signatures(source, tmp_path) == ["python:own_function.upper|model-2"]
    own(OWN.format("swapcase") + "upper.signature = 'model-2'\n")
    assert signatures(source, tmp_path) == ["python:own_function.upper|model-2"]
    assert records(tmp_path / "out" / "corpus.jsonl")[0]["title"] == "WATER BOILS"


def test_code_that_only_the_folder_names_is_not_imported(source, tmp_path, own):
    own(OWN.format("upper"))
    signatures(source, tmp_path)
    own("raise SystemExit('imported')\n")
    with pytest.raises(BadInput, match=r"out was made by python:own_function.upper, and rusbeir imports no code"):
        port(source, to="de", translator=None, out=tmp_path / "out", retry_failed=True)

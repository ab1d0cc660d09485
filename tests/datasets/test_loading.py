"""A dataset at a path, in BEIR's and Cocktail's layout: what is read, and one line for everything that is wrong."""

from __future__ import annotations

import errno
import json
import os
import zipfile
from pathlib import Path

import pytest

from rusbeir.datasets import load, validate
from rusbeir.datasets.loading import load_splits
from rusbeir.errors import BackendError, BadInput, RusbeirError, UnknownName
from rusbeir.types import Doc
from tests.datasets.conftest import pack


def test_a_beir_folder(samples):
    dataset = load(samples.beir(), language="ru")
    assert list(dataset.corpus) == [
        Doc("d1", "Мост через реку.", "Мост"),
        Doc("d2", "Река под мостом."),
        Doc("d3", "Ёж и ель."),
    ]
    # only judged queries, in the order of their file
    assert list(dataset.queries.items()) == [("q2", "ёж"), ("q1", "мост")]
    assert dataset.qrels == {"q1": {"d1": 2, "d2": 1}, "q2": {"d3": 1}}
    assert (dataset.card.name, dataset.card.language, dataset.card.split) == ("sample", "ru", "test")


def test_equal_content_has_one_fingerprint_in_every_format(samples):
    folder = samples.beir()
    plain = dict.fromkeys(samples.files)
    gz, zst = ({**plain, **{name + end: data for name, data in samples.files.items()}} for end in (".gz", ".zst"))
    reordered = {"qrels/test.tsv": "q2\td3\t1\nq1\td2\t1\nq1\td1\t2\n"}
    paths = [
        folder,
        samples.packed(folder),
        samples.packed(samples.beir(name="rooted"), root="some/folder/"),
        samples.beir(gz, name="gz"),
        samples.beir(zst, name="zst"),
        samples.packed(samples.beir(gz, name="gz-in-zip")),
        samples.packed(samples.beir(zst, name="zst-in-zip")),
        samples.beir(reordered, name="reordered"),
    ]
    datasets = [load(path, language="ru") for path in paths]
    assert len({dataset.fingerprint for dataset in datasets}) == 1
    assert all(list(dataset.corpus) == list(datasets[0].corpus) for dataset in datasets)


@pytest.mark.parametrize(
    "changes",
    [
        {"corpus.jsonl": '{"_id": "d1", "text": "Другой."}\n{"_id": "d2", "text": "a"}\n{"_id": "d3", "text": "b"}'},
        {"queries.jsonl": '{"_id": "q2", "text": "еж"}\n{"_id": "q1", "text": "мост"}\n'},
        {"qrels/test.tsv": "q1\td1\t1\nq1\td2\t1\nq2\td3\t1\n"},
    ],
)
def test_other_content_has_another_fingerprint(changes, samples):
    first, second = samples.beir(), samples.beir(changes, name="changed")
    assert load(first, language="ru").fingerprint != load(second, language="ru").fingerprint


def test_ids_may_be_numbers(samples):
    changes = {
        "corpus.jsonl": '{"_id": 1, "text": "a"}\n',
        "queries.jsonl": '{"_id": 2, "text": "b"}\n',
        "qrels/test.tsv": "2\t1\t1\n",
    }
    dataset = load(samples.beir(changes), language="ru")
    assert (dataset.corpus["1"].text, dict(dataset.queries), dataset.qrels) == ("a", {"2": "b"}, {"2": {"1": 1}})


ODD_CORPUS = (
    '{"_id": "d1", "text": "Мост\t.", "k": NaN}\n{"_id": "d2", "text": "a", "k": [-Infinity]}\n'
    '{"_id": "d3", "text": "b", "k": "\\ud800"}\n'
)
ODD_QUERIES = '{"_id": "q1", "text": "мост", "Gemini": NaN}\n{"_id": "q2", "text": "ёж\x01", "k": {"l": Infinity}}\n'


def test_json_that_only_python_reads_is_loaded_and_written_back_as_json(samples):
    path = samples.beir({"corpus.jsonl": ODD_CORPUS, "queries.jsonl": ODD_QUERIES})
    dataset, _, metadata, _ = load_splits(path, language="ru")
    assert [doc.text for doc in dataset.corpus] == ["Мост\t.", "a", "b"]
    assert dict(dataset.queries) == {"q1": "мост", "q2": "ёж\x01"}
    assert metadata == {"q1": {"Gemini": None}, "q2": {"k": {"l": None}}}
    assert load(samples.packed(path), language="ru").fingerprint == dataset.fingerprint
    assert [extra for _, extra in dataset.corpus.whole()] == [{"k": None}, {"k": [None]}, {"k": "\ufffd"}]


def test_cocktails_queries_may_hold_nan(samples):
    """As those of cocktail/nq-utd do."""
    path = samples.packed(samples.cocktail({"queries.jsonl": ODD_QUERIES}))
    assert dict(load(f"{path}/mixed", language="ru").queries) == {"q1": "мост", "q2": "ёж\x01"}
    assert validate(f"{path}/mixed", language="ru") == []


def test_a_query_with_an_unpaired_surrogate_is_refused_with_its_line(samples):
    path = samples.beir({"queries.jsonl": '{"_id": "q1", "text": "a"}\n{"_id": "q2", "text": "\\udfff"}\n'})
    with pytest.raises(BadInput, match=r'queries\.jsonl:2: "text" has an unpaired surrogate'):
        load(path, language="ru")


CARD = {"name": "mine", "language": "ru", "split": "test", "licence": "CC0", "self_suffixes": [""]}


def test_a_card_names_language_and_split(samples):
    card = load(samples.beir({"card.json": json.dumps(CARD), "qrels/dev.tsv": "q1\td1\t1\n"})).card
    assert (card.name, card.language, card.split, card.licence) == ("mine", "ru", "test", "CC0")
    assert card.self_suffixes == ("",)


TWO_SPLITS = {"qrels/dev.tsv": "q1\td1\t1\n"}
Q1 = "q1\td1\t1\n"


@pytest.mark.parametrize(
    ("changes", "options", "error", "message"),
    [
        ({}, {}, BadInput, r"no card.json that names its language\. Name it with language="),
        (TWO_SPLITS, {"language": "ru"}, BadInput, "has the splits dev, test: choose one with split="),
        ({}, {"language": "ru", "split": "tset"}, UnknownName, "No split 'tset'. Did you mean 'test'"),
        ({"card.json": json.dumps(CARD)}, {"language": "en"}, BadInput, "language is 'ru', not 'en': omit language="),
        ({"card.json": json.dumps(CARD)}, {"split": "dev"}, UnknownName, "No split 'dev'. Available: test"),
        ({"card.json": "{"}, {}, BadInput, "card.json:1: not JSON"),
        ({"card.json": "[]"}, {}, BadInput, r"not a card \(the value is \[\], not an object\)"),
        ({"card.json": '{"language": 1}'}, {}, BadInput, r"card.json: not a card \(language is 1, not a string\)"),
        ({"card.json": '{"self_suffixes": "x"}'}, {}, BadInput, r"not a card \(self_suffixes is 'x', not a list\)"),
        ({"card.json": '{"ignore_titles": 1}'}, {}, BadInput, r"not a card \(ignore_titles is 1, not true or false\)"),
        ({"corpus.jsonl": None}, {"language": "ru"}, BadInput, "is not a dataset: expected a folder or a zip"),
        ({"corpus.jsonl": ""}, {"language": "ru"}, BadInput, "the corpus is empty"),
        ({"corpus.jsonl": "{"}, {"language": "ru"}, BadInput, "corpus.jsonl:1: the file ends in the middle"),
        ({"queries.jsonl": None}, {"language": "ru"}, BadInput, "queries.jsonl does not exist"),
        ({"queries.jsonl": ""}, {"language": "ru"}, BadInput, "none of its queries is judged in the split 'test'"),
        ({"queries.jsonl": '{"_id": "q1"}\n'}, {"language": "ru"}, BadInput, "queries.jsonl:1: query 'q1' has no"),
        ({"queries.jsonl": '{"_id": "q1", "text": "a"}\n'}, {"language": "ru"}, BadInput, "1 judged queries .* 'q2'"),
        ({"queries.jsonl": '{"_id": "q1", "text": "a"}\n' * 2}, {"language": "ru"}, BadInput, "jsonl:2: .*'q1'"),
        ({"qrels/test.tsv": None}, {"language": "ru"}, BadInput, "has no judgements, .* Add qrels/test.tsv"),
        ({"qrels/test.tsv": Q1 + Q1}, {"language": "ru"}, BadInput, "test.tsv:2: .* are paired a second time"),
        ({"qrels/test.tsv": "q8\td1\t1\n"}, {"language": "ru"}, BadInput, "none of its queries is judged"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(changes, options, error: type[RusbeirError], message: str, samples):
    for path in (samples.beir(changes), samples.packed(samples.beir(changes, name="in-zip"))):
        with pytest.raises(error, match=message) as caught:
            load(path, **options)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("corpus", "place"),
    [
        ('{"_id": "d1", "text": "a"}\n\n{"_id": 1.5}\n', "corpus.jsonl.gz:3: "),
        # a repeated id shows the line of the source, not of the copy in the cache, which has no blank lines
        ('{"_id": "d1", "text": "a"}\n\n{"_id": "d1", "text": "b"}\n', "corpus.jsonl.gz:3: the id 'd1' .*gz:1"),
    ],
)
@pytest.mark.parametrize("attempt", ["first", "second, with the copy at hand"])
def test_a_bad_line_in_a_packed_corpus_is_told_as_its_own_line(corpus: str, place: str, attempt: str, samples):
    path = samples.packed(samples.beir({"corpus.jsonl": None, "corpus.jsonl.gz": corpus}))
    for _ in range(1 if attempt == "first" else 2):
        with pytest.raises(BadInput, match=rf"sample\.zip:{place}"):
            load(path, language="ru")


@pytest.mark.parametrize(
    "member", ["../evil.jsonl", "a/../../evil", "/etc/evil", "C:/evil", "..\\evil", "a\\..\\..\\b"]
)
def test_a_zip_that_points_outside_is_refused(member: str, samples, tmp_path: Path, fresh_cache: Path):
    path = samples.packed(samples.beir())
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(member, "x")
    with pytest.raises(BadInput, match="points outside of the archive") as caught:
        load(path, language="ru")
    assert repr(zipfile.ZipFile(path).namelist()[-1]) in str(caught.value)
    assert not fresh_cache.exists()


def test_a_broken_zip_is_told(samples):
    path = samples.packed(samples.beir())
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(BadInput, match=r"sample\.zip: cannot be unpacked"):
        load(path, language="ru")
    # a member whose bytes do not match its checksum
    start = data.index(b"corpus.jsonl") + len("corpus.jsonl")
    path.write_bytes(data[: start + 20] + b"\0\0\0\0" + data[start + 24 :])
    with pytest.raises(BadInput, match=r"sample\.zip:corpus\.jsonl"):
        load(path, language="ru")


def test_a_zip_of_a_later_version_is_told(samples):
    path = samples.packed(samples.beir())
    data = path.read_bytes()
    entry = data.index(b"PK\x01\x02")
    path.write_bytes(data[: entry + 6] + bytes([64]) + data[entry + 7 :])
    with pytest.raises(BadInput, match=r"sample\.zip: cannot be unpacked \(zip file version 6\.4\)"):
        load(path, language="ru")


def test_a_zip_made_on_a_mac_is_read(samples):
    path = samples.packed(samples.beir(), root="sample/")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("__MACOSX/sample/._queries.jsonl", b"\0")
        archive.writestr("__MACOSX/queries.jsonl", b"\0")
    assert len(load(path, language="ru").queries) == 2


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("./nowhere", "No file or folder ./nowhere"),
        ("nowhere.zip", "No file or folder nowhere.zip"),
        (Path("nowhere"), "No file or folder nowhere"),
        ("~nobody-of-that-name/data", "No file or folder ~nobody"),
        ("./" + "x" * 5000, "No file or folder ./xxx"),
        ("./a\0b", "No file or folder"),
    ],
)
def test_a_path_that_does_not_exist(name: str | Path, message: str):
    with pytest.raises(BadInput, match=message):
        load(name)


def test_a_language_that_bcp_47_lacks_is_refused(samples):
    """Also from Python, where nothing has looked at it before."""
    with pytest.raises(UnknownName, match=r"No language 'russsian'\. Did you mean 'ru'"):
        load(samples.beir(), language="russsian")


def test_a_name_fixes_language_and_split():
    with pytest.raises(BadInput, match="xquad/ru says that the split is 'dev', not 'test': omit split="):
        load("xquad/ru", split="test")


def test_views_of_cocktail(samples):
    folder = samples.cocktail()
    for path in (folder, samples.packed(folder)):
        human, llm = load(f"{path}/human", language="ru"), load(f"{path}/llm", language="ru")
        mixed, default = load(f"{path}/mixed", language="ru"), load(path, language="ru")
        assert [doc.doc_id for doc in human.corpus] == [doc.doc_id for doc in llm.corpus] == ["d1", "d2", "d3"]
        assert (human.corpus["d1"], llm.corpus["d1"].text) == (Doc("d1", "Мост через реку."), "Мостик через реку.")
        assert load(f"{path}/bot-1.0", language="ru").fingerprint == llm.fingerprint
        assert [doc.doc_id for doc in mixed.corpus][2:4] == ["d3-human", "d1-bot-1.0"]
        assert mixed.qrels["q1"] == {"d1-human": 2, "d1-bot-1.0": 2, "d2-human": 1, "d2-bot-1.0": 1}
        assert not any(doc.title for doc in mixed.corpus)
        assert default.fingerprint == mixed.fingerprint
        assert mixed.card.name == "cocktail/mixed"


def test_a_repeated_id_in_one_of_several_corpora_is_told_in_its_file(samples):
    line = '{"_id": "d1", "text": "a"}\n'
    folder = samples.cocktail({"corpus/bot-1.0.jsonl": line + line})
    with pytest.raises(BadInput, match=r"corpus/bot-1\.0\.jsonl:2: the id 'd1-bot-1\.0' is used already .*jsonl:1"):
        load(folder, language="ru")


def test_a_view_that_is_not_there_is_told_with_those_that_are(samples):
    three = samples.cocktail({"corpus/other.jsonl": samples.files["corpus.jsonl"]}, name="three")
    # with two other corpora, "llm" could be either
    with pytest.raises(UnknownName, match=r"No view 'llm'.*bot-1\.0, human, mixed, other"):
        load(three / "llm", language="ru")
    with pytest.raises(UnknownName, match="No view 'sentences'"):
        load(samples.beir() / "sentences", language="ru")


@pytest.mark.parametrize("packed", [False, True])
def test_a_cache_that_cannot_be_written_is_told(packed: bool, samples, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = samples.packed(samples.beir()) if packed else samples.beir()
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("RUSBEIR_CACHE", str(tmp_path / "file"))
    with pytest.raises(BackendError, match=r"Cannot write .*RUSBEIR_CACHE"):
        load(path, language="ru")


def test_a_disk_that_is_full_leaves_nothing_half_written(samples, fresh_cache: Path, monkeypatch: pytest.MonkeyPatch):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = samples.beir()
    with monkeypatch.context() as patch:
        patch.setattr("numpy.save", full)
        with pytest.raises(BackendError, match="No space left on device"):
            load(path, language="ru")
    assert [entry for entry in fresh_cache.rglob("*") if entry.name != "corpora"] == []
    assert len(load(path, language="ru").corpus) == 3


def test_a_second_load_copies_and_indexes_nothing(samples, fresh_cache: Path):
    path = samples.packed(samples.beir())
    load(path, language="ru")
    before = {file: file.stat().st_mtime_ns for file in fresh_cache.rglob("*")}
    load(path, language="ru")
    assert {file: file.stat().st_mtime_ns for file in fresh_cache.rglob("*")} == before


def test_a_packed_squad_file_is_read(samples, tmp_path: Path):
    plain = samples.squad(("Раз. Два.", {"q": 5}))
    paths = [plain, tmp_path / "other.json.gz", tmp_path / "other.json.zst"]
    for path in paths[1:]:
        path.write_bytes(pack(plain.read_bytes(), path.name))
    fingerprints = {load(f"{path}/sentences", language="ru").fingerprint for path in paths}
    assert len(fingerprints) == 1

"""What the registry holds: families, checksums, flags, and the counts of the papers."""

from __future__ import annotations

import csv
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from rusbeir.datasets import get_entry, read_registry
from rusbeir.datasets.formats.reader import FORMATS
from rusbeir.datasets.registry import md5sums

# family (the first part of a name): entries, and how many of them have a checksum
FAMILIES = {
    "air-bench": (2 * 53 + 1 + 15 + 28, 0),
    "beir": (40, 40),
    "cocktail": (16 * 3, 16 * 3),
    "hc4": (3 * 2, 0),
    "mini": (2, 2),
    "miracl": (18, 18),
    "mmarco": ((8 + 13) * 2, (8 + 13) * 2),
    "mr-tydi": (11, 0),
    "mteb": (15, 0),
    "neuclir": (3, 0),
    "ntrex": (128, 128),
    "posir": (10 * 30, 0),
    "rusbeir": (32, 0),
    "trec-arabic": (2, 0),
    "xquad": (12 * 3, 4 * 3),
    "xquad-r": (11, 11),
}


def test_entries_by_family():
    entries = Counter(name.partition("/")[0] for name in read_registry())
    verified = Counter(name.partition("/")[0] for name, entry in read_registry().items() if entry.verified)
    assert {family: (n, verified[family]) for family, n in entries.items()} == FAMILIES


def test_every_entry_says_what_it_is():
    for name, entry in read_registry().items():
        assert entry.licence, name
        assert entry.language, name
        assert entry.split, name
        assert entry.source or entry.bundled, name
        assert entry.format in FORMATS, name
        assert entry.bundled or entry.hub or (entry.path and entry.url) or entry.options["id"] == name, name
        assert not entry.md5 or len(entry.md5) == 32, name
        assert not entry.sha256 or len(entry.sha256) == 64, name
        assert all("@" not in one or len(one.partition("@")[2]) == 40 for one in entry.hub), name


@pytest.mark.parametrize(
    "name",
    ["msmarco", "trec-covid", "nfcorpus", "nq", "hotpotqa", "fiqa", "arguana", "webis-touche2020", "quora",
     "dbpedia-entity", "scidocs", "fever", "climate-fever", "scifact", "cqadupstack/android"],
)  # fmt: skip
def test_the_public_sets_of_beir(name: str):
    entry = get_entry(f"beir/{name}/test")
    assert (entry.language, entry.split, entry.verified) == ("en", "test", True)
    assert entry.self_retrieval == (name in ("arguana", "quora"))
    assert entry.n_docs
    assert entry.n_queries
    assert entry.n_qrels


def test_air_bench_has_the_datasets_of_its_tables():
    """AIR-Bench's docs/available_tasks.md: 69 datasets in 13 languages (24.05), 28 in 2 (24.04); only dev is judged."""
    entries = {name: entry for name, entry in read_registry().items() if name.startswith("air-bench/")}
    for version, n_datasets, n_languages in (("24.05", 69, 13), ("24.04", 28, 2)):
        of_version = {name: entry for name, entry in entries.items() if name.startswith(f"air-bench/{version}/")}
        assert len({name.rpartition("/")[0] for name in of_version}) == n_datasets
        assert len({entry.language for entry in of_version.values()}) == n_languages
    for name, entry in entries.items():
        assert entry.judged == (entry.split == "dev"), name
        assert entry.n_docs, name
        assert entry.n_queries, name
    assert all(entry.judged for name, entry in read_registry().items() if name not in entries)


def test_entries_of_one_archive_share_it():
    forums = [entry for name, entry in read_registry().items() if name.startswith("beir/cqadupstack/")]
    assert len(forums) == 12
    assert len({entry.path for entry in forums}) == 1
    assert len({entry.options["within"] for entry in forums}) == 12
    assert sum(entry.n_queries for entry in forums) == 13_145, "RusBEIR's README, BEIR's Table 1"
    assert sum(entry.n_docs for entry in forums) == 457_199


def test_hits_with_the_id_of_the_query_are_dropped_where_mteb_and_beir_drop_them():
    """mteb's ignore_identical_ids; BEIR's paper says it of arguana and quora."""
    dropped = {name for name, entry in read_registry().items() if entry.self_retrieval}
    assert {name for name in dropped if name.startswith("mteb/")} == {
        "mteb/rubq", "mteb/ria-news", "mteb/ria-news/hard-negatives", "mteb/ru-sci-bench-cite",
    }  # fmt: skip
    assert {name.split("/")[1].removeprefix("rus-") for name in dropped if not name.startswith("mteb/")} == {
        "arguana", "quora",
    }  # fmt: skip


def test_windows_of_wikifacts_have_the_counts_of_the_repositories_that_they_name():
    """n sentences make n - size + 1 windows; the repositories without _v0 hold other data."""
    n_sentences = get_entry("rusbeir/wikifacts-sents").n_docs
    for size in range(2, 7):
        entry = get_entry(f"rusbeir/wikifacts-window_{size}_v0")
        assert (entry.n_docs, entry.n_queries) == (n_sentences - size + 1, 540)
        assert all(f"window_{size}_v0" in repository for repository in entry.hub)
        newer = get_entry(f"rusbeir/wikifacts-window_{size}")
        assert (newer.n_docs, newer.n_queries) == (0, 0)
        assert not any("_v0" in repository for repository in newer.hub)


@pytest.mark.parametrize(
    ("family", "licence"),
    [("air-bench/", "CC-BY-NC-SA-4.0"), ("rusbeir/wikifacts-", "MIT")],
)
def test_licences_that_the_sources_state(family: str, licence: str):
    found = {entry.licence for name, entry in read_registry().items() if name.startswith(family)}
    assert found == {licence}


@pytest.mark.parametrize("name", ["articles", "para", "sents"])
def test_repositories_that_were_renamed_since_the_paper_are_pinned(name: str):
    assert "@" in get_entry(f"rusbeir/wikifacts-{name}").hub[0]


def test_cocktail_ignores_titles_and_mixes_two_copies():
    for name, entry in read_registry().items():
        if name.startswith("cocktail/"):
            assert entry.ignore_titles
            assert entry.n_docs == read_registry()[f"{name.rpartition('/')[0]}/human"].n_docs * (
                1 + name.endswith("mixed")
            )


def test_every_published_md5_is_of_some_entry():
    patterns = [
        f"{repository.partition('@')[0]}/{entry.options[role]}"
        for entry in read_registry().values()
        for repository in entry.hub
        for role in ("corpus", "queries", "qrels")
        if role in entry.options
    ]
    assert [file for file in md5sums() if not any(fnmatchcase(file, pattern) for pattern in patterns)] == []
    assert all(len(md5) == 32 for md5 in md5sums().values())


# Table 1's dataset: the name here, and the column of the split that RusBEIR's code evaluates
PAPER = {
    "rus-NFCorpus": ("rusbeir/rus-nfcorpus", "test"),
    "rus-ArguAna": ("rusbeir/rus-arguana", "test"),
    "rus-SciFact": ("rusbeir/rus-scifact", "test"),
    "rus-SCIDOCS": ("rusbeir/rus-scidocs", "test"),
    "rus-MMARCO": ("rusbeir/rus-mmarco", "dev"),
    "rus-MIRACL": ("rusbeir/rus-miracl", "dev"),
    "rus-XQuAD": ("rusbeir/rus-xquad", "dev"),
    "rus-XQuAD-sentences": ("rusbeir/rus-xquad-sentences", "dev"),
    "rus-TyDi QA": ("rusbeir/rus-tydiqa", "dev"),
    "SberQuAD-retrieval": ("rusbeir/sberquad-retrieval", "dev"),
    "ruSciBench-retrieval": ("rusbeir/ruscibench-retrieval", "dev"),
    "ru-facts": ("rusbeir/ru-facts", "train"),
    "RuBQ": ("rusbeir/rubq", "test"),
    "Ria-News": ("rusbeir/ria-news", "test"),
    "wikifacts-articles": ("rusbeir/wikifacts-articles", "dev"),
    "wikifacts-para": ("rusbeir/wikifacts-para", "dev"),
    "wikifacts-sents": ("rusbeir/wikifacts-sents", "dev"),
}


def test_all_17_datasets_of_the_rusbeir_paper_with_its_counts(shared_data: Path, needs):
    table = shared_data.parent / "reference" / "rusbeir_paper_datasets.tsv"
    needs("table 1 of the RusBEIR paper", table.is_file(), f"put it at {table}")
    lines = [line for line in table.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    records = list(csv.DictReader(lines, delimiter="\t"))
    assert {record["dataset"] for record in records} == set(PAPER)
    for record in records:
        name, column = PAPER[record["dataset"]]
        entry = get_entry(name)
        assert entry.language == "ru"
        assert f"{entry.n_docs}" == record["corpus_docs"].replace(",", ""), name
        assert f"{entry.n_queries}" == record[f"{column}_queries"].replace(",", ""), name


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("rusbeir/rus-xquad", "xquad/ru"),
        ("rusbeir/rus-xquad-sentences", "xquad/ru/sentences"),
        ("beir/arguana", "beir/arguana/test"),
        ("beir/cqadupstack/android", "beir/cqadupstack/android/test"),
        ("beir/webis-touche2020", "beir/webis-touche2020/test"),
        ("beir/webis-touche2020/v2", "beir/webis-touche2020/v2/test"),
    ],
)
def test_names_of_the_rusbeir_paper_and_of_ir_datasets(alias: str, name: str):
    assert get_entry(alias).name == name

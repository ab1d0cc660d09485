"""write_beir: what is written is read back the same, and never by halves."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from rusbeir.datasets import load, write_beir
from rusbeir.errors import BadInput
from rusbeir.types import Card, Dataset, Doc


def same(first: Dataset, second: Dataset) -> bool:
    return (
        list(first.corpus) == list(second.corpus)
        and list(first.queries.items()) == list(second.queries.items())
        and first.qrels == second.qrels
        and first.card == second.card
    )


@pytest.mark.parametrize("name", ["xquad/ru", "xquad/de/windows-3", "cocktail/nfcorpus/mixed"])
def test_real_data_come_back(name: str, shared_data: Path, tmp_path: Path):
    dataset = load(name)
    write_beir(dataset, tmp_path / "out")
    assert same(load(tmp_path / "out"), dataset)


def test_titles_come_back_and_ignored_titles_do_not(samples, tmp_path: Path):
    for path, title in ((samples.beir(), "Мост"), (samples.cocktail() / "human", "")):
        write_beir(load(path, language="ru"), tmp_path / f"out{title}")
        assert load(tmp_path / f"out{title}").corpus["d1"].title == title


def test_the_card_keeps_everything(samples, tmp_path: Path):
    dataset = load(samples.beir(), language="ru")
    card = dataclasses.replace(
        dataset.card, licence="CC0", source="s", revision="r", self_suffixes=("",), provenance={"a": [1, {"b": "ё"}]}
    )
    write_beir(dataclasses.replace(dataset, card=card), tmp_path / "out")
    assert load(tmp_path / "out").card == card
    written = json.loads((tmp_path / "out" / "card.json").read_text(encoding="utf-8"))
    assert (written["n_docs"], written["n_queries"], written["n_qrels"]) == (3, 2, 3)


def test_equal_datasets_give_equal_bytes(samples, tmp_path: Path):
    folder = samples.beir()
    for name, path in (("a", folder), ("b", samples.packed(folder))):
        write_beir(load(path, language="ru"), tmp_path / name)
    for file in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv", "card.json"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_a_folder_that_holds_something_is_left_alone(samples, tmp_path: Path):
    dataset = load(samples.beir(), language="ru")
    (tmp_path / "empty").mkdir()
    write_beir(dataset, tmp_path / "empty")
    with pytest.raises(BadInput, match=r"exists already\. Remove it or choose another"):
        write_beir(dataset, tmp_path / "empty")
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match="exists already"):
        write_beir(dataset, tmp_path / "file")


class Failing:
    """A corpus that fails in the middle."""

    def __iter__(self) -> Iterator[Doc]:
        yield Doc("a", "x")
        raise ConnectionError

    def __len__(self) -> int:
        return 2

    def __getitem__(self, doc_id: str) -> Doc:
        raise KeyError(doc_id)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"corpus": Failing()}, Exception),
        ({"qrels": {"q\t1": {"a": 1}}}, BadInput),
        ({"qrels": {"q1": {"a\n": 1}}}, BadInput),
        ({"card": Card(name="x", language="ru", split="../up")}, BadInput),
        ({"card": Card(name="x", language="ru", split="..\\up")}, BadInput),
        ({"card": Card(name="x", language="ru", split="nul\x00")}, BadInput),
    ],
)
def test_nothing_is_left_of_a_write_that_fails(change, error: type[Exception], samples, tmp_path: Path):
    dataset = dataclasses.replace(load(samples.beir(), language="ru"), **change)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(error):
        write_beir(dataset, tmp_path / "out")
    assert sorted(tmp_path.rglob("*")) == before

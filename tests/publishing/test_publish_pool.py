"""A published pool: languages in its tables, its card and its head, and the same content when it is read again."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from rusbeir.datasets import load, pool
from rusbeir.publishing import publish


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pool")
    pool([load("mini/ru"), load("mini/en")], folder / "pool", relevant="other")
    publish(str(folder / "pool"), to=folder / "published")
    return folder


def test_it_is_read_as_it_was(published: Path):
    source = load(published / "pool")
    for path in (published / "published", published / "published" / "beir.zip"):
        dataset = load(path)
        assert dataset.fingerprint == source.fingerprint
        assert dataset.card.languages == ("ru", "en")
        assert dataset.queries.languages == source.queries.languages
        assert dataset.corpus["animals-01@en"].language == "en"


def test_the_library_of_the_hub_gets_the_languages(published: Path, needs):
    needs("datasets", find_spec("datasets") is not None, "pip install datasets")
    tables = load(published / "pool").to_hf()
    assert tables["corpus"][0]["lang"] == tables["queries"][0]["lang"] == "ru"


def test_the_readme_names_languages_and_sources(published: Path):
    readme = (published / "published" / "README.md").read_text(encoding="utf-8")
    assert "pretty_name: mini/ru+en (Russian, English)" in readme
    assert "language:\n- ru\n- en\n" in readme
    assert "multilinguality:\n- multilingual\n" in readme
    assert "Joined from mini/ru (ru), mini/en (en) by `rusbeir datasets pool`" in readme
    assert "documents in the languages other than that of the query count as judged" in readme
    croissant = json.loads((published / "published" / "croissant.json").read_bytes())
    assert croissant["inLanguage"] == ["ru", "en"]

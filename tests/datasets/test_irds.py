"""Datasets by their ids in ir_datasets, on small files under the paths where it keeps those of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from rusbeir.datasets.formats.irds import open_irds, parse_name
from rusbeir.datasets.formats.reader import ReadRequest
from rusbeir.errors import BadInput

pytest.importorskip("ir_datasets", reason="the extra ir-datasets is not installed")

HC4 = "irds:hc4/fa/test?query="
SEVERAL = "irds:neuclir/1/multi/trec-2023 ru,fa,zh"
REGISTERED = ("neuclir/1/ru/trec-2022", "hc4/fa/test", "mr-tydi/ko/test", "trec-arabic/ar2002")
NAMES = (
    f"{HC4}title", f"{HC4}mt_title", f"{HC4}ht_title+ht_description", f"{HC4}desc", f"{HC4}mt_title+title",
    f"{HC4}titel", f"{HC4}narrative_by_relevance", "irds:trec-mandarin/trec5?query=title_en",
    "irds:neuclir/1/multi/trec-2023?query=fa_mt_title", "irds:hc4/fa/tset", "irds:neuclir", SEVERAL, *REGISTERED,
)  # fmt: skip


@pytest.fixture(scope="module")
def loaded(tmp_path_factory) -> dict[str, Any]:
    """What came of every multilingual id and of NAMES, in a process of its own: the library reads its folder once."""
    folder = tmp_path_factory.mktemp("irds")
    environment = {**os.environ, "IR_DATASETS_HOME": str(folder), "IR_DATASETS_DL_TRIES": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.irds_files", *NAMES], env=environment, capture_output=True, check=True
    )
    table: dict[str, Any] = json.loads(done.stdout)
    return table


def test_all_multilingual_ids_open(loaded):
    ids = {name: data for name, data in loaded.items() if name not in NAMES}
    assert {name: data for name, data in ids.items() if isinstance(data, str)} == {}
    assert len(ids) == 309
    for name, data in ids.items():
        assert len(data["docs"]) == (9 if "/multi" in name else 3), name
        assert data["n_qrels"] == 0 or 2 * len(data["queries"]) <= data["n_qrels"] <= 6, name
        # mMARCO has Dutch as dt; the documents of neuclir/1/multi are in three languages, one of which was named.
        assert data["language"] == {"dt": "nl", None: "ru"}.get(data["known_language"], data["known_language"]), name


@pytest.mark.parametrize(
    ("name", "query", "asked_in", "split"),
    [
        ("hc4/fa/test", "title original eng", "en", "test"),  # HC4's topics are written in English
        (f"{HC4}title", "title original eng", "en", "test"),
        (f"{HC4}desc", "description original eng", "en", "test"),  # TREC's tag
        (f"{HC4}mt_title", "title machine translation fas", "fa", "test"),
        (
            f"{HC4}ht_title+ht_description",
            "title human translation fas description human translation fas",
            "fa",
            "test",
        ),
        ("irds:neuclir/1/multi/trec-2023?query=fa_mt_title", "title machine translation fas", "fa", "trec-2023"),
        ("trec-mandarin/trec5", "猫", "zh", "trec5"),
        ("irds:trec-mandarin/trec5?query=title_en", "cat", "en", "trec5"),
        ("trec-arabic/ar2002", "قطة", "ar", "ar2002"),  # ISO-8859-6
        ("wikiclir/ru", "cat", "en", "test"),
        ("clirmatrix/ru/bi139-base/kk/test1", "мысық", "kk", "test1"),
        ("mr-tydi/ru/dev", "котка", "ru", "dev"),
    ],
)
def test_the_fields_of_queries(loaded, name, query, asked_in, split):
    data = loaded[name if name.startswith("irds:") else f"irds:{name}"]
    assert (list(data["queries"].values()), data["asked_in"], data["split"]) == ([query], asked_in, split)


def test_languages_that_are_named_are_those_of_the_documents_and_not_of_the_queries(loaded):
    data = loaded[SEVERAL]
    assert (data["language"], data["languages"]) == ("mul", ["ru", "fa", "zh"])
    assert data["query_languages"] == ["en"]
    # ir_datasets does not say where the files of these documents are.
    assert all(finding.startswith("warning: ") for finding in data["findings"]), data["findings"]


def test_a_copy_is_of_the_files_of_a_folder_as_they_are(tmp_path):
    document = tmp_path / "data" / "a.sgm"
    document.parent.mkdir()
    document.write_text("<DOC>")
    recipes = []
    for change in (
        lambda: None,
        lambda: document.write_text("<DOC> "),
        lambda: os.utime(document, ns=(0, 0)),
        lambda: document.rename(tmp_path / "a.sgm"),
    ):
        change()
        options = {"id": "trec-spanish/trec3"}
        recipes.append(open_irds(ReadRequest(path=tmp_path, language="es", options=options)).recipe)
    assert len(set(recipes)) == 4


@pytest.mark.parametrize("name", REGISTERED)
def test_registered_names_are_those_of_ir_datasets(loaded, name):
    data, same = loaded[name], loaded[f"irds:{name}"]
    # These files are not those whose counts are registered.
    assert data["name"] == f"{name} (differs)"
    assert data["licence"] == ("Apache-2.0" if name.startswith("mr-tydi") else "not stated")
    assert {**data, "name": "", "licence": ""} == {**same, "name": "", "licence": ""}


def test_a_title_is_told_from_the_text(loaded):
    # The default text of ir_datasets is title and text, between which HC4 has a space and CSL a line end.
    for name in ("irds:hc4/fa", "irds:csl", "irds:wikiclir/ru"):
        assert list(loaded[name]["docs"].values())[1] == ["Пес", "Пес лае"]
    assert loaded["irds:mmarco/ru"]["docs"]["2"] == ["", "Пес лае"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (f"{HC4}mt_title+title", "these fields are in different languages (en, fa)"),
        (f"{HC4}titel", "No field 'titel' of the queries of irds:hc4/fa/test. Did you mean 'title'"),
        (f"{HC4}narrative_by_relevance", "'narrative_by_relevance' is not a text but a dict"),
        ("irds:hc4/fa/tset", "Did you mean 'hc4/fa/test'"),
        ("irds:neuclir", "has no documents. These have them: irds:neuclir/1/fa"),
    ],
)
def test_names_that_cannot_be_right(loaded, name, reason):
    assert reason in loaded[name]


@pytest.mark.parametrize(
    "name", ["irds:hc4/fa?field=title", "irds:hc4/fa?query=", "irds:hc4/fa?", "irds:a?query=b&query=c"]
)
def test_options_that_do_not_exist(name):
    with pytest.raises(BadInput, match=r"write irds:ID, or irds:ID\?query=FIELD"):
        parse_name(name)


@pytest.mark.parametrize(
    ("dataset", "reason"),
    [
        ("irds:trec-arabic/ar2002", "available from the LDC via: <https://catalog.ldc.upenn.edu/LDC2001T55>"),
        ("irds:hc4/fa/test", "download the document files using the HC4 document download"),
    ],
)
def test_documents_that_their_owners_give_out(dataset, reason, tmp_path):
    environment = {**os.environ, "IR_DATASETS_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "rusbeir.cli", "bench", dataset, "--system", "bm25"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1

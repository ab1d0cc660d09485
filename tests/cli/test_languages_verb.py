"""`rusbeir languages` and the verbs that read language files."""

from __future__ import annotations

import json
import shutil

import pytest

from rusbeir.storage import data_folder


def test_a_broken_file_stops_nobody_else(tmp_path, monkeypatch, rusbeir):
    shutil.copytree(data_folder("analyzers"), tmp_path / "analyzers")
    broken = tmp_path / "analyzers" / "it.toml"
    broken.write_text('name = "Italian"\nstopwords = "nltk-italian"\nsnowball = "italian"\n', encoding="utf-8")
    monkeypatch.setattr("rusbeir.analysis.recipes.data_folder", lambda _: tmp_path / "analyzers")
    assert rusbeir("bench", "mini/ru").code == 0
    assert rusbeir("analyze", "--lang", "it", "ciao").code == 2
    table = rusbeir("languages")
    assert (table.code, "Russian" in table.out, "Italian" in table.out) == (0, True, False)
    assert f"{broken}, profile 'snowball': stop cannot be 'nltk-italian'" in table.err
    rows = {row["language"]: row for row in json.loads(rusbeir("languages", "--json").out)}
    assert "nltk-italian" in rows["it"]["error"]
    assert (rows["it"]["path"], rows["it"]["profiles"], rows["ru"]["error"]) == (str(broken), {}, None)


@pytest.mark.parametrize(
    "arguments",
    [
        ("bench", "small", "--lang", "eo"),
        ("index", "small", "--lang", "eo"),
        ("search", "small", "hundo", "--lang", "eo"),
        ("analyze", "hundo", "--lang", "eo"),
        ("languages",),
        ("languages", "mapping", "eo"),
    ],
    ids=" ".join,
)
def test_the_option_names_a_folder(arguments, rusbeir, beir, tmp_path, monkeypatch):
    monkeypatch.setenv("RUSBEIR_ANALYZERS", "")
    (beir / "card.json").unlink()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "eo.toml").write_text('name = "Esperanto"\nstopwords = "none"\nsnowball = "esperanto"\n')
    arguments = [f"./{word}" if word == "small" else word for word in arguments]
    split = ["--split", "test"] if "./small" in arguments else []
    if arguments != ["languages"]:
        outcome = rusbeir(*arguments, *split)
        assert (outcome.code, "No language 'eo'" in outcome.err) == (2, True)
    outcome = rusbeir(*arguments, *split, "--analyzers", "mine")
    assert (outcome.code, "Esperanto" in outcome.out or arguments != ["languages"]) == (0, True), outcome.err

"""`rusbeir languages` and the verbs that read language files."""

from __future__ import annotations

import json
import shutil

import pytest

from rusbeir.storage import data_folder


def test_a_broken_file_stops_nobody_else(tmp_path, monkeypatch, rusbeir):
    shutil.copytree(data_folder("analyzers"), tmp_path / "analyzers")
    broken = tmp_path / "analyzers" / "it.toml"
    broken.write_text('name = "Italian"\nstopwords = "nltk-klingon"\nsnowball = "italian"\n', encoding="utf-8")
    monkeypatch.setattr("rusbeir.analysis.recipes.data_folder", lambda _: tmp_path / "analyzers")
    assert rusbeir("bench", "mini/ru").code == 0
    assert rusbeir("analyze", "--lang", "it", "ciao").code == 2
    table = rusbeir("languages")
    assert (table.code, "Russian" in table.out, "Italian" in table.out) == (0, True, False)
    assert f"{broken}:2: stop cannot be 'nltk-klingon'" in table.err
    rows = {row["language"]: row for row in json.loads(rusbeir("languages", "--json").out)}
    assert "nltk-klingon" in rows["it"]["error"]
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


@pytest.mark.parametrize("spelling", ["ru", "RU", "Russian", "ru-RU", "ru_RU"])
def test_the_command_line_understands_every_spelling(rusbeir, spelling):
    assert rusbeir("analyze", "--lang", spelling, "мамы").out == rusbeir("analyze", "--lang", "ru", "мамы").out != ""
    assert '"mini/ru"' in rusbeir("datasets", "--lang", spelling, "--json").out
    assert '"russian"' in rusbeir("languages", "mapping", spelling).out


@pytest.mark.parametrize("arguments", [["bench"], ["search", "x"], ["index"]])
def test_a_language_without_an_analyzer_is_said_before_a_download(rusbeir, monkeypatch, arguments, tmp_path):
    """xquad/tr was fetched first, and then only other languages were suggested."""
    shutil.copytree(data_folder("analyzers"), tmp_path / "analyzers")
    (tmp_path / "analyzers" / "tr.toml").unlink()
    monkeypatch.setattr("rusbeir.analysis.recipes.data_folder", lambda _: tmp_path / "analyzers")
    asked = []
    monkeypatch.setattr("rusbeir.datasets.loading.fetch_entry", lambda *given, **options: asked.append(given))
    done = rusbeir(arguments[0], "xquad/tr", *arguments[1:])
    assert (done.code, done.out, asked) == (2, "", [])
    assert "No language 'tr'" in done.err
    assert all(word in done.err for word in ("dense(multilingual-e5-small)", "--analyzers", "docs/add-a-language.md"))

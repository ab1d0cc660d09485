"""Language files outside rusbeir: in folders that a user names and in installed packages."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rusbeir.analysis import Analyzer, language_files, read_language
from rusbeir.errors import BadInput

ESPERANTO = 'name = "{}"\nstopwords = "{}"\nsnowball = "esperanto"\n'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Called with a name: a folder below tmp_path, which RUSBEIR_ANALYZERS names after those before."""
    monkeypatch.setenv("RUSBEIR_ANALYZERS", "")

    def add(name: str) -> Path:
        path = tmp_path / name
        (path / "stopwords").mkdir(parents=True)
        monkeypatch.setenv("RUSBEIR_ANALYZERS", os.pathsep.join([os.environ["RUSBEIR_ANALYZERS"], str(path)]))
        return path

    return add


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Called with a package's name: its folder, as if it had been installed with an entry point."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def install(name: str, value: str = "") -> Path:
        info = tmp_path / f"{name}-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        (info / "entry_points.txt").write_text(f"[rusbeir.analyzers]\n{name} = {value or name}\n")
        (tmp_path / name).mkdir()
        return tmp_path / name

    return install


def test_a_folder_adds_and_replaces_languages(folder):
    first, second = folder("first"), folder("second")
    (first / "eo.toml").write_text(ESPERANTO.format("First", "none"))
    (second / "eo.toml").write_text(ESPERANTO.format("Second", "none"))
    (second / "ru.toml").write_text('name = "Mine"\nstopwords = "nltk-russian"\nsnowball = "russian"\n')
    assert (read_language("eo").name, read_language("ru").name) == ("First", "Mine")
    assert (language_files()["eo"], language_files()["ru"]) == (first / "eo.toml", second / "ru.toml")
    assert list(language_files()) == sorted(language_files())
    assert "base" not in language_files()


def test_a_package_adds_languages_and_replaces_none(installed, folder):
    package = installed("mine_ir")
    for code in ("eo", "ru"):
        (package / f"{code}.toml").write_text(ESPERANTO.format("Package's", "none"))
    assert (read_language("eo").name, read_language("ru").name) == ("Package's", "Russian")
    (folder("named") / "eo.toml").write_text(ESPERANTO.format("Named", "none"))
    assert read_language("eo").name == "Named"


@pytest.mark.parametrize("module", ["", "raise RuntimeError('broken')\n"], ids=["a module", "an import that fails"])
def test_a_package_that_offers_nothing_stops_no_other(installed, module, caplog):
    (installed("broken_ir", "broken_ir.languages") / "__init__.py").write_text(module)
    (installed("right_ir") / "eo.toml").write_text(ESPERANTO.format("Esperanto", "none"))
    assert read_language("eo").name == "Esperanto"
    assert "broken_ir = broken_ir.languages in rusbeir.analyzers is ignored" in caplog.text


def test_stop_lists_are_looked_up_next_to_the_file_first(folder):
    path = folder("mine")
    (path / "eo.toml").write_text(ESPERANTO.format("Esperanto", "nltk-german"))
    shipped = Analyzer("eo")
    assert "der" in shipped.recipe.stop.words
    (path / "stopwords" / "nltk-german.txt").write_text("# Licence: mine\nla\n")
    changed = Analyzer("eo")
    assert changed.recipe.stop.words == {"la"}
    assert changed.analyze("la hundoj") == ["hund"]
    assert changed.signature != shipped.signature, "other stop words make other terms"
    assert list(changed.analyze_lines(["la hundoj"] * 5000, processes=2)) == ["hund"] * 5000


def test_files_that_cannot_be_read_are_named(folder, monkeypatch, tmp_path):
    path = folder("mine")
    (path / "eo.toml").write_text(ESPERANTO.format("Esperanto", "mine"))
    (path / "stopwords" / "mine.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(BadInput, match=r"mine\.txt: .*UTF-8"):
        read_language("eo")
    (path / "my language.toml").write_text(ESPERANTO.format("Mine", "none"))
    with pytest.raises(BadInput, match=r"my language\.toml: .*BCP 47"):
        read_language("my language")
    monkeypatch.setenv("RUSBEIR_ANALYZERS", str(tmp_path / "nowhere"))
    with pytest.raises(BadInput, match=r"No folder '.*nowhere', which RUSBEIR_ANALYZERS names"):
        read_language("ru")


STOP_LISTS = [
    # text, message
    ("la\nLa\n", "eo.txt:2: 'La' has capitals and would match nothing. Write it in lower case."),
    ("la\n# and\nla\n", "eo.txt:3: 'la' is in line 1 already. Remove one of them."),
    ("la\nde la\n", "eo.txt:2: 'de la' is more than one word. A stop list has one word a line."),
    ("c\u0302i\n", "eo.txt:1: 'c\u0302i' is not in Unicode's normal form C. Save the file in NFC."),
]


@pytest.mark.parametrize(("text", "message"), STOP_LISTS, ids=[row[1].split()[2] for row in STOP_LISTS])
def test_a_wrong_stop_list_says_where(folder, text, message):
    mine = folder("mine")
    (mine / "eo.toml").write_text(ESPERANTO.format("Esperanto", "eo"))
    (mine / "stopwords" / "eo.txt").write_text(text)
    with pytest.raises(BadInput) as raised:
        read_language("eo")
    assert str(raised.value).endswith(message)


def test_two_files_for_one_language(folder):
    mine = folder("mine")
    (mine / "eo.toml").write_text(ESPERANTO.format("Esperanto", "none"))
    (mine / "EO.toml").write_text(ESPERANTO.format("Esperanto", "none"))
    with pytest.raises(BadInput, match=r"eo\.toml and EO\.toml are both for the language 'eo'"):
        read_language("eo")

"""A format that an installed package adds, as docs/evaluate.md says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from rusbeir.datasets import load, validate
from rusbeir.datasets.formats import reader
from rusbeir.errors import BadInput

REPOSITORY = Path(__file__).parents[2]


def install(project: Path, points: str) -> None:
    """Write the metadata that pip would."""
    info = project / "notes-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: notes\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[rusbeir.readers]\n{points}\n")


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """The folder in which the block of the page was run, with the package installed."""
    page = (REPOSITORY / "docs" / "evaluate.md").read_text(encoding="utf-8")
    section = page.partition("## Your own format\n")[2].partition("\n## ")[0]
    block = re.search(r"^```bash\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    subprocess.run(["bash", "-euc", block[1]], cwd=tmp_path, check=True)
    about = tomllib.loads((tmp_path / "notes" / "pyproject.toml").read_text())["project"]
    install(tmp_path / "notes", f"notes = {about['entry-points']['rusbeir.readers']['notes']}")
    return tmp_path


@pytest.fixture
def formats(monkeypatch: pytest.MonkeyPatch):
    """Packages of this folder are found, and those read before are forgotten."""

    def formats(project: Path) -> None:
        monkeypatch.syspath_prepend(project)
        reader.read_formats.cache_clear()

    yield formats
    sys.modules.pop("notes", None)
    reader.read_formats.cache_clear()


def test_the_commands_of_the_page(notes: Path):
    command = [sys.executable, "-m", "rusbeir.cli", "bench", "diary", "--lang", "ru", "--json"]
    path = os.pathsep.join([str(notes / "notes"), str(REPOSITORY)])
    environment = os.environ | {"PYTHONPATH": path, "RUSBEIR_CACHE": str(notes / "cache")}
    done = subprocess.run(command, cwd=notes, env=environment, capture_output=True, text=True, check=True)
    (row,) = json.loads(done.stdout)["rows"]
    assert (row["dataset"], row["measures"]["nDCG@10"], row["n_docs"]) == ("diary", 1.0, 2)


def test_validation_reports_what_the_reader_complains_of(notes: Path, formats):
    formats(notes / "notes")
    assert validate(notes / "diary", language="ru") == []
    with (notes / "diary" / "notes.tsv").open("a") as file:
        file.write("d3\n")
    (finding,) = validate(notes / "diary", language="ru")
    assert (finding.level, finding.line, finding.message) == ("error", 3, "1 columns; expected 2")
    with pytest.raises(BadInput, match=r"notes\.tsv:3: 1 columns; expected 2"):
        load(notes / "diary", language="ru")


def test_an_id_that_no_corpus_can_have_is_refused(notes: Path, formats):
    formats(notes / "notes")
    with (notes / "diary" / "notes.tsv").open("a") as file:
        file.write("d\x013\tКошка.\n")
    with pytest.raises(BadInput, match=r"notes\.tsv:3: Doc.* not an id that is not empty and has no control"):
        load(notes / "diary", language="ru")


def test_a_package_cannot_replace_a_format_of_rusbeir(notes: Path, formats, samples):
    for file in (notes / "notes").glob("*.dist-info/*"):
        file.unlink()
    (notes / "notes" / "notes-1.0.dist-info").rmdir()
    install(notes / "notes", "beir = notes:FORMAT")
    formats(notes / "notes")
    assert reader.read_formats() == reader.FORMATS
    assert load(samples.beir(), language="ru").card.language == "ru"


def test_a_broken_package_stops_nobody(tmp_path: Path, formats, samples, caplog):
    install(tmp_path, "notes = absent:FORMAT")
    formats(tmp_path)
    assert load(samples.beir(), language="ru").queries
    assert "The reader notes (absent:FORMAT) cannot be imported: No module named 'absent'" in caplog.text

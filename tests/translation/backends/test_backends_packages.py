"""A translator that an installed package adds, as docs/port.md says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from rusbeir.errors import BadInput
from rusbeir.jobs import Journal
from rusbeir.translation.backends import make, names
from rusbeir.translation.porting.plan import TranslatorEntry, dump_entries, read_entries

REPOSITORY = Path(__file__).parents[3]
PAGE = REPOSITORY / "docs" / "port.md"


def install(project: Path) -> Path:
    """What pip install does of it, without a network: the module and its metadata in one folder."""
    about = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    metadata = project / f"{about['name']}-{about['version']}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {about['name']}\nVersion: {about['version']}\n")
    groups = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
        for group, entries in about["entry-points"].items()
    ]
    (metadata / "entry_points.txt").write_text("\n".join(groups))
    return project


@pytest.fixture
def british(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, str]:
    """The package of docs/port.md, installed, and the command that uses it."""
    section = PAGE.read_text(encoding="utf-8").partition("## Your own translator\n")[2].partition("\n## ")[0]
    files, use = re.findall(r"^```(?:bash|text)\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    subprocess.run(["bash", "-euc", files], cwd=tmp_path, check=True)
    pip, command = use.splitlines()
    assert pip == "pip install ./british"
    monkeypatch.syspath_prepend(install(tmp_path / "british"))
    yield tmp_path, command
    sys.modules.pop("british", None)


def test_an_installed_package_adds_a_translator(british):
    folder, command = british
    done = subprocess.run(
        ["bash", "-euc", command],
        cwd=folder,
        env=os.environ
        | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join([str(folder / "british"), str(REPOSITORY)]),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (row,) = json.loads((folder / "mini-british" / "card.json").read_text())["provenance"]["translators"]
    assert (row["name"], row["signature"]) == ("british", "british-1|ise:True")
    assert row["about"] == "British spelling by a list of two words"
    assert "colour" in (folder / "mini-british" / "corpus.jsonl").read_text(encoding="utf-8")


def test_its_options_are_its_parameters(british):
    assert "british" in names()
    (translator,) = make("british", ise=True)
    assert translator.signature == "british-1|ise:True"
    with pytest.raises(BadInput, match=r"does not take the option 'retries'. Its options are: ise."):
        make("british", retries=3)


def test_it_is_known_from_the_journal_alone(british, tmp_path):
    """A port that is resumed without the package keeps what its card says."""
    entry = TranslatorEntry.of(*make("british"), "british")
    with Journal.open(tmp_path / "journal.sqlite", {"translators": dump_entries([entry])}) as journal:
        (stored,) = read_entries(journal)
    assert (stored.name, stored.about, stored.capacity) == (entry.name, entry.about, entry.capacity)

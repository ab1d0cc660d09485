"""Installed packages that are broken: passed over with a warning, and one line where they are asked for by name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import rusbeir
from rusbeir.analysis import language_registry
from rusbeir.datasets.formats import reader
from rusbeir.datasets.opening import find_splits
from rusbeir.errors import BackendError, RusbeirError
from rusbeir.retrieval.lexical import engines
from rusbeir.translation.backends import registry
from tests.support.parsers import write_folder

REPOSITORY = Path(__file__).parents[1]
MODULES = {
    "number": "MADE = 7\n",
    "leaves": "raise SystemExit(7)\n",
    "fails": "raise RuntimeError('no licence found')\n",
    "refuses": "from rusbeir.errors import BadInput\nraise BadInput('Set THEIR_KEY.')\n",
    "claims": (
        "from rusbeir.datasets.formats.reader import Format\n"
        "MADE = Format(open='claims:x', claims='claims:look')\n"
        "def look(path): raise SystemExit(3)\n"
    ),
    "opens": (
        "from rusbeir.datasets.formats.reader import Format\n"
        "MADE = Format(open='opens:gone', claims='opens:look', splits='opens:fail')\n"
        "def look(path): return path.name == 'theirs'\n"
        "def fail(path, view): return 1 / 0\n"
    ),
    "thin": "class MADE:\n    name = 'thin'\n",
}
BROKEN = [
    # the module of the entry point, and what its group says of it when it is asked for by name
    ("number", "is a int, not"),
    ("leaves", "SystemExit: 7"),
    ("fails", "RuntimeError: no licence found"),
    ("refuses", r"Set THEIR_KEY\."),
    ("absent", "No module named 'absent'"),
    ("thin:GONE", "GONE"),
]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Installs a package whose entry point in a group names a module of MODULES."""

    def install(group: str, value: str) -> None:
        info = tmp_path / "broken-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
        value = value if ":" in value else f"{value}:MADE"
        (info / "entry_points.txt").write_text(f"[rusbeir.{group}]\nbroken = {value}\n")
        for name, code in MODULES.items():
            (tmp_path / f"{name}.py").write_text(code)
        monkeypatch.syspath_prepend(tmp_path)
        reader.read_formats.cache_clear()

    yield install
    for name in MODULES:
        sys.modules.pop(name, None)
    reader.read_formats.cache_clear()


@pytest.mark.parametrize(("value", "why"), [*BROKEN, ("claims", "SystemExit: 3")])
def test_a_broken_reader_stops_nobody(value: str, why: str, install, tmp_path: Path, caplog):
    install("readers", value)
    assert rusbeir.load(write_folder(tmp_path / "set"), language="ru").queries
    assert "The reader broken" in caplog.text
    assert why.replace("\\", "") in caplog.text


def test_a_reader_that_fails_with_its_own_folder(install, tmp_path: Path):
    install("readers", "opens")
    (tmp_path / "theirs").mkdir()
    with pytest.raises(
        BackendError, match=r"The reader of .*theirs fails \(opens:gone\): AttributeError: module 'opens'"
    ):
        rusbeir.load(tmp_path / "theirs", language="ru")
    with pytest.raises(BackendError, match=r"The reader of .*theirs fails \(opens:fail\): ZeroDivisionError: division"):
        find_splits(str(tmp_path / "theirs"), "all", ())


def test_a_fault_of_rusbeirs_own_reader_is_not_blamed_on_a_package(tmp_path: Path):
    with pytest.raises(ZeroDivisionError):
        reader.call_format(reader.FORMATS["beir"], "operator:truediv", tmp_path, 1, 0)


@pytest.mark.parametrize(("value", "why"), [*BROKEN, ("thin", "made a MADE that lacks signature, refusal, open")])
def test_a_broken_engine_is_refused_where_it_is_asked_for(value: str, why: str, install):
    install("engines", value)
    assert engines.load("tantivy").name == "tantivy"
    with pytest.raises(RusbeirError, match=why):
        engines.load("broken")


@pytest.mark.parametrize(("value", "why"), BROKEN[1:5])
def test_a_broken_translator_is_refused_where_it_is_asked_for(value: str, why: str, install):
    install("translators", value)
    assert registry.make("google")[0].name == "google"
    with pytest.raises(RusbeirError, match=why):
        registry.make("broken")


@pytest.mark.parametrize(("value", "why"), BROKEN[1:5])
def test_a_broken_retriever_is_refused_where_it_is_asked_for(value: str, why: str, install):
    install("retrievers", value)
    with pytest.raises(RusbeirError, match=why):
        rusbeir.bench("mini/en", ["broken"])


@pytest.mark.parametrize("value", ["leaves.sub", "fails.sub", "absent", "number"])
def test_broken_analyzers_stop_nobody(value: str, install, tmp_path: Path, caplog):
    install("analyzers", f"{value}:")
    (tmp_path / "broken-1.0.dist-info" / "entry_points.txt").write_text(f"[rusbeir.analyzers]\nbroken = {value}\n")
    assert "ru" in language_registry.language_files()
    assert f"The entry point broken = {value} in rusbeir.analyzers is ignored" in caplog.text


def test_a_package_that_leaves_does_not_end_the_command(install, tmp_path: Path):
    install("readers", "leaves")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(REPOSITORY)])}
    (tmp_path / "set").mkdir()
    command = [sys.executable, "-m", "rusbeir.cli", "datasets", "info", "set"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "rusbeir: warning: The reader broken (leaves:MADE) fails when it is imported: SystemExit: 7" in done.stderr
    assert "rusbeir: No dataset in set" in done.stderr or "rusbeir: set" in done.stderr

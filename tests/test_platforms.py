"""Other systems and other Pythons: what rusbeir imports there, and whether rows made by one are found by another."""

from __future__ import annotations

import json
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

import rusbeir
from rusbeir.analysis import language_files, read_language
from rusbeir.analysis.lemmas import load_lemmatiser

REPOSITORY = Path(__file__).parent.parent
SUPPORT = REPOSITORY / "tests" / "support"

AS_ON_WINDOWS = """
import importlib, json, os, pathlib, pkgutil, signal, sys, types
import rusbeir.cli.main
names = ["rusbeir", *(found.name for found in pkgutil.walk_packages(rusbeir.__path__, "rusbeir."))]
names = [name for name in names if not name.endswith("__main__")]
for name in names:
    importlib.import_module(name)
import rusbeir
rusbeir.bench("mini/ru", "bm25", out=sys.argv[1] + "/here")  # other packages are imported as this system has them
os.environ["RUSBEIR_CACHE"] = sys.argv[1] + "/cache"
for name in [name for name in sys.modules if name.partition(".")[0] == "rusbeir"]:
    del sys.modules[name]
for name in ("resource", "fcntl", "pwd", "grp", "termios", "tty", "pty", "readline", "syslog"):
    sys.modules[name] = None
for module, name in [(os, name) for name in ("O_NOFOLLOW", "killpg", "sched_getaffinity", "set_blocking", "getuid")] + [
    (signal, "SIGKILL"), (signal, "SIGHUP"), (signal, "pthread_sigmask"),
]:
    delattr(module, name)
sys.modules["msvcrt"] = types.SimpleNamespace(LK_NBLCK=2, locking=lambda descriptor, mode, n_bytes: None)
sys.platform = "win32"
for name in names:
    importlib.import_module(name)
read_text = pathlib.Path.read_text
def without_proc(path, *args, **kwargs):
    if path.parts[1:2] == ("proc",):
        raise FileNotFoundError(path)
    return read_text(path, *args, **kwargs)
pathlib.Path.read_text = without_proc
from rusbeir.cli.main import stop_soon
with stop_soon():
    row = importlib.import_module("rusbeir").bench("mini/ru", "bm25", out=sys.argv[1] + "/there")
print(json.dumps({"modules": len(names), "bytes": row["bytes"], "nDCG@10": row["measures"]["nDCG@10"]}))
"""


def test_without_what_exists_on_linux_only(tmp_path: Path):
    """Every module is imported and a row is made without the modules and names that Windows lacks."""
    done = subprocess.run(
        [sys.executable, "-c", AS_ON_WINDOWS, str(tmp_path)],
        cwd=REPOSITORY, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert shown["modules"] > 100
    assert shown["nDCG@10"] > 0.5
    assert list(shown["bytes"]) == ["index"], "what is not measured is not in the row"


def test_russian_lemmas_are_those_of_the_extension_in_c_where_it_has_no_wheel(monkeypatch):
    """DAWG2 has none for Linux on ARM; pymorphy3 then reads its dictionary by Python."""
    corpus = rusbeir.load("mini/ru").corpus
    words = sorted({word for doc in corpus for word in re.findall(r"[а-яё]+", doc.text.lower())})[::3]
    by_c = load_lemmatiser("pymorphy3", "ru")
    expected = {word: by_c(word) for word in words}
    for name in [name for name in sys.modules if name.partition(".")[0] == "pymorphy3"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "dawg", None)
    load_lemmatiser.cache_clear()
    try:
        by_python = load_lemmatiser("pymorphy3", "ru")
        assert {word: by_python(word) for word in words} == expected
        assert not sys.modules["pymorphy3.dawg"].EXTENSION_AVAILABLE
    finally:
        load_lemmatiser.cache_clear()
    assert len(words) > 300


@pytest.mark.parametrize("code", language_files())
def test_signatures_do_not_depend_on_the_python(code: str):
    for recipe in read_language(code).profiles.values():
        for version in (unicodedata.unidata_version, platform.python_version()):
            assert f":{version}" not in recipe.signature
            assert f"-{version}" not in recipe.signature


PYODIDE = "314.0.7"
"""Its Python is 3.14.2: no package registry has that for this system."""


@pytest.fixture(scope="session")
def run_3_14(needs, tmp_path_factory) -> Callable[..., str]:
    """Called with a program and folders for sys.path: what the program prints in Python 3.14."""
    folder = tmp_path_factory.mktemp("pyodide")
    needs("node and npm", bool(shutil.which("node") and shutil.which("npm")), "install nodejs and npm")
    fetch = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", folder, f"pyodide@{PYODIDE}"]
    done = subprocess.run(fetch, capture_output=True, text=True, check=False)
    needs("Pyodide", done.returncode == 0, done.stderr[-200:])

    def run(program: Path, *folders: str | Path) -> str:
        start = ["node", SUPPORT / "python_3_14.mjs", folder / "node_modules", program, *folders]
        done = subprocess.run(start, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_python_3_14_imports_every_module(run_3_14):
    """3.14 lacks ast.Num, by which ir-measures parses names."""
    shown = json.loads(run_3_14(SUPPORT / "import_everything.py", REPOSITORY, sysconfig.get_path("purelib")))
    assert shown["modules"] > 100
    assert shown["measures"] == ["nDCG@10", "AP(rel=2)@100", "nDCG@10", ["nDCG", {"dcg": "exp-log2"}, 10]]
    assert shown["unicode"] == "16.0.0"


# How the functions that make terms change each character that a Python knows: runs of characters of one kind that they
# leave unchanged, and the others one by one.
TABLE = """
import json, sys, unicodedata
runs, changed = [], {}
for number in range(sys.maxunicode + 1):
    char = chr(number)
    if unicodedata.category(char) not in ("Cn", "Cs"):
        forms = char.lower(), char.casefold(), unicodedata.normalize("NFKC", char)
        kind = char.isalnum(), char.isalpha(), char.isspace(), unicodedata.combining(char)
        if forms != (char, char, char):
            changed[number] = [forms, kind]
        elif runs and runs[-1][1:] == [number, kind]:
            runs[-1][1] += 1
        else:
            runs.append([number, number + 1, kind])
print(json.dumps([runs, changed]))
"""
N_CHARACTERS = 282_230
"""Of Unicode 14, which Python 3.11 has, with those of private use and without surrogates."""


def test_all_pythons_change_characters_alike(run_3_14, tmp_path):
    """Python's Unicode tables differ in the characters that the older one lacks, and in nothing else."""
    listed = subprocess.run(["bash", REPOSITORY / ".ci" / "pythons"], capture_output=True, text=True, check=True)
    (program := tmp_path / "table.py").write_text(TABLE)
    commands = [[python, program] for python in listed.stdout.split()]
    assert commands
    printed = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for command in commands]
    printed.append(run_3_14(program))
    tables = []
    for runs, changed in map(json.loads, printed):
        tables.append({int(number): forms for number, forms in changed.items()})
        for start, end, kind in runs:
            tables[-1].update(dict.fromkeys(range(start, end), kind))
    shared = set.intersection(*map(set, tables))
    assert len(shared) >= N_CHARACTERS
    differing = [number for number in shared if any(table[number] != tables[0][number] for table in tables)]
    assert not differing

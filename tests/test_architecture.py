"""Imports point one way, and `import rusbeir` stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "rusbeir"

# A room imports from its own floor's room and from the floors below, never sideways or up.
FLOORS = [
    {"types", "errors", "text"},
    {"storage"},
    {"processes", "locks"},
    {"analysis", "datasets", "jobs"},
    {"translation", "retrieval", "evaluation"},
    {"experiment", "tuning"},
    {"report", "diagnostics", "synthesis", "audit"},
    {"cli"},
]
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}


def _imports(path: Path) -> set[str]:
    """The rooms of ours that a file imports, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "rusbeir" and len(parts) > 1 and parts[1] in FLOOR:
                found.add(parts[1])
    return found


def test_imports_point_one_way():
    wrong = []
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        room = parts[0]
        if room == "__init__":
            continue
        assert room in FLOOR, f"{path} is in no room of docs/architecture.md"
        wrong += [
            f"{path}: {room} imports {other}"
            for other in _imports(path)
            if other != room and FLOOR[other] >= FLOOR[room] and not (FLOOR[room] == 0 and FLOOR[other] == 0)
        ]
    assert wrong == []


def test_import_loads_nothing_heavy():
    code = "import sys, rusbeir; print(*sys.modules)"
    loaded = set(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    )
    assert not loaded & {
        "numpy",
        "tantivy",
        "bm25s",
        "pymorphy3",
        "typer",
        "rich",
        "regex",
        "orjson",
        "requests",
        "torch",
    }


def test_public_names():
    import rusbeir

    assert sorted(rusbeir.__all__) == ["Analyzer", "Dataset", "__version__", "bench", "load", "port"]
    assert all(getattr(rusbeir, name) is not None for name in rusbeir.__all__)

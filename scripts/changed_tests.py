"""Print the test files that a change touches: git's changed files that are tests, and the tests that import the others.

python scripts/changed_tests.py [COMMIT]    a change since that commit, which is that of main unless another is named
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parent.parent
ALWAYS = "tests/test_architecture.py"
MOST = 40
"""Test files that name a module; of one that more of them name, the tests of its room are taken."""


def list_changed(since: str) -> list[str]:
    """The paths of files that differ from those of the commit, and of new ones."""
    commands = (["diff", "--name-only", "--diff-filter=d", since], ["ls-files", "--others", "--exclude-standard"])
    listed = (subprocess.check_output(["git", *command], cwd=PROJECT, text=True) for command in commands)
    return [path for names in listed for path in names.splitlines()]


def find_tests(path: str) -> list[str]:
    """The test files of one changed file."""
    parts = Path(path).with_suffix("").parts
    if not path.endswith(".py") or parts[0] not in ("rusbeir", "tests", "benchmarks"):
        return ["tests/test_docs.py", "tests/test_paths.py"] if path.endswith(".md") else []
    if parts[-1].startswith("test_"):
        return [path]
    room, module = re.escape(".".join(parts[:-1])), parts[-1]
    imports = re.compile(rf"\b{room}\.{module}\b|from {room} import .*\b{module}\b")
    tests = sorted((PROJECT / "tests").rglob("test_*.py"))
    naming = [test for test in tests if imports.search(test.read_text(encoding="utf-8"))]
    if not 0 < len(naming) <= MOST and (PROJECT / "tests" / parts[1]).is_dir():
        naming = [test for test in tests if test.is_relative_to(PROJECT / "tests" / parts[1])]
    return [str(test.relative_to(PROJECT)) for test in naming[:MOST]]


if __name__ == "__main__":
    changed = list_changed(sys.argv[1] if len(sys.argv) > 1 else "main")
    print(*sorted({ALWAYS, *(test for path in changed for test in find_tests(path))}))

"""The code blocks of the README and of docs/, and how they are run."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).parent.parent.parent


PATHS = {
    "evaluator": ["README.md", "docs/evaluate.md"],
    "language adder": ["docs/add-a-language.md"],
    "porter": ["docs/port.md"],
}
"""Pages that tests/test_paths.py follows, one after the other, in an environment of the wheel alone."""


class Block(NamedTuple):
    """A code block, and where it is."""

    page: Path
    line: int
    kind: str
    code: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(REPOSITORY)}:{self.line}"


def read_blocks(page: Path) -> list[Block]:
    """The code blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(page, text.count("\n", 0, match.start()) + 1, match[1], match[2])
        for match in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    ]


def run_block(block: Block, folder: Path, environment: Mapping[str, str], changes: Mapping[str, str]) -> None:
    """Run a block in that folder, as a reader would; of shell commands first replace the patterns of changes."""
    code = block.code
    if block.kind == "bash":
        for pattern, replacement in changes.items():
            code = re.sub(pattern, replacement, code, flags=re.MULTILINE)
        command = ["bash", "-euo", "pipefail", "-c", code]
    elif block.kind == "python":
        command = ["python", "-c", code]
    elif block.kind in CHECKED:
        CHECKED[block.kind](code)
        return
    else:
        assert block.kind == "text", f"{block}: a block says what it is: bash, python, toml, json or text"
        return
    # env looks the program up on the path that it is given.
    done = subprocess.run(
        ["env", *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )  # fmt: skip
    assert done.returncode == 0, f"{block}: {done.stderr}"
    if block.kind == "python":
        shown = re.findall(r"# → (.*)", code)
        assert [line for line in shown if line not in done.stdout] == [], f"{block} printed {done.stdout}"


CHECKED = {"toml": tomllib.loads, "json": json.loads}

"""Every code block of the README and of docs/ runs, and every link leads somewhere."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

REPOSITORY = Path(__file__).parent.parent
PAGES = [
    REPOSITORY / "README.md",
    REPOSITORY / "CONTRIBUTING.md",
    *sorted((REPOSITORY / "docs").glob("*.md")),
]


class Block(NamedTuple):
    page: Path
    line: int
    kind: str
    code: str


def blocks() -> list[Block]:
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            line = text.count("\n", 0, match.start()) + 1
            found.append(Block(page, line, match[1], match[2]))
    return found


def _name(block: Block) -> str:
    return f"{block.page.relative_to(REPOSITORY)}:{block.line}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_of_a_page(page, shared_data, tmp_path, request):
    """A page's blocks run in order in one folder, as a reader would type them."""
    if page.name == "elasticsearch.md":
        request.getfixturevalue("elasticsearch")
    for block in blocks():
        if block.page == page:
            run(block, tmp_path, shared_data)


def run(block: Block, folder: Path, data: Path) -> None:
    if block.kind == "bash":
        # The targets of make are run by CI itself; here it is enough that they exist.
        script = re.sub(r"^make ", f"make --dry-run --directory {REPOSITORY} ", block.code, flags=re.MULTILINE)
        # The node of a fixture stands for the one in a container, and for the package that it was installed with.
        script = re.sub(r"^(docker compose|pip install) .*", ":", script, flags=re.MULTILINE)
        script = re.sub(r"^python scripts/", f"python {REPOSITORY}/scripts/", script, flags=re.MULTILINE)
        environment = os.environ | {
            "RUSBEIR_DATA": str(data),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=folder, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{_name(block)}: {done.stderr}"
    elif block.kind == "python":
        environment = os.environ | {"RUSBEIR_DATA": str(data)}
        done = subprocess.run(
            [sys.executable, "-c", block.code],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{_name(block)}: {done.stderr}"
        shown = re.findall(r"# → (.*)", block.code)
        assert [line for line in shown if line not in done.stdout] == [], f"{_name(block)} printed {done.stdout}"
    elif block.kind == "toml":
        tomllib.loads(block.code)
    elif block.kind == "json":
        json.loads(block.code)
    else:
        assert block.kind == "text", f"{_name(block)}: a block says what it is: bash, python, toml, json or text"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_readme_starts_with_the_two_commands():
    first = (REPOSITORY / "README.md").read_text(encoding="utf-8").splitlines()[:30]
    assert {"make demo", "make test"} <= {line.split("#")[0].strip() for line in first}


def test_reference_is_in_step():
    """docs/cli.md and docs/api.md are what scripts/reference.py writes."""
    spec = importlib.util.spec_from_file_location("reference", REPOSITORY / "scripts" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    for name, page in reference.PAGES.items():
        written = (REPOSITORY / "docs" / name).read_text(encoding="utf-8")
        assert written == page(), f"docs/{name}: run python scripts/reference.py"

"""Every code block of docs/ runs, and every link leads somewhere; tests/test_paths.py runs the pages of its paths."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rusbeir
from tests.support.pages import PATHS, REPOSITORY, read_blocks, run_block

PAGES = [
    REPOSITORY / "README.md",
    REPOSITORY / "CONTRIBUTING.md",
    *sorted((REPOSITORY / "docs").glob("*.md")),
]
FOLLOWED = {REPOSITORY / page for pages in PATHS.values() for page in pages}


CHANGES = {
    # The node of a fixture is there in place of the one in a container; packages are installed by tests/test_paths.py.
    r"^(docker compose|pip install) .*": ":",
    r"^python scripts/": f"python {REPOSITORY}/scripts/",
}


@pytest.mark.parametrize("page", [page for page in PAGES if page not in FOLLOWED], ids=lambda page: page.name)
def test_blocks_of_a_page(page, shared_data, tmp_path, request):
    """A page's blocks run in order in one folder, as a reader would type them."""
    if page.name in ("elasticsearch.md", "multilingual.md"):
        request.getfixturevalue("elasticsearch")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"RUSBEIR_DATA": str(shared_data), "PATH": path}
    for block in read_blocks(page):
        run_block(block, tmp_path, environment, CHANGES)


def test_targets_of_make_exist():
    """CI itself runs them."""
    blocks = [block.code for page in PAGES for block in read_blocks(page) if block.kind == "bash"]
    targets = {target for code in blocks for target in re.findall(r"^make ([\w-]+)", code, re.MULTILINE)}
    assert {"demo", "test"} <= targets
    subprocess.run(["make", "--dry-run", "--directory", REPOSITORY, *targets], check=True, capture_output=True)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links(page):
    text = page.read_text(encoding="utf-8")
    pictures = re.findall(r'(?:src|srcset)="([^"]+)"', text)
    for target in [*re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text), *pictures]:
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_section_is_there_twice(page):
    blocks = page.read_text(encoding="utf-8").split("\n```")
    sections = [line for block in blocks[::2] for line in block.splitlines() if line.startswith("## ")]
    assert len(set(sections)) == len(sections)


def test_readme_starts_with_the_two_commands():
    first = (REPOSITORY / "README.md").read_text(encoding="utf-8").splitlines()[:30]
    assert {"make demo", "make test"} <= {line.split("#")[0].strip() for line in first}


def test_reference_is_in_step():
    """docs/cli.md and the tables of docs/languages.md are what scripts/reference.py writes."""
    spec = importlib.util.spec_from_file_location("reference", REPOSITORY / "scripts" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    for name, page in reference.PAGES.items():
        written = (REPOSITORY / "docs" / name).read_text(encoding="utf-8")
        assert written == page(), f"docs/{name}: run python scripts/reference.py"


DIRECTIVE = re.compile(r"^::: (rusbeir[.\w]*)\.(\w+)$", re.MULTILINE)


def list_described() -> list[tuple[str, str]]:
    """The module and the name of everything that the pages of the reference describe."""
    pages = sorted((REPOSITORY / "docs" / "reference").glob("*.md"))
    return [match for page in pages for match in DIRECTIVE.findall(page.read_text(encoding="utf-8"))]


def test_the_reference_is_complete():
    """Every public name is described once, and what else is described can be imported from a door."""
    described = list_described()
    assert len(set(described)) == len(described)
    assert {name for module, name in described if module == "rusbeir"} == set(rusbeir.__all__)
    for module, name in described:
        assert inspect.getdoc(getattr(importlib.import_module(module), name)), f"{module}.{name}"


def test_every_page_is_in_the_menu():
    menu = (REPOSITORY / "zensical.toml").read_text(encoding="utf-8")
    pages = {str(page.relative_to(REPOSITORY / "docs")) for page in (REPOSITORY / "docs").rglob("*.md")}
    assert pages == set(re.findall(r'"([\w/-]+\.md)"', menu))

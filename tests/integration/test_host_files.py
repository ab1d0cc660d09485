"""The files that a host of code reads are such as it takes, and the tests of a change are found."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from scripts.changed_tests import find_tests

PROJECT = Path(__file__).parents[2]
SCHEMAS = {
    "github-workflows": ["workflows/ci.yml"],
    "github-issue-forms": ["ISSUE_TEMPLATE/wrong-word.yml", "ISSUE_TEMPLATE/different-number.yml"],
    "github-issue-config": ["ISSUE_TEMPLATE/config.yml"],
}


@pytest.mark.parametrize("schema", SCHEMAS)
def test_the_host_takes_them(schema):
    files = [PROJECT / ".github" / name for name in SCHEMAS[schema]]
    done = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", *files],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("changed", "expected", "why"),
    [
        ("tests/site/test_site.py", "tests/site/test_site.py", "a test"),
        ("rusbeir/evaluation/orders.py", "tests/comparison/test_rankings.py", "it imports the module"),
        ("rusbeir/comparison/tables.py", "tests/comparison/test_compare.py", "it imports the module from its room"),
        ("tests/support/labelling_model.py", "tests/synthesis/test_quality.py", "it imports what tests share"),
        ("docs/compare.md", "tests/test_docs.py", "a page"),
    ],
)
def test_the_tests_of_a_change(changed, expected, why):
    assert expected in find_tests(changed), why

"""Every code block of the README and of docs/ runs, and every link leads somewhere."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import importlib.util
import inspect
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.pages import REPOSITORY, read_blocks, run_block

PAGES = [
    REPOSITORY / "README.md",
    REPOSITORY / "CONTRIBUTING.md",
    *sorted((REPOSITORY / "docs").glob("*.md")),
]


CHANGES = {
    # The targets of make are run by CI itself; here it is enough that they exist.
    r"^make ": f"make --dry-run --directory {REPOSITORY} ",
    # The node of a fixture is there in place of the one in a container; packages are installed by tests/test_paths.py.
    r"^(docker compose|pip install) .*": ":",
    r"^python scripts/": f"python {REPOSITORY}/scripts/",
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_of_a_page(page, shared_data, tmp_path, request):
    """A page's blocks run in order in one folder, as a reader would type them."""
    if page.name == "elasticsearch.md":
        request.getfixturevalue("elasticsearch")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"RUSBEIR_DATA": str(shared_data), "PATH": path}
    for block in read_blocks(page):
        run_block(block, tmp_path, environment, CHANGES)


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


ROOMS = ["rusbeir", "rusbeir.analysis", "rusbeir.audit", "rusbeir.datasets", "rusbeir.evaluation", "rusbeir.jobs"]
ROOMS += ["rusbeir.retrieval", "rusbeir.translation.backends"]


def documented() -> dict[str, tuple[Any, str]]:
    """Of docs/api.md: "module name" -> the thing that is there in the code, and the first line of its block."""
    page = (REPOSITORY / "docs" / "api.md").read_text(encoding="utf-8")
    found = {}
    for module, section in re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL):
        for name, head in re.findall(r"^### (\S+)\n\n```text\n(.*)$", section, re.MULTILINE):
            thing = importlib.import_module(module)
            for part in name.split("."):
                thing = inspect.getattr_static(thing, part) if inspect.isclass(thing) else getattr(thing, part)
            if isinstance(thing, classmethod | staticmethod):
                thing = thing.__func__
            assert f"{module} {name}" not in found, f"{module} {name} is there twice"
            found[f"{module} {name}"] = (thing, head)
    return found


def test_the_reference_is_complete():
    """Every class and function that a room exports is there once, with its public methods and properties."""
    there = documented()
    things = [thing for thing, _ in there.values()]
    head = (REPOSITORY / "docs" / "api.md").read_text(encoding="utf-8").partition("\n## ")[0]
    assert [name for name in ("Queries", "Qrels", "Run", "Progress", "silent") if f"`{name}`" not in head] == []
    for module_name in ROOMS:
        module = importlib.import_module(module_name)
        for name in module.__all__:
            thing = getattr(module, name)
            if not (inspect.isclass(thing) or inspect.isfunction(inspect.unwrap(thing))):
                continue
            assert sum(other is thing for other in things) == 1, f"{module_name}.{name}"
            fields = {field.name for field in dataclasses.fields(thing)} if dataclasses.is_dataclass(thing) else set()
            for member, body in vars(thing).items() if inspect.isclass(thing) else ():
                public = not member.startswith("_") and member not in fields
                if public and (inspect.isfunction(body) or isinstance(body, property | classmethod)):
                    assert any(key.endswith(f" {name}.{member}") for key in there), f"{module_name}.{name}.{member}"


def test_signatures_of_the_reference():
    """Each parses, and has the parameters, the defaults and the annotations of the code."""
    for key, (thing, head) in documented().items():
        name = key.split()[1]
        if head.startswith("class "):
            assert ast.parse(f"{head}: ...").body[0].name == name.rpartition(".")[2]
            continue
        getter = getattr(thing, "fget", None) or getattr(thing, "func", None)
        if getter is not None:
            assert head == f"{name}: {_annotation(inspect.signature(getter).return_annotation)}", key
            continue
        code = ast.parse(f"def {head.replace('.', '_', name.count('.'))}: ...").body[0]
        assert isinstance(code, ast.FunctionDef)
        actual = inspect.signature(thing)
        parameters = list(actual.parameters.values())
        if parameters and parameters[0].name == "cls":
            parameters = parameters[1:]
        assert _written(code.args) == [
            (parameter.name, parameter.kind, _annotation(parameter.annotation)) for parameter in parameters
        ], key
        defaults = [parameter.default for parameter in parameters if parameter.default is not inspect.Parameter.empty]
        written = [*code.args.defaults, *(default for default in code.args.kw_defaults if default)]
        assert len(written) == len(defaults), key
        for node, default in zip(written, defaults, strict=True):
            if isinstance(node, ast.Name):
                named = default.__name__ == node.id if inspect.isfunction(default) else False
                assert named or inspect.unwrap(thing).__globals__[node.id] is default, key
            elif isinstance(node, ast.Constant) and node.value is not ...:
                assert node.value == default, key
            elif not isinstance(node, ast.Constant):
                assert ast.unparse(node) in {ast.unparse(ast.parse(repr(default))), str(default)}, key
        if not inspect.isclass(thing):
            assert (ast.unparse(code.returns) if code.returns else "") == _annotation(actual.return_annotation), key


def _written(arguments: ast.arguments) -> list[tuple[str, Any, str]]:
    kinds = [
        (arguments.posonlyargs, inspect.Parameter.POSITIONAL_ONLY),
        (arguments.args, inspect.Parameter.POSITIONAL_OR_KEYWORD),
        ([arguments.vararg] if arguments.vararg else [], inspect.Parameter.VAR_POSITIONAL),
        (arguments.kwonlyargs, inspect.Parameter.KEYWORD_ONLY),
        ([arguments.kwarg] if arguments.kwarg else [], inspect.Parameter.VAR_KEYWORD),
    ]
    return [
        (argument.arg, kind, ast.unparse(argument.annotation) if argument.annotation else "")
        for group, kind in kinds
        for argument in group
    ]


def _annotation(value: Any) -> str:
    """An annotation as ast.unparse writes it; '' for none."""
    if value is inspect.Parameter.empty:
        return ""
    value = getattr(value, "__forward_arg__", value)
    return ast.unparse(ast.parse(value if isinstance(value, str) else inspect.formatannotation(value)))

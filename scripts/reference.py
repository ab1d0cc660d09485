"""Write docs/cli.md and docs/api.md from the program itself: `python scripts/reference.py`; a test compares."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable
from pathlib import Path

import typer

from rusbeir.cli.main import app

DOCS = Path(__file__).parent.parent / "docs"
ROOMS = ["rusbeir.datasets", "rusbeir.analysis", "rusbeir.retrieval", "rusbeir.evaluation", "rusbeir.experiment"]
EXPERIMENT = ["bench", "read_rows"]


def cli_page() -> str:
    """Every verb's --help."""
    parts = ["# Command line\n\nWritten by `scripts/reference.py`. Every verb takes `--json` and `--help`.\n"]
    command = typer.main.get_command(app)
    parts += _helps(command, "rusbeir")
    return "\n".join(parts)


def _helps(command: typer.core.TyperCommand | typer.core.TyperGroup, name: str) -> list[str]:
    context = command.make_context(name, [], resilient_parsing=True, max_content_width=100, terminal_width=100)
    parts = [f"## {name}\n\n```text\n{command.get_help(context).rstrip()}\n```\n"]
    if isinstance(command, typer.core.TyperGroup):
        for verb in sorted(command.commands):
            parts += _helps(command.commands[verb], f"{name} {verb}")
    return parts


def api_page() -> str:
    """The public functions and classes of each room, with their docstrings."""
    parts = [
        "# Python API\n\nWritten by `scripts/reference.py`. `rusbeir` itself exports `load`, `Analyzer`, `bench`.\n"
    ]
    for room in ROOMS:
        module = importlib.import_module(room)
        parts.append(f"## {room}\n\n{_paragraph(module.__doc__)}\n")
        for name in getattr(module, "__all__", EXPERIMENT):
            thing = getattr(module, name)
            if inspect.isclass(thing) or inspect.isfunction(thing):
                parts.append(_entry(name, thing))
                parts += [
                    _entry(f"{name}.{method}", body)
                    for method, body in vars(thing).items()
                    if inspect.isclass(thing) and inspect.isfunction(body) and not method.startswith("_")
                ]
    return "\n".join(parts)


def _entry(name: str, thing: object) -> str:
    assert callable(thing)
    return f"### {name}\n\n```text\n{name}{_signature(thing)}\n\n{inspect.getdoc(thing) or ''}\n```\n"


def _signature(thing: Callable[..., object]) -> str:
    """As a reader would write it: annotations without quotes, defaults by name."""
    text = str(inspect.signature(thing))
    text = re.sub(r"(: |-> )(?:ForwardRef\()?'([^']*)'\)?", r"\1\2", text)
    return re.sub(r"<function (\w+) at 0x[0-9a-f]+>", r"\1", text)


def _paragraph(doc: str | None) -> str:
    return inspect.cleandoc(doc or "").split("\n\n")[0]


PAGES = {"cli.md": cli_page, "api.md": api_page}


def main() -> None:
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()

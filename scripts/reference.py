"""Write docs/cli.md, docs/api.md and the table of docs/languages.md from the program: `python scripts/reference.py`.

A test compares.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Any, ForwardRef, is_typeddict

import typer

from rusbeir.analysis import language_files, read_language
from rusbeir.analysis.recipes import Recipe
from rusbeir.analysis.tokenisers import SEGMENTERS
from rusbeir.analysis.traps import TRAPS
from rusbeir.cli.main import app

DOCS = Path(__file__).parent.parent / "docs"
MODULES: dict[str, list[str] | None] = {
    "rusbeir": None,
    "rusbeir.types": ["Card", "HashedCorpus", "MemoryCorpus"],
    "rusbeir.datasets": None,
    "rusbeir.datasets.formats.reader": ["ReadRequest"],
    "rusbeir.analysis": None,
    "rusbeir.translation.translator": ["Capacity", "Failure", "ChecksPair"],
    "rusbeir.translation.backends": None,
    "rusbeir.translation.porting.estimate": ["estimate_port", "Estimate", "Volume"],
    "rusbeir.retrieval": None,
    "rusbeir.retrieval.encoding.encoder": ["ReportsTruncation"],
    "rusbeir.retrieval.rerank.reranker": ["SortsWindows"],
    "rusbeir.evaluation": None,
    "rusbeir.ledger": ["read_rows"],
    "rusbeir.tuning": ["Tuned"],
    "rusbeir.audit": None,
    "rusbeir.synthesis": None,
    "rusbeir.nano": None,
    "rusbeir.comparison.comparison": ["Comparison", "DatasetComparison", "LanguageComparison", "Pair", "SystemScore"],
    "rusbeir.site.site": ["write_site"],
    "rusbeir.jobs": None,
}
"""The modules to describe, and the names to take where those are not all that the module exports."""

INTRODUCTION = """# Python API

Written by `scripts/reference.py`. The first section is what `rusbeir` itself offers. Each name is imported when it is
first used, so `import rusbeir` is instant. The other sections are the modules behind it; a name that is in an earlier
section is not repeated. The package is typed. `Queries` are a mapping query_id → text, `Qrels` query_id → {doc_id:
grade}, a `Run` query_id → {doc_id: score}. A `Progress` is called as progress(stage, done, total), where total is None
if it is not known; `silent` shows nothing. These names are in `rusbeir.types`.

The audit of a port is `rusbeir.audit_port`, because `rusbeir.audit` is the subpackage.
"""


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
    """The public functions and classes of each module, each once, with their signatures and docstrings."""
    parts = [INTRODUCTION]
    documented = set()
    for name, chosen in MODULES.items():
        module = importlib.import_module(name)
        parts.append(f"## {name}\n\n{_first_paragraph(module)}\n")
        for label, thing in public_names(module, chosen or module.__all__):
            if thing not in documented:
                documented.add(thing)
                parts.append(_entry(label, thing))
                parts += [_entry(f"{label}.{member}", body) for member, body in public_members(thing)]
    return "\n".join(parts)


def _first_paragraph(module: ModuleType) -> str:
    return inspect.cleandoc(module.__doc__ or "").split("\n\n")[0]


def public_names(module: ModuleType, names: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Those of the names that are classes or functions."""
    for name in names:
        thing = getattr(module, name)
        if inspect.isclass(thing) or inspect.isfunction(inspect.unwrap(thing)):
            yield name, thing


def public_members(thing: Any) -> Iterator[tuple[str, Any]]:
    """The public methods and properties of a class in their order; nothing for a function."""
    fields = {field.name for field in dataclasses.fields(thing)} if dataclasses.is_dataclass(thing) else set()
    for name, body in vars(thing).items() if inspect.isclass(thing) else ():
        asked = _is_protocol(thing) and getattr(body, "__qualname__", "") == f"{thing.__qualname__}.{name}"
        if (name.startswith("_") and not asked) or name in fields:
            continue
        if isinstance(body, classmethod | staticmethod):
            yield name, getattr(thing, name)
        elif inspect.isfunction(body) or _getter(body):
            yield name, body


def _is_protocol(thing: type) -> bool:
    return getattr(thing, "_is_protocol", False)


def _getter(member: Any) -> Callable[..., Any] | None:
    """The function behind a property or a cached property; None for anything else."""
    return getattr(member, "fget", None) or getattr(member, "func", None)


def _entry(name: str, thing: Any) -> str:
    if is_typeddict(thing):
        fields = [f"    {field}: {_annotation(kind)}" for field, kind in thing.__annotations__.items()]
        head = "\n".join([f"class {name}(TypedDict)", *fields])
    elif inspect.isclass(thing) and (issubclass(thing, Exception) or _is_protocol(thing)):
        head = f"class {name}({', '.join(base.__name__ for base in thing.__bases__)})"
    elif getter := _getter(thing):
        head = f"{name}: {_annotation(inspect.signature(getter).return_annotation)}"
    else:
        head = f"{name}{_signature(thing)}"
    return f"### {name}\n\n```text\n{head}\n\n{inspect.getdoc(thing) or ''}".rstrip() + "\n```\n"


def _signature(thing: Callable[..., object]) -> str:
    """As it would be written in a definition: annotations without quotes, defaults by name."""
    signature = inspect.signature(thing)
    parameters = [
        parameter.replace(annotation=_annotation(parameter.annotation), default=_default(parameter.default, thing))
        for parameter in signature.parameters.values()
    ]
    returned = inspect.Signature.empty if inspect.isclass(thing) else _annotation(signature.return_annotation)
    return str(signature.replace(parameters=parameters, return_annotation=returned))


class _Text(str):
    """A text whose representation is itself."""

    __slots__ = ()
    __repr__ = str.__str__


def _annotation(value: Any) -> Any:
    if value is inspect.Parameter.empty:
        return value
    if isinstance(value, ForwardRef):
        value = value.__forward_arg__
    return _Text(value if isinstance(value, str) else inspect.formatannotation(value))


def _default(value: Any, owner: Any) -> Any:
    """A function or a constant by its name; `...` for a lambda and for what a dataclass's factory makes."""
    if value is inspect.Parameter.empty:
        return value
    if isinstance(value, (Mapping, Path)):
        return _Text(next(name for name, other in inspect.unwrap(owner).__globals__.items() if other is value))
    if inspect.isfunction(value) and value.__name__.isidentifier():
        return _Text(value.__name__)
    if isinstance(value, enum.Enum):
        return _Text(str(value))
    unnamed = value is ... or inspect.isfunction(value) or type(value).__module__ == "dataclasses"
    return _Text("...") if unnamed else value


LANGUAGES = ("<!-- table by scripts/reference.py -->\n", "<!-- end of the table -->\n")
TRAPS_TABLE = ("<!-- traps by scripts/reference.py -->\n", "<!-- end of the traps -->\n")


def languages_page() -> str:
    """docs/languages.md, with the tables of languages as analyzers/ has them now, and of traps."""
    page = (DOCS / "languages.md").read_text(encoding="utf-8")
    languages = [
        "| | language | words | before | lemmas, stems | after | stop words | why |",
        "|---|---|---|---|---|---|---|---|",
        *(f"| {' | '.join(_language_cells(code))} |" for code in language_files()),
    ]
    traps = ["| trap | of | for example | because |", "|---|---|---|---|"]
    for name, lines in groupby(sorted(TRAPS, key=lambda trap: trap.name), lambda trap: trap.name):
        trap, *more = lines
        where = ", ".join(one.where.replace(" ", ", ") for one in (trap, *more))
        example = f"{trap.line.text} `{trap.line.kind}` {trap.line.expected}".strip()
        traps.append(f"| {name} | {where} | {example} | {trap.line.note} |")
    return _with_table(_with_table(page, LANGUAGES, languages), TRAPS_TABLE, traps)


def _with_table(page: str, markers: tuple[str, str], rows: list[str]) -> str:
    """The page with these rows between the markers."""
    start, end = markers
    before, _, rest = page.partition(start)
    return before + start + "\n" + "\n".join(rows) + "\n\n" + end + rest.partition(end)[2]


def _language_cells(code: str) -> Iterator[str]:
    language = read_language(code)
    recipe = language.profiles["default"]
    yield f"`{code}`"
    yield language.name
    segmenter = SEGMENTERS.get(recipe.tokens)
    yield f"{recipe.tokens}, `rusbeir[{segmenter.extra}]`" if segmenter else recipe.tokens
    yield ", ".join(_before(recipe))
    yield ", ".join(name for name in (recipe.lemmas, recipe.stemmer) if name != "none")
    yield ", ".join(recipe.term_fold)
    yield f"{recipe.stop.name} ({len(recipe.stop.words)})" if recipe.stop.words else ""
    yield language.why.replace("|", "\\|")


def _before(recipe: Recipe) -> Iterator[str]:
    """What is done to text in addition to NFKC, case folding and the removal of invisible characters."""
    yield from (fold for fold in recipe.fold if fold != "invisible")
    if recipe.case != "fold":
        yield f"case {recipe.case}"
    if recipe.elision:
        yield "elision"
    if recipe.apostrophe != "split":
        yield f"apostrophe {recipe.apostrophe}"


PAGES = {"cli.md": cli_page, "api.md": api_page, "languages.md": languages_page}


def main() -> None:
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()

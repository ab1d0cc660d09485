"""Write docs/cli.md and the tables of docs/languages.md from the program: `python scripts/reference.py`.

A test compares.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import typer

from rusbeir.analysis import language_files, read_language
from rusbeir.analysis.recipes import Recipe
from rusbeir.analysis.tokenisers import SEGMENTERS
from rusbeir.analysis.traps import TRAPS
from rusbeir.cli.main import app
from rusbeir.language_trials.every_language import read_trials, tabulate_trials

DOCS = Path(__file__).parent.parent / "docs"


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


LANGUAGES = ("<!-- table by scripts/reference.py -->\n", "<!-- end of the table -->\n")
TRIALS = ("<!-- trials by scripts/reference.py -->\n", "<!-- end of the trials -->\n")
TRAPS_TABLE = ("<!-- traps by scripts/reference.py -->\n", "<!-- end of the traps -->\n")


def languages_page() -> str:
    """docs/languages.md, with the tables of languages as analyzers/ has them now, of traps, and of NTREX-128."""
    page = (DOCS / "languages.md").read_text(encoding="utf-8")
    languages = [
        "| | language | words | before | lemmas, stems | after | stop words | why |",
        "|---|---|---|---|---|---|---|---|",
        *(f"| {' | '.join(_language_cells(code))} |" for code in language_files()),
    ]
    traps = ["| trap | of | for example | because |", "|---|---|---|---|"]
    for name, lines in groupby(sorted(TRAPS, key=lambda trap: trap.name), lambda trap: trap.name):
        trap, *more = lines
        where = ", ".join(other.where.replace(" ", ", ") for other in (trap, *more))
        example = f"{trap.line.text} `{trap.line.kind}` {trap.line.expected}".strip()
        traps.append(f"| {name} | {where} | {example} | {trap.line.note} |")
    for markers, rows in ((LANGUAGES, languages), (TRAPS_TABLE, traps), (TRIALS, _trial_rows())):
        page = _with_table(page, markers, rows)
    return page


def _trial_rows() -> list[str]:
    """What `rusbeir languages compare --all` measured when its table was last written."""
    trials = read_trials()
    (with_file, others) = (
        [f"| {' | '.join(cells)} |" for cells in (header, ["---"] * 2 + ["--:"] * (len(header) - 2), *rows)]
        for header, rows in tabulate_trials(trials["languages"])
    )
    summary = (
        f"{trials['measure']} × 100 by rusbeir {trials['version']} on NTREX-128 at commit {trials['revision']}. "
        f"{trials['n_with_file']} texts are in languages with a file; their default profile is significantly below "
        f"`raw` in {', '.join(trials['below_raw']) or 'none'}:"
    )
    return [summary, "", *with_file, "", "Languages without a file, whose default profile is `blend`:", "", *others]


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
    tokens = f"{recipe.tokens}, `rusbeir[{segmenter.extra}]`" if segmenter else recipe.tokens
    yield f"{tokens}, blended" if recipe.terms == "both" else tokens
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


PAGES = {"cli.md": cli_page, "languages.md": languages_page}


def main() -> None:
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()

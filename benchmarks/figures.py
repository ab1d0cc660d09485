"""Print every claimed figure, expected and measured: `make figures` (all), `make figures-quick` (no speed).

Figures of effectiveness are in figures.toml and come from the command line itself; the others come from the modules of
GROUPS. `python -m benchmarks.figures structure small` prints those of some groups alone. Exit code 1 where one does
not hold. What pages quote of them is written into the pages (quotes.toml), but by --quick.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shlex
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks import (
    attribution,
    audit,
    batches,
    cluster,
    frameworks,
    fuzz,
    hostile,
    judges,
    nano,
    pool_search,
    pools,
    position,
    quality_control,
    quotes,
    run,
    source_bias,
    synthesis,
    tables,
    walks,
)
from benchmarks import published as audited
from rusbeir.reproduction import published_figures, reproduce

HERE = Path(__file__).parent


def measured(command: str, out: str) -> Any:
    """The JSON document that a `rusbeir` command prints."""
    arguments = [*shlex.split(command), "--json"]
    if arguments[0] == "bench":
        arguments += ["--out", out]
    done = subprocess.run(
        [sys.executable, "-m", "rusbeir.cli", *arguments], stdout=subprocess.PIPE, check=False, text=True, cwd=out
    )
    if done.returncode:
        raise SystemExit(f"rusbeir {command}: exit code {done.returncode}")
    return json.loads(done.stdout)


def at(document: Any, path: str) -> float:
    """The number at a path such as rows.0.measures.nDCG@10."""
    for step in path.split("."):
        document = document[int(step)] if isinstance(document, list) else document[step]
    return float(document)


def verdict(value: float, claim: dict[str, Any]) -> tuple[str, bool]:
    """What was expected, in words, and whether the value is so."""
    if "at_least" in claim:
        return f">= {claim['at_least']}", value >= claim["at_least"]
    if "at_most" in claim:
        return f"<= {claim['at_most']}", value <= claim["at_most"]
    expected, within = claim["expected"], claim["within"]
    return f"{expected} ± {within}" if within else str(expected), abs(value - expected) <= within + 1e-9


def figures(out: str, *, quick: bool) -> Iterator[tuple[str, str, str, str, bool]]:
    """Rows of command, what, expected, measured, holds; quick: without those that are slow."""
    claimed = tomllib.loads((HERE / "figures.toml").read_text(encoding="utf-8"))["figure"]
    with contextlib.ExitStack() as stack:
        for figure in claimed:
            if quick and figure.get("slow"):
                continue
            if "before" in figure:
                environment = {**os.environ, "PYTHON": sys.executable, "PYTHONPATH": str(HERE.parent)}
                subprocess.run(["bash", "-euc", figure["before"]], cwd=out, check=True, env=environment)
            if "--engine elasticsearch" in figure["command"] and not os.environ.get("RUSBEIR_ES_URL"):
                os.environ["RUSBEIR_ES_URL"] = stack.enter_context(node())
            document = measured(figure["command"], out)
            for claim in figure["values"]:
                value = at(document, claim["path"]) * claim.get("scale", 1)
                expected, holds = verdict(value, claim)
                what = claim["path"].removeprefix("rows.0.")
                yield f"rusbeir {figure['command']}", what, expected, f"{value:.6g}", holds


def published(out: str, *, quick: bool) -> list[tuple[str, str, str, str, bool]]:
    """The same for what `rusbeir reproduce` claims, of the data that are at hand; quick: lexical systems alone."""
    chosen = [figure for figure in published_figures() if not quick or figure.system.startswith("bm25")]
    return [
        (
            f"rusbeir reproduce {row.dataset} ({row.system})",
            f"{row.measure} over {row.over}",
            f"{row.published} ± {row.within}",
            f"{row.ours:.6g}",
            bool(row.holds),
        )
        for row in reproduce(chosen, out=Path(out) / "published")
        if row.ours is not None
    ]


@contextlib.contextmanager
def node(heap: str = "512m") -> Iterator[str]:
    """The address of a node of the tests', with that heap. SystemExit without Maven and a JDK to start it."""
    from tests.support import elastic_node

    if lacking := elastic_node.missing():
        raise SystemExit(f"The figures of Elasticsearch need {lacking}, or RUSBEIR_ES_URL.")
    with tempfile.TemporaryDirectory() as folder:
        started = elastic_node.Node(jars=elastic_node.jars("8", Path(folder)), home=Path(folder) / "node", heap=heap)
        started.start()
        try:
            yield started.url
        finally:
            started.stop()


def measured_rows(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of a group of GROUPS as they are measured, each with its module; docs/results.md is written."""
    for module in GROUPS[name]:
        rows = []
        for row in module.rows():
            rows.append(row)
            yield module.__name__.rpartition(".")[2], row
        if module is run:
            run.write(rows)


def _bounded(name: str, all_measured: dict[tuple[str, str], float]) -> Iterator[tuple[str, str, str, str, bool]]:
    """Rows of the figures that have a bound; all_measured gets those without one, too."""
    for module, row in measured_rows(name):
        all_measured[row["what"], row["measure"]] = float(row["value"])
        if {"at_least", "at_most", "within"} & row.keys():
            what = f"python -m benchmarks.{module} ({row['what']})"
            yield what, row["measure"], *_words(row["value"], row)


def _words(value: float, claim: dict[str, Any]) -> tuple[str, str, bool]:
    expected, holds = verdict(value, claim)
    return expected, f"{value:.4g}" if isinstance(value, float) else str(value), holds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="leave out speed, structure and what is slow")
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"default: all of {', '.join((*GROUPS, *ROWS))}")
    arguments = parser.parse_args()
    known = QUICK if arguments.quick else (*GROUPS, *ROWS)
    if unknown := set(arguments.groups) - set(known):
        parser.error(f"no group {', '.join(sorted(unknown))} among {', '.join(known)}")
    run.find_data()
    count = differing = 0
    all_measured: dict[tuple[str, str], float] = {}
    with tempfile.TemporaryDirectory() as out:
        for group in arguments.groups or known:
            rows = ROWS[group](out, arguments.quick) if group in ROWS else _bounded(group, all_measured)
            for command, what, expected, value, holds in rows:
                all_measured[command, what] = float(value)
                print(
                    f"{command:<80}  {what:<44}  {expected:<16}  {value:<10}",
                    "" if holds else "  <-- differs",
                    flush=True,
                )
                count += 1
                differing += not holds
    print(f"{count} figures, {differing} differ")
    if not arguments.quick and (changed := quotes.write_pages(all_measured)):
        print(f"written: {', '.join(changed)}")
    sys.exit(1 if differing else 0)


GROUPS: dict[str, tuple[ModuleType, ...]] = {
    "structure": (walks, fuzz),
    "speed": (run, source_bias, pool_search),
    "simulated": (position, judges),
    "made": (synthesis, quality_control, batches),
    "small": (nano,),
    "planted": (audited, attribution),
    "rated": (audit,),
    "cluster": (cluster,),
    "frameworks": (frameworks,),
    "memory": (hostile,),
    "tables": (tables,),
    "pools": (pools,),
}
"""Group -> the modules whose rows are its figures."""
ROWS: dict[str, Callable[[str, bool], Iterable[tuple[str, str, str, str, bool]]]] = {
    "effectiveness": lambda out, quick: figures(out, quick=quick),
    "published": lambda out, quick: published(out, quick=quick),
}
"""Group -> its rows, given a folder for results, and whether slow ones are left out."""
QUICK = (*ROWS, "memory")


if __name__ == "__main__":
    main()

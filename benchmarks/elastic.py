"""Servers compared with the embedded engines, and under nodes that die: prints tables.

python -m benchmarks.elastic speed --docs 1000000      loading, searching and memory, in one run
python -m benchmarks.elastic cluster --docs 200000     one of three nodes killed, one frozen for 20 s

The second takes --release, such as opensearch-3. The nodes are those of the tests: Maven and a JDK are needed, Docker
is not.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import multiprocessing
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks import memory
from rusbeir.retrieval.elasticsearch import connection
from rusbeir.retrieval.lexical import engines, index
from rusbeir.retrieval.lexical.bm25 import Bm25
from rusbeir.types import Doc, silent
from tests.support import drills, elastic_node
from tests.support.stubs import Words, recipe

FREEZE_SECONDS = 20
BEIR_DOCS = 10_000
"""As many as BEIR's way is given: it takes about a second for 500."""
WORDS = [f"w{number:x}" for number in range(200_000)]
CUMULATIVE = list(itertools.accumulate(1 / (rank + 1) for rank in range(len(WORDS))))


class Stream:
    """Documents of 50 Zipf words, made as they are read."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Doc]:
        random_ = random.Random(1)
        for row in range(self._count):
            yield Doc(f"d{row}", " ".join(random_.choices(WORDS, cum_weights=CUMULATIVE, k=50)))

    def __getitem__(self, doc_id: str) -> Doc:
        raise KeyError(doc_id)


def measure(engine: str, folder: Path, docs: int, queries: int) -> dict[str, float]:
    """Speeds, the making of the documents included, and the peak of this process, which does nothing else."""
    bm25 = Bm25()
    made, loaded = recipe(engine, bm25, folder), engines.load(engine)
    started = time.perf_counter()
    index.build(folder, made, Stream(docs), Words(), loaded, bm25, silent)
    built = time.perf_counter() - started
    retriever, _ = index.open_index(folder, made, Words(), loaded, bm25)
    indexed = memory.peak_bytes() / 2**20
    random_ = random.Random(2)
    texts = {str(n): " ".join(random_.choices(WORDS[50:], k=6)) for n in range(queries)}
    started = time.perf_counter()
    retriever.search(texts, 100)
    searched = time.perf_counter() - started
    return {"docs/s": docs / built, "queries/s": queries / searched, "peak MB": indexed}


def measure_beir(url: str) -> dict[str, float]:
    """As BEIR's code loads: helpers.bulk with refresh="wait_for" on an index of default settings."""
    from elasticsearch import Elasticsearch, helpers

    client = Elasticsearch(url, request_timeout=100)
    client.indices.create(index="as-beir-does")
    actions: Iterator[dict[str, Any]] = (
        {"_op_type": "index", "_id": doc.doc_id, "title": "", "text": doc.text} for doc in Stream(BEIR_DOCS)
    )
    started = time.perf_counter()
    helpers.bulk(client, actions, index="as-beir-does", refresh="wait_for")
    return {"docs/s": BEIR_DOCS / (time.perf_counter() - started)}


def alone(work: Callable[[], dict[str, float]]) -> dict[str, float]:
    """What the work measures in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work)


def speed(folder: Path, docs: int, queries: int) -> dict[str, dict[str, float]]:
    """Engine -> docs/s, queries/s and peak MB, all in one run; and docs/s of BEIR's way."""
    node = elastic_node.Node(
        jars=elastic_node.jars("8", folder), home=folder / "node", java=elastic_node.java(17) or Path(), heap="1g"
    )
    node.start()
    try:
        speeds = {
            name: alone(functools.partial(measure, name + address, folder / name, docs, queries))
            for name, address in (("tantivy", ""), ("bm25s", ""), ("elasticsearch", f"@{node.url}"))
        }
        speeds["as BEIR loads"] = alone(functools.partial(measure_beir, node.url))
    finally:
        node.stop()
    return speeds


def print_speed(speeds: dict[str, dict[str, float]], docs: int, queries: int) -> None:
    print(f"{docs:,} documents of 50 words, {queries:,} queries of 6 words, k=100")
    for name, figures in speeds.items():
        print(f"{name:15}", "  ".join(f"{value:10,.0f} {unit}" for unit, value in figures.items()))
    ratio = speeds["elasticsearch"]["docs/s"] / speeds["as BEIR loads"]["docs/s"]
    print(f"loading is {ratio:.1f} times as fast as BEIR's way (at least 3), "
          f"with {speeds['elasticsearch']['peak MB']:,.0f} MB (at most 400)")  # fmt: skip


def cluster(folder: Path, docs: int, queries: int, release: str) -> dict[str, int]:
    """What -> how many, of the drills that a cluster of three nodes goes through."""
    program = elastic_node.OPENSEARCH if release.startswith("opensearch") else "EsNode"
    nodes = elastic_node.cluster(elastic_node.jars(release, folder), folder / "nodes", heap="1g", program=program)
    try:
        engine = drills.start(nodes)
        retriever, seconds = drills.load(nodes, engine, folder / "index", docs, victim=1)
        server = connection.connect(engine.partition("@")[2])
        print(f"three nodes of {server.release}", file=sys.stderr)
        held = server.ask("GET", f"/{retriever.searcher.index}/_count")["count"]
        figures = {f"documents there of {docs:,}, a node killed while they load": held}
        print(f"a node killed during the load: {held:,} of {docs:,} documents, {seconds:.0f} s", file=sys.stderr)
        nodes[1].wait("green")
        texts = drills.queries(queries)
        whole = retriever.search(texts, 10)
        run, seconds = drills.disturbed(retriever, texts, nodes[2].kill)
        figures[f"whole answers to {queries:,} queries, a node killed"] = len(run) - drills.differing(run, whole)
        print(f"a node killed: {len(run):,} queries, {seconds:.0f} s", file=sys.stderr)
        nodes[2].start()
        nodes[2].wait("green")

        def freeze() -> None:
            nodes[0].freeze()
            threading.Timer(FREEZE_SECONDS, nodes[0].thaw).start()

        run, seconds = drills.disturbed(retriever, texts, freeze)
        what = f"whole answers to {queries:,} queries, a node frozen for {FREEZE_SECONDS} s"
        figures[what] = len(run) - drills.differing(run, whole)
        print(f"a node frozen: {len(run):,} queries, {seconds:.0f} s", file=sys.stderr)
    finally:
        for node in nodes:
            node.stop()
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["speed", "cluster"])
    parser.add_argument("--docs", type=int, default=None)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--release", choices=list(elastic_node.RELEASES), default="8", help="of the cluster's nodes")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        if arguments.what == "speed":
            docs = arguments.docs or 1_000_000
            print_speed(speed(Path(folder), docs, arguments.queries), docs, arguments.queries)
        else:
            figures = cluster(Path(folder), arguments.docs or 200_000, arguments.queries, arguments.release)
            print("\n".join(f"{count:,}: {what}" for what, count in figures.items()))


if __name__ == "__main__":
    main()

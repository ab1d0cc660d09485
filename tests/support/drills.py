"""Nodes killed and frozen while a cluster works: what tests do in short, benchmarks/elastic.py does at length."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path

from rusbeir.retrieval.elasticsearch import connection
from rusbeir.retrieval.lexical import engines, index
from rusbeir.retrieval.lexical.bm25 import Bm25
from rusbeir.retrieval.lexical.index import LexicalRetriever
from rusbeir.types import Doc, Run, silent
from tests.support.elastic_node import Node
from tests.support.stubs import Words, recipe

VOCABULARY = [f"w{number}" for number in range(5_000)]
CUMULATIVE = list(accumulate(1 / (rank + 1) for rank in range(5_000)))
"""Zipf's. From single weights, each call of `choices` would add these sums up again."""


class Stream:
    """Documents of Zipf words, made as they are read; `half` is called when half of them were."""

    def __init__(self, count: int, half: Callable[[], None]) -> None:
        self._count = count
        self._half = half

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Doc]:
        random_ = random.Random(5)
        for row in range(self._count):
            if row == self._count // 2:
                self._half()
            yield Doc(f"d{row}", " ".join(random_.choices(VOCABULARY, cum_weights=CUMULATIVE, k=30)))

    def __getitem__(self, doc_id: str) -> Doc:
        raise KeyError(doc_id)


def start(nodes: Sequence[Node]) -> str:
    """The engine's name once the cluster is complete."""
    for node in nodes:
        node.start(wait=False)
    for node in nodes:
        node.wait()
    server = connection.connect(",".join(node.url for node in nodes))
    server.ask("GET", f"/_cluster/health?wait_for_nodes={len(nodes)}&timeout=60s")
    return f"{server.product}@{server.address}"


def load(nodes: Sequence[Node], engine: str, folder: Path, count: int, victim: int) -> tuple[LexicalRetriever, float]:
    """Load that many documents, with a node killed half-way and started again; the index, and the seconds."""
    revived = threading.Timer(2, nodes[victim].start, kwargs={"wait": False})

    def half() -> None:
        nodes[victim].kill()
        revived.start()

    bm25 = Bm25()
    made = recipe(engine, bm25, folder)
    started = time.perf_counter()
    index.build(folder, made, Stream(count, half), Words(), engines.load(engine), bm25, silent)
    seconds = time.perf_counter() - started
    revived.join()
    retriever, _ = index.open_index(folder, made, Words(), engines.load(engine), bm25)
    return retriever, seconds


def queries(count: int) -> dict[str, str]:
    random_ = random.Random(6)
    return {str(number): " ".join(random_.choices(VOCABULARY, cum_weights=CUMULATIVE, k=5)) for number in range(count)}


def disturbed(retriever: LexicalRetriever, asked: dict[str, str], disturb: Callable[[], None]) -> tuple[Run, float]:
    """The run of those queries, with the disturbance beginning soon after them; and the seconds."""
    timer = threading.Timer(0.3, disturb)
    timer.start()
    started = time.perf_counter()
    run = retriever.search(asked, 10)
    seconds = time.perf_counter() - started
    timer.join()
    return run, seconds


def differing(run: Run, whole: Run) -> int:
    """Queries whose hits are not those of an undisturbed run."""
    return sum(
        list(hits) != list(whole[query_id])
        or any(abs(score - whole[query_id][doc_id]) > 1e-6 * score for doc_id, score in hits.items())
        for query_id, hits in run.items()
    )

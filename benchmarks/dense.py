"""Exact search over vectors on disk, compared with one FAISS flat index that holds all of them in memory."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import memory

DIM = 384
K = 100
_CHUNK = 100_000


def write_vectors(path: Path, n: int, dtype: str) -> None:
    """Random vectors of length 1, [n, DIM], row after row."""
    rng = np.random.default_rng(0)
    with path.open("wb") as file:
        for start in range(0, n, _CHUNK):
            part = rng.standard_normal((min(_CHUNK, n - start), DIM), dtype=np.float32)
            part /= np.linalg.norm(part, axis=1, keepdims=True)
            part.astype(dtype).tofile(file)


def queries(n: int) -> Any:
    """Random queries of length 1, [n, DIM]."""
    vectors = np.random.default_rng(1).standard_normal((n, DIM), dtype=np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def ours(path: Path, n: int, n_queries: int, dtype: str) -> dict[str, float]:
    """Seconds of one search, and by how many bytes it raised the peak of this process."""
    import mmap

    from rusbeir.retrieval.dense import vector_search

    query_vectors = queries(n_queries)
    vector_search.load_faiss()
    with path.open("rb") as file:
        mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    vectors = np.frombuffer(mapping, dtype).reshape(n, DIM)
    rows = np.arange(n, dtype=np.uint32)
    before = memory.peak_bytes()
    started = time.perf_counter()
    vector_search.search_exactly(query_vectors, vectors, rows, K, mapping=mapping)
    seconds = time.perf_counter() - started
    peak = memory.peak_bytes()
    return {"seconds": seconds, "peak_bytes": peak, "above_bytes": peak - before}


def flat(path: Path, n: int, n_queries: int, dtype: str) -> dict[str, float]:
    """The same with one flat index, filled before the clock starts."""
    import faiss

    index = faiss.IndexFlatIP(DIM)
    vectors = np.fromfile(path, dtype).reshape(n, DIM)
    index.add(vectors.astype(np.float32, copy=False))
    query_vectors = queries(n_queries)
    started = time.perf_counter()
    index.search(query_vectors, K)
    return {"seconds": time.perf_counter() - started}


def measure(n: int, n_queries: int = 1_000, rounds: int = 3) -> dict[str, float]:
    """The best of some alternating rounds, each in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vectors"
        write_vectors(path, n, "float32")
        timings: dict[str, list[dict[str, float]]] = {"ours": [], "flat": []}
        for _ in range(rounds):
            for name in timings:
                command = [sys.executable, "-m", "benchmarks.dense", name, str(path), str(n), str(n_queries)]
                done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
                timings[name].append(dict(zip(*[iter(_numbers(done.stdout))] * 2, strict=True)))
    seconds = {name: min(run["seconds"] for run in runs) for name, runs in timings.items()}
    return {
        "queries_per_second": n_queries / seconds["ours"],
        "ratio": seconds["flat"] / seconds["ours"],
        "peak_bytes": max(run["peak_bytes"] for run in timings["ours"]),
    }


def _numbers(text: str) -> list[Any]:
    return [word if index % 2 == 0 else float(word) for index, word in enumerate(text.split())]


if __name__ == "__main__":
    if len(sys.argv) > 2:
        call = {"ours": ours, "flat": flat}[sys.argv[1]]
        result = call(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), "float32")
        print(*[f"{name} {value}" for name, value in result.items()])
    else:
        print(measure(int(sys.argv[1]) if len(sys.argv) == 2 else 1_000_000))

"""Result folders with made scores."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

Scores = dict[str, list[float]]


@pytest.fixture
def results(tmp_path: Path) -> Callable[..., Path]:
    """Write a results folder: rows and per-query scores as `rusbeir bench` leaves them."""

    def write(
        scores: Scores,
        *,
        dataset: str = "toy/ru",
        name: str = "results",
        clusters: list[int] | None = None,
        **changes: object,
    ) -> Path:
        folder = tmp_path / name
        (folder / "per_query").mkdir(parents=True, exist_ok=True)
        for n, (system, values) in enumerate(scores.items()):
            path = folder / "per_query" / f"{dataset.replace('/', '-')}-{n}-{len(list(folder.rglob('*')))}.json"
            of = [{} if clusters is None else {"cluster": cluster} for cluster in clusters or values]
            table = {f"q{i}": {"nDCG@10": value, **of[i]} for i, value in enumerate(values)}
            path.write_text(json.dumps(table))
            row = {
                "dataset": dataset, "language": "ru", "split": "test", "system": system, "engine": "tantivy",
                "signature": f"{system}|v:1|k:100", "fingerprint": "f" * 64,
                "measures": {"nDCG@10": float(np.mean(values))}, "n_zero_hit": 0, "n_tied": 1,
                "seconds": {"analyse": 1.0, "index": 2.0, "search": 0.5, "evaluate": 0.1},
                "bytes": {"index": 1_000_000, "peak_rss": 2_000_000}, "costs": 2, "run": "runs/a.run.gz",
                "per_query": str(path), "version": "1",
            } | ({"n_clusters": len(set(clusters))} if clusters else {}) | changes  # fmt: skip
            with (folder / "rows.jsonl").open("a") as file:
                file.write(json.dumps(row) + "\n")
        return folder

    return write

"""The figures of batches, with a few kills and requests: the whole is in `make figures`."""

from __future__ import annotations

import pytest

from benchmarks import batches


@pytest.mark.parametrize(
    "measure",
    [
        lambda: batches.measure_kills(n_kills=2, n_segments=300),
        lambda: batches.measure_files(4_000),
        batches.measure_faults,
    ],
    ids=["kills", "files", "faults"],
)
def test_figures(measure, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "")
    monkeypatch.setenv("OPENAI_API_KEY", "")
    for row in measure():
        assert row.get("at_least", 0.0) <= row["value"] <= row.get("at_most", 1.0), row

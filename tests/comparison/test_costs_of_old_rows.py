"""Rows of older versions are compared, without the costs that they measured otherwise."""

from __future__ import annotations

import json

import rusbeir
from rusbeir.comparison.tables import describe_blank_costs, score_table
from rusbeir.site.charts import chart_costs


def test_costs_of_older_versions_are_left_out(results):
    folder = results({"a": [1.0, 0.5], "b": [0.5, 0.0]})
    (new, old) = map(json.loads, (folder / "rows.jsonl").read_text().splitlines())
    assert not describe_blank_costs(rusbeir.compare([folder], permutations=99, samples=99))
    old.pop("costs")
    (folder / "rows.jsonl").write_text(f"{json.dumps(new)}\n{json.dumps(old)}\n")
    comparison = rusbeir.compare([folder], permutations=99, samples=99)
    (dataset,) = comparison.datasets
    header, (first, second) = score_table(dataset.systems)
    costs = [header.index("query s"), header.index("peak MB")]
    assert [[cells[n] for n in costs] for cells in (first, second)] == [["0.5", "2"], ["", ""]]
    assert "measured by an older version" in describe_blank_costs(comparison)
    assert chart_costs(dataset) is None, "one point is not a picture"

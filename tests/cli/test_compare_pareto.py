"""`rusbeir compare --pareto`: the systems than which none is as good and as cheap."""

from __future__ import annotations

import json

from tests.support.result_folders import results

__all__ = ["results"]


def test_compare_marks_the_front(results, rusbeir, tmp_path):
    seconds = {"analyse": 1.0, "index": 2.0, "evaluate": 0.1}
    for system, score, search in (("good", 0.9, 9.0), ("fast", 0.6, 1.0), ("neither", 0.5, 2.0)):
        results({system: [score, score]}, seconds={**seconds, "search": search})
    folder = tmp_path / "results"
    lines = rusbeir("compare", folder, "--pareto", "--plot", tmp_path / "front.svg").out.splitlines()
    assert {line.split()[1] for line in lines if line.split()[:1] in (["◆"], ["*◆"]) and "cheap" not in line} == {
        "good",
        "fast",
    }
    assert any(line.startswith("◆ No other system is as good and as cheap") for line in lines)
    document = json.loads(rusbeir("compare", folder, "--pareto", "--json").out)
    assert document["datasets"][0]["efficient"] == ["good", "fast"]
    assert "efficient" not in json.loads(rusbeir("compare", folder, "--json").out)["datasets"][0]
    assert (tmp_path / "front.svg").stat().st_size > 1000

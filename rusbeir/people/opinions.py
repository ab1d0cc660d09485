"""What people and a judge said of a port, for the page of its audit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isfinite
from pathlib import Path
from typing import Any

from rusbeir.audit import save_opinions
from rusbeir.datasets import QA
from rusbeir.people.agreement import PEOPLE
from rusbeir.people.judge import JUDGE, SCALE
from rusbeir.people.raters import Scale
from rusbeir.people.span_report import SCALES


def publish_opinions(report: Mapping[str, Any], port: str | Path) -> None:
    """Put the means of a report of `agree`, `agree_on_errors` or `judge_port` on the page of the port's audit."""
    opinions: dict[str, dict[str, Any]] = {}
    for who, name, mean, interval, n in _list_means(report):
        low, high = SCALES.get(name, Scale(SCALE[0], SCALE[-1]))[:2]
        # A dimension of another scale has a chart of its own.
        label = f"{who}, {name}" if name in SCALES else who
        ends = [end if isfinite(end) else None for end in (low, high)]
        opinion = opinions.setdefault(label, {"means": {}, "n": n, "scale": ends})
        opinion["means"][name] = {"mean": mean, "interval": interval}
    if opinions:
        save_opinions(Path(port) / QA, opinions)


def _list_means(report: Mapping[str, Any]) -> Iterator[tuple[str, str, float, list[float] | None, int]]:
    """Yield who, dimension, mean weighted to the port, its interval, and the number of texts."""
    if "dimensions" in report:
        for name, dimension in report["dimensions"].items():
            for who, mean in dimension["port"].items():
                yield who, name, mean["mean"], list(mean["interval"]), mean["n_scored"]
        return
    means = report["port"] if "texts" in report else {JUDGE: report["means"]}
    for who, by_name in means.items():
        # Means of both are those of all texts that the judge has scored.
        n = report["judged"] if "texts" not in report else report["texts"] if who == PEOPLE else report["raters"][JUDGE]
        for name, mean in by_name.items():
            yield who, name, mean["port"], None if mean["interval"] is None else list(mean["interval"]), n

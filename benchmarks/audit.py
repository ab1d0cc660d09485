"""What the audit finds, misses and takes: `python benchmarks/audit.py [damage] [speed]`."""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections import Counter
from itertools import cycle, islice
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
DATA = Path(os.environ.get("RUSBEIR_DATA", "").split(os.pathsep)[0] or HERE.parent.parent / "shared" / "data")
sys.path.insert(0, str(HERE.parent / "tests" / "audit"))


def damage(n: int = 2000, each: int = 50) -> list[dict[str, Any]]:
    """Recall and false alarms of each check on planted damage."""
    from planting import COUNTS_AS, DAMAGES, plant, xquad_pairs

    from rusbeir.audit import lengths
    from rusbeir.audit.measuring import Measurer

    planted = plant(xquad_pairs(DATA, n), each)
    bounds = lengths.bounds((row.source, row.translation) for row in planted)
    measurer = Measurer(languages=("en", "ru"), bounds=bounds)
    found: Counter[str] = Counter()
    alarms: Counter[str] = Counter()
    clean = sum(not row.damage for row in planted)
    for row in planted:
        flags = {flag.name for flag in measurer.flags(row.source, row.translation)}
        if row.damage:
            found[row.damage] += bool(flags & COUNTS_AS.get(row.damage, {row.damage}))
        else:
            alarms.update(flags)
            alarms["any"] += bool(flags)
    rows = [
        {"check": name, "recall": found[name] / each, "false_alarms": alarms[name] / clean, "planted": each}
        for name in DAMAGES
    ]
    rows.append({"check": "wrong-script", "false_alarms": alarms["wrong-script"] / clean})
    return [*rows, {"check": "any", "false_alarms": alarms["any"] / clean, "clean": clean}]


def speed(n: int = 100_000) -> dict[str, Any]:
    """Segments a second through all checks, and chrF beside sacrebleu's on one core and on two."""
    from planting import xquad_pairs
    from sacrebleu.metrics.chrf import CHRF

    from rusbeir.audit import lengths, scores
    from rusbeir.audit.measuring import Measurer
    from rusbeir.processes import cpu_count, in_order
    from rusbeir.translation.publishing import paged

    pairs = xquad_pairs(DATA, 2000)
    bounds = lengths.bounds((pair.source, pair.translation) for pair in pairs)
    measurer = Measurer(languages=("en", "ru"), bounds=bounds)
    work = _Checking(measurer)
    list(in_order(work, [pairs] * 2 * cpu_count(), cpu_count()))
    before = _peak_mb()
    started = time.perf_counter()
    n_done = sum(in_order(work, paged(islice(cycle(pairs), n), 500), cpu_count()))
    seconds = time.perf_counter() - started
    rise = _peak_mb() - before

    hypotheses = [pair.spanish for pair in pairs]
    references = [pair.source for pair in pairs]
    sacrebleu = CHRF()

    def theirs() -> list[float]:
        return [sacrebleu.sentence_score(h, [r]).score for h, r in zip(hypotheses, references, strict=True)]

    ratios = {}
    one, two = [], []
    for _ in range(3):
        started = time.perf_counter()
        expected = theirs()
        base = time.perf_counter() - started
        started = time.perf_counter()
        scored = scores.segment_chrf(hypotheses, references)
        one.append(base / (time.perf_counter() - started))
        assert max(abs(a - b) for a, b in zip(expected, scored, strict=True)) < 1e-9
        # As many texts for each of two processes, so that starting them weighs little.
        batches = [(hypotheses, references)] * 8
        list(in_order(_chrf, batches[:2], 2))
        started = time.perf_counter()
        list(in_order(_chrf, batches, 2))
        two.append(8 * base / (time.perf_counter() - started))
    ratios = {"one_core": sorted(one)[1], "two_cores": sorted(two)[1]}
    return {
        "segments": n_done,
        "segments_per_second": n_done / seconds,
        "rise_mb": rise,
        "chrf_times_sacrebleu": ratios,
    }


class _Checking:
    def __init__(self, measurer: Any) -> None:
        self.measurer = measurer

    def __call__(self, pairs: Any) -> int:
        return sum(self.measurer.flags(pair.source, pair.translation) is not None for pair in pairs)


def _chrf(pair: tuple[list[str], list[str]]) -> int:
    from rusbeir.audit import scores

    return len(scores.segment_chrf(*pair))


def _peak_mb() -> float:
    return (
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss + resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    ) / 1024


if __name__ == "__main__":
    asked = sys.argv[1:] or ["damage", "speed"]
    for name in asked:
        for row in (lambda found: found if isinstance(found, list) else [found])(globals()[name]()):
            print(json.dumps(row))

"""The figures and examples of an audit, collected record by record."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from rusbeir.audit.port_checks.gates import LEVELS
from rusbeir.audit.port_checks.measurement import Measured
from rusbeir.audit.port_checks.scores import Level
from rusbeir.audit.port_checks.segment_checks import Finder, ReportsFigures
from rusbeir.audit.quality_estimation.quality_tally import QualityTally

WORST = 20
EXAMPLES = 5
SHOWN = 20
"""The longest list of ids, groups or rows in a report."""
_WORST_MIN_CHARS = 20
"""The shortest source among the worst segments: chrF of a single word is easily 0."""


@dataclass(kw_only=True)
class Tally:
    """Counts, scores and examples of the records measured so far."""

    levels: dict[str, Level] = field(default_factory=lambda: {name: Level() for name in LEVELS})
    n_segments: int = 0
    n_records: Counter[str] = field(default_factory=Counter)
    flagged: Counter[str] = field(default_factory=Counter)
    flagged_records: Counter[tuple[str, str]] = field(default_factory=Counter)
    n_flagged: int = 0
    worst: list[tuple[float, int, bytes]] = field(default_factory=list)
    examples: dict[str, list[bytes]] = field(default_factory=dict)
    quality: QualityTally = field(default_factory=QualityTally)

    def add(self, result: Measured) -> None:
        """Add the next record."""
        self.n_records[result.kind] += 1
        for n, names in enumerate(result.flags):
            self.flagged.update(names)
            self.n_flagged += bool(names)
            for name in names:
                if len(rows := self.examples.setdefault(name, [])) < EXAMPLES:
                    rows.append(result.segment_rows[n])
        self.flagged_records.update((name, result.kind) for name in {name for names in result.flags for name in names})
        self.quality.add(result.kind, result.quality, result.segment_rows)
        level = "documents" if result.kind == "document" else "queries"
        self.levels[level].add(result.scores, result.counts)
        self.levels["segments"].add(result.segment_scores, result.segment_counts)
        for n, score in enumerate(result.segment_scores):
            # A heap of the lowest: its root, negated, is the best of them.
            entry = (-score, -(self.n_segments + n), result.segment_rows[n])
            if len(self.worst) == WORST and entry < self.worst[0]:
                continue
            if len(orjson.loads(entry[2])["source"]) >= _WORST_MIN_CHARS:
                (heapq.heappush if len(self.worst) < WORST else heapq.heapreplace)(self.worst, entry)
        self.n_segments += len(result.flags)

    def summary(self, finders: Mapping[str, Finder]) -> dict[str, Any]:
        """Counts, scores by level, counts of each finder's flags, the worst segments and examples of each flag.

        The figures of finders that have some are added under the names of their flags.
        """
        n = max(self.n_segments, 1)
        return {
            "n_segments": self.n_segments,
            "n_documents": self.n_records["document"],
            "n_queries": self.n_records["query"],
            "levels": {name: figures for name, level in self.levels.items() if (figures := level.summary())},
            "flagged": {"segments": self.n_flagged, "share": self.n_flagged / n},
            "flags": {
                name: {
                    "segments": self.flagged[name],
                    "share": self.flagged[name] / n,
                    "documents": self.flagged_records[name, "document"],
                    "queries": self.flagged_records[name, "query"],
                }
                for name in finders
            },
            "qe": self.quality.summary(),
            "worst": [orjson.loads(row) for _, _, row in sorted(self.worst, reverse=True)],
            "examples": {name: [*map(orjson.loads, rows)] for name, rows in sorted(self.examples.items())},
            **{name: finder.figures() for name, finder in finders.items() if isinstance(finder, ReportsFigures)},
        }

"""Segment scores that somebody else computed, in a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rusbeir.audit.port_checks.aligned import Record
from rusbeir.audit.quality_estimation.segment_scores import read_segment_scores
from rusbeir.errors import BadInput
from rusbeir.text import digest


@dataclass(kw_only=True)
class ScoreFile:
    """The scores of one file, by the names of segments or by their order in qa/segments.jsonl."""

    path: Path
    scores: dict[str, float]
    named: bool
    signature: str
    _n: int = 0
    """Segments so far."""
    _used: dict[str, str] = field(default_factory=dict)
    """name in the file -> the kind of text that it was used for."""

    @classmethod
    def read(cls, path: Path, n_segments: int) -> ScoreFile:
        """Read the file. Raises BadInput where it is of several systems, or of another number of segments."""
        read = read_segment_scores(path)
        if len(read.scores) > 1:
            systems = ", ".join(list(read.scores)[:3])
            raise BadInput(
                f"{path} has scores of {len(read.scores)} systems ({systems}, …). Give a file with those of this port."
            )
        (system, scores), (n_rows,) = next(iter(read.scores.items())), read.n_rows.values()
        if not read.named and n_rows != n_segments:
            raise BadInput(
                f"{path} has {n_rows:,} scores and names no segments; the port has {n_segments:,}. Write one for each "
                "line of qa/segments.jsonl, in that order, with None where there is none, or name the segments."
            )
        # Which scores these are, and of what.
        content = digest(system, *(f"{segment} {score!r}" for segment, score in scores.items()))
        return cls(path=path, scores=scores, named=read.named, signature=f"file:{path.name}@{content[:12]}")

    def add_to(self, records: Sequence[Record]) -> list[list[float | None]]:
        """Return the scores of the segments of each record, in the order of the port."""
        return [[*self._score(record)] for record in records]

    def _score(self, record: Record) -> Iterator[float | None]:
        for field_name, number in record.segment_names:
            self._n += 1
            yield self._find(record, field_name, number) if self.named else self.scores.get(str(self._n))

    def _find(self, record: Record, field_name: str, number: int) -> float | None:
        """Find the score of a segment, of its field, or of its text."""
        whole = f"{record.kind}/{record.record_id}"
        for name in (f"{whole}/{field_name}/{number}", f"{whole}/{field_name}", whole, record.record_id):
            if name in self.scores:
                if self._used.setdefault(name, record.kind) != record.kind:
                    raise BadInput(
                        f"{self.path}: {name!r} is the id of a document and of a query. Name them document/{name} and "
                        f"query/{name}."
                    )
                return self.scores[name]
        return None

    def refuse_foreign(self) -> None:
        """Raise BadInput where no name of the file was that of a text. Called after all records."""
        if self.named and self.scores and not self._used:
            raise BadInput(
                f"{self.path} names no segment of this port; its first is {next(iter(self.scores))!r}. Names are ids "
                "of texts, or kind/id/field/number as in document/d1/text/3; or give kind, id, field and segment."
            )

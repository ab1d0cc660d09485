"""Drift: translations that are those of another document or query, as where ids moved by a row.

Translations and sources of a field are paired so that they fit best; a translation that leaves its place has drifted.
"""

from __future__ import annotations

import contextlib
import math
import tempfile
from array import array
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import min_weight_full_bipartite_matching

from rusbeir.analysis import Analyzer, language_files
from rusbeir.audit.port_checks.measurement import RecordFile
from rusbeir.audit.published_ports.association import FOLDS, Association, Floats, Rows, make_matrix
from rusbeir.audit.published_ports.features import Unit, UnitFile, find_features, hash_text
from rusbeir.datasets import FIELDS
from rusbeir.storage import cannot_write
from rusbeir.types import Progress

MARGIN = 14.0
"""Nats by which another place must be better than a text's own, on average over the texts that change places.

About the logarithm of a million: the odds against one in a hundred texts being that of a certain one among 10,000.
"""
MAX_CELLS = 10_000_000
"""Pairs of words that are counted; of more, some of the texts are left out."""
MAX_LEARNED = 50_000
"""Texts of each field from which words are learned."""
MAX_SUSPECTS = 5_000
"""Texts of each field for which a better source is looked for, those that fit worst."""
SUSPECT = 0.8
"""A text is suspected whose fit is below this share of what is expected."""
SHORTLIST = 12
NEIGHBOURS = 2
MIN_UNITS = 50
"""Nothing is learned from fewer pairs."""
_BLOCK = 2_000
_CHUNK = 500
_DAMPING = 5


Key: TypeAlias = tuple[str, str]
"""The kind of a record, and its id."""
Fits: TypeAlias = dict[tuple[int, int], float]
"""(translation, source) -> the evidence that the one translates the other, in nats."""


class Drifted(NamedTuple):
    """A translation that fits another source."""

    kind: str
    """"document" or "query"."""
    field: str
    record_id: str
    other_id: str | None
    """None where no source fits."""
    source: str
    translation: str
    other: str | None
    nats: float
    """How much better it fits."""


def find_drift(
    records: RecordFile, languages: tuple[str, str], skipped: Collection[Key], folder: Path, progress: Progress
) -> list[Drifted]:
    """Find the titles, texts and queries that are translations of those of another record; worst first.

    skipped has the kinds and ids of records that are known to be wrong. MIN_UNITS pairs are needed, most of them right.
    Raises BackendError where no file can be written in the folder.
    """
    with _read_units(records, languages, skipped, folder, progress) as fields:
        if sum(map(len, fields.values())) < MIN_UNITS:
            return []
        association = _learn(fields)
        moves = [
            (name, *row)
            for name, units in fields.items()
            for row in _Search.prepare(association, units, progress).run()
        ]
    return _describe(records, skipped, moves)


@contextlib.contextmanager
def _read_units(
    records: RecordFile, languages: tuple[str, str], skipped: Collection[Key], folder: Path, progress: Progress
) -> Iterator[dict[str, UnitFile]]:
    analyzers = [Analyzer(code, "words" if code in language_files() else "unicode") for code in languages]
    with contextlib.ExitStack() as stack:
        try:
            files = {name: UnitFile(stack.enter_context(tempfile.TemporaryFile(dir=folder))) for name in FIELDS}
            for n, (name, record_id, source, translation) in enumerate(_read_fields(records, skipped), 1):
                features = [find_features(*side) for side in zip((source, translation), analyzers, strict=True)]
                chars = len(source), len(translation)
                files[name].add(Unit(features[0], features[1], chars, hash_text(source), hash_text(record_id) % FOLDS))
                if n % _BLOCK == 0:
                    progress("compare words", n, None)
        except OSError as error:
            raise cannot_write(folder, error) from error
        yield {name: units for name, units in files.items() if len(units)}


def _read_fields(records: RecordFile, skipped: Collection[Key]) -> Iterator[tuple[str, str, str, str]]:
    """Read (field, id, source, translation) where both sides have a text."""
    for batch in records.batches():
        for record in batch:
            if (record.kind, record.record_id) in skipped:
                continue
            for field in record.fields:
                source, translation = field.source, field.translation
                if source.strip() and translation.strip():
                    yield field.name, record.record_id, source, translation


def _learn(fields: dict[str, UnitFile]) -> Association:
    """Learn from all texts, or from every n-th of a field that has too many words."""
    sample = []
    for units in fields.values():
        step = max(1, len(units) // 1000)
        some = [units[number] for number in range(0, len(units), step)]
        cells = [len(unit.source.terms) * len(unit.translation.terms) for unit in some]
        every = max(1, math.ceil(step * sum(cells) / MAX_CELLS), math.ceil(len(units) / MAX_LEARNED))
        sample += [units[number] for number in range(0, len(units), every)]
    return Association.learn(sample)


@dataclass(kw_only=True)
class _Search:
    """Looks for better sources of the units of one field."""

    association: Association
    units: UnitFile
    usual: tuple[float, float]
    """The median of the log ratio of lengths, and its spread."""
    fits: Floats
    expected: Floats
    progress: Progress

    @classmethod
    def prepare(cls, association: Association, units: UnitFile, progress: Progress) -> _Search:
        fits, expected, ratios = (array("f") for _ in range(3))
        for number in range(len(units)):
            unit = units[number]
            fit, usual = association.fit(unit.source, unit.translation, unit.fold)
            fits.append(fit)
            expected.append(usual)
            ratios.append(_log_ratio(unit.chars))
            if number % _BLOCK == 0:
                progress("compare texts", number, len(units))
        first, median, third = np.quantile(np.frombuffer(ratios, dtype=np.float32), [0.25, 0.5, 0.75]).tolist()
        return cls(
            association=association,
            units=units,
            usual=(median, max(third - first, 0.1)),
            fits=np.frombuffer(fits, dtype=np.float32).astype(np.float64),
            expected=np.frombuffer(expected, dtype=np.float32),
            progress=progress,
        )

    def run(self) -> list[tuple[int, int | None, float]]:
        """Return (number, number of the source that it translates or None, by how many nats it fits that better)."""
        low = np.flatnonzero(self.fits < SUSPECT * self.expected)
        suspects = low[np.argsort(self.fits[low], kind="stable")[:MAX_SUSPECTS]]
        fits: Fits = {}
        for start in range(0, len(suspects), _CHUNK):
            chunk = suspects[start : start + _CHUNK]
            for number, candidates in zip(chunk.tolist(), self._shortlist(chunk), strict=True):
                unit = self.units[number]
                for candidate in (number, *candidates):
                    other = self.units[candidate]
                    if candidate == number or other.text != unit.text:
                        fits[number, candidate] = self._fit(other, unit)
        for source in {source for _, source in fits}:
            if (source, source) not in fits:
                fits[source, source] = self._fit(self.units[source], self.units[source])
        moves = find_moves(fits).items()
        return [
            (number, source, (0 if source is None else fits[number, source]) - fits[number, number])
            for number, source in moves
        ]

    def _fit(self, source: Unit, target: Unit) -> float:
        """Return the evidence that the translation of one unit is that of the other's source; lengths count as well."""
        fit, _ = self.association.fit(source.source, target.translation, target.fold)
        median, spread = self.usual
        deviation = (_log_ratio((source.chars[0], target.chars[1])) - median) / spread
        # A heavy tail: the logarithm of Student's density with three degrees of freedom.
        return fit - 2 * math.log1p(deviation**2 / 3)

    def _shortlist(self, suspects: Rows) -> list[list[int]]:
        """The numbers of sources that may fit each suspect: its neighbours, and those with the most matched words."""
        n, n_columns = len(self.units), self.association.n_columns
        translations = [self.units[number] for number in suspects.tolist()]
        gains = [self.association.gains(unit.translation, unit.fold) for unit in translations]
        matrix = make_matrix([columns for columns, _ in gains], [values for _, values in gains], n_columns)
        scores = np.full((len(suspects), SHORTLIST), -np.inf)
        numbers = np.broadcast_to(suspects[:, None], scores.shape)
        for start in range(0, n, _BLOCK):
            block = np.arange(start, min(start + _BLOCK, n))
            columns_of_block = [self.association.columns(self.units[number].source) for number in block.tolist()]
            rows = [columns for columns, _ in columns_of_block]
            sources = make_matrix(rows, [np.ones(len(row)) for row in rows], n_columns)
            fits = (matrix @ sources.T).toarray() + np.array([missed for _, missed in columns_of_block])
            scores = np.concatenate([scores, fits], axis=1)
            numbers = np.concatenate([numbers, np.broadcast_to(block, fits.shape)], axis=1)
            top = np.argpartition(-scores, SHORTLIST - 1, axis=1)[:, :SHORTLIST]
            scores, numbers = (np.take_along_axis(values, top, axis=1) for values in (scores, numbers))
            self.progress("look for drift", int(block[-1]) + 1, n)
        lists = []
        for number, far in zip(suspects.tolist(), numbers.tolist(), strict=True):
            near = range(max(0, number - NEIGHBOURS), min(n, number + NEIGHBOURS + 1))
            lists.append([candidate for candidate in dict.fromkeys([*near, *far]) if candidate != number])
        return lists


def find_moves(fits: Fits) -> dict[int, int | None]:
    """Find the translations that are not next to their source, and the sources whose translations they are.

    fits has each translation with its own source, and some with others: (translation, source) -> nats. Translations and
    sources are paired so that the evidence of all is greatest; either may be left over, and a pair that is not in its
    place costs MARGIN nats. A translation that is left over belongs to the source that it fits best, if it fits by
    MARGIN nats; it belongs to none (None) if at least twice as much speaks against its own.
    """
    numbers = np.array(sorted({source for _, source in fits}), dtype=np.intp)
    n = len(numbers)
    if not n:
        return {}
    rows, columns = np.searchsorted(numbers, np.array(list(fits), dtype=np.intp)).T
    values = np.array(list(fits.values())) + MARGIN * (rows == columns)
    # As many rows and columns again stand for what is left over, and are paired with one another for nothing.
    indices = np.arange(n)
    cells = (
        np.concatenate([rows, indices, indices + n, columns + n]),
        np.concatenate([columns, indices + n, indices, rows + n]),
    )
    values = np.concatenate([values, np.zeros(2 * n + len(values))])
    # All rows are paired, so what is added to all cells is the same for all pairings; no cell may be 0.
    graph = sparse.csr_matrix((values - values.min() + 1, cells), shape=(2 * n, 2 * n))
    _, partners = min_weight_full_bipartite_matching(graph, maximize=True)
    best: dict[int, tuple[float, int]] = {}
    for (number, source), fit in fits.items():
        best[number] = max(best.get(number, (-math.inf, number)), (fit, source))
    moves: dict[int, int | None] = {}
    for number, partner in zip(numbers.tolist(), partners[:n].tolist(), strict=True):
        if partner < n:
            moves[number] = int(numbers[partner])
        elif best[number][0] >= MARGIN:
            moves[number] = best[number][1]
        elif fits[number, number] <= -2 * MARGIN:
            moves[number] = None
    return {number: source for number, source in moves.items() if source != number}


def _log_ratio(chars: tuple[int, int]) -> float:
    """Return the log ratio of two lengths, translation to source, damped for short texts."""
    return math.log((chars[1] + _DAMPING) / (chars[0] + _DAMPING))


def _describe(
    records: RecordFile, skipped: Collection[Key], moves: list[tuple[str, int, int | None, float]]
) -> list[Drifted]:
    """Add ids and texts, which are read again, to the translations that have drifted; most evidence first."""
    numbers_by_field = {(name, number) for name, *numbers, _ in moves for number in numbers}
    texts: dict[tuple[str, int], tuple[str, str, str]] = {}
    counts: Counter[str] = Counter()
    for name, record_id, source, translation in _read_fields(records, skipped) if moves else ():
        if (name, counts[name]) in numbers_by_field:
            texts[name, counts[name]] = record_id, source, translation
        counts[name] += 1
    drifted = []
    for name, number, other, nats in sorted(moves, key=itemgetter(3), reverse=True):
        record_id, source, translation = texts[name, number]
        other_id, other_source = (None, None) if other is None else texts[name, other][:2]
        drifted.append(
            Drifted(
                "query" if name == "query" else "document",
                name,
                record_id,
                other_id,
                source,
                translation,
                other_source,
                round(nats, 1),
            )
        )
    return drifted

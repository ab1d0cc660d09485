"""The fit of a translation to its source, learned from the other pairs of a port: no model and no dictionary is needed.

Most pairs of a port are right, so words that occur together translate each other (Dice's coefficient). A word is
matched where one of those that it goes with is in the other text, and a mark where the other text has it as well. How
often a word of this kind is matched in right pairs, and how often by chance, is the evidence of a pair in nats: a naive
Bayes classifier of right and wrong pairs. A pair is judged by what pairs of other folds teach, else a rare word would
vouch for itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rusbeir.audit.published_ports.features import N_KINDS, Features, Ids, Unit

Floats: TypeAlias = NDArray[np.float64]
Rows: TypeAlias = NDArray[np.intp]

FOLDS = 8
CANDIDATES = 4
"""How many words of the other language may match a word."""
MIN_DICE = 0.12
"""The association below which two words do not go together."""
NEAR_BEST = 0.5
"""The share of the strongest association that others need: words of one topic occur together, too."""
_COUNTS, _STRENGTHS = 8, 6
N_CLASSES = N_KINDS + _COUNTS * _STRENGTHS
"""Class 0 is that of words of which nothing is known; then come marks by kind, then words by count and association."""
_LEAST, _MOST = 1e-6, 0.98
_MOST_MATCHED = 0.99


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """The terms and the marks of one language, and how often each is met, as a share of all features."""

    terms: Ids
    frequencies: Floats
    """float64 [terms + 1]; the last means no term."""
    marks: Ids
    mark_frequencies: Floats

    @classmethod
    def collect(cls, texts: Sequence[Features]) -> Vocabulary:
        total = max(sum(text.size for text in texts), 1)
        terms, counts = np.unique(np.concatenate([text.terms for text in texts]), return_counts=True)
        marks, n_marks = np.unique(np.concatenate([text.mark_hashes for text in texts]), return_counts=True)
        # A term that occurs once teaches nothing about another text.
        known = counts > 1
        frequencies = np.append(counts[known] / total, 0.0)
        return cls(terms=terms[known], frequencies=frequencies, marks=marks, mark_frequencies=n_marks / total)

    def find_terms(self, text: Features) -> Rows:
        """Find the rows of the text's terms in this vocabulary; terms that are not in it are left out."""
        rows, known = find_rows(self.terms, text.terms)
        return rows[known]

    def chances(self, hashes: Ids) -> Floats:
        """Compute how often marks are met."""
        if not len(self.marks):
            return np.full(len(hashes), _LEAST)
        rows, known = find_rows(self.marks, hashes)
        return np.where(known, self.mark_frequencies[rows], _LEAST)


def find_rows(ordered: Ids, values: Ids) -> tuple[Rows, NDArray[np.bool_]]:
    """Find the row of each value in an ordered array, and whether it is there."""
    if not len(ordered):
        return np.zeros(len(values), dtype=np.intp), np.zeros(len(values), dtype=np.bool_)
    rows = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    return rows, ordered[rows] == values


class Direction(NamedTuple):
    """The terms of one language that each term of the other goes with."""

    partners: NDArray[np.int32]
    """int32 [terms, CANDIDATES]: rows of the other vocabulary; its length means none."""
    frequencies: Floats
    """How often one of the partners is met, as a share of all features."""
    classes: Rows

    @classmethod
    def pair(cls, together: Any, counts: Floats, others: Floats, frequencies: Floats) -> Direction:
        """Pair terms by how often they occur together (sparse) and alone; frequencies are the other language's."""
        cells = together.tocoo()
        dice = 2 * cells.data / (counts[cells.row] + others[cells.col])
        strong = (dice >= MIN_DICE) & (cells.data > 0)
        rows, columns, dice = cells.row[strong], cells.col[strong], dice[strong]
        order = np.lexsort((-dice, rows))
        rows, columns, dice = rows[order], columns[order], dice[order]
        ranks = np.arange(len(rows)) - np.searchsorted(rows, np.arange(len(counts)))[rows]
        partners = np.full((len(counts), CANDIDATES), len(others), dtype=np.int32)
        first = np.searchsorted(rows, rows)
        top = (ranks < CANDIDATES) & (dice >= NEAR_BEST * dice[first])
        partners[rows[top], ranks[top]] = columns[top]
        best = np.zeros(len(counts))
        best[rows[ranks == 0]] = dice[ranks == 0]
        level = np.minimum(np.log2(np.maximum(counts, 1)).astype(np.intp), _COUNTS - 1)
        strength = np.minimum((best * _STRENGTHS).astype(np.intp), _STRENGTHS - 1)
        classes = np.where(best > 0, N_KINDS + level * _STRENGTHS + strength, 0)
        return cls(partners, frequencies[partners].sum(axis=1), classes)


class Evidence(NamedTuple):
    """The features of one text, and whether they are matched in another."""

    classes: Rows
    chances: Floats
    matched: NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Association:
    """The marks that go together in two languages, learned fold by fold."""

    vocabularies: tuple[Vocabulary, Vocabulary]
    directions: Sequence[tuple[Direction, Direction]]
    """For each fold, what was learned from the pairs of the others: source to translation, and back."""
    rates: Floats
    """float64 [2, N_CLASSES]: how often features of a class are matched in right pairs."""

    @classmethod
    def learn(cls, units: Sequence[Unit]) -> Association:
        """Learn from pairs, most of which must be right."""
        folds = np.array([unit.fold for unit in units])
        sides = [[unit.source for unit in units], [unit.translation for unit in units]]
        source, target = (Vocabulary.collect(side) for side in sides)
        matrices = [_count_terms(vocabulary, side) for vocabulary, side in zip((source, target), sides, strict=True)]
        counts = [np.asarray(matrix.sum(axis=0)).ravel() for matrix in matrices]
        parts = [[matrix[folds == fold] for matrix in matrices] for fold in range(FOLDS)]
        together = [(first.T @ second).tocsr() for first, second in parts]
        everything = sum(together[1:], together[0])
        directions = []
        for part, within in zip(parts, together, strict=True):
            left = everything - within
            first, second = (n - np.asarray(p.sum(axis=0)).ravel() for n, p in zip(counts, part, strict=True))
            directions.append(
                (
                    Direction.pair(left, first, second, target.frequencies),
                    Direction.pair(left.T, second, first, source.frequencies),
                )
            )
        made = cls(vocabularies=(source, target), directions=directions, rates=np.zeros((2, N_CLASSES)))
        met, matched = np.full((2, N_CLASSES), 3.0), np.ones((2, N_CLASSES))
        for unit in units:
            for side, evidence in enumerate(made.compare(unit.source, unit.translation, unit.fold)):
                np.add.at(met[side], evidence.classes, 1)
                np.add.at(matched[side], evidence.classes, evidence.matched)
        return cls(vocabularies=made.vocabularies, directions=made.directions, rates=matched / met)

    def compare(self, source: Features, translation: Features, fold: int) -> tuple[Evidence, Evidence]:
        """Compute what of a source is matched in a translation, and what of the translation in the source."""
        texts = source, translation
        rows = [vocabulary.find_terms(text) for vocabulary, text in zip(self.vocabularies, texts, strict=True)]
        evidence = []
        for side in (0, 1):
            text, other, direction = texts[side], texts[1 - side], self.directions[fold][side]
            there = np.zeros(len(self.vocabularies[1 - side].terms) + 1, dtype=np.bool_)
            there[rows[1 - side]] = True
            side_rows = rows[side]
            hashes = text.mark_hashes
            chances = np.concatenate([direction.frequencies[side_rows], self.vocabularies[1 - side].chances(hashes)])
            evidence.append(
                Evidence(
                    np.concatenate([direction.classes[side_rows], text.kinds]),
                    np.clip(-np.expm1(-other.size * chances), _LEAST, _MOST),
                    np.concatenate(
                        [there[direction.partners[side_rows]].any(axis=1), np.isin(hashes, other.mark_hashes)]
                    ),
                )
            )
        return evidence[0], evidence[1]

    def fit(self, source: Features, translation: Features, fold: int) -> tuple[float, float]:
        """The evidence that one text translates the other, in nats, and what is expected of a right translation."""
        total = expected = 0.0
        for side, (classes, chances, matched) in enumerate(self.compare(source, translation, fold)):
            rates = np.clip(self.rates[side][classes], chances, _MOST_MATCHED)
            for_match, for_miss = np.log(rates / chances), np.log((1 - rates) / (1 - chances))
            known = classes > 0
            total += float(np.where(matched, for_match, for_miss)[known].sum())
            expected += float((rates * for_match + (1 - rates) * for_miss)[known].sum())
        return total, expected

    def columns(self, source: Features) -> tuple[Rows, float]:
        """Return the columns of a source's features, as in `gains`, and its evidence if none of them is matched."""
        vocabulary = self.vocabularies[0]
        rows = vocabulary.find_terms(source)
        marks, known = find_rows(vocabulary.marks, source.mark_hashes)
        classes = np.concatenate([self.directions[0][0].classes[rows], source.kinds])
        missed = np.log(1 - np.minimum(self.rates[0][classes[classes > 0]], _MOST_MATCHED)).sum()
        return np.concatenate([rows, len(vocabulary.terms) + marks[known]]), float(missed)

    def gains(self, translation: Features, fold: int) -> tuple[Rows, Floats]:
        """Return the columns of what a translation matches in a source, and the nats that each of them gives."""
        vocabulary, direction = self.vocabularies[0], self.directions[fold][0]
        there = np.zeros(len(self.vocabularies[1].terms) + 1, dtype=np.bool_)
        there[self.vocabularies[1].find_terms(translation)] = True
        terms = np.flatnonzero(there[direction.partners].any(axis=1))
        marks, known = find_rows(vocabulary.marks, translation.mark_hashes)
        chances = np.concatenate([direction.frequencies[terms], vocabulary.mark_frequencies[marks[known]]])
        chances = np.clip(-np.expm1(-translation.size * chances), _LEAST, _MOST)
        classes = np.concatenate([direction.classes[terms], translation.kinds[known]])
        rates = np.clip(self.rates[0][classes], chances, _MOST_MATCHED)
        return np.concatenate([terms, len(vocabulary.terms) + marks[known]]), np.log(rates / chances / (1 - rates))

    @property
    def n_columns(self) -> int:
        return len(self.vocabularies[0].terms) + len(self.vocabularies[0].marks)


def _count_terms(vocabulary: Vocabulary, texts: Sequence[Features]) -> Any:
    """Count what occurs in each text, as a sparse matrix, float32 [texts, terms]."""
    rows = [vocabulary.find_terms(text) for text in texts]
    return make_matrix(rows, [np.ones(len(row)) for row in rows], len(vocabulary.terms))


def make_matrix(rows: Sequence[Rows], values: Sequence[Floats], n_columns: int) -> Any:
    """Make a sparse matrix, float32 [rows, n_columns], of the columns and values of each row."""
    ends = np.cumsum([0, *map(len, rows)])
    cells = np.concatenate(values).astype(np.float32), np.concatenate(rows), ends
    return sparse.csr_matrix(cells, shape=(len(rows), n_columns))

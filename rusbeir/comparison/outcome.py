"""The result of comparing systems: means with intervals, tests of the differences, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from rusbeir.comparison.matrix import Interval, LanguageMatrix
from rusbeir.errors import require
from rusbeir.evaluation import describe_queries

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

Verdict: TypeAlias = Literal["better", "worse", "inconclusive"]
MARKS: Mapping[Verdict, str] = {"better": "▲", "worse": "▼", "inconclusive": "="}
"""The sign of each verdict in tables."""


@dataclass(frozen=True, kw_only=True)
class SystemScore:
    """One system on one dataset, or on average over the datasets of a language."""

    system: str
    """The short name that its row gives to it, else its spec; with its engine if it was run on several."""
    mean: float
    interval: Interval
    """The 95 % interval over other queries of this kind; that of an average is over other datasets, too."""
    rank: int
    rank_interval: Interval | None
    """The ranks that the tests leave open; None for an average over datasets."""
    best_group: bool | None
    """Whether no other system was shown to be better; None with a baseline, where not all pairs are tested."""
    n_zero_hit: int
    n_tied: int
    seconds: Mapping[str, float]
    bytes: Mapping[str, int]
    cost: float | None = None
    """The money that was paid to measure it; None where nothing was paid, or no price was named."""
    published: float | None = None
    """What a paper printed for this system on this dataset, as a fraction; None where nothing is known."""
    versus_baseline: Verdict | None = None
    """What the test of its difference to the baseline shows; None without a baseline, and of the baseline itself."""
    spec: str = ""
    """The whole system."""

    @property
    def mark(self) -> str:
        """`*` in the best group; with a baseline ▲, ▼ or =."""
        return MARKS[self.versus_baseline] if self.versus_baseline else "*" if self.best_group else ""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """The difference between two systems on one dataset: the first one's scores minus the second one's."""

    first: str
    second: str
    difference: float
    interval: Interval
    effect: float
    """The difference in standard deviations of the per-query differences; infinite where all are equal, and not 0."""
    p: float
    p_maxt: float
    p_holm: float
    wins: int
    ties: int
    losses: int
    minimum_detectable: float
    """The true difference that 80 % of such experiments, with this many independent queries, would find.

    Infinite for so few that no test can reject, NaN where the differences have no spread.
    """


@dataclass(frozen=True, kw_only=True)
class DatasetComparison:
    """The compared systems on one dataset."""

    dataset: str
    """Its name, with the language of the queries where it is another: 'xquad/ru asked in en'."""
    language: str
    query_language: str
    n_queries: int
    n_clusters: int
    """The independent parts of the sample, which tests and intervals draw: queries, or clusters of them."""
    depth: int
    systems: tuple[SystemScore, ...]
    """The best mean first."""
    pairs: tuple[Pair, ...]
    clusters_known: bool = True
    """Whether a row says which queries are independent; those of older versions do not, and all are taken to be."""

    @property
    def sample(self) -> str:
        """The size of the sample: '1,190 queries, 240 independent'."""
        return describe_queries(self.n_queries, self.n_clusters)


@dataclass(frozen=True, kw_only=True)
class LanguageComparison:
    """The systems that were measured on every dataset of one language, asked in one: unweighted means over them."""

    language: str
    query_language: str
    datasets: tuple[str, ...]
    systems: tuple[SystemScore, ...]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The result of comparing the systems of result rows; `rusbeir.compare` makes it."""

    measure: str
    baseline: str | None
    conclusion: tuple[str, ...]
    """One plain sentence for each dataset: what can be concluded, and what cannot."""
    datasets: tuple[DatasetComparison, ...]
    languages: tuple[LanguageComparison, ...]
    matrices: tuple[LanguageMatrix, ...]
    """A matrix for each system that was asked in another language than that of the documents."""
    permutations: int
    samples: int

    def to_dict(self) -> dict[str, Any]:
        """Turn everything into plain lists and dicts, as `rusbeir compare --json` prints them.

        Returns:
            The fields of this class by their names; measures are fractions.

        Examples:
            >>> comparison.to_dict()["datasets"][0]["systems"][0]["mean"]  # doctest: +SKIP
            0.9614
        """
        return asdict(self)

    def to_pandas(self) -> DataFrame:
        """Put the systems into a flat table, whose cells are numbers, words or empty.

        Returns:
            A row for each dataset and system: `mean` with its interval from `low` to `high`, `rank` and the ranks that
            the tests leave open, whether in the best group, and the costs in seconds and bytes.

        Raises:
            MissingExtra: pandas is not installed.

        Examples:
            >>> comparison.to_pandas()[["dataset", "system", "mean", "low", "high"]]  # doctest: +SKIP
        """
        pandas = require("pandas", "to_pandas", "pandas")
        rows = [
            {
                "dataset": compared.dataset,
                "language": compared.language,
                "query_language": compared.query_language,
                "n_queries": compared.n_queries,
                **_flatten(score),
            }
            for compared in self.datasets
            for score in compared.systems
        ]
        frame: DataFrame = pandas.DataFrame(rows)
        return frame

    def plot(self) -> Figure:
        """Draw every system's mean with its interval, dataset by dataset.

        Returns:
            A figure of matplotlib, which a notebook shows.

        Raises:
            MissingExtra: matplotlib is not installed.

        Examples:
            >>> comparison.plot().savefig("means.png")  # doctest: +SKIP
        """
        from rusbeir.comparison.picture import make_figure

        return make_figure(self)

    def _repr_html_(self) -> str:
        from rusbeir.comparison.tables import to_html

        return to_html(self)


def _flatten(score: SystemScore) -> dict[str, Any]:
    """The fields of a score without intervals and tables in them."""
    fields = asdict(score)
    low, high = fields.pop("interval")
    best, worst = fields.pop("rank_interval") or (None, None)
    seconds, sizes = fields.pop("seconds"), fields.pop("bytes")
    start = {name: fields.pop(name) for name in ("system", "mean")}
    return {
        **start, "low": low, "high": high, **fields, "best_rank": best, "worst_rank": worst,
        **{f"{name}_seconds": value for name, value in seconds.items()},
        **{f"{name}_bytes": value for name, value in sizes.items()},
    }  # fmt: skip


def conclude(compared: DatasetComparison, measure: str, baseline: str | None) -> str:
    """Say in one sentence what can be concluded about this dataset, and what cannot."""
    where = f"{compared.dataset} ({compared.sample}, {measure})"
    if len(compared.systems) < 2:
        return f"{where}: only {compared.systems[0].system} was measured, so there is nothing to compare."
    return f"{where}: {_name_best(compared) if baseline is None else _list_verdicts(compared, baseline)}."


def _list_verdicts(compared: DatasetComparison, baseline: str) -> str:
    """List the systems that are better and worse than the baseline, and those that cannot be told apart from it."""
    phrases: Mapping[Verdict, str] = {
        "better": "better than", "worse": "worse than", "inconclusive": "not told apart from",
    }  # fmt: skip
    parts = [
        f"{phrase} {baseline}: {', '.join(names)}"
        for verdict, phrase in phrases.items()
        if (names := [score.system for score in compared.systems if score.versus_baseline == verdict])
    ]
    return f"{'; '.join(parts)}{_describe_power(compared)}"


def _name_best(compared: DatasetComparison) -> str:
    """Name the system that is better than all others, or those of which one is the best."""
    best, *others = compared.systems
    group = [score.system for score in compared.systems if score.best_group]
    power = _describe_power(compared)
    if len(group) == len(compared.systems):
        return f"no system was shown to be the best{power}"
    if len(group) == 1:
        losers = others[0].system if len(others) == 1 else f"each of the {len(others)} others"
        return f"{best.system} is better than {losers}{power}"
    return f"the best is one of {', '.join(group)}, which cannot be told apart{power}"


def _describe_power(compared: DatasetComparison) -> str:
    """Say what true difference such an experiment finds, after a semicolon; empty where the scores do not tell."""
    detectable = [pair.minimum_detectable for pair in compared.pairs]
    if np.isinf(detectable).any():
        independent = "" if compared.n_clusters == compared.n_queries else "independent "
        queries = "queries" if compared.n_clusters > 1 else "query"
        return f"; {compared.n_clusters} {independent}{queries} cannot show any difference"
    if not np.isfinite(detectable).any():
        return ""
    points = f"{100 * float(np.nanmedian(detectable)):.1f} points"
    return f"; a difference of {points} would be found in 4 of 5 such experiments"

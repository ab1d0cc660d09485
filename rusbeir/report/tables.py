"""A comparison as a table: the cells once, written as CSV, LaTeX or Markdown."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

from rusbeir.datasets.parallel import label_dataset
from rusbeir.report.comparison import Comparison, DatasetComparison, LanguageComparison, Pair, SystemScore

HEADER = (
    "dataset", "language", "query language", "system", "mean", "low", "high", "rank", "best rank", "worst rank",
    "best group", "queries", "no hit", "tied", "index s", "query s", "index bytes", "peak bytes", "cost", "published",
)  # fmt: skip
_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", ">": r"\textgreater{}", "<": r"\textless{}",
}  # fmt: skip


def rows_of(comparison: Comparison) -> list[list[Any]]:
    """A row for each dataset and system, then for each language's average; cells as HEADER names them.

    Measures are fractions, times seconds; None where a cell does not apply.
    """
    rows = []
    for one in comparison.datasets:
        rows += [_row(one.dataset, one, score, one.n_queries) for score in one.systems]
    for average in comparison.languages:
        if len(average.datasets) > 1:
            name = f"mean of {len(average.datasets)}"
            rows += [_row(name, average, score, None) for score in average.systems]
    return rows


def _row(
    dataset: str, one: DatasetComparison | LanguageComparison, score: SystemScore, n_queries: int | None
) -> list[Any]:
    ranks = score.rank_interval or (None, None)
    seconds = score.seconds.get("analyse", 0.0) + score.seconds.get("index", 0.0)
    return [
        dataset, one.language, one.query_language, score.system, score.mean, *score.interval, score.rank, *ranks,
        score.best_group, n_queries,
        score.n_zero_hit, score.n_tied, seconds, score.seconds.get("search"), score.bytes.get("index"),
        score.bytes.get("peak_rss"), score.cost, score.published,
    ]  # fmt: skip


def to_csv(comparison: Comparison) -> str:
    """Every cell, numbers unrounded."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    writer.writerows([["" if cell is None else cell for cell in row] for row in rows_of(comparison)])
    return text.getvalue()


def to_latex(comparison: Comparison) -> str:
    """A booktabs table of systems by datasets, x100; the best group of each dataset is bold."""
    labels, columns, cells = grid(comparison)
    lines = [
        f"% {comparison.measure} x100. Bold: not shown to be worse than the best (sign-flip test, MaxT, 5 %).",
        rf"\begin{{tabular}}{{l{'r' * len(columns)}}}",
        r"\toprule",
        " & ".join(["system", *map(_escape, columns)]) + r" \\",
        r"\midrule",
    ]
    for label in labels:
        shown = [_bold(cells.get((label, column)), r"\textbf{{{}}}") for column in columns]
        lines.append(" & ".join([_escape(label), *shown]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def to_markdown(comparison: Comparison) -> str:
    """The same grid as a Markdown table, under what can be concluded."""
    labels, columns, cells = grid(comparison)
    head = ["system", *columns]
    lines = [*(f"- {_pipe(line)}" for line in comparison.conclusion), ""]
    lines += [f"| {' | '.join(map(_pipe, head))} |", f"|{'---|' * len(head)}"]
    for label in labels:
        shown = [_bold(cells.get((label, column)), "**{}**") for column in columns]
        lines.append(f"| {' | '.join([_pipe(label), *shown])} |")
    return "\n".join([*lines, "", f"{comparison.measure} ×100. Bold: not shown to be worse than the best.", ""])


def grid(comparison: Comparison) -> tuple[list[str], list[str], dict[tuple[str, str], SystemScore]]:
    """Systems, columns (datasets, then averages) and the score in each cell."""
    cells: dict[tuple[str, str], SystemScore] = {}
    columns = []
    for dataset in comparison.datasets:
        columns.append(dataset.dataset)
        cells.update({(score.system, dataset.dataset): score for score in dataset.systems})
    for average in comparison.languages:
        if len(average.datasets) > 1:
            columns.append(label_dataset(f"mean {average.language}", average.language, average.query_language))
            cells.update({(score.system, columns[-1]): score for score in average.systems})
    return list(dict.fromkeys(system for system, _ in cells)), columns, cells


def score_table(systems: Sequence[SystemScore]) -> tuple[list[str], list[list[str]]]:
    """Header and cells of one dataset's systems for a terminal; measures x100."""
    published = any(score.published is not None for score in systems)
    paid = any(score.cost is not None for score in systems)
    header = ["", "system", "mean", "95 %", "ranks", "no hit", "tied", "index s", "query s", "MB", "peak MB"]
    header += ["cost"] if paid else []
    if published:
        header.insert(3, "paper")
    rows = []
    for score in systems:
        ranks = score.rank_interval
        cells = [
            "*" if score.best_group else "",
            score.system,
            f"{100 * score.mean:.2f}",
            f"{100 * score.interval[0]:.2f}–{100 * score.interval[1]:.2f}",
            "" if ranks is None else str(ranks[0]) if ranks[0] == ranks[1] else f"{ranks[0]}–{ranks[1]}",
            f"{score.n_zero_hit:,}",
            f"{score.n_tied:,}",
            f"{score.seconds.get('analyse', 0.0) + score.seconds.get('index', 0.0):.1f}",
            f"{score.seconds['search']:.1f}" if "search" in score.seconds else "",
            f"{score.bytes.get('index', 0) / 1e6:.1f}",
            f"{score.bytes['peak_rss'] / 1e6:.0f}" if "peak_rss" in score.bytes else "",
        ]
        if paid:
            cells.append(format_cost(score.cost))
        if published:
            cells.insert(3, "" if score.published is None else f"{100 * score.published:.2f}")
        rows.append(cells)
    return header, rows


def describe_blank_costs(comparison: Comparison) -> str:
    """Why the query seconds of some system are blank; empty where none are."""
    if all("search" in score.seconds for one in comparison.datasets for score in one.systems):
        return ""
    return (
        "Blank query seconds: measured by an older version, or with cached parts of one: costs are left out. "
        "Measure again with an empty cache: `rusbeir bench --force`."
    )


def pair_table(pairs: Sequence[Pair]) -> tuple[list[str], list[list[str]]]:
    """Header and cells of the tested differences for a terminal; differences x100."""
    header = ["first", "second", "difference", "95 %", "p MaxT", "p Holm", "effect", "wins/ties/losses", "detectable"]
    rows = [
        [
            pair.first,
            pair.second,
            f"{100 * pair.difference:+.2f}",
            f"{100 * pair.interval[0]:+.2f} … {100 * pair.interval[1]:+.2f}",
            f"{pair.p_maxt:.4f}",
            f"{pair.p_holm:.4f}",
            f"{pair.effect:+.2f}",
            f"{pair.wins}/{pair.ties}/{pair.losses}",
            f"{100 * pair.minimum_detectable:.2f}",
        ]
        for pair in pairs
    ]
    return header, rows


def format_cost(cost: float | None) -> str:
    """Money with two decimals, or two digits where it is less than 0.1; "" for None.

    >>> [format_cost(cost) for cost in (12.345, 0.000123, None)]
    ['12.35', '0.00012', '']
    """
    return "" if cost is None else f"{cost:.2f}" if cost >= 0.1 else f"{cost:.2g}"


def _bold(score: SystemScore | None, frame: str) -> str:
    if score is None:
        return "–"
    return frame.format(f"{100 * score.mean:.2f}") if score.best_group else f"{100 * score.mean:.2f}"


def _escape(text: str) -> str:
    return "".join(_LATEX.get(char, char) for char in text)


def _pipe(text: str) -> str:
    return text.replace("|", r"\|").replace("\n", " ")

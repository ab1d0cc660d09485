"""A comparison as a table: the cells once, written as CSV, LaTeX or Markdown."""

from __future__ import annotations

import csv
import html
import io
import math
import string
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from rusbeir import __version__
from rusbeir.comparison.efficiency import EFFICIENT
from rusbeir.comparison.outcome import (
    MARKS,
    Comparison,
    DatasetComparison,
    LanguageComparison,
    Pair,
    SystemScore,
    Verdict,
)
from rusbeir.datasets import label_dataset
from rusbeir.errors import BadInput
from rusbeir.evaluation import ALPHA
from rusbeir.text import slug

CellStyle: TypeAlias = Literal["mean", "interval", "letters"]
"""What a cell of a LaTeX table holds besides the mean."""

HEADER = (
    "dataset", "language", "query language", "system", "mean", "low", "high", "rank", "best rank", "worst rank",
    "best group", "versus baseline", "queries", "independent",
    "no hit", "tied", "index s", "query s", "index bytes", "peak bytes", "cost", "published",
)  # fmt: skip
ARROWS: Mapping[Verdict, str] = {"better": r"$^{\uparrow}$", "worse": r"$^{\downarrow}$", "inconclusive": r"$^{=}$"}
"""The signs of the verdicts in LaTeX."""
_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", ">": r"\textgreater{}", "<": r"\textless{}",
}  # fmt: skip


def rows_of(comparison: Comparison) -> list[list[Any]]:
    """List a row for each dataset and system, then for each language's average; HEADER names the cells.

    Measures are fractions, times seconds; None where a cell does not apply.
    """
    rows = []
    for compared in comparison.datasets:
        sizes = compared.n_queries, compared.n_clusters
        rows += [_row(compared.dataset, compared, score, *sizes) for score in compared.systems]
    for average in comparison.languages:
        if len(average.datasets) > 1:
            name = f"mean of {len(average.datasets)}"
            rows += [_row(name, average, score, None, None) for score in average.systems]
    return rows


def _row(
    dataset: str,
    compared: DatasetComparison | LanguageComparison,
    score: SystemScore,
    n_queries: int | None,
    n_clusters: int | None,
) -> list[Any]:
    ranks = score.rank_interval or (None, None)
    seconds = score.seconds.get("analyse", 0.0) + score.seconds.get("index", 0.0)
    return [
        dataset, compared.language, compared.query_language, score.system, score.mean, *score.interval, score.rank,
        *ranks,
        score.best_group, score.versus_baseline, n_queries, n_clusters,
        score.n_zero_hit, score.n_tied, seconds, score.seconds.get("search"), score.bytes.get("index"),
        score.bytes.get("peak_rss"), score.cost, score.published,
    ]  # fmt: skip


def to_csv(comparison: Comparison) -> str:
    """Write every cell as CSV, numbers unrounded."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    writer.writerows([["" if cell is None else cell for cell in row] for row in rows_of(comparison)])
    return text.getvalue()


def to_latex(comparison: Comparison, *, cells: CellStyle = "mean") -> str:
    """Write a table for a paper: booktabs, columns of siunitx, a label, and a caption with what was tested.

    The best group is bold, or arrows face a baseline. Cells may also hold intervals, or letters of the systems that
    are significantly worse on that dataset. Raises BadInput for letters with a baseline, which not all pairs face.
    """
    if cells == "letters" and comparison.baseline is not None:
        raise BadInput("Letters need a test of every pair of systems: leave out the baseline.")
    labels, columns, scores = grid(comparison)
    letters = dict(zip(labels, _name_letters(len(labels)), strict=True))
    beaten = _list_beaten(comparison) if cells == "letters" else {}
    caption = _escape(f"{comparison.measure} ×100. {describe_marks(comparison, 'Bold:')}").replace("×", r"$\times$")
    for sign, arrow in ((MARKS[verdict], ARROWS[verdict]) for verdict in ("better", "worse")):
        caption = caption.replace(sign, arrow)
    caption = caption.replace("= not told", f"{ARROWS['inconclusive']} not told")
    if beaten:
        caption += " Letters: the systems that this one is significantly better than."
    digits = 3 if any(score.mean >= 0.99995 for score in scores.values()) else 2
    lines = [
        r"% \usepackage{booktabs,siunitx}; CITATION.cff says how to cite rusbeir.",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{caption} Computed with rusbeir {__version__}~\cite{{rusbeir}}.}}",
        rf"\label{{tab:{slug(comparison.measure).lower()}}}",
        r"\sisetup{detect-weight=true}",
        rf"\begin{{tabular}}{{l*{{{len(columns)}}}{{S[table-format={digits}.2]}}}}",
        r"\toprule",
        " & ".join(["{system}", *(f"{{{_escape(column)}}}" for column in columns)]) + r" \\",
        r"\midrule",
    ]
    for label in labels:
        shown = [
            _latex_cell(scores.get((label, column)), cells, [letters[name] for name in beaten.get((label, column), ())])
            for column in columns
        ]
        head = _escape(label) + (rf"\textsuperscript{{{letters[label]}}}" if cells == "letters" else "")
        lines.append(" & ".join([head, *shown]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def _latex_cell(score: SystemScore | None, cells: CellStyle, letters: Sequence[str]) -> str:
    if score is None:
        return "{–}"
    mean = f"{100 * score.mean:.2f}"
    if score.versus_baseline:
        mean = f"{mean}{{{ARROWS[score.versus_baseline]}}}"
    elif score.best_group:
        mean = rf"\bfseries {mean}"
    if cells == "interval":
        low, high = score.interval
        return rf"{mean} {{\scriptsize [{100 * low:.2f}, {100 * high:.2f}]}}"
    return (
        rf"{mean}{{\textsuperscript{{{','.join(letters) if len(max(letters)) > 1 else ''.join(letters)}}}}}"
        if letters
        else mean
    )


def _name_letters(count: int) -> list[str]:
    """a, b, c … for up to 26 systems, else numbers."""
    return list(string.ascii_lowercase[:count]) if count <= 26 else [str(number) for number in range(1, count + 1)]


def _list_beaten(comparison: Comparison) -> dict[tuple[str, str], list[str]]:
    """(system, dataset) -> the systems that are significantly worse there."""
    beaten: dict[tuple[str, str], list[str]] = {}
    for compared in comparison.datasets:
        for pair in compared.pairs:
            if pair.p_maxt <= ALPHA and pair.difference:
                better, worse = (pair.first, pair.second) if pair.difference > 0 else (pair.second, pair.first)
                beaten.setdefault((better, compared.dataset), []).append(worse)
    return beaten


def to_html(comparison: Comparison) -> str:
    """Write what can be concluded, and a table of each dataset's systems, for a notebook."""
    parts = [f"<p>{html.escape(line)}</p>" for line in comparison.conclusion]
    for compared in comparison.datasets:
        header, rows = score_table(compared.systems)
        lines = ["".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in rows]
        parts += [
            f"<p><b>{html.escape(compared.dataset)}</b>, {compared.sample}, {comparison.measure} ×100</p>",
            f"<table><thead><tr>{''.join(f'<th>{name}</th>' for name in header)}</tr></thead>",
            f"<tbody>{''.join(f'<tr>{line}</tr>' for line in lines)}</tbody></table>",
        ]
    return "\n".join([*parts, f"<p>{html.escape(describe_marks(comparison))}</p>"])


def to_markdown(comparison: Comparison) -> str:
    """Write the grid as a Markdown table, under what can be concluded."""
    labels, columns, cells = grid(comparison)
    head = ["system", *columns]
    lines = [*(f"- {_pipe(line)}" for line in comparison.conclusion), ""]
    lines += [f"| {' | '.join(map(_pipe, head))} |", f"|{'---|' * len(head)}"]
    for label in labels:
        shown = [_mark(cells.get((label, column)), "**{}**", MARKS) for column in columns]
        lines.append(f"| {' | '.join([_pipe(label), *shown])} |")
    return "\n".join([*lines, "", f"{comparison.measure} ×100. {describe_marks(comparison, 'Bold:')}", ""])


def grid(comparison: Comparison) -> tuple[list[str], list[str], dict[tuple[str, str], SystemScore]]:
    """Return systems, columns (datasets, then averages) and the score in each cell."""
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


def score_table(systems: Sequence[SystemScore], efficient: Collection[str] = ()) -> tuple[list[str], list[list[str]]]:
    """Return the header and cells of one dataset's systems for a terminal; measures x100, the efficient ones marked."""
    published = any(score.published is not None for score in systems)
    paid = any(score.cost is not None for score in systems)
    header = ["", "system", "mean", "95 %", "ranks", "no hit", "tied", "index s", "query s", "MB", "peak MB"]
    header += ["cost"] if paid else []
    if published:
        header.insert(3, "paper")
    ranked = any(score.rank_interval for score in systems)
    rows = []
    for score in systems:
        ranks = score.rank_interval
        cells = [
            score.mark + (EFFICIENT if score.system in efficient else ""),
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
    if not ranked:
        column = header.index("ranks")
        header, *rows = [[*row[:column], *row[column + 1 :]] for row in [header, *rows]]
    return header, rows


def describe_blank_costs(comparison: Comparison) -> str:
    """Say why the query seconds of some system are blank; empty where none are."""
    # A run of another program has no costs at all.
    seconds = [score.seconds for compared in comparison.datasets for score in compared.systems]
    if all("search" in costs or "index" not in costs for costs in seconds):
        return ""
    return (
        "Blank query seconds: measured by an older version, or with cached parts of one: costs are left out. "
        "Measure again with an empty cache: `rusbeir bench --force`."
    )


def pair_table(pairs: Sequence[Pair]) -> tuple[list[str], list[list[str]]]:
    """Return the header and cells of the tested differences for a terminal; differences x100."""
    header = ["first", "second", "difference", "95 %", "p MaxT", "p Holm", "effect", "wins/ties/losses", "detectable"]
    rows = [
        [
            pair.first,
            pair.second,
            f"{100 * pair.difference:+.2f}",
            f"{100 * pair.interval[0]:+.2f} … {100 * pair.interval[1]:+.2f}",
            format_p(pair.p_maxt),
            format_p(pair.p_holm),
            format_finite(pair.effect, "{:+.2f}"),
            f"{pair.wins}/{pair.ties}/{pair.losses}",
            format_finite(100 * pair.minimum_detectable, "{:.2f}"),
        ]
        for pair in pairs
    ]
    return header, rows


def format_cost(cost: float | None) -> str:
    """Print money with two decimals, or two digits where it is less than 0.1; "" for None.

    >>> [format_cost(cost) for cost in (12.345, 0.000123, None)]
    ['12.35', '0.00012', '']
    """
    return "" if cost is None else f"{cost:.2f}" if cost >= 0.1 else f"{cost:.2g}"


def describe_marks(comparison: Comparison, best: str = "*", signs: Mapping[Verdict, str] = MARKS) -> str:
    """Explain the marks of a table, and say which differences were tested."""
    family = "all pairs of systems"
    marks = f"{best} not shown to be worse than the best"
    if comparison.baseline is not None:
        family = f"the differences to {comparison.baseline}"
        better, worse, inconclusive = signs["better"], signs["worse"], signs["inconclusive"]
        marks = f"{better} better than {comparison.baseline}, {worse} worse, {inconclusive} not told apart from it"
    return f"{marks}. Intervals: 95 %; tests: sign flips, MaxT over {family} on a dataset, 5 %."


def list_notes(comparison: Comparison) -> list[str]:
    """Say what older rows of a comparison lack: which queries are independent, and comparable costs."""
    unknown = [compared.dataset for compared in comparison.datasets if not compared.clusters_known]
    notes = [
        f"{', '.join(unknown)}: rows of an older version do not say which queries are independent, so all were taken "
        "to be. Measure again with `rusbeir bench --force`."
    ]
    return [*(notes if unknown else []), *filter(None, [describe_blank_costs(comparison)])]


def format_p(p: float) -> str:
    """Print a p-value with four decimals, but never as 0.

    >>> format_p(0.0156), format_p(0.00001)
    ('0.0156', '<0.0001')
    """
    return f"{p:.4f}" if p >= 0.0001 else "<0.0001"


def _mark(score: SystemScore | None, bold: str, signs: Mapping[Verdict, str]) -> str:
    if score is None:
        return "–"
    mean = f"{100 * score.mean:.2f}"
    if score.versus_baseline:
        return f"{mean}{signs[score.versus_baseline]}"
    return bold.format(mean) if score.best_group else mean


def format_finite(value: float, form: str) -> str:
    """Print a number, or a dash for one that is infinite or not a number."""
    return form.format(value) if math.isfinite(value) else "–"


def _escape(text: str) -> str:
    return "".join(_LATEX.get(char, char) for char in text)


def _pipe(text: str) -> str:
    return text.replace("|", r"\|").replace("\n", " ")

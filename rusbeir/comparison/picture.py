"""A picture of a comparison: every system's mean with its interval, dataset by dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rusbeir.comparison.outcome import Comparison
from rusbeir.errors import BadInput, require
from rusbeir.storage import atomic_file

FORMATS = (".svg", ".png", ".pdf")
_BEST, _OTHER = "#0b5394", "#8a8a8a"
_VERSUS = {"better": _BEST, "worse": "#b45f06", "inconclusive": _OTHER}


def draw(comparison: Comparison, path: str | Path) -> None:
    """Write the picture; its format follows from the ending. The best group of each dataset is dark.

    With a baseline, what is better than it is blue, what is worse orange, and the baseline black.

    Raises BadInput for another ending, and MissingExtra without matplotlib.
    """
    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        raise BadInput(f"{path}: a picture ends in one of {', '.join(FORMATS)}.")
    figure = require("matplotlib.figure", "A picture", "plot")
    count = len(comparison.datasets)
    height = sum(0.3 * len(compared.systems) + 0.9 for compared in comparison.datasets)
    drawn: Any = figure.Figure(figsize=(8, height), layout="constrained")
    axes = drawn.subplots(
        count, 1, squeeze=False, height_ratios=[len(compared.systems) + 1 for compared in comparison.datasets]
    )
    for row, compared in enumerate(comparison.datasets):
        axis = axes[row][0]
        systems = compared.systems[::-1]
        for y, score in enumerate(systems):
            low, high = score.interval
            color = _BEST if score.best_group else _OTHER
            if comparison.baseline is not None:
                color = _VERSUS[score.versus_baseline] if score.versus_baseline else "black"
            axis.plot([100 * low, 100 * high], [y, y], color=color, linewidth=1.5, solid_capstyle="butt")
            axis.plot(100 * score.mean, y, "o", color=color, markersize=4)
        axis.set_yticks(range(len(systems)), [score.system for score in systems], fontsize=8)
        axis.set_ylim(-0.7, len(systems) - 0.3)
        axis.set_title(f"{compared.dataset}, {compared.sample}", fontsize=9, loc="left")
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(axis="x", labelsize=8)
    colours = "dark: not shown to be worse than the best"
    if comparison.baseline is not None:
        colours = f"blue: better than {comparison.baseline}, orange: worse, grey: not told apart from it"
    axes[-1][0].set_xlabel(f"{comparison.measure} ×100, mean and 95 % interval; {colours}")
    with atomic_file(path) as file:
        drawn.savefig(file, format=path.suffix[1:].lower(), metadata={"Date": None} if path.suffix == ".svg" else None)

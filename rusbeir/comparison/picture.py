"""A picture of a comparison: every system's mean with its interval, dataset by dataset."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rusbeir.comparison.efficiency import ABOUT_EFFICIENT, EFFICIENT, list_efficient
from rusbeir.comparison.outcome import Comparison, SystemScore
from rusbeir.comparison.short_names import shorten_systems
from rusbeir.errors import BadInput, require
from rusbeir.storage import atomic_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = (".svg", ".png", ".pdf")
_BEST, _OTHER = "#0b5394", "#8a8a8a"
_VERSUS = {"better": _BEST, "worse": "#b45f06", "inconclusive": _OTHER}


def draw(comparison: Comparison, path: str | Path, *, efficient: bool = False) -> None:
    """Write the picture of `make_figure`; its format follows from the ending.

    Raises BadInput for another ending, and MissingExtra without matplotlib.
    """
    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        raise BadInput(f"{path}: a picture ends in one of {', '.join(FORMATS)}.")
    figure = make_figure(comparison, efficient=efficient)
    with atomic_file(path) as file:
        figure.savefig(file, format=path.suffix[1:].lower(), metadata={"Date": None} if path.suffix == ".svg" else None)


def make_figure(comparison: Comparison, *, efficient: bool = False) -> Figure:
    """Draw the means and intervals; the best group of each dataset is dark.

    With a baseline, what is better than it is blue, what is worse orange, and the baseline black. efficient marks the
    systems than which none is as good and as cheap.
    """
    module = require("matplotlib.figure", "A picture", "plot")
    sizes = [len(compared.systems) for compared in comparison.datasets]
    figure: Any = module.Figure(figsize=(8, sum(0.3 * size + 0.9 for size in sizes) + 0.3), layout="constrained")
    axes = figure.subplots(len(sizes), 1, squeeze=False, height_ratios=[size + 1 for size in sizes])[:, 0]
    names = shorten_systems(dict.fromkeys(s.system for compared in comparison.datasets for s in compared.systems))
    for axis, compared in zip(axes, comparison.datasets, strict=True):
        systems = compared.systems[::-1]
        for y, score in enumerate(systems):
            low, high = score.interval
            color = _choose_color(comparison, score)
            axis.plot([100 * low, 100 * high], [y, y], color=color, linewidth=1.5, solid_capstyle="butt")
            axis.plot(100 * score.mean, y, "o", color=color, markersize=4)
        marked = list_efficient(compared.systems) if efficient else ()
        labels = [names[score.system] + (f" {EFFICIENT}" if score.system in marked else "") for score in systems]
        axis.set_yticks(range(len(systems)), labels, fontsize=8)
        axis.set_ylim(-0.7, len(systems) - 0.3)
        axis.set_title(f"{compared.dataset}, {compared.sample}", fontsize=9, loc="left")
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(axis="x", labelsize=8)
    colours = "dark: not shown to be worse than the best"
    if comparison.baseline is not None:
        colours = f"blue: better than {comparison.baseline}, orange: worse, grey: not told apart from it"
    caption = f"{comparison.measure} ×100, mean and 95 % interval; {colours}"
    if efficient:
        caption += f"; {ABOUT_EFFICIENT}"
    # Below the whole figure: a label of the axis would be cut off at its right.
    figure.supxlabel(textwrap.fill(caption, 100), fontsize=9)
    made: Figure = figure
    return made


def _choose_color(comparison: Comparison, score: SystemScore) -> str:
    if comparison.baseline is not None:
        return _VERSUS[score.versus_baseline] if score.versus_baseline else "black"
    return _BEST if score.best_group else _OTHER

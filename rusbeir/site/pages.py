"""A static site of a comparison: a leaderboard, a page for each dataset, and an explorer of queries.

It works from a file: no server, no request to anywhere. All texts are inert: templates escape what they print, the
data are JSON in which no tag can end, and the script writes them as text.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from rusbeir import __version__
from rusbeir.comparison import (
    Comparison,
    DatasetComparison,
    LanguageMatrix,
    Plan,
    Result,
    SystemScore,
    compare_results,
    describe_averages,
    describe_blank_costs,
    describe_marks,
    format_cost,
    format_finite,
    format_p,
    list_notes,
    load_dataset_of,
    QrelsLike,
    gather_results,
)
from rusbeir.datasets import load, read_audit
from rusbeir.diagnostics import PAGES, read_diagnoses
from rusbeir.errors import BadInput, RusbeirError, option, require
from rusbeir.ledger import ROWS
from rusbeir.site.drawing import draw_curve, locate, scale_curves, scale_deltas
from rusbeir.site.explorer import Explored, explore
from rusbeir.storage import atomic_file, refuse_links
from rusbeir.text import digest, slug
from rusbeir.types import Dataset, Progress, silent

_TEMPLATES = Path(__file__).parent / "templates"
_MARK = ".rusbeir-report"


def write_site(
    results: Sequence[str | Path],
    out: str | Path,
    *,
    qrels: QrelsLike | None = None,
    corpus: str | Path | None = None,
    measure: str = "nDCG@10",
    baseline: str | None = None,
    data: Sequence[str | Path] = (),
    against_paper: str | None = None,
    progress: Progress = silent,
) -> Comparison:
    """Write the site of these result folders into out and return the comparison it shows; start at out/index.html.

    data names folders of datasets that no registered name leads to, such as ports, whose audits are then shown, too.
    An audit of an earlier version of a dataset is left out, after a warning. Raises BadInput where out holds something
    other than a report, for the damaged report of an audit, and as `compare` does.
    """
    out = Path(out)
    if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not (out / _MARK).exists())):
        raise BadInput(f"{out} holds something other than a report; choose a new folder with {option('out')}.")
    refuse_links(out)
    diagnoses = read_diagnoses([path for path in results if not Path(path).is_file()])
    # A diagnosis of one system has a page, though there is nothing to compare; some need no rows.
    measured = [path for path in results if not diagnoses or (Path(path) / ROWS).exists() or Path(path).is_file()]
    rows = gather_results(measured, measure, qrels=qrels, corpus=corpus)
    plan = Plan(measure=measure, baseline=baseline, against_paper=against_paper)
    comparison = compare_results(rows, plan, allow_single=bool(diagnoses))
    folders = {dataset.fingerprint: (dataset, Path(folder)) for folder in data for dataset in [load(folder)]}
    audits = {fingerprint: read_audit(folder) for fingerprint, (_, folder) in folders.items()}
    with atomic_file(out / _MARK) as file:
        file.write(f"{__version__}\n".encode())
    names = [compared.dataset for compared in comparison.datasets]
    pages = {name: f"{slug(name)}-{digest(name, chars=6)}.html" for name in names}
    for n, compared in enumerate(comparison.datasets, 1):
        by_label = {result.label: result for result in rows if result.dataset == compared.dataset}
        group = [by_label[score.system] for score in compared.systems]
        explored = _explore(group, folders, progress)
        audit = audits.get(str(group[0].row["fingerprint"]))
        page = _render("dataset.html.j2", comparison=comparison, dataset=compared, explored=explored, audit=audit)
        with atomic_file(out / "datasets" / pages[compared.dataset]) as file:
            file.write(page)
        progress("write pages", n, len(comparison.datasets))
    recipes = {result.label: _recipe(str(result.row["signature"])) for result in rows}
    monolingual = [compared for compared in comparison.datasets if compared.query_language == compared.language]
    values = {"comparison": comparison, "pages": pages, "recipes": recipes, "own": monolingual}
    values["diagnoses"] = {kind: PAGES[kind] for kind in diagnoses}
    for name in ("index", *(["matrix"] if comparison.matrices else [])):
        with atomic_file(out / f"{name}.html") as file:
            file.write(_render(f"{name}.html.j2", **values))
    for kind, documents in diagnoses.items():
        with atomic_file(out / f"{kind}.html") as file:
            file.write(_render(f"{kind}.html.j2", documents=documents))
    return comparison


def _explore(group: Sequence[Result], folders: Mapping[str, tuple[Dataset, Path]], progress: Progress) -> Explored:
    """The explorer's data of one dataset, where they can be had."""
    fingerprint = str(group[0].row["fingerprint"])
    try:
        if fingerprint in folders:
            dataset, _ = folders[fingerprint]
        else:
            dataset = load_dataset_of(group[0], folders.values(), progress)
        return explore(dataset, group, _source_of(dataset), progress)
    except RusbeirError as error:
        return Explored(data={}, note=str(error))


def _source_of(dataset: Dataset) -> Dataset | None:
    """What a port was made of, where it can be loaded by its name."""
    origin = dataset.card.provenance.get("source")
    name = origin.get("name") if isinstance(origin, dict) else None
    try:
        return load(name, split=dataset.card.split, download=False) if name else None
    except RusbeirError:
        return None


def _recipe(signature: str) -> list[tuple[str, str]]:
    """The parts of a signature as pairs of a key and a value."""
    return [(key, value) for key, _, value in (part.partition(":") for part in signature.split("|"))]


def _render(template: str, **values: Any) -> bytes:
    text: str = _environment().get_template(template).render(version=__version__, **values)
    # A lone surrogate of a file name or an id cannot be written as UTF-8.
    return text.encode("utf-8", "replace")


@cache
def _environment() -> Any:
    jinja2 = require("jinja2", "A report", "report")
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip

    def read(name: str) -> Any:
        return jinja2.utils.markupsafe.Markup((_TEMPLATES / name).read_text(encoding="utf-8"))

    def inert(data: Any) -> Any:
        """JSON that can stand in a script element: no tag ends or begins in it."""
        text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
        return jinja2.utils.markupsafe.Markup(
            text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
        )

    made.globals |= {"read": read, "inert": inert, "interval": _interval, "scatter": _scatter, "heat": _heat}
    made.globals |= {"describe_blank_costs": describe_blank_costs}
    made.globals |= {"averages": describe_averages, "scale_deltas": scale_deltas, "locate": locate}
    made.globals |= {"draw_curve": draw_curve, "scale_curves": scale_curves}
    made.globals |= {"describe_marks": describe_marks, "list_notes": list_notes}
    made.filters |= {"points": lambda value: f"{100 * value:.2f}", "count": lambda n: f"{n:,}", "cost": format_cost}
    made.filters |= {"p": format_p, "finite": format_finite}
    return made


def _interval(score: SystemScore, systems: Sequence[SystemScore], width: int = 120) -> tuple[float, float, float]:
    """Where the low end, the mean and the high end lie in a drawing of that width, on one scale for all systems."""
    low = min(other.interval[0] for other in systems)
    span = max(other.interval[1] for other in systems) - low or 1.0
    ends = (score.interval[0], score.mean, score.interval[1])
    return tuple(round(4 + (width - 8) * (end - low) / span, 1) for end in ends)  # type: ignore[return-value]


def _heat(mean: float, matrices: Sequence[LanguageMatrix]) -> int:
    """How strong a cell's colour is, in percent, on one scale for these matrices."""
    means = [cell.mean for matrix in matrices for row in matrix.cells for cell in row if cell]
    low, high = min(means), max(means)
    return round(100 * (mean - low) / ((high - low) or 1.0))


def _scatter(
    dataset: DatasetComparison, money: bool = False, width: int = 420, height: int = 220
) -> list[tuple[float, float, SystemScore]]:
    """(x, y, system) of effectiveness against search time per query on a logarithmic scale, or against money.

    Systems whose search time is not known are left out; nothing was paid where no system has a cost.
    """
    systems = dataset.systems if money else tuple(score for score in dataset.systems if "search" in score.seconds)
    if not systems or (money and not any(score.cost for score in systems)):
        return []
    cost = [
        (score.cost or 0.0) if money else math.log10(max(score.seconds["search"], 1e-3) / dataset.n_queries)
        for score in systems
    ]
    means = [score.mean for score in systems]
    wide, high = max(cost) - min(cost) or 1.0, max(means) - min(means) or 1.0
    return [
        (
            round(30 + (width - 60) * (x - min(cost)) / wide, 1),
            round(height - 30 - (height - 60) * (y - min(means)) / high, 1),
            score,
        )
        for x, y, score in zip(cost, means, systems, strict=True)
    ]

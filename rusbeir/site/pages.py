"""A static site of a comparison: a leaderboard, a page for each dataset, and an explorer of queries.

It works from a file: no server, no request to anywhere. All texts are inert: templates escape what they print, the
data are JSON in which no tag can end, and the script writes them as text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from rusbeir import __version__
from rusbeir.audit import FLAGS_MEANING
from rusbeir.comparison import (
    Comparison,
    Plan,
    QrelsLike,
    Result,
    compare_results,
    describe_averages,
    describe_blank_costs,
    describe_marks,
    format_cost,
    format_finite,
    format_p,
    gather_results,
    grid,
    list_notes,
    load_dataset_of,
    shorten_systems,
    split_results,
)
from rusbeir.datasets import QA, TEXTS, load, read_audit, read_audited_texts
from rusbeir.diagnostics import PAGES, read_diagnoses
from rusbeir.errors import BadInput, RusbeirError, option
from rusbeir.ledger import ROWS
from rusbeir.pages import make_environment
from rusbeir.site.charts import chart_costs, chart_recall, scale_heat, scale_intervals, shade_grid
from rusbeir.site.drawing import draw_curve, locate, scale_curves, scale_deltas
from rusbeir.site.explorer import Explored, explore
from rusbeir.site.headlines import list_open_questions, make_headlines, name_language, summarise
from rusbeir.storage import atomic_file, refuse_links
from rusbeir.text import digest, slug
from rusbeir.types import Dataset, Progress, silent

_MARK = ".rusbeir-report"
MAX_SIBLINGS = 12
"""How many datasets with the same queries a query leads to."""


def write_site(
    results: Sequence[str | Path],
    out: str | Path,
    *,
    qrels: QrelsLike | None = None,
    corpus: str | Path | None = None,
    language: str | None = None,
    plan: Plan | None = None,
    by_language: str | None = None,
    data: Sequence[str | Path] = (),
    progress: Progress = silent,
) -> Comparison:
    """Write a site about result folders, or about runs of other programs, that works from a file.

    Args:
        results: Folders that `bench` or a diagnosis wrote into; with qrels also run files.
        out: The folder of the site, new or with an older report; start at its index.html.
        qrels: The judgements of the run files: a file, a mapping, or a dataset, its name or its folder.
        corpus: The dataset whose texts a file of judgements is about.
        language: The language of that dataset, where its card does not name it.
        plan: The measure to compare by, and what systems are compared with; by default, nDCG@10 and each other.
        by_language: Split the results on pools, as `rusbeir.compare` does: by "queries" or "pairs".
        data: Folders of datasets that have no registered name, such as ports, whose audits are then shown, too. An
            audit of an earlier version of a dataset is left out, after a warning.
        progress: Is told what is being done.

    Returns:
        The comparison that the site shows.

    Raises:
        BadInput: out holds something other than a report, the report of an audit is damaged, or results cannot be
            compared.

    Examples:
        >>> write_site(["results"], "site").conclusion  # doctest: +SKIP
    """
    out, plan = Path(out), plan or Plan()
    if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not (out / _MARK).exists())):
        raise BadInput(f"{out} holds something other than a report; choose a new folder with {option('out')}.")
    refuse_links(out)
    diagnoses = read_diagnoses([path for path in results if not Path(path).is_file()])
    # A diagnosis of one system has a page, though there is nothing to compare; some need no rows.
    measured = [path for path in results if not diagnoses or (Path(path) / ROWS).exists() or Path(path).is_file()]
    rows = gather_results(measured, plan.measure, qrels=qrels, corpus=corpus, language=language)
    if by_language is not None:
        rows = split_results(rows, by_language, plan.measure, [Path(folder) for folder in data])
    comparison = compare_results(rows, plan, allow_single=bool(diagnoses) or by_language is not None)
    folders = {dataset.fingerprint: (dataset, Path(folder)) for folder in data for dataset in [load(folder)]}
    audits = {fingerprint: read_audit(folder) for fingerprint, (_, folder) in folders.items()}
    with atomic_file(out / _MARK) as file:
        file.write(f"{__version__}\n".encode())
    pages = {
        compared.dataset: f"{slug(compared.dataset)}-{digest(compared.dataset, chars=6)}.html"
        for compared in comparison.datasets
    }
    names = shorten_systems(dict.fromkeys(result.label for result in rows))
    specs = {result.label: str(result.row["system"]) for result in rows}
    siblings = _find_siblings(rows, pages)
    for n, compared in enumerate(comparison.datasets, 1):
        by_label = {result.label: result for result in rows if result.dataset == compared.dataset}
        group = [by_label[score.system] for score in compared.systems]
        shown = {"names": [names[result.label] for result in group], "siblings": siblings[compared.dataset]}
        explored = _explore(group, folders, audits, shown, progress)
        audit = audits.get(str(group[0].row["fingerprint"]))
        page = _render(
            "dataset.html.j2", comparison=comparison, dataset=compared, explored=explored, audit=audit, names=names,
            specs=specs, row=group[0].row,
        )  # fmt: skip
        with atomic_file(out / "datasets" / pages[compared.dataset]) as file:
            file.write(page)
        progress("write pages", n, len(comparison.datasets))
    recipes = {result.label: _recipe(str(result.row["signature"])) for result in rows}
    values = {"comparison": comparison, "pages": pages, "recipes": recipes, "names": names, "specs": specs}
    headlines = make_headlines(comparison, names)
    values |= {"headlines": headlines, "answer": summarise(headlines), "grid": grid(comparison)}
    values["open_questions"] = list(list_open_questions(comparison, names))
    values["diagnoses"] = {kind: PAGES[kind] for kind in diagnoses}
    for name in ("index", *(["matrix"] if comparison.matrices else [])):
        with atomic_file(out / f"{name}.html") as file:
            file.write(_render(f"{name}.html.j2", **values))
    for kind, documents in diagnoses.items():
        with atomic_file(out / f"{kind}.html") as file:
            file.write(_render(f"{kind}.html.j2", documents=documents))
    return comparison


def _find_siblings(rows: Sequence[Result], pages: Mapping[str, str]) -> dict[str, list[tuple[str, str]]]:
    """List for each dataset those with the same queries, with their pages."""
    queries = {result.dataset: digest(*sorted(result.scores)) for result in rows}
    return {
        name: [(other, pages[other]) for other in pages if other != name and queries[other] == queries[name]][
            :MAX_SIBLINGS
        ]
        for name in pages
    }


def _explore(
    group: Sequence[Result],
    folders: Mapping[str, tuple[Dataset, Path]],
    audits: Mapping[str, Mapping[str, Any] | None],
    shown: Mapping[str, Any],
    progress: Progress,
) -> Explored:
    """The explorer's data of one dataset, where they can be had, and what else it shows."""
    fingerprint = str(group[0].row["fingerprint"])
    audited = {}
    try:
        if fingerprint in folders:
            dataset, folder = folders[fingerprint]
            if audits[fingerprint] is not None and (folder / QA / TEXTS).exists():
                audited = {text["id"]: text for text in read_audited_texts(folder) if text["kind"] == "query"}
        else:
            dataset = load_dataset_of(group[0], folders.values(), progress)
        explored = explore(dataset, group, _source_of(dataset), progress, audited)
        return replace(explored, data={**explored.data, **shown})
    except RusbeirError as error:
        return Explored(data={}, recall={}, depth=0, note=str(error))


def _source_of(dataset: Dataset) -> Dataset | None:
    """Return the source of a port, where it can be loaded by its name."""
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
    text: str = _environment().get_template(template).render(**values)
    # A lone surrogate of a file name or an id cannot be written as UTF-8.
    return text.encode("utf-8", "replace")


@cache
def _environment() -> Any:
    environment = make_environment(Path(__file__).parent / "templates", "A report", "report")
    environment.globals |= {"heat": scale_heat, "shade_grid": shade_grid, "scale_intervals": scale_intervals}
    environment.globals |= {"chart_costs": chart_costs, "chart_recall": chart_recall}
    environment.globals |= {"averages": describe_averages, "describe_blank_costs": describe_blank_costs}
    environment.globals |= {"draw_curve": draw_curve, "scale_curves": scale_curves, "scale_deltas": scale_deltas}
    environment.globals |= {"locate": locate, "flags_meaning": FLAGS_MEANING}
    environment.globals |= {"describe_marks": describe_marks, "list_notes": list_notes}
    environment.filters |= {"cost": format_cost, "p": format_p, "finite": format_finite, "language": name_language}
    return environment

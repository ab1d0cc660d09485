"""Result rows and their per-query scores, read from result folders and checked to be comparable."""

from __future__ import annotations

import gzip
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from rusbeir.costs import COSTS
from rusbeir.datasets import find_parallel, label_dataset, load, read_run, take_queries
from rusbeir.errors import BadInput, option, unknown
from rusbeir.evaluation import is_count
from rusbeir.ledger import ROWS, read_rows
from rusbeir.text import write_command
from rusbeir.types import Dataset, Progress, Run, silent

_MAX_SCORE = 1e6
_DEPTH = re.compile(r"\|k:(\d+)$")
_ANALYSIS = re.compile(
    r"\b(?P<kind>tok|simplify|lem|compounds|stem):(?P<library>[a-z]\w*)(?:-[a-z]\w*)*-(?P<version>\d[^-|\]@]*)"
)
"""The parts of an analyzer's signature that name a version, such as stem:snowball-russian-3.1.0@4."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """One system on one dataset: its row, and its score on every judged query."""

    folder: Path
    label: str
    """The short name that a row gives to its system, else the system, with its engine if it was run on several."""
    row: Mapping[str, Any]
    scores: Mapping[str, float]
    """query_id -> value of the measure, in the order of the qrels."""
    clusters: Mapping[str, int] | None = None
    """query_id -> number of its cluster (evaluation.cluster_queries); None where all queries are independent."""
    run: Run | None = None
    """The run, where it is not in a file next to the row."""
    source: Dataset | None = None
    """The dataset, where it was loaded already."""

    @property
    def dataset(self) -> str:
        """The dataset's name, with the language of the queries where it is another than that of the documents."""
        return label_dataset(str(self.row["dataset"]), self.language, self.query_language)

    @property
    def language(self) -> str:
        """The language of the documents."""
        return str(self.row["language"])

    @property
    def query_language(self) -> str:
        return str(self.row.get("query_language", self.language))

    @property
    def depth(self) -> int:
        """The number of hits per query that were asked for; 0 for a run of another program."""
        matched = _DEPTH.search(str(self.row["signature"]))
        return int(matched[1]) if matched else 0


def read_results(folders: Iterable[str | Path], measure: str) -> list[Result]:
    """Read the newest row of every system on every dataset in these result folders, with its per-query scores.

    Raises BadInput if a folder has no rows, a row lacks the measure or its files, or rows cannot be compared: they
    differ in content (fingerprint), depth or queries, one name has two recipes, or terms of one language were made by
    several versions of a stemmer, a lexicon or a tokeniser.
    """
    if is_count(measure):
        raise BadInput(f"{measure} is a count, and no system is better for it. Compare a measure such as nDCG@10.")
    rows: dict[tuple[str, ...], tuple[Path, dict[str, Any]]] = {}
    for folder in map(Path, folders):
        newest = _newest_rows(folder)
        if not newest:
            raise BadInput(
                f"{folder} has no {ROWS}: name a folder that `rusbeir bench --out` wrote. Runs of other programs are "
                f"compared by judgements: {write_command('compare', '--qrels', 'QRELS', folder)}"
                f"{'/*' if folder.is_dir() else ''}"
            )
        for row in newest:
            asked_in = str(row.get("query_language", row["language"]))
            key = (asked_in, *(str(row[name]) for name in ("dataset", "split", "system", "engine")))
            if key in rows:
                _refuse_two_recipes(*rows[key], folder, row)
            rows[key] = folder, row
    return check_results([read_result(folder, row, measure) for folder, row in rows.values()])


def check_results(results: Sequence[Result]) -> list[Result]:
    """Label the systems of results. Raises BadInput for results that cannot be compared."""
    labelled = _label_systems(results)
    by_dataset: dict[str, list[Result]] = {}
    for result in labelled:
        by_dataset.setdefault(result.dataset, []).append(result)
    for group in by_dataset.values():
        _refuse_unlike(group)
    _refuse_unlike_versions(labelled)
    return labelled


def _newest_rows(folder: Path) -> list[dict[str, Any]]:
    """The newest row of each recipe on each dataset, the newest of them last."""
    newest: dict[tuple[str, ...], dict[str, Any]] = {}
    for row in read_rows(folder):
        names = ("dataset", "split", "query_language", "system", "signature", "fingerprint")
        key = tuple(str(row.get(name)) for name in names)
        older = newest.pop(key, {})
        # What was in the cache when it was measured again was paid for before.
        paid = {"cost": older["cost"] + row.get("cost", 0)} if "cost" in older else {}
        newest[key] = row | paid
    return list(newest.values())


def _refuse_two_recipes(other_folder: Path, other: Mapping[str, Any], folder: Path, row: Mapping[str, Any]) -> None:
    """Raise BadInput for two rows of one system that differ in their recipe; the same recipe may be repeated."""
    signatures = [_DEPTH.sub("", str(recipe["signature"])) for recipe in (other, row)]
    if other["fingerprint"] == row["fingerprint"] and signatures[0] != signatures[1]:
        files = " and ".join(dict.fromkeys(str(path / ROWS) for path in (other_folder, folder)))
        raise BadInput(
            f"{files}: {row['system']} on {row['dataset']} was measured with two recipes, "
            f"{_difference(*signatures)}. Keep the rows of one."
        )


def _difference(first: str, second: str) -> str:
    """The parts of two signatures that differ: 'k1:1.2 and k1:0.9'."""
    parts = first.split("|"), second.split("|")
    return " and ".join(
        "|".join(part for part in these if part not in others) for these, others in (parts, parts[::-1])
    )


def read_result(folder: Path, row: dict[str, Any], measure: str) -> Result:
    """Read the per-query scores of a row in that folder."""
    where = f"{row['system']} on {row['dataset']}"
    if measure not in row.get("measures", {}):
        raise BadInput(
            f"{folder}: the row of {where} has no {measure}, only {', '.join(row.get('measures', {}))}. "
            f"Run `rusbeir bench` again with -m {measure}."
        )
    path = Path(str(row["per_query"]))
    try:
        # A folder that was moved still holds the file next to its rows.
        path = next((p for p in (folder / "per_query" / path.name, path) if p.is_file()), path)
        table = orjson.loads(path.read_bytes())
        scores = {str(query_id): float(values[measure]) for query_id, values in table.items()}
        dependent = row.get("n_clusters", len(scores)) < len(scores)
        clusters = {str(query_id): int(values["cluster"]) for query_id, values in table.items()} if dependent else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise BadInput(
            f"{folder}: the per-query scores of {where} cannot be read from {path}. "
            "Measure the system again with `rusbeir bench --force`."
        ) from None
    if wrong := next((query_id for query_id, score in scores.items() if not abs(score) <= _MAX_SCORE), None):
        raise BadInput(
            f"{path}: {measure} of the query {wrong!r} is {scores[wrong]:g}, which no measure gives. "
            "Measure the system again with `rusbeir bench --force`."
        )
    return Result(
        folder=folder,
        label=str(row.get("label") or row["system"]),
        row=_keep_comparable_costs(row),
        scores=scores,
        clusters=clusters,
    )


def _keep_comparable_costs(row: dict[str, Any]) -> dict[str, Any]:
    """Leave out search time and peak memory of a row whose version measured those of the cache and the process."""
    if row.get("costs") == COSTS:
        return row
    seconds = {name: value for name, value in row["seconds"].items() if name != "search"}
    size = {name: value for name, value in row["bytes"].items() if name != "peak_rss"}
    return row | {"seconds": seconds, "bytes": size}


def load_dataset_of(
    result: Result, datasets: Iterable[tuple[Dataset, Path]] = (), progress: Progress = silent
) -> Dataset:
    """Load the dataset of a result, with the queries that were asked: one of the datasets, or a registered one.

    Raises BadInput if its content is not what was measured, and as `load` does with download=False.
    """
    if result.source is not None:
        return result.source
    name, folders = str(result.row["dataset"]), {dataset.card.name: (dataset, folder) for dataset, folder in datasets}
    dataset = folders[name][0] if name in folders else load(name, download=False, progress=progress)
    known = {loaded.card.language: str(folder) for loaded, folder in folders.values()}
    if source := find_parallel(dataset.card, result.query_language, known):
        dataset, _ = take_queries(dataset, source, download=False, progress=progress)
    if dataset.fingerprint != str(result.row["fingerprint"]):
        raise BadInput(f"{result.dataset} is not what was measured. Name its folder with {option('data')}.")
    return dataset


def read_run_of(result: Result) -> Run:
    """Read the run of a result. Raises BadInput if its file is gone or cannot be read."""
    if result.run is not None:
        return result.run
    name = Path(str(result.row["run"]))
    try:
        path = next(p for p in (result.folder / "runs" / name.name, name) if p.is_file())
    except (OSError, StopIteration) as error:  # A damaged row may have a name that no file can have.
        raise BadInput(
            f"The run of {result.label} on {result.dataset} is gone ({name}). Measure it with `rusbeir bench --force`."
        ) from error
    try:
        return read_run(path)
    except (OSError, gzip.BadGzipFile) as error:
        raise BadInput(f"{path}: the run cannot be read ({error}).") from error


def _label_systems(results: Sequence[Result]) -> list[Result]:
    """Give each system one label everywhere: its newest short name, unless another system has that, too.

    A system that was run on several engines has the engine in its label.
    """
    labels: dict[str, str] = {}
    engines: dict[str, set[str]] = {}
    for result in results:
        system = str(result.row["system"])
        labels[system] = str(result.row.get("label") or labels.get(system, system))
        engines.setdefault(system, set()).add(str(result.row["engine"]))
    shared = {label for label, count in Counter(labels.values()).items() if count > 1}
    labelled = []
    for result in results:
        system = str(result.row["system"])
        label = system if labels[system] in shared else labels[system]
        engine = f" [{result.row['engine']}]" if len(engines[system]) > 1 else ""
        labelled.append(replace(result, label=label + engine))
    return labelled


def _refuse_unlike(group: Sequence[Result]) -> None:
    """Raise BadInput for results on one dataset that differ in content, split, depth or queries."""
    first = group[0]
    for result in group[1:]:
        for what, ours, theirs, remedy in (
            ("content", first.row["fingerprint"], result.row["fingerprint"], "Measure both on the same data."),
            ("split", first.row["split"], result.row["split"], "Compare results of one split."),
            ("depth", first.depth, result.depth, "Measure both with the same -k."),
        ):
            # A run of another program has no depth that is known.
            if ours != theirs and not (what == "depth" and 0 in (ours, theirs)):
                raise BadInput(
                    f"{first.label} and {result.label} on {result.dataset} cannot be compared: their {what} differs "
                    f"({str(ours)[:12]} and {str(theirs)[:12]}). {remedy}"
                )
        if first.scores.keys() != result.scores.keys():
            raise BadInput(
                f"{first.label} and {result.label} on {result.dataset} cannot be compared: they were scored on "
                f"{len(first.scores):,} and {len(result.scores):,} queries, of which "
                f"{len(first.scores.keys() & result.scores.keys()):,} are common."
            )


def _refuse_unlike_versions(results: Sequence[Result]) -> None:
    """Raise BadInput for terms of one language that several versions of a library made: their stems may differ."""
    seen: dict[tuple[str, ...], tuple[Result, str]] = {}
    for result in results:
        for analysis in _ANALYSIS.finditer(str(result.row["signature"])):
            key = result.language, analysis["kind"], analysis["library"]
            other, version = seen.setdefault(key, (result, analysis["version"]))
            if version != analysis["version"]:
                raise BadInput(
                    f"{other.label} on {other.dataset} and {result.label} on {result.dataset} cannot be compared: "
                    f"their terms were made by two versions of {analysis['library']}, {version} and "
                    f"{analysis['version']}. Measure them again with one version; `rusbeir languages drift` prints "
                    "how many terms differ."
                )


def pick(name: str, results: Sequence[Result]) -> str:
    """Return the label of a system, by its label or its spec. Raises UnknownName with the labels there are."""
    labels = {result.label for result in results}
    by_spec = {str(result.row["system"]): result.label for result in results}
    if name not in labels and name not in by_spec:
        raise unknown("system", name, labels, owner="these results")
    return name if name in labels else by_spec[name]

"""`bench` and `search`: measure systems on datasets, or search them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from rusbeir.cluster import MODEL_CPUS, open_workers
from rusbeir.datasets import make_queries, read_run
from rusbeir.errors import BackendError, BadInput, RusbeirError
from rusbeir.evaluation import DEFAULT_MEASURES, check_measures
from rusbeir.experiment.measuring import measure
from rusbeir.experiment.planning import (
    Failed,
    Ledger,
    Measurement,
    Request,
    SystemLike,
    plan_measurements,
    resolve_on,
)
from rusbeir.jobs import CharBudget
from rusbeir.ledger import ROWS, ResultRow
from rusbeir.notebook import ShownRow, ShownRows, ShownRun
from rusbeir.retrieval import (
    ChecksAvailability,
    RunSettings,
    read_system,
    search_without_self,
)
from rusbeir.types import Dataset, Progress, Queries, Run, silent

if TYPE_CHECKING:
    from rusbeir.cluster import On

logger = logging.getLogger(__name__)


@overload
def bench(
    dataset: str | Path | Dataset,
    system: SystemLike = "bm25",
    *,
    engine: str = "auto",
    language: str | None = None,
    split: str | None = None,
    k: int = 100,
    measures: str | Sequence[str] = DEFAULT_MEASURES,
    out: str | Path = "results",
    force: bool = False,
    accept_difference: bool = False,
    budget_chars: int | None = None,
    query_language: str | None = None,
    on: On = None,
    progress: Progress = silent,
) -> ShownRow: ...


@overload
def bench(
    dataset: str | Path | Dataset,
    system: list[SystemLike] | list[str] | Mapping[str, SystemLike],
    *,
    engine: str = "auto",
    language: str | None = None,
    split: str | None = None,
    k: int = 100,
    measures: str | Sequence[str] = DEFAULT_MEASURES,
    out: str | Path = "results",
    force: bool = False,
    accept_difference: bool = False,
    budget_chars: int | None = None,
    query_language: str | None = None,
    on: On = None,
    progress: Progress = silent,
) -> ShownRows: ...


def bench(
    dataset: str | Path | Dataset,
    system: SystemLike | Sequence[SystemLike] | Mapping[str, SystemLike] = "bm25",
    *,
    engine: str = "auto",
    language: str | None = None,
    split: str | None = None,
    k: int = 100,
    measures: str | Sequence[str] = DEFAULT_MEASURES,
    out: str | Path = "results",
    force: bool = False,
    accept_difference: bool = False,
    budget_chars: int | None = None,
    query_language: str | None = None,
    on: On = None,
    progress: Progress = silent,
) -> ShownRow | ShownRows:
    """Measure a system on a dataset, and append the result row to out/rows.jsonl.

    A row with the same signature, fingerprint and measures is returned instead, unless force is set. BM25 analyses all
    queries as texts in the language of the documents.

    Args:
        dataset: A registered name, a path, or a Dataset.
        system: A system, or a list of systems. One that fails costs its own row only: its error is raised once the
            others are measured.
        engine: The engine of BM25, such as tantivy, bm25s, elasticsearch or opensearch.
        language: The language of a dataset whose card does not name it.
        split: The queries to use, such as test or dev.
        k: The depth of the run, which is written to out/runs.
        measures: Measures by their ir-measures names, such as nDCG@10.
        out: The folder of results.
        force: Measure again although there is a row.
        accept_difference: Measure a registered dataset whose counts differ from the registered ones, as
            "NAME (differs)", instead of refusing it.
        budget_chars: The characters that all runs with a budget may send to endpoints for that out.
        query_language: Ask the queries of a parallel dataset, which has the same ids: the registered one in that
            language (xquad/en for xquad/ru), or the one of that name or path.
        on: Where local models compute: "ray" or "ray://HOST:PORT" (docs/scale.md), or workers that are open.
        progress: Called as progress(stage, done, total).

    Returns:
        The result row, a dict (docs/json.md); for a list of systems, a list of rows. A notebook shows both as a table,
        and `to_pandas()` makes a flat one.

    Raises:
        BudgetReached: The budget is used up; answers so far are kept.
        RusbeirError: The dataset or the system cannot be used; the message says why.

    Examples:
        >>> row = bench("mini/ru", "bm25(profile=raw)", measures="nDCG@10")  # doctest: +SKIP
    """
    request = Request(
        engine=engine, language=language, split=split, k=k, measures=check_measures(measures), out=Path(out),
        force=force, accept_difference=accept_difference, budget_chars=budget_chars,
        query_languages=[query_language] if query_language else [], on=on, progress=progress,
    )  # fmt: skip
    if isinstance(system, Mapping):
        system = [read_system(value, label) for label, value in system.items()]
    if isinstance(system, str) or not isinstance(system, Sequence):
        rows, failed = bench_all([dataset], [system], request)
        if failed:
            raise failed[0].error
        return ShownRow(rows[0])
    rows, failed = bench_all([dataset], system, request)
    if failed:
        reasons = "; ".join(f"{failure.system}: {failure.error}" for failure in failed)
        where = f"The rows of the others are in {request.out / ROWS}. " if rows else ""
        raise BackendError(f"{len(failed)} of {len(system)} systems failed. {where}{reasons}") from failed[0].error
    return ShownRows(map(ShownRow, rows))


def bench_run(dataset: Dataset, system: SystemLike, request: Request) -> tuple[ResultRow, Run]:
    """Measure a system, and read the run that was written, with the hits of every query that has any.

    A row is reused whatever its measures are.
    """
    ledger = Ledger(request.out, reuse=not request.force)
    (measurement,), _ = plan_measurements([dataset], [system], request, ledger)
    row = measurement.find_row(ledger, ())
    if not row:
        if isinstance(measurement.system, ChecksAvailability):
            measurement.system.check_available()
        with open_workers(request.on, cpus=MODEL_CPUS) as workers:
            row = measure(measurement, ledger, workers)
    return row, read_run(row["run"])


def bench_all(
    datasets: Sequence[str | Path | Dataset], systems: Sequence[SystemLike], request: Request
) -> tuple[list[ResultRow], list[Failed]]:
    """Measure all systems on all datasets; a system or a dataset that fails costs its own rows only.

    Extras, keys, models and datasets that are missing are found, and warned of, before anything is measured.

    Returns:
        The rows, in the order of datasets, query languages and systems, and what failed.
    """
    ledger = Ledger(request.out, reuse=not request.force)
    planned, failed = plan_measurements(datasets, systems, request, ledger)
    for failure in failed:
        logger.warning("%s on %s cannot run: %s", *failure)
    able: list[tuple[Measurement, ResultRow | None]] = []
    for measurement in planned:
        try:
            row = measurement.find_row(ledger, request.measures)
            if not row and isinstance(measurement.system, ChecksAvailability):
                measurement.system.check_available()
            able.append((measurement, row))
        except RusbeirError as error:
            failed.append(Failed(measurement.system.name, measurement.label, error))
            if len(planned) > 1:
                logger.warning("%s on %s cannot run: %s", measurement.system.name, measurement.label, error)
    rows: list[ResultRow] = []
    # Rows that are reused need no cluster.
    on = None if all(row for _, row in able) else request.on
    with open_workers(on, cpus=MODEL_CPUS) if on is not None else nullcontext() as workers:
        for measurement, row in able:
            try:
                # A system that is named twice has a row by now.
                row = row or measurement.find_row(ledger, request.measures)
                rows.append(row or measure(measurement, ledger, workers))
            except RusbeirError as error:
                failed.append(Failed(measurement.system.name, measurement.label, error))
    return rows, failed


def search(
    dataset: str | Path | Dataset | Iterable[Any],
    system: SystemLike = "bm25",
    queries: str | Queries | Iterable[Any] | None = None,
    *,
    engine: str = "auto",
    language: str | None = None,
    split: str | None = None,
    k: int = 10,
    out: str | Path = "results",
    budget_chars: int | None = None,
    progress: Progress = silent,
) -> Run:
    """Search a dataset's corpus with a system.

    Args:
        dataset: A registered name, a path, or a Dataset, perhaps without judgements; with a language also a table that
            `Dataset.of` takes.
        system: A system, such as "bm25".
        queries: A text or several, each its own id, query_id -> text, or a table; None for the dataset's own queries.
        engine: The engine of BM25, such as tantivy, bm25s, elasticsearch or opensearch.
        language: The language of a dataset whose card does not name it.
        split: The queries to use, such as test or dev.
        k: The most hits per query.
        out: The folder whose budget counts the characters that are sent.
        budget_chars: The characters that all runs with a budget may send to endpoints for that out.
        progress: Called as progress(stage, done, total).

    Returns:
        query_id -> {doc_id: score}, the best k hits by falling score; {} for a query without hits. A notebook shows it
        as a table.

    Raises:
        BudgetReached: The budget is used up; answers so far are kept.
        RusbeirError: The dataset or the system cannot be used; the message says why.

    Examples:
        >>> search("mini/ru", "bm25", "Кто открыл радий?", k=1)  # doctest: +SKIP
    """
    if isinstance(queries, str):
        queries = [queries]
    if isinstance(queries, Iterator):
        queries = list(queries)
    if isinstance(queries, (list, tuple, set)) and all(isinstance(text, str) for text in queries):
        queries = {text: text for text in queries}
    if language and not isinstance(dataset, (str, Path, Dataset)):
        dataset = Dataset.of(dataset, language=language)
    dataset, (resolved,) = resolve_on(dataset, [system], k, engine, language, split, progress, judged=False)
    budget = CharBudget(Path(out), budget_chars) if budget_chars is not None else None
    settings = RunSettings(progress=progress, budget=budget)
    ready = resolved.prepare(dataset.corpus, dataset.fingerprint, settings)
    texts = dataset.queries if queries is None else make_queries(queries, {})
    if queries is None and not texts:
        raise BadInput(f"{dataset.card.name} has no queries of its own: pass some, such as queries='red jacket'.")
    hits = search_without_self(ready.retriever, texts, k, dataset.card.self_suffixes)
    run = ShownRun({query_id: dict(scores) for query_id, scores in hits.items()})
    run.corpus, run.queries = dataset.corpus, texts
    return run

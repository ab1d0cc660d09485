"""Measure one system on one dataset: search, evaluate, and append the result as a row."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, overload

import orjson

from rusbeir import __version__
from rusbeir.costs import COSTS, peak_rss, reset_peak_rss
from rusbeir.datasets import (
    expand_languages,
    find_entry,
    find_parallel,
    label_dataset,
    load,
    read_run,
    take_queries,
    write_run,
)
from rusbeir.errors import BackendError, BadInput, RusbeirError, option
from rusbeir.evaluation import DEFAULT_MEASURES, Evaluation, check_measures, cluster_queries, deepest, evaluate
from rusbeir.jobs import CharBudget, Llm
from rusbeir.ledger import ROWS, Ledger, ResultRow
from rusbeir.retrieval import (
    ChecksAvailability,
    Encoder,
    LimitsDepth,
    Reranker,
    RunSettings,
    Spec,
    System,
    check_available,
    read_system,
    resolve,
    search_without_self,
)
from rusbeir.storage import atomic_file, check_writable
from rusbeir.text import digest, slug
from rusbeir.types import SELF_RETRIEVAL_REMEDY, Dataset, Progress, Queries, Retriever, Run, silent

if TYPE_CHECKING:
    from rusbeir.cluster import On, Workers

logger = logging.getLogger(__name__)

TOLERATED_ZERO_HIT = 0.05
"""The share of queries without results above which a row is warned of."""
UNCUT_DEPTH = 1000
"""The hits per query that a measure without a cut-off (AP, Bpref, RBP) needs, as runs submitted to TREC have them."""


SystemLike: TypeAlias = str | Spec | System | Retriever | Encoder | Reranker | Callable[..., Any]
"""A system, or an object of the caller's that is one: see `compose`."""


class Failed(NamedTuple):
    """A system that could not be measured on a dataset, and why."""

    system: str
    dataset: str
    error: RusbeirError


@dataclass(frozen=True, kw_only=True)
class Request:
    """How systems are to be measured, whatever they and the datasets are; `bench` says what the options mean."""

    engine: str = "auto"
    language: str | None = None
    split: str | None = None
    k: int = 100
    measures: Sequence[str] = DEFAULT_MEASURES
    out: Path = Path("results")
    force: bool = False
    accept_difference: bool = False
    budget_chars: int | None = None
    query_languages: Sequence[str] = ()
    """Every dataset is asked in each of them; "all" stands for the languages of all datasets."""
    on: On = None
    progress: Progress = silent

    def __post_init__(self) -> None:
        path = str(self.out)
        if os.fsencode(path).decode("utf-8", "replace") != path:
            raise BadInput(f"{option('out')} is {path!r}, which is not UTF-8, as paths in rows must be. Rename it.")


@dataclass(frozen=True, kw_only=True)
class _Measurement:
    """One system to be measured on one dataset, asked in one language."""

    documents: Dataset
    """The dataset with its own queries: those in other languages share its index."""
    dataset: Dataset
    """The dataset with the queries that are asked."""
    query_language: str
    system: System
    short_name: str
    """The system's, for tables; empty where it has none."""
    request: Request

    @property
    def label(self) -> str:
        card = self.documents.card
        return label_dataset(card.name, card.language, self.query_language)

    @property
    def signature(self) -> str:
        """Everything that decides the scores but for the dataset."""
        left_out = "|self:left-out" if self.documents.card.self_suffixes else ""
        return f"{self.system.signature}{left_out}|k:{self.request.k}"

    def find_row(self, ledger: Ledger, measures: Sequence[str]) -> ResultRow | None:
        row = ledger.find(self.dataset, self.query_language, self.system.name, self.signature, measures)
        if row and self.short_name and row.get("label") != self.short_name:
            # Rows are never changed; the newest one counts.
            row = row | {"label": self.short_name}
            ledger.add(row)
        return row


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
) -> ResultRow: ...


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
) -> list[ResultRow]: ...


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
) -> ResultRow | list[ResultRow]:
    """Measure a system on a dataset and append the result row to out/rows.jsonl; the row is returned.

    Of a list of systems the rows are a list. One that fails costs its own row only: its error is raised when the others
    were measured. A row that is already there with the same signature, fingerprint and measures is returned instead,
    unless force is set. A registered dataset whose counts differ from the registered ones is refused, or with
    accept_difference measured as "NAME (differs)". k is the depth of the run, which is written to out/runs.
    budget_chars is how many characters all runs that give a budget may send to endpoints for that out; BudgetReached
    is raised before more are sent, and what was answered is kept. With a query_language the queries are those of a
    parallel dataset, which has the same ids: the registered one in that language (xquad/en for xquad/ru), or the one
    whose name or path is given. BM25 analyses them as texts in the language of the documents. on is where local models
    compute: "ray" or "ray://HOST:PORT" (docs/scale.md), or workers that are open.

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
        return rows[0]
    rows, failed = bench_all([dataset], system, request)
    if failed:
        reasons = "; ".join(f"{failure.system}: {failure.error}" for failure in failed)
        where = f"The rows of the others are in {request.out / ROWS}. " if rows else ""
        raise BackendError(f"{len(failed)} of {len(system)} systems failed. {where}{reasons}") from failed[0].error
    return rows


def bench_run(dataset: Dataset, system: SystemLike, request: Request) -> tuple[ResultRow, Run]:
    """Measure a system, and read the run as it was written: hits of every query that has any.

    A row with whatever measures is reused.
    """
    ledger = Ledger(request.out, reuse=not request.force)
    (measurement,) = _plan([dataset], [system], request, ledger)
    row = measurement.find_row(ledger, ())
    if not row:
        check_available(measurement.system)
        with open_models(request.on) as workers:
            row = _measure(measurement, ledger, workers)
    return row, read_run(row["run"])


def bench_all(
    datasets: Sequence[str | Path | Dataset], systems: Sequence[SystemLike], request: Request
) -> tuple[list[ResultRow], list[Failed]]:
    """Measure all systems on all datasets; a system that fails costs its own rows only.

    Extras, keys and models that are missing are found, and warned of, before anything is measured.

    Returns:
        The rows, in the order of datasets, query languages and systems, and what failed.
    """
    ledger = Ledger(request.out, reuse=not request.force)
    planned = _plan(datasets, systems, request, ledger)
    failed: list[Failed] = []
    able: list[tuple[_Measurement, ResultRow | None]] = []
    for measurement in planned:
        try:
            row = measurement.find_row(ledger, request.measures)
            if not row:
                check_available(measurement.system)
            able.append((measurement, row))
        except RusbeirError as error:
            failed.append(Failed(measurement.system.name, measurement.label, error))
            if len(planned) > 1:
                logger.warning("%s on %s cannot run: %s", measurement.system.name, measurement.label, error)
    rows: list[ResultRow] = []
    # Rows that are there need no cluster.
    with open_models(None if all(row for _, row in able) else request.on) as workers:
        for measurement, row in able:
            try:
                # A system that is named twice has a row by now.
                row = row or measurement.find_row(ledger, request.measures)
                rows.append(row or _measure(measurement, ledger, workers))
            except RusbeirError as error:
                failed.append(Failed(measurement.system.name, measurement.label, error))
    return rows, failed


def _plan(
    datasets: Sequence[str | Path | Dataset], systems: Sequence[SystemLike], request: Request, ledger: Ledger
) -> list[_Measurement]:
    """List what is to be measured: every system on every dataset in every query language."""
    specs = [read_system(system) for system in systems]
    short_names = [spec.label if isinstance(spec, Spec) else "" for spec in specs]
    loaded = [
        resolve_on(
            dataset, specs, request.k, request.engine, request.language, request.split, request.progress,
            request.accept_difference, ledger.systems,
        )
        for dataset in datasets
    ]  # fmt: skip
    cards = [documents.card for documents, _ in loaded]
    sources = {
        card.asked_in: str(dataset)
        for dataset, card in zip(datasets, cards, strict=True)
        if not isinstance(dataset, Dataset)
    }
    languages = expand_languages(request.query_languages, cards)
    planned: list[_Measurement] = []
    for documents, resolved in loaded:
        for source in [find_parallel(documents.card, language, sources) for language in languages] or [None]:
            dataset, asked_in = documents, documents.card.asked_in
            if source:
                dataset, asked_in = take_queries(documents, source, progress=request.progress)
            planned += [
                _Measurement(
                    documents=documents,
                    dataset=dataset,
                    query_language=asked_in,
                    system=system,
                    short_name=short_name,
                    request=request,
                )
                for system, short_name in zip(resolved, short_names, strict=True)
            ]
    if across := [entry.system for entry in planned if entry.query_language != entry.documents.card.language]:
        _warn_of_words(across)
    elif languages:
        logger.warning(
            "%s: these are %s own queries.",
            "; ".join(f"{card.name} is in {card.asked_in}" for card in cards),
            "its" if len(cards) == 1 else "their",
        )
    return planned


def _measure(measurement: _Measurement, ledger: Ledger, workers: Workers | None) -> ResultRow:
    """Search, evaluate, and write the run, the scores of each query and the row."""
    documents, dataset, system = measurement.documents, measurement.dataset, measurement.system
    request, card, out = measurement.request, documents.card, measurement.request.out
    dataset.refuse_spaced_ids()
    # Before hours of encoding, whose run could not be written.
    check_writable(out)
    budget = CharBudget(out, request.budget_chars) if request.budget_chars is not None else None
    settings = RunSettings(progress=request.progress, force=request.force, budget=budget, workers=workers)
    level = reset_peak_rss()
    # All languages of queries share one index.
    ready = system.prepare(documents.corpus, documents.fingerprint, settings)
    started = time.perf_counter()
    run = search_without_self(ready.retriever, dataset.queries, request.k, card.self_suffixes)
    search_seconds = time.perf_counter() - started + settings.carried.seconds
    # Parts from the cache, and parts on workers, leave this process smaller than the system is.
    measured_here = workers is None and not settings.carried.n_parts
    growth = peak_rss() - level if level is not None and measured_here else None
    depth = min(request.k, system.depth) if isinstance(system, LimitsDepth) else request.k
    _warn_of_cut(system.name, depth, request.measures, len(dataset.corpus))
    started = time.perf_counter()
    result = evaluate(dataset.qrels, run, request.measures)
    evaluate_seconds = time.perf_counter() - started
    _warn_of_zero_hits(measurement, result)
    clusters = cluster_queries(dataset)
    run_path, per_query_path = _write_run(measurement, run, result, clusters)
    row = {
        "dataset": card.name,
        "language": card.language,
        "query_language": measurement.query_language,
        "split": card.split,
        "system": system.name,
        **({"label": measurement.short_name} if measurement.short_name else {}),
        "engine": system.engine,
        "signature": measurement.signature,
        "fingerprint": dataset.fingerprint,
        "measures": result.measures,
        "measures_answered": result.measures_answered,
        "depth": depth,
        "n_docs": len(dataset.corpus),
        "n_queries": result.n_queries,
        "n_clusters": len(set(clusters.values())),
        "n_zero_hit": result.n_zero_hit,
        "n_tied": result.n_tied,
        "n_judged_missing": _count_missing(dataset),
        "seconds": {
            "analyse": ready.analyse_seconds,
            "index": ready.index_seconds,
            **({} if settings.carried.n_unknown else {"search": search_seconds}),
            "evaluate": evaluate_seconds,
        },
        "bytes": {"index": ready.index_bytes} | ({} if growth is None else {"peak_rss": growth}),
        "costs": COSTS,
        **(_describe_spending(settings.clients) if settings.clients else {}),
        "run": str(run_path),
        "per_query": str(per_query_path),
        "version": __version__,
    }
    ledger.add(row)
    return row


def _write_run(measurement: _Measurement, run: Run, result: Evaluation, clusters: dict[str, int]) -> tuple[Path, Path]:
    """Write the run and the scores of each query; where they are."""
    card, system, out = measurement.dataset.card, measurement.system.name, measurement.request.out
    key = digest(card.name, card.split, measurement.dataset.fingerprint, system, measurement.signature, chars=10)
    stem = f"{slug(f'{card.name} {system}')}-{key}"
    run_path, per_query_path = out / "runs" / f"{stem}.run.gz", out / "per_query" / f"{stem}.json"
    write_run(run_path, run, tag=re.sub(r"\s+", "", system))
    dependent = len(set(clusters.values())) < len(clusters)
    scores = {
        # Without dependent queries the cluster of each would say nothing.
        query_id: {**values, "cluster": clusters[query_id]} if dependent else values
        for query_id, values in result.per_query.items()
    }
    with atomic_file(per_query_path) as file:
        file.write(orjson.dumps(scores))
    return run_path, per_query_path


def open_models(on: On) -> AbstractContextManager[Workers | None]:
    """The workers of a cluster for models; None where they compute here."""
    if on is None:
        return contextlib.nullcontext()
    from rusbeir.cluster import MODEL_CPUS, open_workers

    return open_workers(on, cpus=MODEL_CPUS)


def _warn_of_words(systems: Sequence[System]) -> None:
    """Warn of the systems that compare words, which queries in another language share with few documents."""
    names = dict.fromkeys(system.name for system in systems if re.search(r"\bbm25\b", system.name))
    if names:
        logger.warning(
            "%s: BM25 analyses all queries as texts in the language of the documents; of those in another language it "
            "matches only what both spell alike, such as names and numbers.", ", ".join(names),
        )  # fmt: skip


def resolve_on(
    dataset: str | Path | Dataset,
    systems: Sequence[SystemLike],
    k: int,
    engine: str,
    language: str | None,
    split: str | None,
    progress: Progress,
    accept_difference: bool = False,
    measured: Collection[str] = (),
    judged: bool = True,
) -> tuple[Dataset, list[System]]:
    """The loaded dataset, and the systems resolved for its language; a resolved system stays as it is.

    A system alone that lacks an extra, a key or a model is refused before a registered dataset is fetched, unless its
    name is in measured: a row that is there needs nothing. judged=False takes datasets without judgements, too.
    """
    if not isinstance(k, int) or k < 1:
        raise BadInput(f"k is {k!r}; ask for at least 1 hit per query.")
    if not isinstance(dataset, (str, Path, Dataset)):
        raise BadInput(
            f"A dataset is a name, a path or a rusbeir.Dataset, which {type(dataset).__name__!r} is not. "
            "rusbeir.Dataset.of makes one of your documents."
        )
    specs = [read_system(system) for system in systems]
    entry = find_entry(dataset) if isinstance(dataset, str) else None
    if entry:
        # Before it is fetched: its language may have no analyzer, and a key or an extra may be missing.
        early = [
            resolve(spec, language=entry.language, engine=engine) if isinstance(spec, Spec) else spec for spec in specs
        ]
        if len(early) == 1 and isinstance(early[0], ChecksAvailability) and early[0].name not in measured:
            early[0].check_available()
        specs = specs if entry.self_retrieval else [*early]
    if not isinstance(dataset, Dataset):
        dataset = load(
            dataset, language=language, split=split, judged=judged, accept_difference=accept_difference,
            progress=progress,
        )  # fmt: skip
    card = dataset.card
    return dataset, [
        resolve(spec, language=card.language, engine=engine, self_suffixes=card.self_suffixes)
        if isinstance(spec, Spec)
        else spec
        for spec in specs
    ]


def _describe_spending(clients: Sequence[Llm]) -> dict[str, Any]:
    """What this run sent to endpoints: tokens where they count them, money where their price is known."""
    tokens = {
        "input": sum(one.usage.input_tokens for one in clients),
        "output": sum(one.usage.output_tokens for one in clients),
    }
    cost = sum(one.spent for one in clients)
    return ({"tokens": tokens} if any(tokens.values()) else {}) | ({"cost": cost} if cost else {})


def _count_missing(dataset: Dataset) -> int:
    """The judgements of documents that the corpus lacks; warned of, since no system can find those documents.

    Also warns of queries without a text, and of queries that are documents.
    """
    if own := dataset.find_self_queries():
        logger.warning(
            "%s: %s of %s queries are documents of the corpus, such as %r. %s",
            dataset.card.name, f"{len(own):,}", f"{len(dataset.queries):,}", own[0], SELF_RETRIEVAL_REMEDY,
        )  # fmt: skip
    if blank := [query_id for query_id, text in dataset.queries.items() if not text.strip()]:
        logger.warning(
            "%s: %s of %s queries have no text, such as %r; `rusbeir datasets validate` lists them.",
            dataset.card.name, f"{len(blank):,}", f"{len(dataset.queries):,}", blank[0],
        )  # fmt: skip
    judged = Counter(doc_id for grades in dataset.qrels.values() for doc_id in grades)
    missing = 0
    for doc_id, n in judged.items():
        try:
            dataset.corpus[doc_id]
        except KeyError:
            missing += n
    if missing:
        logger.warning(
            "%s: %s of %s judgements are of documents that the corpus lacks; `rusbeir datasets validate` lists them.",
            dataset.card.name, f"{missing:,}", f"{judged.total():,}",
        )  # fmt: skip
    return missing


def _warn_of_zero_hits(measurement: _Measurement, result: Evaluation) -> None:
    """Warn where many queries have no results, of what that may mean; those of a port can be those of its source."""
    if result.n_zero_hit <= TOLERATED_ZERO_HIT * result.n_queries:
        return
    card, reason = measurement.documents.card, ""
    source = card.provenance.get("source")
    if measurement.query_language == card.language:
        reason = " Does the analyzer know the language?"
        if isinstance(source, dict) and source.get("name"):
            reason = f" If fewer have none in {source['name']}, of which this was made, the analyzer may be at fault."
    logger.warning(
        "%s: %d of %d queries of %s have no results (%.1f %%).%s",
        measurement.system.name, result.n_zero_hit, result.n_queries, measurement.label,
        100 * result.n_zero_hit / result.n_queries, reason,
    )  # fmt: skip


def _warn_of_cut(system: str, depth: int, names: Sequence[str], documents: int) -> None:
    """Warn where measures look deeper than the run is, because of k or the depth of a reranker or a fusion."""
    deeper = [name for name in names if (deepest([name]) or UNCUT_DEPTH) > depth]
    if deeper and depth < documents:
        logger.warning(
            "%s: %s would need more than the %d hits per query that this system returns. "
            "Raise %s, or depth= of the last stage.",
            system, " and ".join(deeper), depth, option("k"),
        )  # fmt: skip


def search(
    dataset: str | Path | Dataset,
    system: SystemLike = "bm25",
    queries: str | Iterable[str] | Queries | None = None,
    *,
    engine: str = "auto",
    language: str | None = None,
    split: str | None = None,
    k: int = 10,
    out: str | Path = "results",
    budget_chars: int | None = None,
    progress: Progress = silent,
) -> Run:
    """The best k hits of a system for each query, by falling score; a query without results has {}.

    queries are a text, which is its own id, a mapping query_id -> text, or None for the dataset's own queries.
    budget_chars is counted in out with what `bench` sends for that out.

    >>> search("mini/ru", "bm25", "Кто открыл радий?", k=1)  # doctest: +SKIP
    """
    if isinstance(queries, str):
        queries = [queries]
    if queries is not None and not isinstance(queries, Mapping):
        texts = list(queries)
        if wrong := [text for text in texts if not isinstance(text, str)]:
            raise BadInput(
                f"A query is a text, which {type(wrong[0]).__name__!r} is not: write texts, or {{query_id: text}}."
            )
        queries = {text: text for text in texts}
    dataset, (resolved,) = resolve_on(dataset, [system], k, engine, language, split, progress, judged=False)
    budget = CharBudget(Path(out), budget_chars) if budget_chars is not None else None
    settings = RunSettings(progress=progress, budget=budget)
    ready = resolved.prepare(dataset.corpus, dataset.fingerprint, settings)
    asked = dataset.queries if queries is None else queries
    return search_without_self(ready.retriever, asked, k, dataset.card.self_suffixes)

"""Measure one system on one dataset: search, evaluate, and append the result as a row."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, overload

import orjson

from rusbeir import __version__
from rusbeir.costs import COSTS
from rusbeir.datasets import load, read_run, write_run
from rusbeir.datasets.formats.records import read_jsonl
from rusbeir.datasets.parallel import expand_languages, find_parallel, label_dataset, take_queries
from rusbeir.datasets.registry import find_entry
from rusbeir.errors import BackendError, BadInput, RusbeirError, option
from rusbeir.evaluation import DEFAULT_MEASURES, check_measures, cluster_queries, deepest, evaluate
from rusbeir.jobs import CharBudget, Llm
from rusbeir.processes import peak_rss, reset_peak_rss
from rusbeir.retrieval import ChecksAvailability, LimitsDepth, RunSettings, Spec, System, check_names, resolve
from rusbeir.retrieval.run_cache import search_without_self
from rusbeir.retrieval.system import check_available
from rusbeir.storage import append_line, atomic_file, check_writable
from rusbeir.text import digest, slug
from rusbeir.types import SELF_RETRIEVAL_REMEDY, Card, Dataset, Progress, Queries, Run, silent

if TYPE_CHECKING:
    from rusbeir.cluster import On, Workers

ResultRow: TypeAlias = dict[str, Any]
"""A result row: one JSON object, as docs/json.md describes it."""

logger = logging.getLogger(__name__)

ROWS = "rows.jsonl"
_WORDS = ("dataset", "language", "split", "system", "engine", "signature", "fingerprint", "run", "per_query")
_ROW = {
    **dict.fromkeys(_WORDS, str), "measures": {str: float}, "n_zero_hit": int, "n_tied": int,
    "seconds": {str: float}, "bytes": {str: int}, "costs?": int, "cost?": float,
}  # fmt: skip
"""What rusbeir reads of a result row."""
_SELF = ("", "|self:left-out")
"""The part of a signature that says whether hits that are the query itself are left out."""
TOLERATED_ZERO_HIT = 0.05
"""The share of queries without results above which a row is warned of."""
UNCUT_DEPTH = 1000
"""The hits per query that a measure without a cut-off (AP, Bpref, RBP) needs, as runs submitted to TREC have them."""


SystemLike: TypeAlias = str | Spec | System


class Failed(NamedTuple):
    """A system that could not be measured on a dataset, and why."""

    system: str
    dataset: str
    error: RusbeirError


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
    system: list[SystemLike] | list[str],
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
    system: SystemLike | Sequence[SystemLike] = "bm25",
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
    names = check_measures([measures] if isinstance(measures, str) else measures)
    out = Path(out)
    if os.fsencode(out).decode("utf-8", "replace") != str(out):
        raise BadInput(f"{option('out')} is {str(out)!r}, which is not UTF-8, as paths in rows must be. Rename it.")
    if not isinstance(system, str) and isinstance(system, Sequence):
        rows, failed = bench_all(
            [dataset], system, engine=engine, language=language, split=split, k=k, measures=names, out=out, force=force,
            accept_difference=accept_difference, budget_chars=budget_chars,
            query_languages=[query_language] if query_language else [], on=on, progress=progress,
        )  # fmt: skip
        if failed:
            reasons = "; ".join(f"{one.system}: {one.error}" for one in failed)
            where = f"The rows of the others are in {out / ROWS}. " if rows else ""
            raise BackendError(f"{len(failed)} of {len(system)} systems failed. {where}{reasons}") from failed[0].error
        return rows
    named = isinstance(system, (str, Spec))
    measured = () if force else {row["system"] for row in read_rows(out)}
    documents, (resolved,) = resolve_on(
        dataset, [system], k, engine, language, split, progress, accept_difference, measured
    )
    dataset, card, asked_in = documents, documents.card, documents.card.asked_in
    if query_language and (place := find_parallel(card, query_language)):
        dataset, asked_in = take_queries(documents, place, progress=progress)
    elif query_language:
        logger.warning("%s is in %s: these are its own queries.", card.name, asked_in)
    if named and asked_in != card.language:
        _warn_of_words([resolved])
    signature = f"{resolved.signature}{_SELF[bool(card.self_suffixes)]}|k:{k}"
    if not force and (row := _present(out, dataset, asked_in, resolved.name, signature, names)):
        return row

    if isinstance(resolved, ChecksAvailability):
        resolved.check_available()
    dataset.refuse_spaced_ids()
    # Before hours of encoding, whose run could not be written.
    check_writable(out)
    budget = CharBudget(out, budget_chars) if budget_chars is not None else None
    with open_models(on) as workers:
        settings = RunSettings(progress=progress, force=force, budget=budget, workers=workers)
        level = reset_peak_rss()
        # All languages of queries share one index.
        ready = resolved.prepare(documents.corpus, documents.fingerprint, settings)
        started = time.perf_counter()
        run = search_without_self(ready.retriever, dataset.queries, k, card.self_suffixes)
        search_seconds = time.perf_counter() - started + settings.carried.seconds
        # Parts from the cache, and parts on workers, leave this process smaller than the system is.
        measured_here = workers is None and not settings.carried.n_parts
        growth = peak_rss() - level if level is not None and measured_here else None
    depth = min(k, resolved.depth) if isinstance(resolved, LimitsDepth) else k
    _warn_of_cut(resolved.name, depth, names, len(dataset.corpus))
    started = time.perf_counter()
    result = evaluate(dataset.qrels, run, names)
    evaluate_seconds = time.perf_counter() - started
    if result.n_zero_hit > TOLERATED_ZERO_HIT * result.n_queries:
        logger.warning(
            "%s: %d of %d queries of %s have no results (%.1f %%).%s",
            resolved.name, result.n_zero_hit, result.n_queries, label_dataset(card.name, card.language, asked_in),
            100 * result.n_zero_hit / result.n_queries,
            _explain_zero_hits(card) if asked_in == card.language else "",
        )  # fmt: skip

    key = digest(card.name, card.split, dataset.fingerprint, resolved.name, signature, chars=10)
    stem = f"{slug(f'{card.name} {resolved.name}')}-{key}"
    run_path, per_query_path = out / "runs" / f"{stem}.run.gz", out / "per_query" / f"{stem}.json"
    write_run(run_path, run, tag=re.sub(r"\s+", "", resolved.name))
    clusters = cluster_queries(dataset)
    n_clusters = len(set(clusters.values()))
    values = {
        # Without dependent queries the cluster of each would say nothing.
        query_id: {**scores, "cluster": clusters[query_id]} if n_clusters < len(clusters) else scores
        for query_id, scores in result.per_query.items()
    }
    with atomic_file(per_query_path) as file:
        file.write(orjson.dumps(values))
    row = {
        "dataset": card.name,
        "language": card.language,
        "query_language": asked_in,
        "split": card.split,
        "system": resolved.name,
        "engine": resolved.engine,
        "signature": signature,
        "fingerprint": dataset.fingerprint,
        "measures": result.measures,
        "measures_answered": result.measures_answered,
        "depth": depth,
        "n_docs": len(dataset.corpus),
        "n_queries": result.n_queries,
        "n_clusters": n_clusters,
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
    append_line(out / ROWS, orjson.dumps(row))
    return row


def bench_run(
    dataset: Dataset,
    system: SystemLike,
    *,
    engine: str,
    k: int,
    out: Path,
    force: bool,
    budget_chars: int | None,
    progress: Progress,
) -> tuple[ResultRow, Run]:
    """The row of a system on a dataset, and its run as it was written: hits of every query that has any.

    A row with whatever measures is reused; else the system is measured by the default ones. The arguments are those of
    `bench`.
    """
    _, (resolved,) = resolve_on(dataset, [system], k, engine, None, None, progress)
    signature = f"{resolved.signature}{_SELF[bool(dataset.card.self_suffixes)]}|k:{k}"
    row = None if force else _present(out, dataset, dataset.card.asked_in, resolved.name, signature, ())
    row = row or bench(dataset, resolved, k=k, out=out, force=force, budget_chars=budget_chars, progress=progress)
    return row, read_run(row["run"])


def bench_all(
    datasets: Sequence[str | Path | Dataset],
    systems: Sequence[SystemLike],
    *,
    engine: str,
    language: str | None,
    split: str | None,
    k: int,
    measures: Sequence[str],
    out: Path,
    force: bool,
    accept_difference: bool,
    budget_chars: int | None,
    query_languages: Sequence[str],
    on: On = None,
    progress: Progress,
) -> tuple[list[ResultRow], list[Failed]]:
    """The rows of all systems on all datasets, and what failed; the arguments are those of `bench`.

    Every dataset is asked in each of the query languages, of which "all" means those of the datasets. Extras, keys and
    models that are missing are found, and warned of, before anything is measured.
    """
    specs = [check_names(one) if isinstance(one, (str, Spec)) else one for one in systems]
    measured = () if force else {row["system"] for row in read_rows(out)}
    loaded = [
        resolve_on(one, specs, k, engine, language, split, progress, accept_difference, measured) for one in datasets
    ]
    places = {
        documents.card.asked_in: str(place)
        for place, (documents, _) in zip(datasets, loaded, strict=True)
        if not isinstance(place, Dataset)
    }
    languages = expand_languages(query_languages, [documents.card for documents, _ in loaded])
    planned: list[tuple[str, Dataset, Dataset, str, str | None, System]] = []
    for documents, resolved in loaded:
        card = documents.card
        for place in [find_parallel(card, one, places) for one in languages] or [None]:
            dataset, asked_in = (
                take_queries(documents, place, progress=progress) if place else (documents, card.asked_in)
            )
            name = label_dataset(card.name, card.language, asked_in)
            planned += [(name, documents, dataset, asked_in, place, system) for system in resolved]
    if across := [system for _, documents, _, asked_in, _, system in planned if asked_in != documents.card.language]:
        _warn_of_words(across)
    elif languages:
        logger.warning("The datasets are in %s: these are their own queries.", ", ".join(languages))
    rows: list[ResultRow] = []
    failed: list[Failed] = []
    able: list[tuple[str, Dataset, str | None, System]] = []
    for name, documents, dataset, asked_in, place, system in planned:
        try:
            signature = f"{system.signature}{_SELF[bool(dataset.card.self_suffixes)]}|k:{k}"
            if force or not _present(out, dataset, asked_in, system.name, signature, measures):
                check_available(system)
            able.append((name, documents, place, system))
        except RusbeirError as error:
            failed.append(Failed(system.name, name, error))
            if len(planned) > 1:
                logger.warning("%s on %s cannot run: %s", system.name, name, error)
    with open_models(on) as workers:
        for name, documents, place, system in able:
            try:
                rows.append(
                    bench(
                        documents, system, k=k, measures=measures, out=out, force=force, budget_chars=budget_chars,
                        query_language=place, on=workers, progress=progress,
                    )
                )  # fmt: skip
            except RusbeirError as error:
                failed.append(Failed(system.name, name, error))
    return rows, failed


def open_models(on: On) -> AbstractContextManager[Workers | None]:
    """The workers of a cluster for models; None where they compute here."""
    if on is None:
        return contextlib.nullcontext()
    from rusbeir.cluster import MODEL_CPUS, open_workers

    return open_workers(on, cpus=MODEL_CPUS)


def _warn_of_words(systems: Sequence[System]) -> None:
    """Warn of the systems that compare words, which queries in another language share with few documents."""
    if names := dict.fromkeys(one.name for one in systems if re.search(r"\bbm25\b", one.name)):
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
    if k < 1:
        raise BadInput(f"k is {k}; ask for at least 1 hit per query.")
    entry = find_entry(dataset) if isinstance(dataset, str) else None
    if entry:
        # Before it is fetched: its language may have no analyzer, and a key or an extra may be missing.
        early = [
            resolve(one, language=entry.language, engine=engine) if isinstance(one, (str, Spec)) else one
            for one in systems
        ]
        if len(early) == 1 and isinstance(early[0], ChecksAvailability) and early[0].name not in measured:
            early[0].check_available()
        systems = systems if entry.self_retrieval else early
    if not isinstance(dataset, Dataset):
        dataset = load(
            dataset, language=language, split=split, judged=judged, accept_difference=accept_difference,
            progress=progress,
        )  # fmt: skip
    card = dataset.card
    return dataset, [
        resolve(one, language=card.language, engine=engine, self_suffixes=card.self_suffixes)
        if isinstance(one, (str, Spec))
        else one
        for one in systems
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


def _explain_zero_hits(card: Card) -> str:
    """What many queries without results may mean; those of a port can be those of its source."""
    source = card.provenance.get("source")
    if isinstance(source, dict) and source.get("name"):
        return f" If fewer have none in {source['name']}, of which this was made, the analyzer may be at fault."
    return " Does the analyzer know the language?"


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
    queries: str | Queries | None = None,
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
        queries = {queries: queries}
    dataset, (resolved,) = resolve_on(dataset, [system], k, engine, language, split, progress, judged=False)
    budget = CharBudget(Path(out), budget_chars) if budget_chars is not None else None
    settings = RunSettings(progress=progress, budget=budget)
    ready = resolved.prepare(dataset.corpus, dataset.fingerprint, settings)
    asked = dataset.queries if queries is None else queries
    return search_without_self(ready.retriever, asked, k, dataset.card.self_suffixes)


def read_rows(out: str | Path = "results") -> Iterator[ResultRow]:
    """The rows of a results folder in the order they were made; none where it has no rows.

    Raises BadInput, with the line, for one that is not a result row.
    """
    path = Path(out) / ROWS
    if not path.exists():
        return
    yield from read_jsonl(path, _ROW, "Remove the line.")


def _present(
    out: Path, dataset: Dataset, asked_in: str, system: str, signature: str, names: Sequence[str]
) -> ResultRow | None:
    """The newest row of the same recipe on the same data that holds all measures and still has its run."""
    wanted = (dataset.card.name, dataset.card.split, system, signature, dataset.fingerprint, asked_in)
    for row in reversed(list(read_rows(out))):
        told = tuple(row[name] for name in ("dataset", "split", "system", "signature", "fingerprint"))
        same = wanted == (*told, row.get("query_language", row["language"]))
        # A damaged row may have a name that no file can have.
        with contextlib.suppress(OSError):
            if same and all(name in row["measures"] for name in names) and Path(row["run"]).exists():
                logger.debug("%s on %s: the row in %s is reused", system, dataset.card.name, out / ROWS)
                return row
    return None

"""Measure one system on one dataset: search, evaluate, and write the run, the scores of each query and the row."""

from __future__ import annotations

import logging
import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import orjson

from rusbeir import __version__
from rusbeir.costs import COSTS
from rusbeir.datasets import (
    write_run,
)
from rusbeir.errors import BadInput, option
from rusbeir.evaluation import Evaluation, cluster_queries, deepest, evaluate
from rusbeir.experiment.planning import Ledger, Measurement
from rusbeir.experiment.stages import DESCRIBED, describe_stage
from rusbeir.jobs import CharBudget, Llm, Spent
from rusbeir.ledger import ResultRow
from rusbeir.processes import peak_rss, reset_peak_rss
from rusbeir.retrieval import (
    ChecksJudgements,
    LimitsDepth,
    RanksPool,
    RunSettings,
    search_without_self,
)
from rusbeir.storage import atomic_file, check_writable
from rusbeir.text import digest, slug
from rusbeir.types import SELF_RETRIEVAL_REMEDY, Dataset, Retriever, Run

if TYPE_CHECKING:
    from rusbeir.cluster import Workers

logger = logging.getLogger(__name__)

TOLERATED_ZERO_HIT = 0.05
"""The share of queries without results above which a row is warned of."""

UNCUT_DEPTH = 1000
"""The hits per query that a measure without a cut-off (AP, Bpref, RBP) needs, as runs submitted to TREC have them."""


def measure(measurement: Measurement, ledger: Ledger, workers: Workers | None) -> ResultRow:
    """Search, evaluate, and write the run, the scores of each query and the row."""
    documents, dataset, system = measurement.documents, measurement.dataset, measurement.system
    request, card, out = measurement.request, documents.card, measurement.request.out
    dataset.refuse_spaced_ids()
    # Before hours of encoding, whose run could not be written.
    check_writable(out)
    budget = CharBudget(out, request.budget_chars) if request.budget_chars is not None else None
    settings = RunSettings(
        progress=request.progress, force=request.force, budget=budget, batching=request.batching, workers=workers
    )
    level = reset_peak_rss()
    ready = system.prepare(documents.corpus, documents.fingerprint, settings)
    if request.batching:
        _refuse_idle_batches(system.name, ready.retriever)
    if isinstance(system, ChecksJudgements):
        # A system that searches other documents than the corpus looks for the judged ones there.
        system.check_judgements(dataset.qrels)
    started = time.perf_counter()
    run = search_without_self(ready.retriever, dataset.queries, request.k, card.self_suffixes)
    search_seconds = time.perf_counter() - started + settings.carried.seconds
    # Parts from the cache, and parts on workers, leave this process smaller than the system is.
    measured_here = workers is None and not settings.carried.n_parts
    growth = peak_rss() - level if level is not None and measured_here else None
    depth = min(request.k, system.depth) if isinstance(system, LimitsDepth) else request.k
    deeper = [name for name in request.measures if (deepest([name]) or UNCUT_DEPTH) > depth]
    if deeper and depth < len(dataset.corpus):
        _warn_of_cut(system.name, depth, deeper)
    started = time.perf_counter()
    result = evaluate(dataset.qrels, run, request.measures)
    evaluate_seconds = time.perf_counter() - started
    if result.n_zero_hit > TOLERATED_ZERO_HIT * result.n_queries:
        _warn_of_zero_hits(measurement, result)
    clusters = cluster_queries(dataset)
    row = {
        "dataset": card.name, "language": card.language, "query_language": measurement.query_language,
        "split": card.split,
        "system": system.name,
        **({"label": measurement.short_name} if measurement.short_name else {}),
        "engine": system.engine, "signature": measurement.signature, "fingerprint": dataset.fingerprint,
        "measures": result.measures,
        "measures_answered": result.measures_answered,
        **(describe_stage(measurement, ready.retriever, run) if isinstance(ready.retriever, DESCRIBED) else {}),
        "depth": depth,
        "n_docs": len(dataset.corpus), "n_queries": result.n_queries, "n_clusters": len(set(clusters.values())),
        "n_zero_hit": result.n_zero_hit, "n_tied": result.n_tied,
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
        **_write_run(measurement, run, result, clusters),
        "version": __version__,
    }  # fmt: skip
    ledger.add(row)
    return row


def _refuse_idle_batches(system: str, retriever: Retriever) -> None:
    if not isinstance(retriever, RanksPool):
        raise BadInput(
            f"{system} asks no language model, so nothing is sent in batches. Leave their options out, or rerank by "
            "one: bm25 >> rerank(MODEL,runtime=llm)."
        )


def _write_run(measurement: Measurement, run: Run, result: Evaluation, clusters: dict[str, int]) -> dict[str, str]:
    """Write the run and the scores of each query, and return the paths of both as a part of the row."""
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
    return {"run": str(run_path), "per_query": str(per_query_path)}


def _describe_spending(clients: Sequence[Llm]) -> dict[str, Any]:
    """Describe what this run sent to endpoints, as rows have it; {} where it sent nothing."""
    spent = Spent.sum(client.meter.spent for client in clients)
    if not spent.requests:
        return {}
    tokens = {"tokens": spent.tokens} if any(spent.tokens.values()) else {}
    return {**tokens, **({"cost": spent.cost} if spent.cost else {}), "spent": asdict(spent)}


def _count_missing(dataset: Dataset) -> int:
    """Count the judgements of documents that the corpus lacks, and warn of them: no system can find those documents.

    Also warn of queries without a text, and of queries that are documents.
    """
    if copies := dataset.find_self_queries():
        logger.warning(
            "%s: %s of %s queries are documents of the corpus, such as %r. %s",
            dataset.card.name, f"{len(copies):,}", f"{len(dataset.queries):,}", copies[0], SELF_RETRIEVAL_REMEDY,
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


def _warn_of_zero_hits(measurement: Measurement, result: Evaluation) -> None:
    """Warn that many queries have no results, and say what that may mean; in a port the cause can be its source."""
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


def _warn_of_cut(system: str, depth: int, deeper: Sequence[str]) -> None:
    """Warn that measures look deeper than the run is, because of k or the depth of a reranker or a fusion."""
    logger.warning(
        "%s: %s would need more than the %d hits per query that this system returns. "
        "Raise %s, or depth= of the last stage.",
        system, " and ".join(deeper), depth, option("k"),
    )  # fmt: skip

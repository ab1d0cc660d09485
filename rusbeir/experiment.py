"""One dataset, one system, one row: search, evaluate, and keep what was found with the recipe that made it."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import re
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import orjson

from rusbeir import __version__
from rusbeir.datasets import load, write_run
from rusbeir.errors import BadInput
from rusbeir.evaluation import DEFAULT_MEASURES, check_measures, evaluate
from rusbeir.jobs import budget
from rusbeir.retrieval import resolve
from rusbeir.retrieval.run_cache import KeptRuns, search_without_self
from rusbeir.retrieval.system import RunSettings, System
from rusbeir.storage import append_line, atomic_file
from rusbeir.types import Card, Dataset, Progress, silent

Row: TypeAlias = dict[str, Any]
"""A result row: one JSON object, as docs/json.md describes it."""

logger = logging.getLogger(__name__)

ROWS = "rows.jsonl"


def bench(
    dataset: str | Path | Dataset,
    system: str = "bm25",
    *,
    engine: str = "auto",
    language: str | None = None,
    split: str | None = None,
    k: int = 100,
    measures: Sequence[str] = DEFAULT_MEASURES,
    out: Path = Path("results"),
    force: bool = False,
    budget_chars: int | None = None,
    progress: Progress = silent,
) -> Row:
    """The result row of a system on a dataset, appended to out/rows.jsonl with its run beside it.

    A row that is already there with the same signature, fingerprint and measures is returned instead,
    unless force is set. k is the depth of the run. budget_chars is how many characters all runs that give a budget may
    send to endpoints for that out; BudgetReached is raised before more are sent, and what was answered is kept.
    """
    names = check_measures(measures)
    if k < 1:
        raise BadInput(f"k is {k}; ask for at least 1 hit a query.")
    if not isinstance(dataset, Dataset):
        dataset = load(dataset, language=language, split=split, progress=progress)
    card = dataset.card
    resolved = resolve(system, language=card.language, engine=engine, self_suffixes=card.self_suffixes)
    signature = f"{resolved.signature}|k:{k}"
    if not force and (row := _present(out, card, resolved.name, signature, names)):
        return row

    with budget.at_most(budget_chars, out):
        ready = resolved.prepare(dataset.corpus, card.fingerprint, RunSettings(progress=progress, force=force))
        started = time.perf_counter()
        run = search_without_self(ready.retriever, dataset.queries, k, card.self_suffixes)
        search_seconds = time.perf_counter() - started
    # A fusion or a reranker over this system finds its hits here.
    kept = KeptRuns(signature=resolved.signature, fingerprint=card.fingerprint, self_suffixes=card.self_suffixes)
    kept.put(dataset.queries, k, run)
    _warn_of_cut(resolved, k, names, len(dataset.corpus))
    started = time.perf_counter()
    result = evaluate(dataset.qrels, run, names)
    evaluate_seconds = time.perf_counter() - started

    stem = _stem(card, resolved.name, signature)
    run_path, per_query_path = out / "runs" / f"{stem}.run.gz", out / "per_query" / f"{stem}.json"
    write_run(run_path, run, tag=re.sub(r"\s+", "", resolved.name))
    with atomic_file(per_query_path) as file:
        file.write(orjson.dumps(result.per_query))
    row = {
        "dataset": card.name,
        "language": card.language,
        "split": card.split,
        "system": resolved.name,
        "engine": resolved.engine,
        "signature": signature,
        "fingerprint": card.fingerprint,
        "measures": result.measures,
        "measures_answered": result.measures_answered,
        "n_docs": len(dataset.corpus),
        "n_queries": result.n_queries,
        "n_zero_hit": result.n_zero_hit,
        "n_tied": result.n_tied,
        "seconds": {
            "analyse": ready.analyse_seconds,
            "index": ready.index_seconds,
            "search": search_seconds,
            "evaluate": evaluate_seconds,
        },
        "bytes": {"index": ready.index_bytes, "peak_rss": _peak_rss()},
        "run": str(run_path),
        "per_query": str(per_query_path),
        "version": __version__,
    }
    append_line(out / ROWS, orjson.dumps(row))
    return row


def _warn_of_cut(system: System, k: int, names: Sequence[str], documents: int) -> None:
    """Say so where measures look deeper than the run goes, by k or by the depth of a reranker or a fusion."""
    depth = min(k, getattr(system, "depth", k))
    deeper = [name for name in names if (cut := re.search(r"@(\d+)$", name)) and int(cut[1]) > depth]
    if deeper and depth < documents:
        logger.warning(
            "%s: what %s would count below rank %d is cut off. Raise -k, or the depth of the last stage.",
            system.name, " and ".join(deeper), depth,
        )  # fmt: skip


def read_rows(out: Path) -> Iterator[Row]:
    """The rows of a results folder in the order they were made; none where it has no rows."""
    path = out / ROWS
    if not path.exists():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                yield orjson.loads(line)
            except orjson.JSONDecodeError as error:
                raise BadInput(f"{path}:{number}: not a result row ({error}). Remove the line.") from None


def _present(out: Path, card: Card, system: str, signature: str, names: Sequence[str]) -> Row | None:
    """The newest row of the same recipe on the same data that holds all measures and still has its run."""
    for row in reversed(list(read_rows(out))):
        same = (row["dataset"], row["split"], row["system"], row["signature"], row["fingerprint"]) == (
            card.name,
            card.split,
            system,
            signature,
            card.fingerprint,
        )
        if same and all(name in row["measures"] for name in names) and Path(row["run"]).exists():
            return row
    return None


def _stem(card: Card, system: str, signature: str) -> str:
    """A readable file name that is one recipe's own."""
    recipe = "\n".join((card.name, card.split, card.fingerprint, system, signature))
    slug = re.sub(r"[^a-z0-9.]+", "-", f"{card.name} {system}".lower()).strip("-.")[:80]
    return f"{slug}-{hashlib.sha256(recipe.encode()).hexdigest()[:10]}"


def _peak_rss() -> int:
    """Bytes of the largest resident size so far of this process."""
    # Linux hands getrusage's figure on from the process that started this one; /proc knows this one's own.
    with contextlib.suppress(OSError):
        if own := re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text()):
            return 1024 * int(own[1])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024

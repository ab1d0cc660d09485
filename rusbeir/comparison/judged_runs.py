"""Runs of other programs, scored against judgements, as results that compare with those of `bench`."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import orjson

from rusbeir import __version__
from rusbeir.comparison.results import Result
from rusbeir.costs import COSTS
from rusbeir.datasets import find_entry, load, load_judgements, read_judgement_file, read_run, write_run
from rusbeir.errors import BadInput
from rusbeir.evaluation import Evaluation, cluster_queries, evaluate
from rusbeir.experiment import Ledger
from rusbeir.ledger import ResultRow
from rusbeir.retrieval import drop_self_hits
from rusbeir.storage import atomic_file
from rusbeir.text import digest, slug
from rusbeir.types import Card, Dataset, Progress, Qrels, Run, fingerprint, silent

RunLike: TypeAlias = Run | str | Path
QrelsLike: TypeAlias = Dataset | Qrels | str | Path

ENGINE = "run"
"""What rows of runs have in place of an engine: nobody knows what made them."""
_ENDINGS = {".gz", ".zst", ".run", ".trec", ".txt", ".res", ".csv", ".tsv", ".json", ".qrels"}

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Judged:
    """Judgements that runs are scored against, with the texts where these are known."""

    source: str
    """Where the judgements are from, for messages."""
    card: Card
    fingerprint: str
    qrels: Qrels
    dataset: Dataset | None = None
    """The documents and queries; None where only the judgements are known."""


@dataclass(frozen=True, kw_only=True)
class ScoredRun:
    """A run of another program with its scores."""

    row: ResultRow
    run: Run
    evaluation: Evaluation
    judged: Judged

    def to_result(self, measure: str) -> Result:
        """Turn it into a result that compares with others by that measure."""
        clusters = cluster_queries(self.judged.dataset or self.judged.qrels)
        return Result(
            folder=Path(),
            label=str(self.row["system"]),
            row=self.row,
            scores={query_id: values[measure] for query_id, values in self.evaluation.per_query.items()},
            clusters=clusters if len(set(clusters.values())) < len(clusters) else None,
            run=self.run,
            source=self.judged.dataset,
        )

    def write(self, out: Path, ledger: Ledger) -> ResultRow:
        """Write the run, the scores of each query and the row, as `bench` does."""
        row = self.row
        name = slug(f"{row['dataset']} {row['system']}")
        stem = f"{name}-{digest(row['split'], row['fingerprint'], row['signature'], chars=10)}"
        paths = {"run": out / "runs" / f"{stem}.run.gz", "per_query": out / "per_query" / f"{stem}.json"}
        write_run(paths["run"], self.run, tag=slug(str(row["system"])) or ENGINE)
        clusters = self.to_result(next(iter(self.evaluation.measures))).clusters or {}
        scores = {
            query_id: {**values, "cluster": clusters[query_id]} if clusters else values
            for query_id, values in self.evaluation.per_query.items()
        }
        with atomic_file(paths["per_query"]) as file:
            file.write(orjson.dumps(scores))
        row = row | {name: str(path) for name, path in paths.items()}
        ledger.add(row)
        return row


def open_judged(
    qrels: QrelsLike,
    *,
    corpus: str | Path | None = None,
    language: str | None = None,
    split: str | None = None,
    texts: bool = True,
    progress: Progress = silent,
) -> Judged:
    """Read judgements from a file, from a mapping, or with the texts of a dataset.

    corpus names the dataset whose documents and queries a file of judgements is about. Without texts, the documents of
    a dataset are not read.
    """
    source = (
        "the judgements"
        if isinstance(qrels, Mapping)
        else qrels.card.name
        if isinstance(qrels, Dataset)
        else str(qrels)
    )
    if isinstance(qrels, str | Path) and not _is_file(qrels):
        if not texts:
            grades, suffixes = load_judgements(qrels, language=language, split=split, progress=progress)
            card = Card(name=source, language=language or "und", split=split or "test", self_suffixes=suffixes)
            return Judged(source=source, card=card, fingerprint="", qrels=grades)
        qrels = load(qrels, language=language, split=split, progress=progress)
    if isinstance(qrels, Dataset):
        return Judged(source=source, card=qrels.card, fingerprint=qrels.fingerprint, qrels=qrels.qrels, dataset=qrels)
    name = "qrels" if isinstance(qrels, Mapping) else _name_file(Path(qrels))
    grades = qrels if isinstance(qrels, Mapping) else read_judgement_file(Path(qrels), {})
    if corpus is None:
        card = Card(name=name, language=language or "und", split=split or "test")
        return Judged(source=source, card=card, fingerprint=fingerprint("", {}, grades), qrels=grades)
    about = load(corpus, language=language, judged=False, progress=progress)
    unknown = [query_id for query_id in grades if query_id not in about.queries]
    if unknown:
        raise BadInput(
            f"{corpus} has no text of {len(unknown):,} of the {len(grades):,} judged queries, such as {unknown[0]!r}. "
            "Name the corpus that the judgements are about."
        )
    queries = {query_id: about.queries[query_id] for query_id in grades}
    dataset = replace(about, queries=queries, qrels=grades, card=replace(about.card, split=split or about.card.split))
    return Judged(source=source, card=dataset.card, fingerprint=dataset.fingerprint, qrels=grades, dataset=dataset)


def score_runs(
    runs: Mapping[str, RunLike] | Iterable[str | Path], judged: Judged, measures: Sequence[str]
) -> list[ScoredRun]:
    """Score runs by the names of their systems, or run files, whose names are the systems'.

    Raises BadInput for a run that shares no query with the judgements; warns of one without a judged document.
    """
    named = runs if isinstance(runs, Mapping) else _name_files([Path(path) for path in runs])
    return [_score(name, run, judged, measures) for name, run in named.items()]


def _score(name: str, source: RunLike, judged: Judged, measures: Sequence[str]) -> ScoredRun:
    run = source if isinstance(source, Mapping) else read_run(source)
    run = drop_self_hits(run, judged.card.self_suffixes)
    _compare_ids(name if isinstance(source, Mapping) else str(source), run, judged)
    started = time.perf_counter()
    result = evaluate(judged.qrels, run, measures)
    card = judged.card
    row: dict[str, Any] = {
        "dataset": card.name,
        "language": card.language,
        "query_language": card.asked_in,
        "split": card.split,
        "system": name,
        "engine": ENGINE,
        "signature": f"run:{digest(*(f'{query_id} {hits}' for query_id, hits in sorted(run.items())))[:16]}",
        "fingerprint": judged.fingerprint,
        "measures": result.measures,
        "measures_answered": result.measures_answered,
        "n_queries": result.n_queries,
        "n_clusters": len(set(cluster_queries(judged.dataset or judged.qrels).values())),
        "n_zero_hit": result.n_zero_hit,
        "n_tied": result.n_tied,
        "seconds": {"evaluate": time.perf_counter() - started},
        "bytes": {},
        "costs": COSTS,
        "run": "",
        "per_query": "",
        "version": __version__,
    }
    return ScoredRun(row=row, run=run, evaluation=result, judged=judged)


def _compare_ids(source: str, run: Run, judged: Judged) -> None:
    """Refuse a run that shares no query with the judgements, and warn of one that shares no document."""
    if not judged.qrels.keys() & run.keys():
        raise BadInput(f"{source} and {judged.source} have no query in common. Are they of the same split?")
    documents = {doc_id for grades in judged.qrels.values() for doc_id in grades}
    if all(documents.isdisjoint(hits) for hits in run.values()):
        logger.warning("%s and %s have no document in common. Are they of the same corpus?", source, judged.source)


def _is_file(qrels: str | Path) -> bool:
    """Return whether this is a file of judgements, and not a dataset."""
    path = Path(qrels)
    return path.suffix != ".zip" and (path.is_file() or not (path.is_dir() or find_entry(str(qrels))))


def _name_file(path: Path) -> str:
    """A file's name without the endings of its format."""
    while path.suffix.lower() in _ENDINGS and path.stem:
        path = path.with_suffix("")
    return path.name


def _name_files(paths: Sequence[Path]) -> dict[str, RunLike]:
    """The files by the names of their systems; equal names get the name of their folder, too."""
    names = [_name_file(path) for path in paths]
    if len(set(names)) < len(names):
        names = [f"{path.parent.name}/{name}" for name, path in zip(names, paths, strict=True)]
    if len(set(names)) < len(names):
        raise BadInput("Two runs have the same name. Name the systems by the names of their files.")
    return dict(zip(names, paths, strict=True))

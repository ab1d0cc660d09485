"""rusbeir's systems inside PyTerrier's pipelines and experiments. Needs the extra pyterrier; no Java."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rusbeir.errors import BadInput, require
from rusbeir.experiment import SystemLike, resolve_on
from rusbeir.retrieval import RunSettings, search_without_self
from rusbeir.types import Dataset, silent


def transformer(
    dataset: str | Path | Dataset,
    system: SystemLike = "bm25",
    *,
    engine: str = "auto",
    language: str | None = None,
    split: str | None = None,
    k: int = 1000,
) -> Any:
    """Make a PyTerrier transformer of a system: from queries (qid, query) to their hits (docno, score, rank from 0).

    The corpus of the dataset is indexed now.

    Args:
        dataset: A registered name, a path or a loaded dataset, whose corpus is searched.
        system: The system that searches.
        engine: As in `rusbeir.bench`.
        language: The language of a path without a card.
        split: The split of a path.
        k: Hits per query.

    Returns:
        A transformer, which can be combined with others by `+`, `>>` and so on.

    Raises:
        MissingExtra: python-terrier is not installed.
        RusbeirError: Whatever `rusbeir.bench` raises for the dataset and the system.

    Examples:
        >>> pt.Experiment([transformer("mini/ru")], topics, qrels, ["nDCG@10"])  # doctest: +SKIP
    """
    pt = require("pyterrier", "rusbeir.pyterrier", "pyterrier")
    dataset, (resolved,) = resolve_on(dataset, [system], k, engine, language, split, silent)
    ready = resolved.prepare(dataset.corpus, dataset.fingerprint, RunSettings())

    def retrieve(queries: Any) -> Any:
        if missing := [name for name in ("qid", "query") if name not in queries.columns]:
            raise BadInput(f"The queries have no column {' and no column '.join(missing)}.")
        texts = dict(zip(queries["qid"], queries["query"], strict=True))
        run = search_without_self(ready.retriever, texts, k, dataset.card.self_suffixes)
        hits = [
            (query_id, doc_id, score, rank)
            for query_id, scores in run.items()
            for rank, (doc_id, score) in enumerate(scores.items(), pt.model.FIRST_RANK)
        ]
        return queries.merge(type(queries)(hits, columns=["qid", "docno", "score", "rank"]), on="qid")

    return pt.apply.generic(retrieve)

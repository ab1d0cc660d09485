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
    """A PyTerrier transformer: from queries (qid, query) to the best k hits of each (docno, score, rank from 0).

    The corpus of the dataset is indexed now. Raises what bench raises, and MissingExtra without python-terrier.

    >>> pt.Experiment([transformer("mini/ru")], topics, qrels, ["nDCG@10"])  # doctest: +SKIP
    """
    pt = require("pyterrier", "rusbeir.pyterrier", "pyterrier")
    dataset, (resolved,) = resolve_on(dataset, [system], k, engine, language, split, silent)
    ready = resolved.prepare(dataset.corpus, dataset.fingerprint, RunSettings())

    def retrieve(queries: Any) -> Any:
        if missing := [name for name in ("qid", "query") if name not in queries.columns]:
            raise BadInput(f"The queries have no column {' and no column '.join(missing)}.")
        asked = dict(zip(queries["qid"], queries["query"], strict=True))
        run = search_without_self(ready.retriever, asked, k, dataset.card.self_suffixes)
        hits = [
            (query_id, doc_id, score, rank)
            for query_id, found in run.items()
            for rank, (doc_id, score) in enumerate(found.items(), pt.model.FIRST_RANK)
        ]
        return queries.merge(type(queries)(hits, columns=["qid", "docno", "score", "rank"]), on="qid")

    return pt.apply.generic(retrieve)

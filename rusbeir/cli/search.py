"""`rusbeir search`: show the best hits of a query."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rusbeir.cli import options, output
from rusbeir.text import shorten
from rusbeir.types import join_title


def search(
    dataset: options.DatasetName,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="The text to search for.")],
    system: options.System = "bm25",
    engine: options.Engine = "auto",
    es_url: options.EsUrl = None,
    lang: options.Lang = None,
    split: options.Split = None,
    k: options.Depth = 10,
    out: options.CountedIn = Path("results"),
    budget_chars: options.EndpointChars = None,
    analyzers: options.Analyzers = None,
    as_json: options.Json = False,
) -> None:
    """Search a dataset's corpus for one query.

    Example: rusbeir search xquad/ru "Кто выиграл Супербоул 50?" -k 3
    """
    from rusbeir.experiment import resolve_on
    from rusbeir.jobs import CharBudget
    from rusbeir.retrieval import RunSettings

    engine = options.engine_at(engine, es_url)
    with output.progress() as progress:
        settings = RunSettings(progress=progress, budget=CharBudget(out, budget_chars) if budget_chars else None)
        loaded, (resolved,) = resolve_on(dataset, [system], k, engine, lang, split, progress, judged=False)
        ready = resolved.prepare(loaded.corpus, loaded.fingerprint, settings)
    scores = ready.retriever.search({"q": query}, k)["q"]
    hits = [
        {"rank": rank, "score": score, **loaded.corpus[doc_id]._asdict()}
        for rank, (doc_id, score) in enumerate(scores.items(), start=1)
    ]
    if as_json:
        output.print_json({"query": query, "signature": resolved.signature, "hits": hits})
        return
    output.print_table(
        ["rank", "score", "document", "text"],
        [
            [
                str(hit["rank"]),
                f"{hit['score']:.3f}",
                hit["doc_id"],
                shorten(join_title(hit["title"], hit["text"]), 160),
            ]
            for hit in hits
        ],
        right=["rank", "score"],
    )
    output.note(resolved.signature)

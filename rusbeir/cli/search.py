"""`rusbeir search`: show the best hits of a query, or of one query after the other."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rusbeir.cli import options, output

if TYPE_CHECKING:
    from rusbeir.cli.hits import Highlighter, Searcher

_HELP = "Type a query; ?2 explains the second hit; an empty line ends."


def search(
    dataset: options.DatasetName,
    query: Annotated[
        str | None,
        typer.Argument(metavar="[QUERY]", help="The text to search for; without it, a prompt, or lines of stdin."),
    ] = None,
    system: options.System = "bm25",
    engine: options.Engine = "auto",
    es_url: options.EsUrl = None,
    lang: options.Lang = None,
    split: options.Split = None,
    columns: options.Columns = None,
    k: options.Depth = 10,
    out: options.CountedIn = Path("results"),
    budget_chars: options.EndpointChars = None,
    analyzers: options.Analyzers = None,
    as_json: options.Json = False,
) -> None:
    """Search the documents of a dataset or of a table; judgements are not needed.

    Without a query, a prompt asks for one after the other, and --json reads one from each line of stdin. This is for
    looking at hits, not for serving them.

    Example: rusbeir search xquad/ru "Кто выиграл Супербоул 50?" -k 3
    """
    from rusbeir.cli.documents import resolve_documents
    from rusbeir.cli.hits import Highlighter, Searcher
    from rusbeir.jobs import CharBudget
    from rusbeir.retrieval import RunSettings

    engine = options.engine_at(engine, es_url)
    with output.progress() as progress:
        settings = RunSettings(progress=progress, budget=CharBudget(out, budget_chars) if budget_chars else None)
        loaded, resolved = resolve_documents(
            dataset, system, k=k, engine=engine, language=lang, split=split, columns=columns, progress=progress
        )
        prepared = resolved.prepare(loaded.corpus, loaded.fingerprint, settings)
    searcher = Searcher(dataset=loaded, system=resolved, prepared=prepared, k=k)
    if as_json:
        texts = [line.strip() for line in sys.stdin if line.strip()] if query is None else [query]
        results = [{"query": text, "signature": resolved.signature, "hits": searcher.search(text)} for text in texts]
        output.print_json({"queries": results} if query is None else results[0])
        return
    highlighter = Highlighter(resolved, loaded.card.language)
    if query is not None:
        _print_hits(searcher, highlighter, query)
        output.note(resolved.signature)
        return
    output.note(f"{len(loaded.corpus):,} documents, {resolved.name}. {_HELP}")
    _note_serving(loaded.card.asked_in)
    _run_prompt(searcher, highlighter)


def _run_prompt(searcher: Searcher, highlighter: Highlighter) -> None:
    """Ask for queries until there are no more, and explain hits of the last one on demand."""
    last, hits = "", list[dict[str, Any]]()
    while line := _read_line():
        if line.startswith("?"):
            rank = int(line[1:]) if line[1:].strip().isdigit() else 0
            if 1 <= rank <= len(hits):
                _print_explanation(searcher, last, hits[rank - 1])
            else:
                output.note(f"No hit {line[1:].strip()!r} to explain. {_HELP}")
            continue
        last, hits = line, _print_hits(searcher, highlighter, line)


def _read_line() -> str:
    try:
        # Python's own prompt has a history; off a terminal it would be a part of the result.
        return input("search> ").strip() if sys.stdin.isatty() else sys.stdin.readline().strip()
    except EOFError:
        return ""


def _print_hits(searcher: Searcher, highlighter: Highlighter, query: str) -> list[dict[str, Any]]:
    hits = searcher.search(query)
    if not hits:
        output.note(f"No hits for {query!r}.")
        return hits
    rows = []
    for hit in hits:
        marked = highlighter.mark(query, hit["title"], hit["text"], hit.get("language", ""))
        rows.append([str(hit["rank"]), f"{hit['score']:.3f}", hit["doc_id"], marked])
    output.print_table(["rank", "score", "document", "text"], rows, right=["rank", "score"])
    return hits


def _print_explanation(searcher: Searcher, query: str, hit: dict[str, Any]) -> None:
    """Print what the score of a hit would be without each word of the query."""
    rows = []
    for word, score in searcher.explain(query, hit["doc_id"]):
        without = "not found" if score is None else f"{score:.3f}"
        rows.append([word, without, f"{hit['score'] - (score or 0.0):+.3f}"])
    output.print_table(["word", "score without it", "it adds"], rows, right=["score without it", "it adds"])
    output.note(f"{hit['doc_id']}: {hit['score']:.3f} with all words, by {searcher.system.signature}")


def _note_serving(language: str) -> None:
    """Say that the prompt is for looking, and what analyses the same way on a server."""
    from rusbeir.analysis import language_files

    if language in language_files():
        output.note(
            f"This is for looking at hits. To serve them, `rusbeir languages mapping {language}` prints an index of "
            f"Elasticsearch's own analyzer (es_mappings/{language}.json), and with --client one of these terms."
        )

"""`rusbeir index`: build a dataset's index ahead of time."""

from __future__ import annotations

from pathlib import Path

from rusbeir.cli import options, output


def index(
    dataset: options.DatasetName,
    system: options.System = "bm25",
    engine: options.Engine = "auto",
    es_url: options.EsUrl = None,
    lang: options.Lang = None,
    split: options.Split = None,
    columns: options.Columns = None,
    out: options.CountedIn = Path("results"),
    budget_chars: options.EndpointChars = None,
    on: options.On = None,
    analyzers: options.Analyzers = None,
    as_json: options.Json = False,
) -> None:
    """Build the index of a system on a dataset or a table, or find it already built; judgements are not needed.

    Example: rusbeir index xquad/ru --system 'bm25(profile=rusbeir-paper)'
    """
    from rusbeir.cli.documents import resolve_documents
    from rusbeir.cluster import MODEL_CPUS, open_workers
    from rusbeir.jobs import CharBudget
    from rusbeir.retrieval import RunSettings

    engine = options.engine_at(engine, es_url)
    budget = CharBudget(out, budget_chars) if budget_chars else None
    with output.progress() as progress, open_workers(on, cpus=MODEL_CPUS) as workers:
        settings = RunSettings(progress=progress, budget=budget, workers=workers)
        loaded, resolved = resolve_documents(
            dataset, system, k=1, engine=engine, language=lang, split=split, columns=columns, progress=progress
        )
        ready = resolved.prepare(loaded.corpus, loaded.fingerprint, settings)
    document = {
        "dataset": loaded.card.name,
        "system": resolved.name,
        "engine": resolved.engine,
        "signature": resolved.signature,
        "path": str(ready.path),
        "n_docs": len(loaded.corpus),
        "seconds": {"analyse": ready.analyse_seconds, "index": ready.index_seconds},
        "bytes": {"index": ready.index_bytes},
    }
    if as_json:
        output.print_json(document)
        return
    output.note(f"{len(loaded.corpus):,} documents, {ready.index_bytes:,} bytes: {resolved.signature}")
    output.echo(ready.path)

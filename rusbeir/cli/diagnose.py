"""`rusbeir diagnose`: what an average over queries hides."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rusbeir.cli import options, output
from rusbeir.evaluation import FEW_PERMUTATIONS, FEW_SAMPLES, SAMPLES

if TYPE_CHECKING:
    from rusbeir.diagnostics import LanguagePreference, PositionBias, QuerySet

app = typer.Typer(no_args_is_help=True, help="Diagnose systems: what an average over queries hides.")


@app.command("source-bias")
def source_bias(
    datasets: Annotated[
        list[str],
        typer.Argument(
            metavar="DATASET...",
            help="Names such as cocktail/nfcorpus, or paths in Cocktail's layout.",
            autocompletion=options.complete_datasets,
        ),
    ],
    system: options.Systems = None,
    engine: options.Engine = "auto",
    es_url: options.EsUrl = None,
    lang: options.Lang = None,
    split: Annotated[str | None, typer.Option("--split", help="Split of a path, such as test; all: each.")] = None,
    k: options.Depth = 100,
    cutoff: Annotated[
        list[int] | None, typer.Option("--cutoff", min=1, help="Cut-off of nDCG; repeatable; default: 1, 3 and 5.")
    ] = None,
    alone: Annotated[
        bool, typer.Option("--alone/--no-alone", help="Also search the corpus of each source alone.")
    ] = True,
    samples: Annotated[int, typer.Option("--samples", min=100, help="Bootstrap samples of the queries.")] = SAMPLES,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the samples.")] = 0,
    out: options.Out = Path("results"),
    budget_chars: options.EndpointChars = None,
    force: options.Force = False,
    analyzers: options.Analyzers = None,
    as_json: options.Json = False,
) -> None:
    """Tell whether systems prefer texts of one source, such as those that a language model wrote.

    Example: rusbeir diagnose source-bias cocktail/nfcorpus --system bm25
    """
    from rusbeir.diagnostics import CUTOFFS, average_source_bias, diagnose_source_bias, load_collection, save_diagnosis

    diagnoses, paths = [], []
    with output.progress() as progress:
        collections = [load_collection(name, language=lang, split=split, progress=progress) for name in datasets]
        for spec in system or ["bm25"]:
            of_system = []
            for collection in collections:
                of_system.append(
                    diagnose_source_bias(
                        collection, spec, engine=options.engine_at(engine, es_url), k=k, cutoffs=cutoff or CUTOFFS,
                        alone=alone, samples=samples, seed=seed, out=out, force=force, budget_chars=budget_chars,
                        progress=progress,
                    )
                )  # fmt: skip
                paths.append(save_diagnosis(of_system[-1].to_dict(), out))
            if len(of_system) > 1:
                of_system.append(average_source_bias(of_system))
                paths.append(save_diagnosis(of_system[-1].to_dict(), out))
            diagnoses += of_system
    if as_json:
        output.print_json({"diagnoses": [diagnosis.to_dict() for diagnosis in diagnoses]})
        return
    for diagnosis in diagnoses:
        output.echo(f"{diagnosis.dataset}, {diagnosis.system}")
        for query_set in diagnosis.query_sets:
            _print_scores(query_set)
        for delta in diagnosis.deltas:
            output.echo(delta.sentence)
    output.note(f"Diagnoses: {', '.join(map(str, paths))}")


@app.command("saliency")
def saliency(
    dataset: options.DatasetName,
    model: Annotated[
        str,
        typer.Option(
            "--model",
            help="A model as in dense(MODEL): a name, a folder or a repository; or 'dense(MODEL,max_tokens=2048)'.",
        ),
    ],
    pairs: Annotated[int, typer.Option("--pairs", min=1, help="Pairs of a query and a relevant document.")] = 200,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the pairs and of the intervals.")] = 0,
    min_tokens: Annotated[
        int, typer.Option("--min-tokens", min=0, help="Only documents of this many tokens; PosIR: 1024.")
    ] = 0,
    positions: Annotated[
        tuple[float, float] | None,
        typer.Option(
            "--positions",
            metavar="LOW HIGH",
            help="Only queries answered between these parts of their documents; PosIR: 0.4 0.6.",
        ),
    ] = None,
    spans: Annotated[
        Path | None,
        typer.Option("--spans", metavar="FILE", help="Spans as `diagnose position` reads them, for --positions."),
    ] = None,
    special_tokens: Annotated[
        bool,
        typer.Option("--special-tokens", help="Keep the tokens that the tokenizer and the model's prefix add."),
    ] = False,
    scale: Annotated[
        str,
        typer.Option("--scale", help="Divide by the 99th percentile and clip there (p99), or by the largest (max)."),
    ] = "p99",
    batch_tokens: Annotated[
        int, typer.Option("--batch-tokens", min=1, help="Tokens of a batch; a longer document is one of its own.")
    ] = 2048,
    lang: options.Lang = None,
    split: options.Split = None,
    out: options.Out = Path("results"),
    as_json: options.Json = False,
) -> None:
    """Show which parts of documents decide a dense model's similarities: gradients along relative position.

    Example: rusbeir diagnose saliency xquad/en --model all-MiniLM-L6-v2
    """
    from rusbeir.diagnostics import NAMES, diagnose_saliency, save_diagnosis

    with output.progress() as progress:
        diagnosis = diagnose_saliency(
            dataset, model, language=lang, split=split, pairs=pairs, min_tokens=min_tokens, positions=positions,
            spans=spans, special_tokens=special_tokens, scale=scale, batch_tokens=batch_tokens, seed=seed,
            progress=progress,
        )  # fmt: skip
    document = diagnosis.to_dict()
    path = save_diagnosis(document, out)
    if as_json:
        output.print_json({"diagnoses": [document]})
        return
    output.echo(f"{diagnosis.dataset}, {diagnosis.system}")
    columns = ["share", "interval"]
    rows = [
        [name, f"{100 * third.mean:.1f}", f"{100 * third.low:.1f} to {100 * third.high:.1f}"]
        for name, third in zip(NAMES, diagnosis.thirds, strict=True)
    ]
    output.print_table(["third, %", *columns], rows, right=columns)
    for line in diagnosis.sentences:
        output.echo(line)
    output.note(f"Diagnosis: {path}")


@app.command()
def position(
    datasets: Annotated[
        list[str],
        typer.Argument(
            metavar="DATASET...",
            help="Names or paths of sets that say where documents answer queries, such as xquad/ru; they are pooled.",
            autocompletion=options.complete_datasets,
        ),
    ],
    system: options.Systems = None,
    engine: options.Engine = "auto",
    es_url: options.EsUrl = None,
    lang: options.Lang = None,
    split: options.Split = None,
    query_language: Annotated[
        str | None,
        typer.Option(
            "--query-language",
            metavar="LANG",
            help="Ask queries in this language, those of the parallel dataset (of xquad/en for xquad/ru), or of the "
            "dataset of that name or path.",
        ),
    ] = None,
    spans: Annotated[
        Path | None,
        typer.Option(
            "--spans",
            metavar="FILE",
            help="Where DATASET answers its queries: a TSV of query_id, doc_id, start and end, in characters.",
        ),
    ] = None,
    min_count: Annotated[
        int,
        typer.Option(
            "--min-count", min=1, help="Independent queries that a position needs to count in intervals and tests."
        ),
    ] = 30,
    k: options.Depth = 100,
    samples: Annotated[int, typer.Option("--samples", min=100, help="Bootstrap samples of the means.")] = FEW_SAMPLES,
    permutations: Annotated[
        int, typer.Option("--permutations", min=100, help="Shuffles of the positions.")
    ] = FEW_PERMUTATIONS,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the samples and the shuffles.")] = 0,
    out: options.Out = Path("results"),
    budget_chars: options.EndpointChars = None,
    force: options.Force = False,
    analyzers: options.Analyzers = None,
    as_json: options.Json = False,
) -> None:
    """Tell whether systems find answers less well by where in their documents they are.

    Example: rusbeir diagnose position xquad/ru --system bm25
    """
    from rusbeir.diagnostics import diagnose_position

    with output.progress() as progress:
        diagnoses = [
            diagnose_position(
                datasets, spec, engine=options.engine_at(engine, es_url), language=lang, split=split,
                query_language=query_language, spans=spans, min_count=min_count, k=k, samples=samples,
                permutations=permutations, seed=seed, out=out, force=force, budget_chars=budget_chars,
                progress=progress,
            )
            for spec in system or ["bm25"]
        ]  # fmt: skip
    saved = _save(diagnoses, out)
    if as_json:
        output.print_json({"diagnoses": [diagnosis.to_dict() for diagnosis in diagnoses]})
        return
    for diagnosis in diagnoses:
        output.echo(f"{diagnosis.dataset}, {diagnosis.system}")
        _print_curves(diagnosis)
    output.note(f"Lengths in tokens: {diagnoses[0].tokens}.")
    output.note(saved)


@app.command("language")
def language(
    dataset: options.DatasetName,
    system: options.Systems = None,
    engine: options.Engine = "auto",
    es_url: options.EsUrl = None,
    lang: options.Lang = None,
    split: options.Split = None,
    k: options.Depth = 100,
    samples: Annotated[int, typer.Option("--samples", min=100, help="Bootstrap samples of the rates.")] = FEW_SAMPLES,
    permutations: Annotated[
        int, typer.Option("--permutations", min=100, help="Shuffles of the languages.")
    ] = FEW_PERMUTATIONS,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the samples and the shuffles.")] = 0,
    out: options.Out = Path("results"),
    budget_chars: options.EndpointChars = None,
    force: options.Force = False,
    analyzers: options.Analyzers = None,
    as_json: options.Json = False,
) -> None:
    """Tell whether systems prefer documents of some languages in a pool, such as those in the query's language.

    Example: rusbeir diagnose language pool --system bm25
    """
    from rusbeir.diagnostics import diagnose_language

    with output.progress() as progress:
        diagnoses = [
            diagnose_language(
                dataset, spec, engine=options.engine_at(engine, es_url), language=lang, split=split, k=k,
                samples=samples, permutations=permutations, seed=seed, out=out, force=force,
                budget_chars=budget_chars, progress=progress,
            )
            for spec in system or ["bm25"]
        ]  # fmt: skip
    saved = _save(diagnoses, out)
    if as_json:
        output.print_json({"diagnoses": [diagnosis.to_dict() for diagnosis in diagnoses]})
        return
    for diagnosis in diagnoses:
        output.echo(f"{diagnosis.dataset}, {diagnosis.system}")
        for sentence in diagnosis.sentences:
            output.echo(sentence)
        _print_languages(diagnosis)
    output.note(saved)


def _save(diagnoses: Sequence[PositionBias | LanguagePreference], out: Path) -> str:
    """Save diagnoses, and say where."""
    from rusbeir.diagnostics import save_diagnosis

    paths = [save_diagnosis(diagnosis.to_dict(), out) for diagnosis in diagnoses]
    return f"Diagnoses: {', '.join(map(str, paths))}"


def _print_languages(diagnosis: LanguagePreference) -> None:
    """Print the rates of languages, then the scores of each language of queries and of each pair."""
    from rusbeir.comparison import format_p

    columns = ["queries", "above equals %", "low", "high", "shuffled", "p", "first %"]
    rates = [diagnosis.own_language, *diagnosis.languages] if diagnosis.own_language else diagnosis.languages
    rows = [
        [
            "the query's" if rate.language == "own" else rate.language,
            f"{rate.n_queries:,}",
            *(f"{100 * value:.1f}" for value in (rate.rate, rate.low, rate.high)),
            rate.chance_words,
            format_p(rate.p),
            "–" if rate.first is None else f"{100 * rate.first:.1f}",
        ]
        for rate in rates
    ]
    output.print_table(["documents in", *columns], rows, right=columns, optional=["first %", "shuffled"])
    columns = ["queries", "nDCG@10 ×100", "AP ×100", f"R@{diagnosis.depth} ×100"]
    rows = [
        [
            part.query_language,
            f"{part.n_queries:,}",
            *(f"{100 * value:.2f}" for value in (part.ndcg, part.ap, part.recall)),
        ]
        for part in diagnosis.queries
    ]
    output.print_table(["queries in", *columns], rows, right=columns)
    documents = list(dict.fromkeys(pair.language for pair in diagnosis.pairs))
    cells = {(pair.query_language, pair.language): f"{100 * pair.ndcg:.2f}" for pair in diagnosis.pairs}
    output.echo("nDCG@10 ×100 among the documents of one language alone, a column for each")
    output.print_table(
        ["queries in", *documents],
        [
            [part.query_language, *(cells.get((part.query_language, name), "–") for name in documents)]
            for part in diagnosis.queries
        ],
        right=documents,
    )
    more = f", at most {100 * diagnosis.ap_at_most:.2f} with a complete ranking"
    missing = more if diagnosis.ap_at_most > diagnosis.ap + 1e-9 else ""
    output.echo(f"All queries: nDCG@10 {100 * diagnosis.ndcg:.2f}, AP {100 * diagnosis.ap:.2f}{missing}.")
    if diagnosis.unseen:
        output.echo(
            f"{100 * diagnosis.unseen:.1f} % of the pairs of equals are both missing from the {diagnosis.depth} hits "
            "and count as one half."
        )


def _print_curves(diagnosis: PositionBias) -> None:
    columns = ["queries", "nDCG@10 ×100", "PSI", "positions", "low", "high", "shuffled", "p"]
    rows = [
        [
            curve.bucket,
            f"{curve.n_queries:,}",
            f"{100 * curve.ndcg:.2f}",
            *(
                "–" if value is None else form.format(value)
                for value, form in (
                    (curve.psi, "{:.3f}"), (curve.n_counted, "{}"), (curve.low, "{:.3f}"), (curve.high, "{:.3f}"),
                    (curve.chance, "{:.3f}"), (curve.p, "{:.3f}"),
                )
            ),
        ]
        for curve in diagnosis.curves
    ]  # fmt: skip
    output.print_table(["tokens", *columns], rows, right=columns, optional=["positions", "shuffled"])
    for curve in diagnosis.curves:
        output.echo(f"{curve.bucket}: {curve.sentence}")
    if diagnosis.macro_ndcg is not None:
        psi = "–" if diagnosis.macro_psi is None else f"{diagnosis.macro_psi:.3f}"
        mean = f"nDCG@10 {100 * diagnosis.macro_ndcg:.2f}, PSI {psi}"
        output.echo(f"Mean over {len(diagnosis.domains)} datasets, each alone: {mean}")


def _print_scores(query_set: QuerySet) -> None:
    columns = ["answered", "all", "reversed", "expected", "lowest", "highest", "share", "alone"]
    keys = ["ndcg_answered", "ndcg", "reversed", "expected", "lowest", "highest", "share", "alone_answered"]
    rows = [
        [
            f"@{score.k}",
            score.source,
            *("–" if (value := getattr(score, key)) is None else f"{100 * value:.2f}" for key in keys),
        ]
        for score in query_set.scores
    ]
    output.print_table(
        ["nDCG ×100", "source", *columns], rows,
        right=columns, shortened=["source"], optional=["lowest", "highest", "reversed"],
    )  # fmt: skip

"""`rusbeir analyze`: the terms of a text or of a corpus, and how they are made."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from rusbeir.cli import options, output
from rusbeir.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rusbeir.analysis import Analyzer, TermStatistics
    from rusbeir.types import Doc

_REPORTED_DOCUMENTS = 1_000
"""Progress is shown each time that so many documents are read."""


def analyze(
    text: Annotated[str | None, typer.Argument(metavar="[TEXT]", help="The text to analyse.")] = None,
    lang: Annotated[
        str | None,
        typer.Option(
            "--lang",
            callback=options.read_language_tag,
            help="Language (BCP 47) of the text, or of a corpus without a card.",
            autocompletion=options.complete_languages,
        ),
    ] = None,
    profile: Annotated[str, typer.Option("--profile", help="A profile of the language.")] = "default",
    explain: Annotated[bool, typer.Option("--explain", help="Show each token at every step.")] = False,
    corpus: Annotated[
        str | None,
        typer.Option(
            "--corpus",
            metavar="DATASET",
            help="Count the terms of all documents of a dataset or a table instead.",
            autocompletion=options.complete_datasets,
        ),
    ] = None,
    columns: options.Columns = None,
    analyzers: options.Analyzers = None,
    as_json: options.Json = False,
) -> None:
    """Print the terms that a text becomes; or count those of a corpus, which needs no judgements.

    Example: rusbeir analyze --lang ru "Мамы мыли рамы" --explain

    Example: rusbeir analyze --lang ru --corpus products.csv
    """
    from rusbeir.analysis import Analyzer

    if (text is None) == (corpus is None):
        raise BadInput('Give either a text, as in analyze --lang ru "Мамы мыли рамы", or --corpus DATASET.')
    if corpus is not None:
        if explain:
            raise BadInput("--explain shows the tokens of a text; with --corpus, leave it out.")
        _analyze_corpus(corpus, lang, profile, columns, as_json)
        return
    if lang is None:
        raise BadInput('Name the language of the text, as in analyze --lang ru "Мамы мыли рамы".')
    _analyze_text(Analyzer(lang, profile), text or "", explain, as_json)


def _analyze_text(analyzer: Analyzer, text: str, explain: bool, as_json: bool) -> None:
    tokens = analyzer.explain(text)
    if as_json:
        output.print_json(
            {
                "signature": analyzer.signature,
                "terms": [term for token in tokens for term in token.term.split()],
                "tokens": [token._asdict() for token in tokens],
            }
        )
    elif explain:
        output.print_table(
            ["surface", "folded", "lemma", "term", "dropped"],
            [[token.surface, token.folded, token.lemma, token.term, token.dropped or ""] for token in tokens],
        )
        output.note(analyzer.signature)
    else:
        output.echo(" ".join(analyzer.analyze(text)))


def _analyze_corpus(name: str, language: str | None, profile: str, columns: str | None, as_json: bool) -> None:
    from rusbeir.analysis import Analyzer, count_terms
    from rusbeir.cli.documents import load_documents

    with output.progress() as progress:
        dataset = load_documents(name, language=language, split=None, columns=columns, progress=progress)
        corpus = dataset.corpus

        def read_documents() -> Iterator[Doc]:
            for n_read, doc in enumerate(corpus, start=1):
                yield doc
                if n_read % _REPORTED_DOCUMENTS == 0:
                    progress("analyse", n_read, len(corpus))

        statistics = count_terms(Analyzer(dataset.card.language, profile), read_documents())
    if as_json:
        lists = {name: [row._asdict() for row in getattr(statistics, name)] for name in ("common", "joined", "dropped")}
        output.print_json({"dataset": dataset.card.name, **asdict(statistics), **lists})
        return
    _print_statistics(statistics)


def _print_statistics(statistics: TermStatistics) -> None:
    mean = statistics.n_terms / max(statistics.n_documents, 1)
    output.echo(
        f"{statistics.n_documents:,} documents with {mean:,.1f} terms on average, and {statistics.max_terms:,} in the "
        f"longest. {statistics.n_distinct:,} distinct terms, {statistics.n_once:,} of which occur once."
    )
    if statistics.n_empty:
        more = ", …" if statistics.n_empty > len(statistics.empty) else ""
        ids = ", ".join(statistics.empty)
        output.echo(f"Documents without terms, which no query finds: {statistics.n_empty:,} ({ids}{more})")
    _print_list(
        "Terms in most documents, and words that become them",
        ["term", "documents", "occurrences", "words"],
        [[row.term, f"{row.documents:,}", f"{row.occurrences:,}", ", ".join(row.words)] for row in statistics.common],
    )
    where = f"in the first {statistics.n_explained:,} documents"
    _print_list(
        f"Terms that join most words, {where}",
        ["term", "different words", "words"],
        [[row.term, f"{row.n_words:,}", ", ".join(row.words)] for row in statistics.joined],
    )
    _print_list(
        f"Words that are dropped, {where}",
        ["word", "occurrences", "why"],
        [[row.word, f"{row.occurrences:,}", row.reason] for row in statistics.dropped],
    )
    output.note(statistics.signature)


def _print_list(title: str, header: list[str], rows: list[list[str]]) -> None:
    """Print a table whose middle columns are numbers; nothing where it has no rows."""
    if rows:
        output.echo(f"\n{title}")
        output.print_table(header, rows, right=header[1:-1])

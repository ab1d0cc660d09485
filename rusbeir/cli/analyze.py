"""`rusbeir analyze`: the terms of a text, and how they are made."""

from __future__ import annotations

from typing import Annotated

import typer

from rusbeir.cli import options, output


def analyze(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The text to analyse.")],
    lang: Annotated[
        str,
        typer.Option(
            "--lang",
            callback=options.read_language_tag,
            help="Language (BCP 47).",
            autocompletion=options.complete_languages,
        ),
    ],
    profile: Annotated[str, typer.Option("--profile", help="A profile of the language.")] = "default",
    explain: Annotated[bool, typer.Option("--explain", help="Show each token at every step.")] = False,
    analyzers: options.Analyzers = None,
    as_json: options.Json = False,
) -> None:
    """Print the terms that a text becomes.

    Example: rusbeir analyze --lang ru "Мамы мыли рамы" --explain
    """
    from rusbeir.analysis import Analyzer

    analyzer = Analyzer(lang, profile)
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

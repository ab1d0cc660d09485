"""`rusbeir report`: a static site of result rows, with an explorer of queries."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rusbeir.cli import options, output
from rusbeir.cli.compare import AgainstPaper, ByLanguage, Corpus, Data, Judgements, Measure, Results


def report(
    results: Results,
    out: Annotated[Path, typer.Option("--out", help="Folder of the site; new, or one that holds a report.")],
    qrels: Judgements = None,
    corpus: Corpus = None,
    lang: options.Lang = None,
    measure: Measure = "nDCG@10",
    baseline: Annotated[str | None, typer.Option(help="Test only the differences to this system.")] = None,
    by_language: ByLanguage = None,
    data: Data = None,
    against_paper: AgainstPaper = None,
    as_json: options.Json = False,
) -> None:
    """Write a site that works from a file: leaderboards, dataset pages, an explorer of queries.

    Example: rusbeir report results --out site
    """
    from rusbeir.comparison import Plan
    from rusbeir.site import write_site

    plan = Plan(measure=measure, baseline=baseline, against_paper=against_paper)
    with output.progress() as progress:
        comparison = write_site(
            results, out, qrels=qrels, corpus=corpus, language=lang, plan=plan,
            by_language=by_language and by_language.value, data=data or (), progress=progress,
        )  # fmt: skip
    if as_json:
        output.print_json({"index": str(out / "index.html"), **comparison.to_dict()})
        return
    for line in comparison.conclusion:
        output.echo(line)
    output.echo(f"Open {out / 'index.html'}")

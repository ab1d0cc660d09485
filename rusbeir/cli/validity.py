"""`rusbeir validity`: whether a port orders systems as its original does."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rusbeir.cli import options, output
from rusbeir.errors import BadInput, option

N_CLAIMS = 5


def validity(
    scores: Annotated[
        list[Path],
        typer.Argument(
            metavar="SCORES...",
            help="Folders of `rusbeir bench --out`, .tsv (task, split, subset, model, value), or MTEB's results.",
        ),
    ],
    pair: Annotated[
        list[str] | None, typer.Option("--pair", help="An original and its port, as scores name them: ORIGINAL=PORT.")
    ] = None,
    measure: Annotated[str, typer.Option("--measure", "-m", help="The measure that orders systems.")] = "nDCG@10",
    claims: Annotated[Path | None, typer.Option(help="A .tsv of models and the languages that they claim.")] = None,
    claiming: Annotated[str | None, typer.Option(help="Only systems that claim this language.")] = None,
    gap: Annotated[float, typer.Option(min=0, help="Count reversed pairs further apart than this.")] = 0.02,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the resamples.")] = 0,
    as_json: options.Json = False,
) -> None:
    """Compare the order of systems on ports with that on their originals, and with translations by people.

    Example: rusbeir validity results --pair xquad/en=xquad/ru
    """
    from rusbeir.report.validity import measure_validity

    pairs = []
    for text in pair or ():
        original, equals, port = text.partition("=")
        if not (original and equals and port):
            raise BadInput(f"{option('pair')} is {text!r}; write ORIGINAL=PORT.")
        pairs.append((original, port))
    found = measure_validity(scores, pairs, measure=measure, claims=claims, claiming=claiming, gap=gap, seed=seed)
    if as_json:
        output.print_json(found.to_dict())
        return
    for line in found.conclusion:
        output.echo(line)
    header = ["original", "port", "tau", "tau-AP", "reversed", "mean there", "mean here", "moves most"]
    rows = [
        [
            one.original,
            one.port,
            f"{one.kendall.value:.3f}",
            f"{one.tau_ap.value:.3f}",
            str(one.reversals),
            f"{100 * one.mean_original:.2f}",
            f"{100 * one.mean_port:.2f}",
            ", ".join(f"{move.system} {move.rank_original}→{move.rank_port}" for move in one.movers[:1]),
        ]
        for one in (*found.tasks, *([found.average] if found.average else []))
    ]
    output.print_table(header, rows, right=header[2:7], shortened=["moves most"], optional=["tau-AP"])
    systems = found.tasks[0].systems
    output.echo(f"{len(systems)} systems{', and the languages that they claim' if found.claims else ''}:")
    for name in systems:
        languages = found.claims.get(name, ())
        more = f" and {len(languages) - N_CLAIMS} more" if len(languages) > N_CLAIMS else ""
        output.echo(f"  {name}" + (f" ({', '.join(languages[:N_CLAIMS])}{more})" if languages else ""))

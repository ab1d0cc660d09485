"""`rusbeir validity`: whether a port orders systems as its original does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rusbeir.cli import options, output
from rusbeir.errors import BadInput, option
from rusbeir.text import write_command

if TYPE_CHECKING:
    from rusbeir.comparison import Validity

N_CLAIMS = 5
N_SEGMENTS = 10


def validity(
    scores: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="SCORES...",
            help="Folders of `rusbeir bench --out`, .tsv (task, split, subset, model, value), or MTEB's results.",
        ),
    ] = None,
    pair: Annotated[
        list[str] | None, typer.Option("--pair", help="An original and its port, as scores name them: ORIGINAL=PORT.")
    ] = None,
    measure: Annotated[str, typer.Option("--measure", "-m", help="The measure that orders systems.")] = "nDCG@10",
    claims: Annotated[Path | None, typer.Option(help="A .tsv of models and the languages that they claim.")] = None,
    claiming: Annotated[str | None, typer.Option(help="Only systems that claim this language.")] = None,
    gap: Annotated[float, typer.Option(min=0, help="Count reversed pairs further apart than this.")] = 0.02,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the resamples.")] = 0,
    attribute: Annotated[
        bool,
        typer.Option(
            "--attribute", help="Measure systems on one pair, and say which side of the port costs the score."
        ),
    ] = False,
    system: options.Systems = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="The file of segments to repair; default: qa/retry-segments.jsonl in the port."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Compare the order of systems on ports with that on their originals, and with translations by people.

    With --attribute: what a port costs a system, divided between queries and documents, and what to repair first.

    Example: rusbeir validity results --pair xquad/en=xquad/ru
    """
    from rusbeir.comparison import measure_validity

    pairs = [_parse_pair(text) for text in pair or ()]
    if attribute:
        if scores or len(pairs) != 1:
            raise BadInput(
                f"{option('attribute', True)} measures systems itself: give one {option('pair')} ORIGINAL=PORT, "
                f"{option('system')}, and no scores."
            )
        _attribute(pairs[0], system or ["bm25"], measure=measure, seed=seed, out=out, as_json=as_json)
        return
    if not scores:
        raise BadInput(f"Name scores, such as a folder of `rusbeir bench`, or use {option('attribute', True)}.")
    if system or out:
        raise BadInput(
            f"{option('system' if system else 'out')} belongs to {option('attribute', True)}; scores name systems."
        )
    result = measure_validity(scores, pairs, measure=measure, claims=claims, claiming=claiming, gap=gap, seed=seed)
    if as_json:
        output.print_json(result.to_dict())
        return
    _print_validity(result)


def _parse_pair(text: str) -> tuple[str, str]:
    original, equals, port = text.partition("=")
    if not (original and equals and port):
        raise BadInput(f"{option('pair')} is {text!r}; write ORIGINAL=PORT.")
    return original, port


def _print_validity(result: Validity) -> None:
    for line in result.conclusion:
        output.echo(line)
    header = ["original", "port", "tau", "tau-AP", "reversed", "mean there", "mean here", "moves most"]
    rows = [
        [
            task.original,
            task.port,
            f"{task.kendall.value:.3f}",
            f"{task.tau_ap.value:.3f}",
            str(task.reversals),
            f"{100 * task.mean_original:.2f}",
            f"{100 * task.mean_port:.2f}",
            ", ".join(f"{move.system} {move.rank_original}→{move.rank_port}" for move in task.movers[:1]),
        ]
        for task in (*result.tasks, *([result.average] if result.average else []))
    ]
    output.print_table(header, rows, right=header[2:7], shortened=["moves most"], optional=["tau-AP"])
    systems = result.tasks[0].systems
    output.echo(f"{len(systems)} systems{', and the languages that they claim' if result.claims else ''}:")
    for name in systems:
        languages = result.claims.get(name, ())
        more = f" and {len(languages) - N_CLAIMS} more" if len(languages) > N_CLAIMS else ""
        output.echo(f"  {name}" + (f" ({', '.join(languages[:N_CLAIMS])}{more})" if languages else ""))


def _attribute(
    pair: tuple[str, str], systems: list[str], *, measure: str, seed: int, out: Path | None, as_json: bool
) -> None:
    from rusbeir.audit import attribute_port

    original, port = pair
    with output.progress() as progress:
        report = attribute_port(original, port, systems, measure=measure, seed=seed, out=out, progress=progress)
    if as_json:
        output.print_json(report)
        return
    for row in report["attributions"]:
        back = " (translated back)" if row["translated_back"] else ""
        oo, to, ot, tt = (f"{100 * value:.2f}" for value in row["scores"].values())
        header = [f"{row['measure']} of {row['system']}{back}", "original documents", "translated documents"]
        output.print_table(header, [["original queries", oo, ot], ["translated queries", to, tt]], right=header[1:])
        output.echo(row["conclusion"])
    segments = report["segments"]
    if not segments:
        output.echo("No segment was found whose repair would give something back.")
        return
    output.echo(f"{len(segments):,} segments whose repair may give something back, those that give most first:")
    output.print_table(
        ["text", "segment", "gain", "source", "translation"],
        [
            [
                f"{segment['kind']} {segment['id']}",
                f"{segment['field']} {segment['segment']}",
                f"{100 * segment['gain']:.3f}",
                segment["source"],
                segment["translation"],
            ]
            for segment in segments[:N_SEGMENTS]
        ],
        right=["gain"],
        shortened=["source", "translation"],
    )
    if report["file"] is None:
        return
    if not Path(port, "work").is_dir():
        output.note(f"All of them are in {report['file']}.")
    else:
        output.note(
            "Translate them again: "
            + write_command(
                *("port", original, "--to", report["language"], "--out", port),
                *("--translator", "NAME", "--retry-segments", report["file"]),
            )
        )

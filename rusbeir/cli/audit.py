"""`rusbeir audit`: how good a port is, according to checks, its back-translation, a judge and people."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rusbeir.cli import options, output
from rusbeir.cli.audit_expected import print_expected
from rusbeir.cli.audit_meta import meta
from rusbeir.cli.audit_published import published
from rusbeir.cli.audit_report import exit_by_gates, print_report
from rusbeir.cli.audit_sample import Folder, Source, agree, judge, sheet

app = typer.Typer(help="Measure how good a port is.", no_args_is_help=True, rich_markup_mode=None)

Gate = Annotated[
    str | None, typer.Option("--gate", help="Exit with 1 unless these conditions hold: 'chrf>=55,flagged<=2%'.")
]


@app.command("check")
def check(
    folder: Folder,
    back_translator: Annotated[
        str | None,
        typer.Option("--back-translator", help="Translator for the way back; a name as for rusbeir port --translator."),
    ] = None,
    reference: Annotated[
        str | None, typer.Option("--reference", help="A human translation of the same dataset, with the same ids.")
    ] = None,
    source: Source = None,
    lang: options.Lang = None,
    split: Annotated[
        str | None, typer.Option("--split", help="Split on which retrieval is measured; default: test, or the first.")
    ] = None,
    gate: Gate = None,
    qe: Annotated[
        list[str] | None,
        typer.Option(
            "--qe",
            help="Quality estimation of every segment: cometkiwi, xcomet, metricx, python:module.function, "
            "command:PROGRAM, or a file of scores; perhaps after a name, as in kiwi=FILE. Repeatable.",
        ),
    ] = None,
    no_round_trip: Annotated[bool, typer.Option("--no-round-trip", help="Do not measure retrieval.")] = False,
    llm: options.Llm = None,
    model: options.Model = None,
    memory: options.Memory = None,
    option: options.TranslatorOptions = None,
    budget_chars: options.BudgetChars = None,
    budget_cost: options.BudgetCost = None,
    batch: options.Batch = False,
    batch_share: options.BatchShare = None,
    cancel: options.Cancel = False,
    batch_out: options.BatchOut = None,
    batch_in: options.BatchIn = None,
    on: options.On = None,
    as_json: options.Json = False,
) -> None:
    """Check every segment of a port, translate it back, and write qa/report.json and qa/report.html into it.

    Example: rusbeir audit check mini-es --back-translator apertium
    """
    from rusbeir.audit import audit_port, parse_gates
    from rusbeir.datasets import write_audit_command
    from rusbeir.people import expect_errors

    gates = parse_gates(gate) if gate else []
    with output.progress() as progress:
        report = audit_port(
            folder,
            source=source,
            back_translator=back_translator,
            reference=reference,
            language=lang,
            split=split,
            round_trip=not no_round_trip,
            budget_chars=budget_chars,
            budget_cost=budget_cost,
            **options.batching(batch, batch_share, cancel, batch_out, batch_in),
            on=on,
            gates=gates,
            qe=qe or (),
            progress=progress,
            tell=output.note,
            **options.translator_options(option, llm=llm, model=model, memory=memory),
        )
    expected = expect_errors(folder)
    if as_json:
        output.print_json(report if expected is None else {**report, "expected": expected})
    else:
        print_report(report)
        command = write_audit_command("judge", folder, "--llm", "MODEL", source=source)
        print_expected(expected, command=command if report["qe"] else "")
    exit_by_gates(report, gate, as_json=as_json)


@app.command("score")
def score(
    hypotheses: Annotated[
        list[Path], typer.Option("--hyp", help="Translations, one segment on each line; repeatable.")
    ],
    lang: Annotated[str, typer.Option("--lang", help="Language of the translations (BCP 47).")],
    ref: Annotated[Path | None, typer.Option("--ref", help="References to score against.")] = None,
    source: Annotated[Path | None, typer.Option("--source", help="Sources to check against.")] = None,
    source_lang: Annotated[str, typer.Option("--source-lang", help="Language of the sources.")] = "en",
    gate: Gate = None,
    as_json: options.Json = False,
) -> None:
    """Score and check plain files of translations: BLEU, chrF, chrF++ and TER as computed by sacrebleu.

    Example: rusbeir audit score --hyp online.ru --ref ref.ru --lang ru
    """
    from rusbeir import __version__
    from rusbeir.audit import CHECKS, collect_line_figures, find_failed_gates, parse_gates, refuse_unknown, score_lines

    gates = parse_gates(gate) if gate else []
    scores = ["bleu", "chrf", "chrf++", "ter", "chrf_mean"] if ref else []
    refuse_unknown(gates, [*scores, *(["flagged", *CHECKS] if source else [])])
    with output.progress() as progress:
        rows = [
            score_lines(
                path, source=source, reference=ref, language=lang, source_language=source_lang, progress=progress
            )
            for path in hypotheses
        ]
    failed = [
        f"{row['hypothesis']}: {line}" for row in rows for line in find_failed_gates(gates, collect_line_figures(row))
    ]
    if as_json:
        output.print_json({"version": __version__, "rows": rows, "failed": failed})
    else:
        _print_lines(rows)
    for line in failed:
        output.note(f"rusbeir: gate: {line}.")
    if failed:
        raise typer.Exit(1)


def _print_lines(rows: list[dict[str, Any]]) -> None:
    names = list(rows[0].get("scores", {}))
    flags = sorted({name for row in rows for name, flag in row.get("flags", {}).items() if flag["segments"]})
    flagged = ["flagged"] if "flagged" in rows[0] else []
    output.print_table(
        ["translations", "lines", *names, *flagged, *flags],
        [
            [
                row["hypothesis"],
                f"{row['n_lines']:,}",
                *(f"{row['scores'][name]:.2f}" for name in names),
                *([f"{row['flagged']['share']:.2%}"] if flagged else []),
                *(f"{row['flags'][name]['segments']:,}" for name in flags),
            ]
            for row in rows
        ],
        right=["lines", *names, *flagged, *flags],
    )
    for name, signature in rows[0].get("signatures", {}).items():
        output.note(f"{name}: {signature}")
    if flagged:
        from rusbeir.audit import FLAGS_MEANING

        output.note(FLAGS_MEANING)


@app.command("clean")
def clean(
    folder: Folder,
    source: Source = None,
    flag: Annotated[
        list[str] | None,
        typer.Option(
            "--flag",
            help="Remove texts with this flag, instead of the usual flags; 'qe.NAME<0.4' is one, too. Repeatable.",
        ),
    ] = None,
    share: Annotated[
        float, typer.Option("--share", help="Remove a document when this share of its characters is flagged.")
    ] = 0.2,
    apply: Annotated[
        bool, typer.Option("--apply", help="Write the cleaned port; without this, only the plan is made.")
    ] = False,
    out: Annotated[Path | None, typer.Option("--out", help="Folder of the cleaned port; default: DIR-clean.")] = None,
    as_json: options.Json = False,
) -> None:
    """Plan what to remove from a checked port; with --apply, write the cleaned port. The port itself is not changed.

    Example: rusbeir audit clean scifact-es --apply --out scifact-es-clean
    """
    from rusbeir.audit import DROPPING, apply_cleaning, plan_cleaning

    with output.progress() as progress:
        plan = plan_cleaning(folder, flags=flag or DROPPING, share=share, source=source, progress=progress)
        target = out or folder.with_name(f"{folder.resolve().name}-clean")
        card = apply_cleaning(folder, target, source=source, progress=progress) if apply else None
    if as_json:
        output.print_json({**plan, "out": str(target) if card else None})
        return
    output.print_table(
        ["", "before", "after"],
        [[name, f"{n:,}", f"{plan['after'][name]:,}"] for name, n in plan["before"].items()],
        right=["before", "after"],
    )
    output.note(
        f"{len(plan['documents']):,} documents and {len(plan['queries']):,} queries are removed, "
        f"{plan['reasons'].get('no relevant document is left', 0):,} of them because no relevant document is left; "
        f"{len(plan['repaired']):,} segments are freed of a model's remarks around the translation."
    )
    plan_path = folder / "qa" / "cleaning.json"
    output.note(
        f"Written: {target} ({card.name})."
        if card
        else f"Nothing was changed. The plan is in {plan_path}; --apply carries it out."
    )


for _verb in (published, judge, sheet, agree, meta):
    app.command(_verb.__name__)(_verb)

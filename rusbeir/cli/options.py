"""Options that several verbs share, defined once, and what the shell offers for them on a tab."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from rusbeir.text import write_command


def complete_datasets(incomplete: str) -> list[str]:
    """Registered names with this beginning."""
    from rusbeir.datasets import read_registry

    return [name for name in read_registry() if name.startswith(incomplete)]


def complete_languages(incomplete: str) -> list[str]:
    """Languages with a language file."""
    from rusbeir.analysis import language_files

    return [code for code in language_files() if code.startswith(incomplete)]


def complete_engines(incomplete: str) -> list[str]:
    """Names of engines, and auto."""
    from rusbeir.retrieval import ENGINES

    return [name for name in ("auto", *ENGINES) if name.startswith(incomplete)]


def complete_systems(incomplete: str) -> list[str]:
    """BM25 systems, one per profile."""
    from rusbeir.retrieval import profiles

    names = ["bm25", *(f"bm25(profile={profile})" for profile in (*profiles(), "raw", "snowball"))]
    return [name for name in names if name.startswith(incomplete)]


SPELLINGS = {
    "analyzers": "RUSBEIR_ANALYZERS or --analyzers",
    "gates": "--gate",
    "k": "-k",
    "language": "--lang",
    "source_language": "--source-lang",
}
"""Parameters of Python whose options have other names; other options have the name of the parameter."""


Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]


def read_language_tag(text: str | None) -> str | None:
    """Read the language that a user means as a tag. Raises UnknownName where neither rusbeir nor BCP 47 knows it."""
    if not text:
        return text
    from rusbeir.analysis import find_language, language_files
    from rusbeir.languages import parse_language

    if "," in text:
        return ",".join(str(read_language_tag(part.strip())) for part in text.split(","))
    tag = find_language(text)
    return tag if tag in language_files() else find_language(parse_language(text))


Lang: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--lang",
        callback=read_language_tag,
        help="Language of a path without a card (BCP 47, such as ru), or its languages: ru,kk,en.",
    ),
]
Split: TypeAlias = Annotated[str | None, typer.Option("--split", help="Split of a path, such as test.")]
Columns: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="KEY=COLUMN,...",
        help="Columns of tables that have other names, such as id=sku,text=name+description,title=name.",
    ),
]
System: TypeAlias = Annotated[
    str,
    typer.Option(
        "--system",
        help="A system, such as bm25 or 'bm25(profile=rusbeir-paper)'.",
        autocompletion=complete_systems,
    ),
]
Systems: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--system", help="A system, such as bm25; repeatable.", autocompletion=complete_systems),
]
Engine: TypeAlias = Annotated[
    str,
    typer.Option(
        "--engine", help="auto, tantivy, bm25s, elasticsearch or opensearch.", autocompletion=complete_engines
    ),
]
EsUrl: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--es-url",
        metavar="URL[,URL...]",
        help="Nodes of an Elasticsearch or OpenSearch cluster; default: RUSBEIR_ES_URL, else http://127.0.0.1:9200. "
        "Credentials are read from ES_API_KEY (or ES_USER and ES_PASSWORD, or ES_AWS_REGION and AWS's variables), "
        "a CA from ES_CA_CERTS.",
    ),
]
ClientTerms: TypeAlias = Annotated[
    bool, typer.Option("--client", help="For terms that rusbeir made, instead of the server's own analyzer.")
]
Plugin: TypeAlias = Annotated[
    bool, typer.Option("--plugin", help="For the analyzer of an official plugin, such as analysis-kuromoji.")
]
Bm25Profile: TypeAlias = Annotated[str, typer.Option("--profile", help="A profile of BM25: its k1, b and fields.")]
Depth: TypeAlias = Annotated[int, typer.Option("-k", min=1, max=1_000_000, help="Hits kept per query.")]


def _name_analyzer_folders(folders: list[str] | None) -> list[str] | None:
    """Put the folders of --analyzers before those of RUSBEIR_ANALYZERS, for everything in this process."""
    if folders:
        os.environ["RUSBEIR_ANALYZERS"] = os.pathsep.join([*folders, os.environ.get("RUSBEIR_ANALYZERS", "")])
    return folders


Analyzers: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--analyzers",
        metavar="DIR",
        callback=_name_analyzer_folders,
        # Other options are read with the languages of these folders.
        is_eager=True,
        help="Folder of language files (such as kk.toml), before those of RUSBEIR_ANALYZERS; repeatable.",
    ),
]


def write_bench(folder: str | Path, analyzers: list[str] | None, language: str = "") -> str:
    """Write the command that measures a dataset that a verb wrote, also in a language without a language file."""
    from rusbeir.analysis import find_language, language_files

    words = [word for folder_name in analyzers or () for word in ("--analyzers", folder_name)]
    if language and find_language(language) not in language_files():
        words += ["--system", "bm25(profile=unicode)"]
    return write_command("bench", folder, *words)


DatasetName: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="DATASET",
        help="A registered name (see `rusbeir datasets`) or a path.",
        autocompletion=complete_datasets,
    ),
]
Out: TypeAlias = Annotated[Path, typer.Option("--out", help="Folder for rows and runs.")]
CountedIn: TypeAlias = Annotated[
    Path, typer.Option("--out", help="Folder in which --budget-chars is counted; by default the one of rusbeir bench.")
]
EndpointChars: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--budget-chars",
        min=1,
        help="Send at most this many characters to endpoints, counted over all runs with this --out and a budget.",
    ),
]
On: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="RAY",
        help="Where local models work: ray or ray://HOST:PORT, also with ?workers=4&cpus=2&gpus=0.5; by default here.",
    ),
]
Memory: TypeAlias = Annotated[
    Path | None, typer.Option("--memory", help="Translation memory (.jsonl, .tsv, .tmx) for the translator memory.")
]
Llm: TypeAlias = Annotated[str | None, typer.Option("--llm", help="Model for the translator llm.")]
Model: TypeAlias = Annotated[
    str | None, typer.Option("--model", help="Model folder or hub id for opus-mt, nllb and madlad.")
]
TranslatorOptions: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--option", help="Another option of the translator, such as requests-per-second=2; repeatable."),
]
BudgetChars: TypeAlias = Annotated[
    int | None, typer.Option("--budget-chars", help="Send at most this many characters in total.")
]
BudgetCost: TypeAlias = Annotated[
    float | None, typer.Option("--budget-cost", help="Stop before the total cost exceeds this.")
]
Batch: TypeAlias = Annotated[
    bool, typer.Option("--batch", help="Send the model's requests by the endpoint's Batch API, and wait for them.")
]
BatchShare: TypeAlias = Annotated[
    float | None,
    typer.Option("--batch-share", min=0.01, max=1.0, help="What a batch costs of the usual price, such as 0.5."),
]
Cancel: TypeAlias = Annotated[bool, typer.Option("--cancel", help="Cancel the batches that are under way.")]
BatchOut: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--batch-out", metavar="FILE", help="Write the model's requests to this JSONL file, and send nothing."
    ),
]
BatchIn: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option("--batch-in", metavar="FILE", help="Read answers to such requests from this file; repeatable."),
]


def batching(
    batch: bool, batch_share: float | None, cancel: bool, batch_out: Path | None, batch_in: list[Path] | None
) -> dict[str, Any]:
    """Collect the options of batches as jobs.BatchOptions has them. Raises BadInput for a share without a batch."""
    from rusbeir.errors import BadInput

    if batch_share is not None and not batch:
        raise BadInput(f"--batch-share {batch_share:g} is what a batch costs, and nothing is sent in one: add --batch.")
    ways = {"batch": batch and (batch_share or True), "cancel": cancel, "batch_out": batch_out, "batch_in": batch_in}
    return {name: value for name, value in ways.items() if value}


def add_prices(
    model_options: dict[str, Any], llm: str | None, batch: bool, batch_share: float | None
) -> dict[str, Any]:
    """Add to a model's options what an estimate needs: the prices that are listed for it, and what a batch costs."""
    from rusbeir.jobs import list_prices

    share = batching(batch, batch_share, False, None, None).get("batch", True)
    return {**list_prices(llm or ""), **({} if share is True else {"batch_share": share}), **model_options}


ModelLimits: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--option", help="input-price, output-price, concurrency or another limit; repeatable."),
]
RetryFailed: TypeAlias = Annotated[bool, typer.Option("--retry-failed", help="Ask again for what failed.")]
Force: TypeAlias = Annotated[bool, typer.Option("--force", help="Measure again what is already there.")]
Measures: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--measure", "-m", help="A measure by its ir-measures name, such as nDCG@10; repeatable."),
]


def engine_at(engine: str, es_url: str | None) -> str:
    """Join the engine's name and the server's address, if there is one; with an address, auto means elasticsearch."""
    if es_url is None:
        return engine
    return f"{'elasticsearch' if engine == 'auto' else engine}@{es_url}"


def translator_options(pairs: list[str] | None, **named: object) -> dict[str, Any]:
    """Collect a translator's options under the names of its fields: "input-price=0.4" is {"input_price": 0.4}."""
    from rusbeir.errors import BadInput

    options: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
    for pair in pairs or []:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise BadInput(f"--option {pair!r}: write name=value, such as requests-per-second=2.")
        options[name.strip().replace("-", "_")] = _parse_value(value.strip())
    return options


def _parse_value(text: str) -> Any:
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return {"true": True, "false": False}.get(text.lower(), text)


Named = Annotated[str | None, typer.Option("--name", help="The dataset's name, where its card has none.")]
Licence = Annotated[str | None, typer.Option("--licence", help="The dataset's licence, such as CC-BY-SA-4.0.")]
SourceUrl = Annotated[str | None, typer.Option("--source-url", help="Where the dataset is from, for the card.")]
Author = Annotated[str | None, typer.Option("--author", help="Who made the dataset, for the card and its citation.")]
Citation = Annotated[str | None, typer.Option("--citation", help="How the dataset wants to be cited, such as BibTeX.")]

"""The formats that can be read, and how a path is recognised as one of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rusbeir.datasets.formats.beir import is_beir, open_beir
from rusbeir.datasets.formats.cocktail import is_cocktail, open_cocktail
from rusbeir.datasets.formats.hub import is_hub, open_hub
from rusbeir.datasets.formats.question_passage import open_pairs
from rusbeir.datasets.formats.source import Request, Source
from rusbeir.datasets.formats.squad import is_squad, open_squad
from rusbeir.errors import BadInput


@dataclass(frozen=True, kw_only=True)
class Format:
    """How one format is recognised and opened."""

    claims: Callable[[Path], bool]
    open: Callable[[Request], Source]
    ignore_titles: bool = False
    """Whether a path of this format, without a card or a row that says otherwise, is read without titles."""


FORMATS = {
    "hub": Format(claims=is_hub, open=open_hub),
    "beir": Format(claims=is_beir, open=open_beir),
    "cocktail": Format(claims=is_cocktail, open=open_cocktail, ignore_titles=True),
    "squad": Format(claims=is_squad, open=open_squad),
    "pairs": Format(claims=lambda _: False, open=open_pairs),
}


def format_of(path: Path) -> Format:
    """The format that the path looks like. Raises BadInput, naming what is understood."""
    for candidate in FORMATS.values():
        if candidate.claims(path):
            return candidate
    raise BadInput(
        f"{path} is no dataset: expected a folder or a zip with corpus.jsonl (or corpus/<source>.jsonl), "
        "queries.jsonl and qrels/<split>.tsv, a folder as on the Hugging Face hub (corpus*.parquet and such), "
        "or a SQuAD .json."
    )

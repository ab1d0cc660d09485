"""card.json: what a dataset folder says of itself."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from rusbeir.datasets.formats.beir import bundle_of
from rusbeir.datasets.formats.records import parse_json
from rusbeir.errors import BadInput
from rusbeir.types import Card

CARD = "card.json"

_TEXTS = ("name", "language", "split", "fingerprint", "licence", "source", "revision")


def read_card(path: Path) -> dict[str, Any]:
    """The keys of the card in that folder or zip; {} where it has none. Raises BadInput for another shape."""
    bundle = bundle_of(path)
    if bundle is None or CARD not in bundle.names:
        return {}
    with bundle.open(CARD) as file:
        data = file.read()
    where = f"{bundle.label}{CARD}"
    card = parse_json(data, where)
    if not isinstance(card, dict):
        raise BadInput(f"{where}: a card is a JSON object.")
    for key in _TEXTS:
        if not isinstance(card.get(key, ""), str):
            raise BadInput(f"{where}: {key!r} must be a string.")
    if not isinstance(card.get("ignore_titles", False), bool) or not isinstance(card.get("provenance", {}), dict):
        raise BadInput(f"{where}: 'ignore_titles' must be true or false, and 'provenance' an object.")
    suffixes = card.get("self_suffixes", [])
    if not isinstance(suffixes, list) or not all(isinstance(suffix, str) for suffix in suffixes):
        raise BadInput(f"{where}: 'self_suffixes' must be a list of strings.")
    return card


def describe(card: Card, fingerprint: str, **counts: int) -> dict[str, Any]:
    """The keys of card.json: what the card says, with the fingerprint and the counts of the content."""
    about = dataclasses.asdict(card)
    first = {key: about.pop(key) for key in ("name", "language", "split")}
    return {**first, "fingerprint": fingerprint, **about, **counts}


def card_bytes(card: Card, fingerprint: str, **counts: int) -> bytes:
    """The bytes of card.json."""
    return (json.dumps(describe(card, fingerprint, **counts), ensure_ascii=False, indent=2) + "\n").encode()

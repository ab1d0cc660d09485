"""Diagnoses in result folders, as `rusbeir diagnose` writes them: what each kind of them holds, and its page."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from rusbeir.datasets import derive_shape, read_json
from rusbeir.diagnostics.language import LanguagePreference
from rusbeir.diagnostics.position import PositionBias
from rusbeir.diagnostics.saliency import Saliency
from rusbeir.diagnostics.source_bias import SourceBias
from rusbeir.diagnostics.store import FOLDER

PAGES = {
    "source-bias": "Source bias",
    "position": "Position bias",
    "language": "Language preference",
    "saliency": "Saliency",
}
"""kind -> the title of its page, <kind>.html, made of the template of that name."""
_REMEDY = "Remove it, and run `rusbeir diagnose` again."


def read_diagnoses(folders: Iterable[str | Path]) -> dict[str, list[dict[str, Any]]]:
    """Read the diagnoses in result folders.

    Returns:
        kind -> its documents, in the order of PAGES and then of file names.

    Raises:
        BadInput: naming the file, for one that is not as `rusbeir diagnose` writes it.
    """
    documents: dict[str, list[dict[str, Any]]] = {}
    for path in (path for folder in folders for path in sorted((Path(folder) / FOLDER).glob("*.json"))):
        kind = read_json(path, {"kind": set(PAGES)}, _REMEDY)["kind"]
        documents.setdefault(kind, []).append(read_json(path, _find_shape(kind), _REMEDY))
    return {kind: documents[kind] for kind in PAGES if kind in documents}


@cache
def _find_shape(kind: str) -> dict[str, Any]:
    """Find the shape of the documents of a kind: the fields of what writes them."""
    written: dict[str, dict[str, Any]] = {
        "source-bias": derive_shape(SourceBias),
        "position": derive_shape(PositionBias),
        "language": derive_shape(LanguagePreference),
        "saliency": {**derive_shape(Saliency), "sentences": [str]},
    }
    return {"kind": str, "version": str, **written[kind]}

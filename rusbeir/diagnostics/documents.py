"""Diagnoses in result folders, as `rusbeir diagnose` writes them: what each kind of them must hold, and its page."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rusbeir.datasets import read_json

FOLDER = "diagnoses"
_ABOUT = dict.fromkeys(("kind", "version", "dataset", "system", "signature", "fingerprint"), str)
_NUMBER = (float, None)
_DRAWN = ("published", "reversed", "expected", "low", "high", "lowest", "highest")
_DELTA = {
    "k": int, "source": str, "against": str, "safe": bool, "sentence": str, **dict.fromkeys(_DRAWN, _NUMBER),
}  # fmt: skip
_SCORE = {
    "k": int, "source": str, "alone": _NUMBER, "alone_answered": _NUMBER,
    **dict.fromkeys(("ndcg", "ndcg_answered", "reversed", "expected", "lowest", "highest", "share"), float),
}  # fmt: skip
_TREND = ("slope", "pearson", "pearson_p", "spearman", "spearman_p", "kendall", "kendall_p")
_COUNTED = {"n_queries": int, "ndcg": float, "psi": _NUMBER}
_CURVE = {
    **_COUNTED, "bucket": str, "sentence": str, "told": bool, "n_counted": int,
    **dict.fromkeys(("psi_counted", "low", "high", "p", "chance", "chance_high"), _NUMBER),
    "trend": (dict.fromkeys(_TREND, _NUMBER), None),
    "bins": [{"centre": float, "n_queries": int, "ndcg": _NUMBER, "low": _NUMBER, "high": _NUMBER}],
}  # fmt: skip
_SHAPES = {
    "source-bias": {
        "language": str, "sources": [str], "deltas": [_DELTA],
        "query_sets": [
            {"split": str, "n_queries": int, "n_answered": int, "n_tied": int, "scores": [_SCORE], "deltas": [_DELTA]}
        ],
    },
    "saliency": {
        "scale": str, "special_tokens": bool, "n_pairs": int, "n_documents": int, "mean": [float], "sd": [float],
        "thirds": [dict.fromkeys(("mean", "low", "high"), float)], "sentences": [str],
    },
    "position": {
        "language": str, "query_language": str, "tokens": str, "min_count": int, "curves": [_CURVE],
        "domains": [{**_COUNTED, "dataset": str}], "macro_ndcg": _NUMBER, "macro_psi": _NUMBER,
    },
}  # fmt: skip
PAGES = {"source-bias": "Source bias", "position": "Position bias", "saliency": "Saliency"}
"""kind -> the title of its page, <kind>.html, made of the template of that name."""


def read_diagnoses(folders: Iterable[str | Path]) -> dict[str, list[dict[str, Any]]]:
    """The diagnoses in these result folders: kind -> its documents, in the order of PAGES and then of file names.

    Raises BadInput, with the file, for one that is not as `rusbeir diagnose` writes it.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    for path in (path for folder in folders for path in sorted((Path(folder) / FOLDER).glob("*.json"))):
        remedy = "Remove it, and run `rusbeir diagnose` again."
        kind = read_json(path, {**_ABOUT, "kind": set(PAGES)}, remedy)["kind"]
        found.setdefault(kind, []).append(read_json(path, {**_ABOUT, **_SHAPES[kind]}, remedy))
    return {kind: found[kind] for kind in PAGES if kind in found}


def scale_curves(documents: Iterable[dict[str, Any]]) -> tuple[float, float]:
    """The ends of a scale, in tenths, that shows the first curve of each document, over all lengths, with intervals."""
    bins = [one for document in documents for curve in document["curves"][:1] for one in curve["bins"]]
    values = [one[key] for one in bins for key in ("ndcg", "low", "high") if one[key] is not None] or [0.0, 1.0]
    low = math.floor(10 * min(values)) / 10
    return low, max(math.ceil(10 * max(values)) / 10, low + 0.1)


def bound(documents: Iterable[dict[str, Any]]) -> float:
    """The end of a scale around 0 that shows all Relative Deltas of these diagnoses: a multiple of 10."""
    numbers = [delta[key] for one in documents for delta in one["deltas"] for key in _DRAWN]
    return 10 * math.ceil(max((abs(one) for one in numbers if one is not None), default=0) / 10) or 10


def place(value: float | None, limit: float, width: int = 240) -> float:
    """Where a value lies in a drawing of that width whose scale is from -limit to limit; the middle for None."""
    return round(width / 2 + (width / 2 - 6) * (value or 0) / limit, 1)


def draw_curve(document: dict[str, Any], width: int = 400, height: int = 160) -> tuple[str, str]:
    """The mean of a saliency curve and the band of one deviation around it, as points of an SVG; cut off at 0 and 1."""
    step = width / max(1, len(document["mean"]) - 1)

    def trace(sign: int) -> list[str]:
        values = (mean + sign * sd for mean, sd in zip(document["mean"], document["sd"], strict=False))
        return [f"{step * n:.1f},{height * (1 - min(1.0, max(0.0, value))):.1f}" for n, value in enumerate(values)]

    return " ".join(trace(0)), " ".join([*trace(1), *reversed(trace(-1))])

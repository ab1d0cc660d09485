"""What people's labels of a sample say of all the labels of a model, and which of its decisions they contradict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from rusbeir.audit.labels import KEEP, LABELS, Slice
from rusbeir.errors import BadInput
from rusbeir.evaluation.agreement import estimate_mean

_STRATUM = {"step": str, "kind": str, "label": {*LABELS.scale}}
LABELS_KEY = {
    "positive": {*LABELS.scale[1:]},
    "strata": [{**_STRATUM, "n": int}],
    "items": {str: {"id": str, "query_id": str, "doc_id": str, "action": str, "digest?": str, **_STRATUM}},
    "fingerprint": str,
    "seed": int,
    **{f"{name}?": str for name in Slice._fields},
}
"""What the key of a sheet of labels has."""
_MAX_DECISIONS = 10_000_000
Labels = Mapping[str, Mapping[str, int]]
"""rater -> item id -> label."""


def estimate_shares(people: Labels, key: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Of all pairs that the model labelled, the share that people would label with at least each threshold.

    By `>= t`: the model's own share (`judge`) and the fields of PoweredMean; {} for fewer than two labels. Where raters
    differ about a pair, it counts by the share of them that label it so. Raises BadInput for a damaged key.
    """
    sizes = {(row["step"], row["kind"], row["label"]): row["n"] for row in key["strata"]}
    if not (all(n > 0 for n in sizes.values()) and sum(sizes.values()) <= _MAX_DECISIONS):
        raise BadInput("The strata in the key of the sheets have impossible sizes. Restore the file.")
    # The pairs of a stratum differ in nothing that is known here, so those of the sample take its first places.
    ends = dict(zip(sizes, np.cumsum(list(sizes.values())).tolist(), strict=True))
    free = {stratum: ends[stratum] - n for stratum, n in sizes.items()}
    places: dict[int, list[int]] = {}
    for item, about in key["items"].items():
        stratum = about["step"], about["kind"], about["label"]
        if stratum not in free or free[stratum] == ends[stratum]:
            raise BadInput("The strata in the key of the sheets lack pairs of the sample. Restore the file.")
        if labels := [given[item] for given in people.values() if item in given]:
            places[free[stratum]] = labels
        free[stratum] += 1
    if len(places) < 2:
        return {}
    judge = np.repeat([label for _, _, label in sizes], list(sizes.values()))
    strata = np.repeat(np.arange(len(sizes)), list(sizes.values()))
    found = {}
    for threshold in LABELS.scale[1:]:
        positive = {place: float(np.mean(np.array(labels) >= threshold)) for place, labels in places.items()}
        mean = estimate_mean(positive, (judge >= threshold).astype(np.float64), strata)
        found[f">= {threshold}"] = {"judge": float((judge >= threshold).mean()), **asdict(mean)}
    return found


def list_contradicted(people: Labels, key: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The decisions whose label is on one side of the threshold and those of most people on the other.

    Those that changed something come first: they can be undone by their `decision`.
    """
    positive = key["positive"]
    found = []
    for item, about in sorted(key["items"].items()):
        labels = {rater: given[item] for rater, given in people.items() if item in given}
        n_positive = sum(label >= positive for label in labels.values())
        n_other = n_positive if about["label"] < positive else len(labels) - n_positive
        if 2 * n_other > len(labels):
            asked = {name: about[name] for name in ("step", "kind", "query_id", "doc_id", "action")}
            found.append({"decision": about["id"], "item": item, **asked, "judge": about["label"], "people": labels})
    return sorted(found, key=lambda row: row["action"] == KEEP)

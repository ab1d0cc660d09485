"""Diagnoses as JSON documents in a results folder, where `rusbeir report` finds them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from rusbeir.storage import atomic_file
from rusbeir.text import digest, slug

FOLDER = "diagnoses"


def save_diagnosis(document: Mapping[str, Any], out: str | Path) -> Path:
    """Write a diagnosis to out/diagnoses, in place of an older one of the same system and data; the path is returned.

    The document has kind, version, dataset, system, signature and fingerprint, and whatever else its page shows.
    """
    subject = [str(document[key]) for key in ("kind", "dataset", "system", "signature", "fingerprint")]
    name = f"{subject[0]}-{slug(' '.join(subject[1:3]))}-{digest(*subject, chars=10)}.json"
    path = Path(out) / FOLDER / name
    with atomic_file(path) as file:
        file.write(orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n")
    return path

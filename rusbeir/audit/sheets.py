"""Sheets on which people score translations, or label relevance, without knowing what a model made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from rusbeir.audit.aligned import open_port
from rusbeir.audit.judge import DIMENSIONS, SCALE, describe_dimensions
from rusbeir.audit.labels import DECISIONS, EVERYTHING, LABELS, Slice, draw_labels, guide_labels
from rusbeir.audit.sampling import draw_sample, hash_parts
from rusbeir.audit.sheet_files import Form, Guide, Line, write_sheet
from rusbeir.datasets.audited import QA
from rusbeir.errors import BadInput, option
from rusbeir.languages import english_name
from rusbeir.storage import atomic_file
from rusbeir.types import Progress, silent

FOLDER, KEY = "sheets", "key.json"
TRANSLATIONS = Form(texts=("source", "translation"), questions=DIMENSIONS, scale=SCALE)
FORMS = (TRANSLATIONS, LABELS)
_SCALE = {
    5: "no errors",
    4: "minor errors that do not disturb a reader",
    3: "errors that a reader notices, but the text is still useful",
    2: "serious errors",
    1: "useless, or not a translation",
}


class _Sample(NamedTuple):
    form: Form
    guide: Guide
    lines: Sequence[Line]
    key: Mapping[str, Any]
    """What sheets must not say: `fingerprint`, `items` by the ids of the lines, and what they are of."""


def make_sheets(
    folder: str | Path,
    *,
    n: int = 100,
    seed: int = 0,
    raters: int = 2,
    duplicates: int | None = None,
    source: str | Path | None = None,
    only: Slice = EVERYTHING,
    progress: Progress = silent,
) -> list[Path]:
    """Write qa/sheets/rater-1.csv, .xlsx and .html, the same for each rater, and return the paths.

    The folder is a checked port, whose translations are scored, or the outcome of `rusbeir synth qc`, of which pairs of
    query and document are labelled: those in the slice `only`. All raters get the same texts in different orders. Some
    (a tenth, where duplicates is None) are repeated under another id in the second half, to show how far raters agree
    with themselves. What the sheets do not say is in qa/sheets/key.json. Raises BadInput for a port that has not been
    checked, and where the folder contains sheets of another sample.
    """
    folder = Path(folder)
    if raters < 1:
        raise BadInput(f"{option('raters', raters)} is too small. Give at least 1.")
    if (folder / QA / DECISIONS).exists():
        drawn, about = draw_labels(folder, n=n, seed=seed, only=only, progress=progress)
        sample = _Sample(LABELS, guide_labels(), drawn, about)
    else:
        if only != EVERYTHING:
            raise BadInput(f"{folder} has no {QA}/{DECISIONS}, so there is nothing to choose by step, kind or action.")
        sample = _draw_translations(folder, n, seed, source, progress)
    lines = sample.lines
    n_twice = len(lines) // 10 if duplicates is None else duplicates
    if not 0 <= n_twice <= len(lines):
        raise BadInput(
            f"{option('duplicates', n_twice)} is not possible. Give 0 to {len(lines)}, the number of texts "
            f"in the sample."
        )
    twice = {line.item: _make_id(seed, "again", line.item) for line in lines[:n_twice]}
    key = {**sample.key, "duplicates": {again: first for first, again in twice.items()}}
    home = folder / QA / FOLDER
    data = orjson.dumps(key, option=orjson.OPT_INDENT_2) + b"\n"
    if (home / KEY).exists() and (home / KEY).read_bytes() != data:
        raise BadInput(
            f"{home} contains the sheets of another sample. Move the folder away, so that no scores are lost."
        )
    with atomic_file(home / KEY) as file:
        file.write(data)
    paths = []
    for rater in range(1, raters + 1):
        name = f"rater-{rater}"
        first = sorted(lines, key=lambda line: _make_id(seed, name, line.item))
        again = [line._replace(item=twice[line.item]) for line in first if line.item in twice]
        shown = _insert_repeats(first, again)
        paths += write_sheet(home / name, shown, sample.form, sample.guide, key["fingerprint"])
    return paths


def _draw_translations(folder: Path, n: int, seed: int, source: str | Path | None, progress: Progress) -> _Sample:
    port = open_port(folder, source=source, progress=progress)
    items = draw_sample(port, n, seed)
    first, second = (english_name(language) for language in port.languages)
    guide = Guide(
        "Translations to score",
        f"Score each translation from {first} into {second} on four dimensions, each from 1 to 5. Judge each dimension "
        "independently of the others.",
        (first, second),
        describe_dimensions(),
        _SCALE,
    )
    key = {
        "port": port.dataset.card.name,
        "fingerprint": port.dataset.fingerprint,
        "seed": seed,
        "items": {
            item.item_id: {
                "id": item.record_id,
                "digest": item.digest,
                "weight": item.weight,
                **item.stratum._asdict(),
            }
            for item in items
        },
    }
    return _Sample(TRANSLATIONS, guide, [Line(item.item_id, item.source, item.translation) for item in items], key)


def _insert_repeats(first: Sequence[Line], again: Sequence[Line]) -> list[Line]:
    """The lines, with the repeated ones spread over the second half."""
    lines = list(first)
    middle = len(lines) // 2
    for n, line in enumerate(again):
        lines.insert(middle + 1 + round((n + 1) * (len(first) - middle) / (len(again) + 1)) + n, line)
    return lines


def _make_id(seed: int, *parts: str) -> str:
    return hash_parts(seed, *parts).hex()[:12]

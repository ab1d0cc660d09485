"""Sheets on which people score translations, or label relevance, without knowing what a model made of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from rusbeir.audit import open_port, refresh_page
from rusbeir.datasets import QA, load_audited, read_json, write_audit_command
from rusbeir.errors import BadInput, option
from rusbeir.languages import english_name
from rusbeir.people.judge import DIMENSIONS, JUDGE, SCALE, Scores, describe_dimensions
from rusbeir.people.labels import (
    EVERYTHING,
    LABELS,
    LABELS_KEY,
    Slice,
    draw_labels,
    find_unchanged_pairs,
    guide_labels,
)
from rusbeir.people.sampling import draw_sample, find_digest, hash_parts
from rusbeir.people.sheet_files import ENDINGS, Form, Guide, Line, Sheet, read_sheet, write_sheet
from rusbeir.storage import atomic_file
from rusbeir.synthesis import DECISIONS
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


class _Content(NamedTuple):
    """The texts that the sheets of a sample show, and what they must not show."""

    form: Form
    guide: Guide
    lines: Sequence[Line]
    key: Mapping[str, Any]
    """What the sheets must not say: `fingerprint`, `items` by the ids of the lines, and what they were made of."""


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
    """Write sheets on which people score a sample: qa/sheets/rater-1.csv, .xlsx and .html, and so on for each rater.

    All raters get the same texts in different orders. Some are repeated under another id in the second half, to show
    how far raters agree with themselves. What the sheets do not say is in qa/sheets/key.json.

    Args:
        folder: A checked port, whose translations are scored, or the outcome of `rusbeir synth qc`, of which pairs of
            query and document are labelled.
        n: The number of texts in the sample.
        seed: Seed of the sample and of the orders.
        raters: The number of raters.
        duplicates: The number of texts that are repeated; by default a tenth.
        source: Name or path of the dataset that was translated, where the port does not name it.
        only: The decisions of quality control that pairs are drawn from.
        progress: Receives what is being done.

    Returns:
        The paths of the files that were written; those that exist are left as they are.

    Raises:
        BadInput: The port has not been checked, or the folder contains sheets of another sample.
    """
    folder = Path(folder)
    if raters < 1:
        raise BadInput(f"{option('raters', raters)} is too small. Give at least 1.")
    if (folder / QA / DECISIONS).exists():
        drawn, about = draw_labels(folder, n=n, seed=seed, only=only, progress=progress)
        content = _Content(LABELS, guide_labels(), drawn, about)
    else:
        if only != EVERYTHING:
            raise BadInput(f"{folder} has no {QA}/{DECISIONS}, so there is nothing to choose by step, kind or action.")
        content = _draw_translations(folder, n, seed, source, progress)
    lines = content.lines
    n_twice = len(lines) // 10 if duplicates is None else duplicates
    if not 0 <= n_twice <= len(lines):
        raise BadInput(
            f"{option('duplicates', n_twice)} is not possible. Give 0 to {len(lines)}, the number of texts "
            f"in the sample."
        )
    twice = {line.item: _make_id(seed, "again", line.item) for line in lines[:n_twice]}
    key = {**content.key, "duplicates": {again: first for first, again in twice.items()}}
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
        paths += write_sheet(home / name, shown, content.form, content.guide, key["fingerprint"])
    if content.form is TRANSLATIONS:
        refresh_page(folder / QA)
    return paths


def _draw_translations(folder: Path, n: int, seed: int, source: str | Path | None, progress: Progress) -> _Content:
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
    return _Content(TRANSLATIONS, guide, [Line(item.item_id, item.source, item.translation) for item in items], key)


def _insert_repeats(first: Sequence[Line], again: Sequence[Line]) -> list[Line]:
    """The lines, with the repeated ones spread over the second half."""
    lines = list(first)
    middle = len(lines) // 2
    for n, line in enumerate(again):
        lines.insert(middle + 1 + round((n + 1) * (len(first) - middle) / (len(again) + 1)) + n, line)
    return lines


def _make_id(seed: int, *parts: str) -> str:
    return hash_parts(seed, *parts).hex()[:12]


_TEXT = {
    "kind?": str, "id?": str, "digest?": str, "weight?": float, "length?": int, "decile?": int, "flagged?": bool,
}  # fmt: skip


class AllChanged(BadInput):
    """No text on the sheets is that of the port as it is now."""


class People(NamedTuple):
    """Filled sheets."""

    form: Form
    key: Mapping[str, Any]
    """What the sheets do not say (`rusbeir.people.sheets`); {} where it is not known."""
    raters: Mapping[str, Scores]
    """The answers of each, repeated texts among them, without texts that have changed."""
    unanswered: Mapping[str, Mapping[str, int]]
    """How many `answers`, in how many `texts`, each rater left open; raters who left none are not listed."""
    n_changed: int
    """Texts that have changed since the sheets were made."""


def read_people(paths: Sequence[str | Path], port: str | Path | None) -> People:
    """Read filled sheets of one sample; port is the folder that they were made of, where it is known.

    Raises BadInput as read_sheet, and for sheets of different samples; AllChanged where nothing is left of them.
    """
    key = _read_key(
        Path(port) / QA / FOLDER / KEY if port is not None else Path(paths[0]).with_name(KEY), port is not None
    )
    twice: Mapping[str, str] = key.get("duplicates", {})
    known = [*key["items"], *twice] if key else None
    sheets = [read_sheet(path, FORMS, known) for path in paths]
    form = sheets[0].form
    if differ := [sheet.path for sheet in sheets if sheet.form != form]:
        raise BadInput(f"{sheets[0].path} and {differ[0]} ask different questions. Give sheets of the same sample.")
    raters = _join_files(sheets)
    changed = set() if port is None else key["items"].keys() - _find_unchanged(Path(port), key)
    raters = {
        rater: {item: row for item, row in scores.items() if twice.get(item, item) not in changed}
        for rater, scores in raters.items()
    }
    n_answered = {twice.get(item, item) for scores in raters.values() for item, row in scores.items() if row}
    if port is not None and not n_answered:
        raise AllChanged(
            f"{port} has changed since its sheets were made: no text that people scored is the same. Move "
            f"{QA}/{FOLDER} away, and run `{write_audit_command('sheet', Path(port))}` again."
        )
    for (rater, first), (other, second) in combinations(raters.items(), 2):
        if not any(first[item].keys() & second[item].keys() for item in first.keys() & second.keys()):
            raise BadInput(f"{rater} and {other} have no scored text in common. Give sheets of the same sample.")
    return People(form, key, raters, dict(_count_unanswered(raters, len(form.questions))), len(changed))


def list_filled(folder: Path) -> list[Path]:
    """The sheets in a port's folder that somebody has answered, in whatever format."""
    paths = [path for path in sorted((folder / QA / FOLDER).glob("*")) if path.suffix.lower() in ENDINGS]
    # Programs leave files with such names while a sheet is open.
    named = [path for path in paths if not path.name.startswith((".", "~$"))]
    return [path for path in named if any(read_sheet(path, FORMS, blank=True).scores.values())]


def _read_key(path: Path, needed: bool) -> dict[str, Any]:
    if not path.exists():
        if needed:
            raise BadInput(
                f"{path} does not exist. `rusbeir audit sheet` writes it together with the sheets; give their folder."
            )
        return {}
    remedy = "Restore the file that `rusbeir audit sheet` wrote with the sheets."
    of_labels = "strata" in read_json(path, {}, remedy)
    items = LABELS_KEY if of_labels else {"items": {str: _TEXT}}
    key: dict[str, Any] = read_json(path, {**items, "fingerprint?": str, "duplicates?": {str: str}}, remedy)
    return key


def _find_unchanged(folder: Path, key: Mapping[str, Any]) -> Iterable[str]:
    """The items whose texts are still those of the folder; a text that has gone counts as changed."""
    if "strata" in key:
        return find_unchanged_pairs(folder, key)
    dataset = load_audited(folder).dataset
    items = key["items"]
    if not any("digest" in about for about in items.values()):
        # Sheets of earlier versions know only the whole port.
        return items if key.get("fingerprint") == dataset.fingerprint else ()
    return [item for item, about in items.items() if about.get("digest") == find_digest(dataset, about)]


def _join_files(sheets: Sequence[Sheet]) -> dict[str, Scores]:
    """The scores by rater: the name of the file; its path where files of that name are in several folders.

    Files of one name in one folder, such as rater-1.csv and rater-1.xlsx, are one rater's. Raises BadInput where those
    differ, where a sheet is given twice, and for files of one name that have the same answers.
    """
    raters: dict[Path, dict[str, dict[str, int]]] = {}
    of_rater: dict[Path, Sheet] = {}
    for n, sheet in enumerate(sheets):
        path = sheet.path.resolve()
        if any(path == other.path.resolve() for other in sheets[:n]):
            raise BadInput(f"{sheet.path} was given twice. Give each sheet once.")
        rater = path.with_suffix("")
        first = of_rater.setdefault(rater, sheet)
        for item, row in sheet.scores.items():
            known = raters.setdefault(rater, {}).setdefault(item, {})
            for question, answer in row.items():
                if known.setdefault(question, answer) != answer:
                    raise BadInput(
                        f"{first.path} and {sheet.path} are one rater's, by their name, and differ: {question} of "
                        f"{item} is {known[question]} and {answer}. Give one of them, or rename one."
                    )
    for (rater, scores), (other, others) in combinations(raters.items(), 2):
        if rater.name == other.name and scores == others:
            raise BadInput(
                f"{of_rater[rater].path} and {of_rater[other].path} have the same name and the same answers, so they "
                "are one rater's. Give one of them, or rename one."
            )
    names = [rater.name for rater in raters]
    return {
        rater.name if names.count(rater.name) == 1 and rater.name != JUDGE else str(of_rater[rater].path): scores
        for rater, scores in raters.items()
    }


def _count_unanswered(raters: Mapping[str, Scores], n_questions: int) -> Iterable[tuple[str, dict[str, int]]]:
    for rater, scores in raters.items():
        if left := [n_questions - len(row) for row in scores.values() if len(row) < n_questions]:
            yield rater, {"answers": sum(left), "texts": len(left)}

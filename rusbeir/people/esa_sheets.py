"""Pages on which people mark the errors of translations and score them from 0 to 100 (ESA), and Pearmut campaigns."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from rusbeir.audit import AlignedPort, clean_text, open_port, refresh_page, template_environment
from rusbeir.datasets import QA, read_json
from rusbeir.errors import BadInput, option, unknown
from rusbeir.languages import english_name
from rusbeir.people.sampling import Item, TextStratum, draw_sample, hash_parts
from rusbeir.people.sheet_files import MAX_CHARS
from rusbeir.storage import atomic_file
from rusbeir.types import Progress, silent

ESA_FOLDER: Final = "esa"
KEY: Final = "key.json"
CAMPAIGN: Final = "pearmut.json"
FORMATS = ("html", "pearmut")
MODEL: Final = "port"
"""The name of the only system of a Pearmut campaign."""
_LEAST_WORDS = 4
"""Texts of fewer words are damaged by characters: they are short, or their script has no spaces."""
_REMEDY = "Restore the file that `rusbeir audit sheet --protocol esa` wrote with the sheets."
_TEXT = {"kind": {"document", "query"}, "id": str, "digest": str, "weight": float, "length": int, "decile": int,
         "flagged": bool, "source": str, "translation": str}  # fmt: skip
_KEY = {
    "protocol": {"esa"}, "fingerprint": str, "items": {str: _TEXT}, "repeats": {str: str},
    "checks": {str: {"of": str, "translation": str, "start": int, "end": int}}, "raters": {str: [str]},
}  # fmt: skip


class Damage(NamedTuple):
    """A translation in which words were replaced, and the characters from start to before end that are new."""

    translation: str
    start: int
    end: int


class Campaign(NamedTuple):
    """The raters of a campaign, and which of them see what."""

    raters: int = 2
    overlap: int | None = None
    """How many raters see each text; None means all."""
    repeats: float = 0.1
    """The share of a rater's texts that are shown again."""
    attention: float = 0.0
    """The share of a rater's texts of which a damaged copy is shown, too."""


ONE_SHEET_EACH = Campaign()


def make_esa_sheets(
    folder: str | Path,
    *,
    n: int = 100,
    seed: int = 0,
    campaign: Campaign = ONE_SHEET_EACH,
    format: str = "html",
    source: str | Path | None = None,
    progress: Progress = silent,
) -> list[Path]:
    """Write what people need to mark the errors of a sample: qa/esa/rater-1.html and so on, or qa/esa/pearmut.json.

    What the sheets do not say (the texts, which are repeated or damaged) is in qa/esa/key.json.

    Args:
        folder: A checked port.
        n: The number of texts in the sample; with the same seed they are those of `judge_port`.
        seed: Seed of the sample, its order, and the damage.
        campaign: How many raters there are, how many see each text, and what is repeated or damaged.
        format: "html", a page for each rater, or "pearmut", a campaign with a task for each rater.
        source: Name or path of the dataset that was translated, where the port does not name it.
        progress: Receives what is being done.

    Returns:
        The paths of the files that were written; those that exist are left as they are.

    Raises:
        BadInput: The port has not been checked, the folder has sheets of another sample, or the campaign is impossible.
        UnknownName: The format is not known.
    """
    if format not in FORMATS:
        raise unknown("format", format, FORMATS)
    _refuse_impossible(campaign)
    port = open_port(folder, source=source, progress=progress)
    items = draw_sample(port, n, seed)
    key = _make_key(port, items, campaign, seed)
    home = port.folder / QA / ESA_FOLDER
    data = orjson.dumps(key, option=orjson.OPT_INDENT_2) + b"\n"
    if (home / KEY).exists() and (home / KEY).read_bytes() != data:
        raise BadInput(
            f"{home} contains the sheets of another sample. Move the folder away, so that no scores are lost."
        )
    contents = {KEY: data}
    if format == "pearmut":
        contents[CAMPAIGN] = _format_campaign(key, port)
    else:
        contents |= {f"{rater}.html": _format_page(key, rater, port) for rater in key["raters"]}
    paths = []
    for name, content in contents.items():
        if not (path := home / name).exists():
            with atomic_file(path) as file:
                file.write(content)
            paths.append(path)
    refresh_page(port.folder / QA)
    return [path for path in paths if path.name != KEY]


def read_esa_key(folder: Path) -> dict[str, Any]:
    """Read the key of the sheets in a folder. Raises BadInput where it is missing or damaged."""
    if not (folder / KEY).exists():
        raise BadInput(
            f"{folder / KEY} does not exist. `rusbeir audit sheet --protocol esa` writes it with the sheets."
        )
    key: dict[str, Any] = read_json(folder / KEY, _KEY, _REMEDY)
    copies = [*key["repeats"].values(), *(check["of"] for check in key["checks"].values())]
    if not {*copies} <= key["items"].keys():
        raise BadInput(f"{folder / KEY} repeats texts that are not in its sample. {_REMEDY}")
    return key


def load_items(key: Mapping[str, Any]) -> list[Item]:
    """The sample in a key, without the segments of its texts."""
    return [
        Item(
            item_id, about["kind"], about["id"], about["source"], about["translation"],
            TextStratum(about["kind"], about["length"], about["decile"], about["flagged"]), about["weight"],
            about["digest"], (),
        )
        for item_id, about in key["items"].items()
    ]  # fmt: skip


def find_texts(key: Mapping[str, Any], item: str) -> tuple[str, str]:
    """The source and the translation that an item of a sheet shows; copies included."""
    check = key["checks"].get(item)
    about = key["items"][check["of"] if check else key["repeats"].get(item, item)]
    return about["source"], check["translation"] if check else about["translation"]


def _refuse_impossible(campaign: Campaign) -> None:
    if campaign.raters < 1:
        raise BadInput(f"{option('raters', campaign.raters)} is too small. Give at least 1.")
    if campaign.overlap is not None and not 1 <= campaign.overlap <= campaign.raters:
        raise BadInput(
            f"{option('overlap', campaign.overlap)} is not possible. Give 1 to {campaign.raters}, the raters."
        )
    if not 0 <= campaign.attention <= 1:
        raise BadInput(f"{option('attention', campaign.attention)} is not a share. Give 0% to 100%.")


def _make_key(port: AlignedPort, items: Sequence[Item], campaign: Campaign, seed: int) -> dict[str, Any]:
    texts = {
        item.item_id: {
            "kind": item.kind, "id": item.record_id, "digest": item.digest, "weight": item.weight,
            **item.stratum._asdict(), "source": clean_text(item.source, MAX_CHARS),
            "translation": clean_text(item.translation, MAX_CHARS),
        }
        for item in items
    }  # fmt: skip
    repeats: dict[str, str] = {}
    checks: dict[str, dict[str, Any]] = {}
    raters: dict[str, list[str]] = {}
    for rater, assigned in _assign(list(texts), campaign, seed).items():
        order = sorted(assigned, key=lambda item: _make_id(seed, rater, item))
        again = [_make_id(seed, "again", item) for item in order[: math.floor(len(order) * campaign.repeats)]]
        repeats |= dict(zip(again, order, strict=False))
        damaged = []
        # Those at the end are not repeated, so that no text is shown three times.
        for item in order[::-1][: math.ceil(len(order) * campaign.attention)]:
            damaged.append(_make_id(seed, "damaged", item))
            checks[damaged[-1]] = {"of": item, **_damage_text(texts, item, seed)._asdict()}
        raters[rater] = _insert_copies(order, [*again, *damaged], {**repeats, **{c: checks[c]["of"] for c in damaged}})
    return {
        "protocol": "esa", "port": port.dataset.card.name, "fingerprint": port.dataset.fingerprint, "seed": seed,
        "items": texts, "repeats": repeats, "checks": checks, "raters": raters,
    }  # fmt: skip


def _assign(items: Sequence[str], campaign: Campaign, seed: int) -> dict[str, list[str]]:
    """Give each text to as many raters as the overlap asks for: always to those who have the fewest."""
    raters: dict[str, list[str]] = {f"rater-{number}": [] for number in range(1, campaign.raters + 1)}
    for item in items:
        order = sorted(raters, key=lambda rater: (len(raters[rater]), _make_id(seed, rater, item)))
        for rater in order[: campaign.overlap]:
            raters[rater].append(item)
    return raters


def _insert_copies(order: Sequence[str], copies: Sequence[str], first: Mapping[str, str]) -> list[str]:
    """The items with each copy half the sheet away from the text that it repeats."""
    half = len(order) / 2
    positions = {item: float(index) for index, item in enumerate(order)}
    for copy in copies:
        position = positions[first[copy]]
        positions[copy] = position + half if position < half else position - half
    return sorted(positions, key=lambda item: (positions[item], item))


def _damage_text(texts: Mapping[str, Mapping[str, Any]], item: str, seed: int) -> Damage:
    translation = texts[item]["translation"]
    donors = [about["translation"] for other, about in texts.items() if other != item]
    draw = random.Random(_make_id(seed, "damage", item))
    draw.shuffle(donors)
    for donor in donors:
        damage = plant_damage(translation, donor, draw)
        if damage.translation.split() != translation.split():
            return damage
    raise BadInput("Attention checks need at least two different texts. Draw more, or ask for no attention checks.")


def plant_damage(translation: str, donor: str, draw: random.Random) -> Damage:
    """Replace a run of words of a translation by as many of another one: a quarter of it, at least two words.

    >>> plant_damage("one two three four", "a b c d", random.Random(0))
    Damage(translation='one two c d', start=8, end=11)
    """
    units, others = (
        [match.span() for match in re.finditer(r"\S+", text)] if len(translation.split()) >= _LEAST_WORDS
        else [(start, start + 1) for start in range(len(text))]
        for text in (translation, donor)
    )  # fmt: skip
    n = min(max(2, len(units) // 4), len(units), len(others))
    if not n:
        return Damage(translation, 0, 0)
    first, other = draw.randint(0, len(units) - n), draw.randint(0, len(others) - n)
    start, end = units[first][0], units[first + n - 1][1]
    words = donor[others[other][0] : others[other + n - 1][1]]
    return Damage(translation[:start] + words + translation[end:], start, start + len(words))


def _make_id(seed: int, *parts: str) -> str:
    return hash_parts(seed, *parts).hex()[:12]


def _format_page(key: Mapping[str, Any], rater: str, port: AlignedPort) -> bytes:
    rows = [
        dict(zip(("item", "source", "translation"), (item, *find_texts(key, item)), strict=True))
        for item in key["raters"][rater]
    ]
    page: str = template_environment().get_template("esa.html.j2").render(
        rows=rows, name=rater, fingerprint=key["fingerprint"][:16], tags=port.languages,
        languages=[english_name(language) for language in port.languages],
    )  # fmt: skip
    return page.encode()


def _format_campaign(key: Mapping[str, Any], port: AlignedPort) -> bytes:
    """The campaign in Pearmut's format: a task for each rater, and a document for each text."""
    first, second = (english_name(language) for language in port.languages)
    tasks = []
    for items in key["raters"].values():
        task = []
        for item in items:
            source, translation = find_texts(key, item)
            task.append([{"item_id": item, "src": source, "tgt": {MODEL: translation}}])
        if task:
            task[0][0]["instructions"] = f"Evaluate the translation from {first} into {second}."
        tasks.append(task)
    info = {"assignment": "task-based", "protocol": "ESA", "users": [*key["raters"]]}
    campaign = {"info": info, "campaign_id": f"rusbeir-{key['fingerprint'][:12]}-{key['seed']}", "data": tasks}
    return orjson.dumps(campaign, option=orjson.OPT_INDENT_2) + b"\n"

"""How far people who mark errors and score from 0 to 100 agree with each other, with themselves and with a judge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from rusbeir import __version__
from rusbeir.audit import SOURCE, TRANSLATION, Extent
from rusbeir.datasets import QA, load_audited, read_card, write_audit_command
from rusbeir.errors import BadInput
from rusbeir.evaluation import FEW_SAMPLES, SAMPLES, Figure, Floats, resample_means
from rusbeir.people.agreement import PEOPLE
from rusbeir.people.error_spans import SEVERITIES
from rusbeir.people.esa_sheets import CAMPAIGN, ESA_FOLDER, KEY, find_texts, load_items, read_esa_key
from rusbeir.people.judge import JUDGE, find_shared_families
from rusbeir.people.raters import estimate_means, estimate_powered_mean
from rusbeir.people.rating_files import MarkedSpan, Rating, is_rating_file, read_ratings
from rusbeir.people.sampling import find_digest
from rusbeir.people.sheets import AllChanged
from rusbeir.people.span_agreement import compute_measures, credit_spans
from rusbeir.people.span_report import SCALES, read_span_verdicts

_MANY_TEXTS = 2_000
"""Texts above which fewer resamples are drawn."""
_MIN_TEXTS = 3
"""Texts in common below which two raters are not compared."""


def agree_on_errors(files: Sequence[str | Path], *, port: str | Path | None = None, seed: int = 0) -> dict[str, Any]:
    """Measure how far raters agree on scores and marked errors, also with a judge, and their means for the port.

    Args:
        files: Files of ratings (`rusbeir.people.rating_files`). Files of one rater are merged text by text.
        port: The folder that sheets were made of. Their key is read from it, else from the folder of the first file;
            without a key, repeated texts and attention checks are not known, and no mean is weighted.
        seed: Seed of the resamples.

    Returns:
        The report (docs/json.md).

    Raises:
        BadInput: A file cannot be read, or a rating is of a text that is not in the sample.
    """
    ratings = read_ratings(files)
    home = Path(port) / QA / ESA_FOLDER if port is not None else Path(files[0]).parent
    key = read_esa_key(home) if port is not None or (home / KEY).exists() else None
    counts: Counter[str] = Counter()
    changed: set[str] = set()
    everything = ratings.raters
    if key is not None:
        _refuse_unknown(everything, key, home)
        everything = {rater: _verify(rows, key, counts) for rater, rows in ratings.raters.items()}
        changed = _find_changed(Path(port), key) if port is not None else set()
    copies: Mapping[str, Any] = {"checks": ratings.checks, "repeats": ratings.repeats} if key is None else key
    people = _leave_out(everything, changed, copies, scored=key is not None)
    judge, families = ({}, []) if port is None else _read_judge(Path(port))
    raters = {**people, JUDGE: judge} if judge else people
    rated = {item for rows in people.values() for item in rows}
    if changed and not rated:
        again = write_audit_command("sheet", Path(str(port)), "--protocol", "esa")
        raise AllChanged(
            f"{port} has changed since its sheets were made: no text that people rated is the same. Move "
            f"{QA}/{ESA_FOLDER} away, and run `{again}` again."
        )
    return {
        "version": __version__,
        "protocol": "esa",
        "raters": {rater: len(rows) for rater, rows in raters.items()},
        "texts": len(rated),
        "changed": len(changed),
        "doubles": ratings.n_doubles,
        "unscored": _count_unscored(everything, key),
        "spans": {name: counts[name] for name in ("marked", "not_in_text", "overlapping")},
        "checks": _check_attention(everything, copies["checks"]),
        "self": _compare_repeats(everything, copies["repeats"], seed),
        "pairs": [
            {"raters": [first, second], **_compare(raters[first], raters[second], seed)}
            for first, second in combinations(raters, 2)
            if not raters[first].keys().isdisjoint(raters[second])
        ],
        "means": {rater: _average(rows) for rater, rows in raters.items()},
        "port": {} if key is None else _weigh(people, judge, key, changed),
        "shared_families": families,
    }


def list_rated(folder: Path) -> list[Path]:
    """The files of ratings in a port's folder, next to the sheets that they are of."""
    paths = sorted((folder / QA / ESA_FOLDER).glob("[!.~]*"))
    return [path for path in paths if path.name not in (KEY, CAMPAIGN) and path.is_file() and is_rating_file(path)]


def _refuse_unknown(raters: Mapping[str, Mapping[str, Rating]], key: Mapping[str, Any], home: Path) -> None:
    known = key["items"].keys() | key["repeats"].keys() | key["checks"].keys()
    for rater, rows in raters.items():
        if unknown := next((item for item in rows if item not in known), None):
            raise BadInput(f"{rater} rated {unknown!r}, which is not in the sample of {home}. Give its own ratings.")


def _verify(rows: Mapping[str, Rating], key: Mapping[str, Any], counts: Counter[str]) -> dict[str, Rating]:
    """The ratings without errors that are not in the texts, and without the milder one of two that overlap."""
    verified = {}
    for item, rating in rows.items():
        texts = dict(zip((SOURCE, TRANSLATION), find_texts(key, item), strict=True))
        spans: list[MarkedSpan] = []
        for span in sorted(rating.spans or (), key=lambda span: -_rank(span)):
            counts["marked"] += 1
            text, (_, start, end) = texts.get(span.extent.side), span.extent
            if text is not None and (end > len(text) or span.words not in (None, "", text[start:end])):
                counts["not_in_text"] += 1
            elif text is not None and any(other.extent.overlaps(span.extent) for other in spans):
                counts["overlapping"] += 1
            else:
                spans.append(span)
        verified[item] = Rating.from_spans(rating.score, spans) if rating.spans is not None else rating
    return verified


def _rank(span: MarkedSpan) -> int:
    return SEVERITIES.index(span.severity) if span.severity in SEVERITIES else -1


def _find_changed(folder: Path, key: Mapping[str, Any]) -> set[str]:
    dataset = load_audited(folder).dataset
    return {item for item, about in key["items"].items() if about["digest"] != find_digest(dataset, about)}


def _leave_out(
    raters: Mapping[str, Mapping[str, Rating]], changed: set[str], copies: Mapping[str, Any], *, scored: bool
) -> dict[str, dict[str, Rating]]:
    """The ratings that are complete, scored ones alone if asked, without copies and texts that have changed."""
    left_out = changed | copies["repeats"].keys() | copies["checks"].keys()
    return {
        rater: {
            item: rating for item, rating in rows.items()
            if item not in left_out and (rating.score is not None or (rating.mqm is not None and not scored))
        }
        for rater, rows in raters.items()
    }  # fmt: skip


def _read_judge(folder: Path) -> tuple[dict[str, Rating], list[str]]:
    """The verdicts of the port's judge, and the families that it shares with the translators."""
    rows, _ = read_span_verdicts(folder)
    judge = {}
    for row in rows:
        spans = [
            MarkedSpan(Extent(error["in"], error["start"], error["end"]), error["severity"]) for error in row["errors"]
        ]
        score = row["score"] if row["protocol"] == "esa" else None
        judge[row["item"]] = Rating(score, spans, row["mqm"], row["major"])
    return judge, find_shared_families(rows[0]["judge"], read_card(folder).get("provenance", {})) if rows else []


def _count_unscored(raters: Mapping[str, Mapping[str, Rating]], key: Mapping[str, Any] | None) -> dict[str, int]:
    """Count the texts of their sheets that raters have not scored; those who scored all are not listed."""
    if key is None:
        return {}
    counts = {
        rater: sum(1 for item in items if (row := raters[rater].get(item)) is None or row.score is None)
        for rater, items in key["raters"].items()
        if rater in raters
    }
    return {rater: n for rater, n in counts.items() if n}


def _check_attention(
    raters: Mapping[str, Mapping[str, Rating]], checks: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Count for each rater the damaged texts that were scored, and those whose damage the rater missed.

    It is missed where no marked error touches the planted words, as far as these are known, and the score is not below
    that of the text as it is.
    """
    report = {}
    for rater, rows in raters.items():
        planted = {
            item: checks[item] for item in rows
            if item in checks and checks[item]["of"] and rows[item].score is not None
        }  # fmt: skip
        missed = [item for item, check in planted.items() if not _sees(rows[item], rows.get(check["of"]), check)]
        if planted:
            report[rater] = {"planted": len(planted), "missed": len(missed), "items": missed}
    return report


def _sees(rating: Rating, undamaged: Rating | None, check: Mapping[str, Any]) -> bool:
    damage = Extent(TRANSLATION, check["start"], check["end"])
    marked = any(span.extent.overlaps(damage) for span in rating.spans or ())
    lower = (
        undamaged is not None and undamaged.score is not None and rating.score is not None
        and rating.score < undamaged.score
    )  # fmt: skip
    return marked or lower


def _compare_repeats(
    raters: Mapping[str, Mapping[str, Rating]], repeats: Mapping[str, str], seed: int
) -> dict[str, dict[str, Any]]:
    """The agreement of each rater with their own rating of the same text."""
    report = {}
    for rater, rows in raters.items():
        pairs = [(repeats[again], again) for again in rows if repeats.get(again) in rows]
        if pairs:
            first_time, second_time = ({pair[0]: rows[pair[n]] for pair in pairs} for n in (0, 1))
            report[rater] = _compare(first_time, second_time, seed)
    return report


def _compare(first: Mapping[str, Rating], second: Mapping[str, Rating], seed: int) -> dict[str, Any]:
    """The agreement of two raters on the texts that both rated; figures are None for fewer than three texts."""
    items = [item for item in first if item in second]
    pairs = [(first[item], second[item]) for item in items]
    return {
        "n": len(items),
        **_compare_scores([(_score(left, right), _score(right, left)) for left, right in pairs], seed),
        "same_major": _resample_mean(
            [
                float(left.major == right.major)
                for left, right in pairs
                if left.major is not None and right.major is not None
            ],
            seed,
        ),
        "spans": _compare_spans(pairs, seed),
    }


def _score(rating: Rating, other: Rating) -> float | None:
    """The score where both have one, else what the errors cost."""
    return rating.score if rating.score is not None and other.score is not None else rating.mqm


def _compare_scores(scores: Sequence[tuple[float | None, float | None]], seed: int) -> dict[str, Any]:
    table = np.array([pair for pair in scores if None not in pair], dtype=np.float64).reshape(-1, 2)
    names = ("pearson", "mean_absolute_difference", "strictness")
    if len(table) < _MIN_TEXTS:
        return dict.fromkeys(names)
    first, second = table.T
    sums = np.stack([first, second, first * second, first**2, second**2, abs(first - second)], 1)
    values, drawn = _measure(sums.mean(axis=0)[None]), _measure(_draw(sums, seed))
    return {
        name: asdict(Figure.from_resamples(values[0, n], drawn[:, n], "texts")) for n, name in enumerate(names)
    }  # fmt: skip


def _measure(means: Floats) -> Floats:
    """Pearson's correlation (NaN where one of them is constant), difference and strictness, [n, 3]."""
    first, second, product, first_squared, second_squared, apart = means.T
    spread = (first_squared - first**2) * (second_squared - second**2)
    with np.errstate(divide="ignore", invalid="ignore"):
        pearson = np.where(spread > 1e-12, (product - first * second) / np.sqrt(np.maximum(spread, 0)), np.nan)
    return np.stack([np.clip(pearson, -1, 1), apart, first - second], axis=1)


def _draw(sums: Floats, seed: int) -> Floats:
    """The means of resampled rows, [samples, columns]."""
    return resample_means(sums.T, samples=SAMPLES if len(sums) <= _MANY_TEXTS else FEW_SAMPLES, seed=seed)


def _resample_mean(values: Sequence[float], seed: int) -> dict[str, Any] | None:
    if len(values) < _MIN_TEXTS:
        return None
    column = np.array(values)[:, None]
    return asdict(Figure.from_resamples(column.mean(), _draw(column, seed)[:, 0], "texts"))


def _compare_spans(pairs: Sequence[tuple[Rating, Rating]], seed: int) -> dict[str, Any] | None:
    """The F of the spans, micro-averaged; the first rater's are held against the second's."""
    credits = [
        credit_spans([span.extent for span in left.spans], [span.extent for span in right.spans])
        for left, right in pairs
        if left.spans is not None and right.spans is not None
    ]
    if len(credits) < _MIN_TEXTS:
        return None
    sums = np.array(credits, dtype=np.float64)
    value = compute_measures(sums.sum(axis=0)[None])[0, 2]
    return asdict(Figure.from_resamples(value, compute_measures(_draw(sums, seed))[:, 2], "texts"))


_FIGURES = ("score", "mqm", "major")
BOTH = "both"
"""People's means by their ratings and the judge's, in means that are weighted to the port."""


def _average(rows: Mapping[str, Rating]) -> dict[str, float]:
    columns = {name: [value for row in rows.values() if (value := getattr(row, name)) is not None] for name in _FIGURES}
    return {name: float(np.mean(values)) for name, values in columns.items() if values}


def _weigh(
    people: Mapping[str, Mapping[str, Rating]], judge: Mapping[str, Rating], key: Mapping[str, Any], changed: set[str]
) -> dict[str, Any]:
    """The means weighted to the port: of all people, a text counting by their mean, of the judge, and of both."""
    items = [item for item in load_items(key) if item.item_id not in changed]
    report: dict[str, Any] = {}
    for name in _FIGURES:
        means = {}
        for who, raters in ((PEOPLE, [*people.values()]), (JUDGE, [judge])):
            by_item: dict[str, list[float]] = {}
            for rows in raters:
                for item, row in rows.items():
                    if (value := getattr(row, name)) is not None and item in key["items"] and item not in changed:
                        by_item.setdefault(item, []).append(float(value))
            means[who] = {item: sum(values) / len(values) for item, values in by_item.items()}
            if len(means[who]) > 1:
                report.setdefault(who, {})[name] = estimate_means(items, means[who], SCALES[name])
        if both := estimate_powered_mean(items, means[PEOPLE], means[JUDGE], SCALES[name]):
            report.setdefault(BOTH, {})[name] = both
    return report

"""The errors that a judge marked in a sample of a port: a file for programs, a page for people, and the figures."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from rusbeir.audit import SOURCE, TRANSLATION, AlignedPort, template_environment
from rusbeir.datasets import QA, load_audited, read_jsonl
from rusbeir.people.error_spans import KINDS, SEVERITIES, SIDES
from rusbeir.people.raters import Scale, estimate_means, estimate_port_mean, read_sample
from rusbeir.people.sampling import Item, find_digest
from rusbeir.people.span_judge import SCORE_SCALE, count_spans
from rusbeir.people.span_votes import combine_votes, compare_votes
from rusbeir.storage import atomic_file

SPANS: Final = "spans.jsonl"
PAGE: Final = "spans.html"
SCALES: Mapping[str, Scale] = {
    # A quarter of the scale is to a score from 0 to 100 what 1 is to one from 1 to 5.
    "score": Scale(*SCORE_SCALE, step=(SCORE_SCALE[1] - SCORE_SCALE[0]) / 4),
    "mqm": Scale(-math.inf, 0),
    "major": Scale(0, 1),
}
_ERROR = {"in": {*SIDES}, "start": int, "end": int, "category": {*KINDS}, "severity": {*SEVERITIES},
          "segments": [str]}  # fmt: skip
_VERDICT = {
    "item": str, "kind": {"document", "query"}, "id": str, "digest": str, "weight": float, "length": int,
    "decile": int, "flagged": bool, "judge": str, "protocol": str, "score": (float, None), "mqm": (float, None),
    "major": (bool, None), "errors": ([_ERROR], None),
}  # fmt: skip


def report_spans(
    port: AlignedPort,
    items: Sequence[Item],
    answers: Sequence[Sequence[dict[str, Any] | None]],
    protocol: str,
    signature: str,
    seed: int,
) -> tuple[int, dict[str, Any]]:
    """Write qa/spans.jsonl and qa/spans.html; answers are those about each item, None for one that is not valid.

    Returns the number of texts with a verdict, and the keys of the report that are about errors.
    """
    valid = [[answer for answer in votes if answer is not None] for votes in answers]
    verdicts = {item.item_id: combine_votes(votes) for item, votes in zip(items, valid, strict=True) if votes}
    folder = port.folder / QA
    with atomic_file(folder / SPANS) as file:
        for item in items:
            file.write(orjson.dumps(_make_row(item, verdicts.get(item.item_id), protocol, signature)) + b"\n")
    errors = [error for verdict in verdicts.values() for error in verdict["errors"]]
    summary = {
        "means": _compute_means(items, verdicts),
        "marked": sum(bool(verdict["errors"]) for verdict in verdicts.values()),
        "spans": count_spans([vote for votes in valid for vote in votes]),
        "errors": _count_errors(errors),
        "agreement": compare_votes(valid, seed),
        "page": str(folder / PAGE),
    }
    rows = [(item, verdict) for item in items if (verdict := verdicts.get(item.item_id))]
    # The worst come first.
    rows.sort(key=lambda row: (row[1]["mqm"], row[1].get("score", 0)))
    page = template_environment().get_template("spans.html.j2").render(
        port=port.dataset.card.name, languages=port.languages, judge=signature, protocol=protocol, n=len(items),
        summary=summary, texts=[_show(*row) for row in rows],
    )  # fmt: skip
    with atomic_file(folder / PAGE) as file:
        file.write(page.encode())
    return len(verdicts), summary


def _make_row(item: Item, verdict: Mapping[str, Any] | None, protocol: str, signature: str) -> dict[str, Any]:
    """A line of qa/spans.jsonl; `rusbeir audit meta` reads kind, id, score and errors. Without a verdict they are None.

    The score of the protocol mqm is minus the sum of the errors' costs.
    """
    about = {"item": item.item_id, "kind": item.kind, "id": item.record_id, "digest": item.digest}
    row = {**about, "weight": item.weight, **item.stratum._asdict(), "judge": signature, "protocol": protocol}
    if verdict is None:
        return {**row, "score": None, "mqm": None, "major": None, "errors": None}
    errors = [{**error, "segments": _list_segments(item, error)} for error in verdict["errors"]]
    return {**row, "score": verdict["mqm"], **verdict, "errors": errors}


def _list_segments(item: Item, error: Mapping[str, Any]) -> list[str]:
    """The segments, as field/number, that the characters of an error are in."""
    names, end = [], 0
    for field in item.fields:
        number = 0
        for part in field.parts:
            start, end = end, end + len(part.source if error["in"] == SOURCE else part.translation)
            number += part.sent
            if part.sent and error["start"] < end and start < error["end"]:
                names.append(f"{field.name}/{number}")
        # The line break between two fields.
        end += 1
    return names


def _compute_means(items: Sequence[Item], verdicts: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    names = next(iter(verdicts.values()), {})
    return {
        name: estimate_means(items, {item: float(verdict[name]) for item, verdict in verdicts.items()}, scale)
        for name, scale in SCALES.items()
        if name in names
    }


def _count_errors(errors: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """kind -> severity -> errors; kinds without an error are left out."""
    counts = Counter((error["category"], error["severity"]) for error in errors)
    return {
        kind: {severity: counts[kind, severity] for severity in SEVERITIES}
        for kind in KINDS
        if any(counts[kind, severity] for severity in SEVERITIES)
    }


def _show(item: Item, verdict: Mapping[str, Any]) -> dict[str, Any]:
    """Show a text on the page."""
    sides = {SOURCE: item.source, TRANSLATION: item.translation}
    return {
        "item": item.item_id,
        "kind": item.kind,
        "id": item.record_id,
        "verdict": verdict,
        **{side: [*_cut(text, [error for error in verdict["errors"] if error["in"] == side])]
           for side, text in sides.items()},
    }  # fmt: skip


def _cut(text: str, errors: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Mapping[str, Any] | None]]:
    """Yield the text in pieces, each with the error that it is, or None; errors do not overlap."""
    end = 0
    for error in sorted(errors, key=lambda error: error["start"]):
        if error["start"] > end:
            yield text[end : error["start"]], None
        yield text[error["start"] : error["end"]], error
        end = error["end"]
    if end < len(text):
        yield text[end:], None


def describe_spans(folder: Path) -> tuple[str, int]:
    """Describe what a judge marked in a port, in a sentence for its card, and count the texts changed since.

    The sentence is "" where no text has a verdict. Raises BadInput for a damaged file.
    """
    rows, n_changed = read_span_verdicts(folder)
    if not rows:
        return "", n_changed
    severe = {row["item"]: float(row["major"]) for row in rows}
    mean = estimate_port_mean(severe, read_sample({row["item"]: row for row in rows}), (0, 1))
    share = (
        ""
        if mean is None
        else (
            f" Of all texts, {mean.mean:.1%} have a major error in its eyes ({mean.interval[0]:.1%} to "
            f"{mean.interval[1]:.1%})."
        )
    )
    return f"A language model marked the errors of {len(rows):,} texts (`rusbeir audit judge`).{share}", n_changed


def read_span_verdicts(folder: Path) -> tuple[list[dict[str, Any]], int]:
    """The rows of qa/spans.jsonl that have a verdict, and how many more are of texts that have changed since.

    A folder in which no errors were marked has none. Raises BadInput for a damaged file.
    """
    path = folder / QA / SPANS
    if not path.exists():
        return [], 0
    again = "Run `rusbeir audit judge` again; answers that it has are not paid for twice."
    rows = [row for row in read_jsonl(path, _VERDICT, again) if row["errors"] is not None]
    if not rows:
        return [], 0
    dataset = load_audited(folder).dataset
    current = [row for row in rows if row["digest"] == find_digest(dataset, row)]
    return current, len(rows) - len(current)

"""The evidence of how a dataset was made and checked, from its card and from what the audit left in its folder."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any

from rusbeir.datasets import QA, read_audit, read_json, write_audit_command
from rusbeir.errors import BadInput
from rusbeir.people import (
    ESA_FOLDER,
    FOLDER,
    JUDGE,
    PEOPLE,
    SPANS,
    VERDICTS,
    AllChanged,
    agree,
    agree_on_errors,
    describe_spans,
    list_filled,
    list_rated,
    read_verdicts,
)
from rusbeir.types import Card

_VALIDITY = {
    "conclusion": [str],
    "measure": str,
    "tasks": [{"original": str, "port": str, "systems": [str], "verdict": str}],
}

_RATED = (("score", "score, 0 to 100,", ".1f"), ("mqm", "MQM score", ".2f"), ("major", "with a major error", ".1%"))
"""The figures of ratings with errors: their names, what a card calls them, and their form."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The claims that a card may make."""

    made_by: str
    """"port", "rewrite", "queries", "qc", "nano"; "" for a dataset that rusbeir did not make."""
    n_judged: int
    """Texts that a language model has scored on four dimensions."""
    n_read: int
    """Texts that people have scored on sheets of one protocol, the most."""
    marked: str = ""
    """What a language model marked as errors, as a sentence."""
    people: str = ""
    """What people scored, as sentences."""
    report: Mapping[str, Any] | None
    """The report of `rusbeir audit check`, if there is one."""
    validity: tuple[str, ...] = ()
    """What `rusbeir validity` concludes of it, where that was given: the band to compare with, then each verdict."""
    agreement: str = ""
    """What `rusbeir nano` concludes of a small version."""
    whole_made_by: str = ""
    """The made_by of the dataset that this is a small version of."""

    @property
    def texts_made_by(self) -> str:
        """The maker of the texts; for a small version, that of the whole."""
        return self.whole_made_by if self.made_by == "nano" else self.made_by

    @property
    def sample_creation(self) -> str | None:
        """MTEB's word for how the texts were made; None where it has none that the evidence supports."""
        if self.texts_made_by == "port":
            if self.n_read:
                return "machine-translated and verified"
            return "machine-translated and LM verified" if self.n_judged or self.marked else "machine-translated"
        return "LM-generated and verified" if self.texts_made_by and self.n_read else None

    @property
    def annotations_creators(self) -> str | None:
        """MTEB's word for who made the judgements; None where that is not known. A port has those of its source."""
        if self.texts_made_by in ("queries", "qc"):
            return "LM-generated and reviewed" if self.n_read else "LM-generated"
        return "derived" if self.made_by else None


def collect_evidence(
    card: Card, folder: Path | None, validity: Path | None = None, *, language: str | None = None
) -> Evidence:
    """Collect what the card of a dataset, its folder, and a file of `rusbeir validity --json` say.

    What is about an earlier version of the dataset is left out, after a warning. Raises BadInput for a damaged report,
    sheet or file, and where the file is about other ports.
    """
    source = card.provenance.get("source")
    evidence = Evidence(
        made_by=_read_maker(card.provenance),
        whole_made_by=_read_maker(source.get("provenance")) if isinstance(source, dict) else "",
        n_judged=0,
        n_read=0,
        report=None,
        validity=tuple(_read_validity(validity, card.name)) if validity else (),
        agreement=_read_agreement(card),
    )
    if folder is None or not (folder / QA).is_dir():
        return evidence
    n_scored, scores = _read_people(folder)
    n_rated, ratings = _read_ratings(folder)
    verdicts, n_changed = read_verdicts(folder)
    marked, n_marked_changed = describe_spans(folder)
    for name, n in ((VERDICTS, n_changed), (SPANS, n_marked_changed)):
        if n:
            logger.warning(
                "%s: the scores of texts that have changed since (%d) are left out. Run `%s` and "
                "`rusbeir audit judge` again; answers that it has are not paid for twice.",
                folder / QA / name, n, write_audit_command("check", folder),
            )  # fmt: skip
    return replace(
        evidence,
        n_judged=len(verdicts),
        marked=marked,
        n_read=max(n_scored, n_rated),
        people=" ".join(filter(None, (scores, ratings))),
        report=read_audit(folder, language=language),
    )


def _read_people(folder: Path) -> tuple[int, str]:
    """Read how many texts people have scored on the sheets in a folder, with a sentence about it; 0 and "" for none."""
    if not (paths := list_filled(folder)):
        return 0, ""
    try:
        report = agree(paths, port=folder)
    except AllChanged as error:
        logger.warning("%s", error)
        return 0, ""
    changed, n_left = report["changed"][PEOPLE], sum(row["answers"] for row in report["unanswered"].values())
    parts = [*_count_people(report, changed, folder / QA / FOLDER, write_audit_command("sheet", folder))]
    if n_left:
        parts.append(f"{n_left:,} {'answer' if n_left == 1 else 'answers'} missing")
    figures = [*_describe_means(report["dimensions"]), *_describe_shares(report.get("shares", {}))]
    by = f"People (`rusbeir audit sheet`): {'; '.join(parts)}."
    return report["texts"], f"{by} {'; '.join(figures)}." if figures else by


def _read_ratings(folder: Path) -> tuple[int, str]:
    """Count the texts that people have rated with errors and a score, with a sentence about it; 0 and "" for none."""
    if not (paths := list_rated(folder)):
        return 0, ""
    try:
        report = agree_on_errors(paths, port=folder)
    except AllChanged as error:
        logger.warning("%s", error)
        return 0, ""
    if not report["texts"]:
        return 0, ""
    again = write_audit_command("sheet", folder, "--protocol", "esa")
    parts = [*_count_people(report, report["changed"], folder / QA / ESA_FOLDER, again)]
    if n_left := sum(report["unscored"].values()):
        parts.append(f"{n_left:,} {'score' if n_left == 1 else 'scores'} missing")
    if n_planted := sum(row["planted"] for row in report["checks"].values()):
        n_missed = sum(row["missed"] for row in report["checks"].values())
        parts.append(f"{n_missed:,} of {n_planted:,} attention checks missed")
    by = f"People (`rusbeir audit sheet --protocol esa`): {'; '.join(parts)}."
    figures = [
        f"{label} {mean['port']:{form}} ({mean['interval'][0]:{form}} to {mean['interval'][1]:{form}})"
        for name, label, form in _RATED
        if (mean := report["port"].get(PEOPLE, {}).get(name)) and mean["interval"]
    ]
    return report["texts"], f"{by} Weighted to the port, with 95 % intervals: {'; '.join(figures)}." if figures else by


def _count_people(report: Mapping[str, Any], changed: int, sheets: Path, again: str) -> Iterator[str]:
    """Count raters and their texts; warns of texts that have changed since, for which again asks."""
    n_raters = len(report["raters"].keys() - {JUDGE})
    yield f"{n_raters} {'rater' if n_raters == 1 else 'raters'} on {report['texts']:,} texts"
    if changed:
        logger.warning(
            "%s: the answers about texts that have changed since (%d) are left out. To have those scored, move the "
            "folder away, and run `%s` and `%s` again.",
            sheets, changed, write_audit_command("check", sheets.parent.parent), again,
        )  # fmt: skip
        yield f"{changed:,} more, changed since, left out"


def _describe_means(dimensions: Mapping[str, Any]) -> Iterator[str]:
    lead = "Weighted to the port, 1 to 5, with 95 % intervals: "
    for name, dimension in dimensions.items():
        if mean := dimension["port"].get(PEOPLE):
            low, high = mean["interval"]
            alpha = dimension["alpha"]
            agreed = f", α {alpha['value']:.2f}" if alpha and isfinite(alpha["value"]) else ""
            yield f"{lead}{name.replace('_', ' ')} {mean['mean']:.2f} ({low:.2f} to {high:.2f}{agreed})"
            lead = ""


def _describe_shares(shares: Mapping[str, Any]) -> Iterator[str]:
    lead = "Of all pairs that the model labelled, with 95 % intervals: "
    for name, share in shares.items():
        low, high = max(share["interval"][0], 0), min(share["interval"][1], 1)
        yield f"{lead}label {name} in {share['mean']:.1%} ({low:.1%} to {high:.1%}), the model {share['judge']:.1%}"
        lead = ""


def _read_maker(provenance: object) -> str:
    return str(provenance.get("made_by", "")).rpartition(" ")[2] if isinstance(provenance, Mapping) else ""


def _read_validity(path: Path, name: str) -> Iterator[str]:
    """Read the sentences about a port of that name, which a task may have with its split."""
    remedy = "Give what `rusbeir validity --json` printed."
    report = read_json(path, _VALIDITY, remedy)
    if not report["conclusion"]:
        raise BadInput(f"{path}: this is not what rusbeir writes (conclusion is empty). {remedy}")
    band, *about = report["conclusion"]
    # An average over several tasks is the last sentence.
    relevant = [
        (task, sentence)
        for task, sentence in zip(report["tasks"], about, strict=False)
        if task["port"] == name or task["port"].startswith(f"{name}/")
    ]
    if not relevant:
        ports = ", ".join(task["port"] for task in report["tasks"]) or "none"
        raise BadInput(f"{path} is not about {name}; its ports are: {ports}.")
    for task, sentence in relevant:
        yield f"Validity (`rusbeir validity`, {report['measure']}), {task['verdict']}: {sentence}"
        yield f"The systems: {', '.join(task['systems'])}."
    yield band


def _read_agreement(card: Card) -> str:
    """Read what `rusbeir nano` wrote on the card; "" where it did not."""
    agreement = card.provenance.get("agreement")
    lines = agreement.get("conclusion") if isinstance(agreement, dict) else None
    return " ".join(map(str, lines)) if isinstance(lines, list) else ""

"""What is known of how a dataset was made and checked, from its card and from what the audit left in its folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rusbeir.audit.agreement import read_verdicts
from rusbeir.audit.aligned import QA
from rusbeir.audit.judge import VERDICTS
from rusbeir.audit.report import REPORT
from rusbeir.audit.sheet_files import count_answered
from rusbeir.audit.sheets import FOLDER, FORMS
from rusbeir.datasets.formats.records import read_json
from rusbeir.errors import BadInput
from rusbeir.types import Card

_VALIDITY = {
    "conclusion": [str],
    "measure": str,
    "tasks": [{"original": str, "port": str, "systems": [str], "verdict": str}],
}
_REPORT = {"n_segments": int, "flagged": {"segments": int, "share": float}, "levels": {str: {}}}


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What a card may claim."""

    made_by: str
    """"port", "rewrite", "queries", "qc", "nano"; "" for a dataset that rusbeir did not make."""
    n_judged: int
    """Texts that a language model has scored."""
    n_read: int
    """Texts that people have scored on sheets."""
    report: Mapping[str, Any] | None
    """The report of `rusbeir audit check`, if there is one."""
    validity: tuple[str, ...] = ()
    """What `rusbeir validity` concludes of it, where that was given: the band to compare with, then each verdict."""
    agreement: str = ""
    """What `rusbeir nano` concludes of a small version."""
    whole_made_by: str = ""
    """The same as made_by of what this is a small version of."""

    @property
    def texts_made_by(self) -> str:
        """Of a small version, what made the whole."""
        return self.whole_made_by if self.made_by == "nano" else self.made_by

    @property
    def sample_creation(self) -> str | None:
        """MTEB's word for how the texts were made; None where it has none that the evidence supports."""
        if self.texts_made_by == "port":
            if self.n_read:
                return "machine-translated and verified"
            return "machine-translated and LM verified" if self.n_judged else "machine-translated"
        return "LM-generated and verified" if self.texts_made_by and self.n_read else None

    @property
    def annotations_creators(self) -> str | None:
        """MTEB's word for who made the judgements; None where that is not known. A port has those of its source."""
        if self.texts_made_by in ("queries", "qc"):
            return "LM-generated and reviewed" if self.n_read else "LM-generated"
        return "derived" if self.made_by else None


def collect_evidence(card: Card, folder: Path | None, validity: Path | None = None) -> Evidence:
    """What the card of a dataset, the folder it is in, and a file of `rusbeir validity --json` say.

    Raises BadInput for a damaged report, sheet or file, and where the file is about other ports.
    """
    source = card.provenance.get("source")
    found = Evidence(
        made_by=_read_maker(card.provenance),
        whole_made_by=_read_maker(source.get("provenance")) if isinstance(source, dict) else "",
        n_judged=0,
        n_read=0,
        report=None,
        validity=tuple(_read_validity(validity, card.name)) if validity else (),
        agreement=_read_agreement(card),
    )
    qa = folder / QA if folder else None
    if qa is None or not qa.is_dir():
        return found
    report = qa / REPORT
    return replace(
        found,
        n_judged=len(read_verdicts(qa / VERDICTS)),
        n_read=sum(count_answered(path, FORMS) for path in sorted((qa / FOLDER).glob("*.csv"))),
        report=read_json(report, _REPORT, "Run rusbeir audit check again.") if report.is_file() else None,
    )


def _read_maker(provenance: object) -> str:
    return str(provenance.get("made_by", "")).rpartition(" ")[2] if isinstance(provenance, Mapping) else ""


def _read_validity(path: Path, name: str) -> Iterator[str]:
    """The sentences about a port of that name, which a task may have with its split."""
    found = read_json(path, _VALIDITY, "It is what `rusbeir validity` prints as JSON.")
    band, *about = found["conclusion"]
    # An average over several tasks is the last sentence.
    said = [
        (task, sentence)
        for task, sentence in zip(found["tasks"], about, strict=False)
        if task["port"] == name or task["port"].startswith(f"{name}/")
    ]
    if not said:
        ports = ", ".join(task["port"] for task in found["tasks"]) or "none"
        raise BadInput(f"{path} is not about {name}; its ports are: {ports}.")
    for task, sentence in said:
        yield f"Validity (`rusbeir validity`, {found['measure']}), {task['verdict']}: {sentence}"
        yield f"The systems: {', '.join(task['systems'])}."
    yield band


def _read_agreement(card: Card) -> str:
    """What `rusbeir nano` wrote on the card; "" where it did not."""
    agreement = card.provenance.get("agreement")
    lines = agreement.get("conclusion") if isinstance(agreement, dict) else None
    return " ".join(map(str, lines)) if isinstance(lines, list) else ""

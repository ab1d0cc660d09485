"""What is known of how a dataset was made and checked, from its card and from what the audit left in its folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rusbeir.audit.agreement import read_verdicts
from rusbeir.audit.aligned import QA
from rusbeir.audit.judge import VERDICTS
from rusbeir.audit.report import REPORT
from rusbeir.audit.sheet_files import count_answered
from rusbeir.audit.sheets import FOLDER, FORMS
from rusbeir.datasets.formats.records import read_json
from rusbeir.types import Card

_REPORT = {"n_segments": int, "flagged": {"segments": int, "share": float}, "levels": {str: {}}}


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What a card may claim."""

    made_by: str
    """"port", "rewrite", "queries", "qc"; "" for a dataset that rusbeir did not make."""
    n_judged: int
    """Texts that a language model has scored."""
    n_read: int
    """Texts that people have scored on sheets."""
    report: Mapping[str, Any] | None
    """The report of `rusbeir audit check`, if there is one."""

    @property
    def sample_creation(self) -> str | None:
        """MTEB's word for how the texts were made; None where it has none that the evidence supports."""
        if self.made_by == "port":
            if self.n_read:
                return "machine-translated and verified"
            return "machine-translated and LM verified" if self.n_judged else "machine-translated"
        return "LM-generated and verified" if self.made_by and self.n_read else None

    @property
    def annotations_creators(self) -> str | None:
        """MTEB's word for who made the judgements; None where that is not known. A port has those of its source."""
        if self.made_by in ("queries", "qc"):
            return "LM-generated and reviewed" if self.n_read else "LM-generated"
        return "derived" if self.made_by else None


def collect_evidence(card: Card, folder: Path | None) -> Evidence:
    """What the card of a dataset and the folder it is in say. Raises BadInput for a damaged report or sheet."""
    made_by = str(card.provenance.get("made_by", "")).rpartition(" ")[2]
    qa = folder / QA if folder else None
    if qa is None or not qa.is_dir():
        return Evidence(made_by=made_by, n_judged=0, n_read=0, report=None)
    report = qa / REPORT
    return Evidence(
        made_by=made_by,
        n_judged=len(read_verdicts(qa / VERDICTS)),
        n_read=sum(count_answered(path, FORMS) for path in sorted((qa / FOLDER).glob("*.csv"))),
        report=read_json(report, _REPORT, "Run rusbeir audit check again.") if report.is_file() else None,
    )

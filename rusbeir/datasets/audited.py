"""The report that `rusbeir audit check` left in a dataset's folder, as long as it is about the dataset as it is now."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rusbeir.datasets.formats.beir import read_card
from rusbeir.datasets.formats.records import read_json, read_jsonl
from rusbeir.datasets.loading import LoadedSplits, load_splits
from rusbeir.datasets.opening import ALL_SPLITS
from rusbeir.text import write_command
from rusbeir.types import Progress, silent

QA, REPORT, TEXTS = "qa", "report.json", "texts.jsonl"
"""The folder of a port in which the audit writes, its report there, and a line for each document and query."""
_PUBLISHED = "croissant.json"
"""A file of every folder that `rusbeir publish` writes, and of no other."""
_SHAPE = {
    "fingerprint": str,
    "n_segments": int,
    "splits?": [str],
    "flagged": {"segments": int, "share": float},
    "levels": {str: {"chrF?": float}},
}
_TEXT = {
    "kind": {"document", "query"},
    "id": str,
    "chars": int,
    "flags": [str],
    "chrF?": float,
    "qe?": {str: (float, None)},
}

logger = logging.getLogger(__name__)


def is_published(folder: Path) -> bool:
    """Return whether a folder is for others to load: an audit would write the source's texts into what is uploaded."""
    return (folder / _PUBLISHED).is_file()


def write_audit_command(verb: str, folder: Path, *options: str, source: str | Path | None = None) -> str:
    """Write a command of `rusbeir audit` about a folder, with its source where that was named or no card names it."""
    if source is None and not read_card(folder).get("provenance", {}).keys() & {"source", "views"}:
        source = "SOURCE"
    if source is None:
        return write_command("audit", verb, folder, *options)
    return write_command("audit", verb, folder, "--source", source, *options)


def load_audited(folder: Path, *, language: str | None = None, progress: Progress = silent) -> LoadedSplits:
    """Load the dataset that an audit of the folder is about, with all splits and queries; of a rewriting, its text."""
    views: dict[str, str] = read_card(folder).get("provenance", {}).get("views", {})
    path = folder / views["port"] if views else folder
    return load_splits(path, language=language, split=ALL_SPLITS, all_queries=True, progress=progress)


def read_audit(folder: Path, *, language: str | None = None, progress: Progress = silent) -> dict[str, Any] | None:
    """Read the report of the last audit; None where there is none, and, after a warning, where the dataset has changed.

    Raises BadInput for a damaged report.
    """
    path = folder / QA / REPORT
    if not path.is_file():
        return None
    again = f"Run `{write_audit_command('check', folder)}` again."
    report: dict[str, Any] = read_json(path, _SHAPE, again)
    if report["fingerprint"] == load_audited(folder, language=language, progress=progress).dataset.fingerprint:
        return report
    logger.warning("%s is of an earlier version of this port and is left out. %s", path, again)
    return None


def read_audited_texts(folder: Path) -> Iterator[dict[str, Any]]:
    """Read the lines of TEXTS: `kind`, `id`, `chars` of the source, `flags`; `chrF` and `qe` where these were computed.

    Raises BadInput for a damaged line.
    """
    return read_jsonl(folder / QA / TEXTS, _TEXT, f"Run `{write_audit_command('check', folder)}` again.")

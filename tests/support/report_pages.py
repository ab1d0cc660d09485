"""The pages of a report."""

from __future__ import annotations

from pathlib import Path


def dataset_page(site: Path, name: str = "") -> Path:
    """The first page of a dataset whose file has this in its name."""
    return next(path for path in sorted((site / "datasets").iterdir()) if name in path.name)

"""Packages that are needed only for some datasets."""

from __future__ import annotations

import importlib
from typing import Any

from rusbeir.errors import MissingExtra


def optional(module: str, purpose: str) -> Any:
    """The module, imported now. Raises MissingExtra, which names its extra, where it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtra(f"{purpose} needs the package {package}: pip install 'rusbeir[hf]'") from error

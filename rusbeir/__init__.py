"""Port English retrieval benchmarks to other languages, and measure retrievers on them.

>>> import rusbeir
>>> rusbeir.Analyzer("ru").analyze("мамы мыли раму")
['мам', 'мыт', 'рам']
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rusbeir.analysis import Analyzer as Analyzer
    from rusbeir.datasets import load as load
    from rusbeir.experiment import bench as bench
    from rusbeir.translation.port.api import port as port
    from rusbeir.types import Dataset as Dataset

__version__ = "0.1.0"
__all__ = ["Analyzer", "Dataset", "__version__", "bench", "load", "port"]

_HOMES = {
    "Analyzer": "rusbeir.analysis",
    "Dataset": "rusbeir.types",
    "bench": "rusbeir.experiment",
    "load": "rusbeir.datasets",
    "port": "rusbeir.translation.port.api",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for, so that `import rusbeir` stays instant."""
    if name not in _HOMES:
        raise AttributeError(f"module 'rusbeir' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__

"""Port English retrieval benchmarks to other languages, and measure retrievers on them.

>>> import rusbeir
>>> rusbeir.Analyzer("ru").analyze("мамы мыли раму")
['мам', 'мыт', 'рам']
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rusbeir.analysis import Analyzer
    from rusbeir.audit import check_port as audit_port
    from rusbeir.datasets import load, read_qrels, read_run, write_qrels, write_run
    from rusbeir.datasets.formats.reader import DatasetReader
    from rusbeir.errors import BackendError, BadInput, MissingExtra, RusbeirError, UnknownName
    from rusbeir.evaluation import evaluate
    from rusbeir.experiment import bench, search
    from rusbeir.retrieval.dense.encoder import Encoder
    from rusbeir.retrieval.rerank.reranker import Reranker
    from rusbeir.retrieval.sparse.encoder import SparseEncoder
    from rusbeir.translation.port.api import port
    from rusbeir.translation.translator import Translator
    from rusbeir.tuning import tune
    from rusbeir.types import Corpus, Dataset, Doc, Retriever, TextAnalyzer

__version__ = "0.1.0"
__all__ = [
    "Analyzer",
    "BackendError",
    "BadInput",
    "Corpus",
    "Dataset",
    "DatasetReader",
    "Doc",
    "Encoder",
    "MissingExtra",
    "Reranker",
    "Retriever",
    "RusbeirError",
    "SparseEncoder",
    "TextAnalyzer",
    "Translator",
    "UnknownName",
    "__version__",
    "audit_port",
    "bench",
    "evaluate",
    "load",
    "port",
    "read_qrels",
    "read_run",
    "search",
    "tune",
    "write_qrels",
    "write_run",
]

_HOMES = {
    "Analyzer": "rusbeir.analysis",
    "BackendError": "rusbeir.errors",
    "BadInput": "rusbeir.errors",
    "Corpus": "rusbeir.types",
    "Dataset": "rusbeir.types",
    "DatasetReader": "rusbeir.datasets.formats.reader",
    "Doc": "rusbeir.types",
    "Encoder": "rusbeir.retrieval.dense.encoder",
    "MissingExtra": "rusbeir.errors",
    "Reranker": "rusbeir.retrieval.rerank.reranker",
    "Retriever": "rusbeir.types",
    "RusbeirError": "rusbeir.errors",
    "SparseEncoder": "rusbeir.retrieval.sparse.encoder",
    "TextAnalyzer": "rusbeir.types",
    "Translator": "rusbeir.translation.translator",
    "UnknownName": "rusbeir.errors",
    # Not `audit`: importing the subpackage of that name would replace the function.
    "audit_port": "rusbeir.audit:check_port",
    "bench": "rusbeir.experiment",
    "evaluate": "rusbeir.evaluation",
    "load": "rusbeir.datasets",
    "port": "rusbeir.translation.port.api",
    "read_qrels": "rusbeir.datasets",
    "read_run": "rusbeir.datasets",
    "search": "rusbeir.experiment",
    "tune": "rusbeir.tuning",
    "write_qrels": "rusbeir.datasets",
    "write_run": "rusbeir.datasets",
}
"""Name -> the module that it is imported from, with `:name` where it is called otherwise there."""


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for, so that `import rusbeir` stays instant."""
    if name not in _HOMES:
        raise AttributeError(f"module 'rusbeir' has no attribute {name!r}")
    import importlib

    module, _, attribute = _HOMES[name].partition(":")
    return getattr(importlib.import_module(module), attribute or name)


def __dir__() -> list[str]:
    return __all__

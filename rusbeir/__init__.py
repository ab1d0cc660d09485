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
    from rusbeir.comparison import compare
    from rusbeir.datasets import load, read_qrels, read_run, write_beir, write_qrels, write_run
    from rusbeir.datasets.formats.reader import DatasetReader
    from rusbeir.errors import BackendError, BadInput, MissingExtra, RusbeirError, UnknownName
    from rusbeir.evaluation import evaluate
    from rusbeir.experiment import bench, search
    from rusbeir.notebook import show_progress
    from rusbeir.retrieval.encoding.encoder import Encoder
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
    "compare",
    "evaluate",
    "load",
    "port",
    "read_qrels",
    "read_run",
    "search",
    "show_progress",
    "tune",
    "write_beir",
    "write_qrels",
    "write_run",
]

_MODULES = {
    "rusbeir.analysis": ["Analyzer"],
    "rusbeir.datasets": ["load", "read_qrels", "read_run", "write_beir", "write_qrels", "write_run"],
    "rusbeir.datasets.formats.reader": ["DatasetReader"],
    "rusbeir.errors": ["BackendError", "BadInput", "MissingExtra", "RusbeirError", "UnknownName"],
    "rusbeir.evaluation": ["evaluate"],
    "rusbeir.experiment": ["bench", "search"],
    "rusbeir.notebook": ["show_progress"],
    "rusbeir.comparison": ["compare"],
    "rusbeir.retrieval.encoding.encoder": ["Encoder"],
    "rusbeir.retrieval.rerank.reranker": ["Reranker"],
    "rusbeir.retrieval.sparse.encoder": ["SparseEncoder"],
    "rusbeir.translation.port.api": ["port"],
    "rusbeir.translation.translator": ["Translator"],
    "rusbeir.tuning": ["tune"],
    "rusbeir.types": ["Corpus", "Dataset", "Doc", "Retriever", "TextAnalyzer"],
}
_HOMES = {name: (module, name) for module, names in _MODULES.items() for name in names}
# Not `audit`: importing the subpackage of that name would replace the function.
_HOMES["audit_port"] = ("rusbeir.audit", "check_port")


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for, so that `import rusbeir` stays instant."""
    if name not in _HOMES:
        raise AttributeError(f"module 'rusbeir' has no attribute {name!r}")
    import importlib

    module, attribute = _HOMES[name]
    return getattr(importlib.import_module(module), attribute)


def __dir__() -> list[str]:
    return __all__

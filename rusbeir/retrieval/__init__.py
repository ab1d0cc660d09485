"""Systems that answer queries: named by a spec, prepared on a corpus, searched."""

from rusbeir.retrieval.resolve import check_names, resolve
from rusbeir.retrieval.spec import Spec, Stage, parse
from rusbeir.retrieval.system import Prepared, System

__all__ = ["Prepared", "Spec", "Stage", "System", "check_names", "parse", "resolve"]

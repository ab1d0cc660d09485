"""Systems that answer queries: named by a spec, prepared on a corpus, searched."""

from rusbeir.retrieval.resolve import check_names, resolve
from rusbeir.retrieval.spec import Spec, Stage, parse
from rusbeir.retrieval.system import Prepared, RunSettings, System

__all__ = ["Prepared", "RunSettings", "Spec", "Stage", "System", "check_names", "parse", "resolve"]

"""Systems that answer queries: named by a spec, prepared on a corpus, searched."""

from rusbeir.retrieval.spec import Spec, Stage, parse
from rusbeir.retrieval.systems import Prepared, System, check_names, resolve

__all__ = ["Prepared", "Spec", "Stage", "System", "check_names", "parse", "resolve"]

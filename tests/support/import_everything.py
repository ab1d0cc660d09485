"""Import every module of rusbeir, with stand-ins for compiled packages and those that need them; parse measures."""

import importlib
import importlib.abc
import importlib.machinery
import json
import pkgutil
import sys
import unicodedata
from unittest.mock import MagicMock

COMPILED = {"bm25s", "loky", "numpy", "orjson", "pandas", "pytrec_eval", "regex", "scipy", "Stemmer", "tantivy"}


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives a MagicMock for each module of COMPILED."""

    def find_spec(self, name, path, target=None):
        is_compiled = name.partition(".")[0] in COMPILED
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if is_compiled else None

    def create_module(self, spec):
        return MagicMock(name=spec.name, __spec__=spec, __path__=[], __name__=spec.name, __version__="0")

    def exec_module(self, module):
        pass


sys.meta_path.insert(0, StandIns())
rusbeir = importlib.import_module("rusbeir")
names = [found.name for found in pkgutil.walk_packages(rusbeir.__path__, "rusbeir.")]
names = [name for name in names if not name.endswith("__main__")]
for name in names:
    importlib.import_module(name)

measures_module = importlib.import_module("rusbeir.evaluation.measures")
measures = [str(measures_module._parse(name)) for name in ("nDCG@10", "AP(rel=2)@100", "ndcg_cut_10")]
# Its providers are not here, so that it can be read alone.
measures.append(measures_module._split_name("nDCG(dcg='exp-log2')@10"))
shown = {"modules": len(names), "measures": measures, "unicode": unicodedata.unidata_version}
sys.stdout.write(json.dumps(shown) + "\n")

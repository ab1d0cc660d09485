"""How much of rusbeir a newcomer passes: the functions and files of a first bench, port and audit, and its size.

python -m benchmarks.walks [--functions]

Counted are the named functions of rusbeir that are called at least once, and the files that they are in, in a process
that has imported every module before and has an empty cache. RUSBEIR_DATA must hold XQuAD.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parent.parent / "rusbeir"
MEMORY = PACKAGE / "datasets" / "mini" / "memory.en-ru.tsv"
WALKS = {
    "bench": "rusbeir.bench('xquad/ru', 'bm25', out='results')",
    "port": f"rusbeir.port('mini/en', to='ru', translator='memory', memory={str(MEMORY)!r}, out='port')",
    "audit": "from rusbeir.audit import audit_port; audit_port('port', back_translator='memory', memory='back.tsv')",
}
"""What each process runs, in this order and in one folder: the audit is that of the port."""
BEFORE = {"bench": (246, 46), "port": (288, 53), "audit": (523, 96)}
"""Functions and files before the rooms were laid out; three quarters of them are the bound."""
LINES, MODULES = 24_276, 204
"""Size of the package at that time, __init__ files not counted as modules."""
LATER = ("comparison", "site", "airbench", "language_trials", "reproduction.py", "cli/compare.py", "cli/report.py",
         "cli/reproduce.py", "evaluation/significance.py", "evaluation/orders.py", "evaluation/label_agreement.py",
         "cli/judge.py", "cli/validity.py", "people/labels.py", "datasets/audited.py", "audit/published_ports",
         "cli/audit_published.py", "diagnostics", "synthesis", "cli/diagnose.py", "cli/synth", "cli/airbench.py",
         "jobs/asking.py", "jobs/prompts.py", "evaluation/families.py", "analysis/traps.py", "people/raters.py",
         "audit/quality_estimation/segment_scores.py", "people/metric_", "cli/audit_meta.py",
         "publishing", "cli/publish.py", "mteb", "cli/mteb.py", "pyterrier.py", "forecast.py", "nano", "cli/nano.py",
         "cluster", "retrieval/remote.py", "retrieval/lexical/pool.py", "retrieval/lexical/shared_words.py",
         "translation/remote.py", "audit/score_differences",
         "translation/porting/retries.py", "retrieval/dense/approximate.py", "retrieval/encoding/pools.py",
         "retrieval/models/batches.py", "retrieval/candidates.py", "costs.py", "evaluation/units.py",
         "datasets/licences.py", "analysis/user_rules.py", "analysis/lines.py", "analysis/skeletons.py",
         "analysis/description.py", "analysis/corpus_terms.py", "datasets/columns.py", "datasets/making.py",
         "datasets/exporting.py", "datasets/parallel.py", "datasets/pooling.py", "datasets/detection.py",
         "datasets/formats/frames.py", "datasets/formats/ntrex.py", "datasets/formats/irds.py",
         "evaluation/trec_measures.py", "retrieval/catalogue.py", "retrieval/run_file.py",
         "analysis/patterns.py", "retrieval/models/eight_bits.py", "cli/precision.py",
         "retrieval/models/linear_layers.py", "jobs/http.py", "notebook.py", "pages", "audit/quality_estimation",
         "people/error_spans.py", "people/expected_errors.py", "people/span_", "cli/audit_expected.py",
         "cli/audit_judgements.py", "cli/audit_ratings.py", "people/esa_sheets.py", "people/rating_",
         "people/opinions.py", "audit/port_checks/opinions.py",
         "analysis/subwords.py", "cli/documents.py", "cli/hits.py", "cli/systems.py", "experiment/stages.py",
         "retrieval/models/library_encoder.py", "retrieval/sparse/pruning.py", "retrieval/encoding/span_store.py",
         "retrieval/sparse/sentence_transformers.py", "translation/porting/contexts.py", "jobs/batch",
         "translation/backends/llm_groups.py", "retrieval/rerank/batched.py",
         "retrieval/late", "retrieval/dense/static.py", "retrieval/rerank/token_scores.py",
         "retrieval/encoding/token_vectors.py", "evaluation/language_parts.py",
         "retrieval/elasticsearch/credentials.py", "retrieval/elasticsearch/server_index.py",
         "retrieval/elasticsearch/template.py",
         "retrieval/lexical/in_memory.py", "cli/language_trials.py")  # fmt: skip
"""What did not exist then, and is not counted; the bound on modules is 160. Lines have none: features add some."""

TRACER = """
import importlib, json, pkgutil, sys, threading
import rusbeir
for module in pkgutil.walk_packages(rusbeir.__path__, "rusbeir."):
    if "__main__" not in module.name:
        importlib.import_module(module.name)
package = rusbeir.__path__[0]
called = set()
def note(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(package) and not code.co_name.startswith("<"):
        called.add((code.co_filename, code.co_firstlineno, code.co_name))
threading.setprofile(note)
sys.setprofile(note)
{call}
sys.setprofile(None)
print(json.dumps(sorted(called)))
"""


def walk() -> dict[str, dict[str, list[str]]]:
    """Of each walk: file -> the names of its functions that were called, in the order of the file."""
    walks: dict[str, dict[str, list[str]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        pairs = (line.split("\t") for line in MEMORY.read_text(encoding="utf-8").splitlines())
        back = "".join(f"{russian}\t{english}\n" for english, russian in pairs)
        (Path(folder) / "back.tsv").write_text(back, encoding="utf-8")
        environment = {**os.environ, "RUSBEIR_CACHE": f"{folder}/cache", "PYTHONPATH": str(PACKAGE.parent)}
        for name, call in WALKS.items():
            command = [sys.executable, "-c", TRACER.format(call=call)]
            done = subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.PIPE)
            walks[name] = defaultdict(list)
            for file, _, function in json.loads(done.stdout.splitlines()[-1]):
                walks[name][str(Path(file).relative_to(PACKAGE))].append(function)
    return walks


def rows() -> list[dict[str, Any]]:
    """what, measure, value, before, and at_most where the figure is claimed."""
    figures = []
    for name, files in walk().items():
        counts = (sum(map(len, files.values())), len(files))
        for measure, value, before in zip(("functions", "files"), counts, BEFORE[name], strict=True):
            figures.append(_row(f"a first {name}", measure, value, before, before * 3 // 4))
    later = tuple(str(PACKAGE / name) for name in LATER)
    modules = [path for path in sorted(PACKAGE.rglob("*.py")) if not str(path).startswith(later)]
    lines = sum(len(path.read_bytes().splitlines()) for path in modules)
    named = [path for path in modules if path.name != "__init__.py"]
    return [
        *figures,
        {"what": "rusbeir/", "measure": "lines of Python", "value": lines, "before": LINES},
        _row("rusbeir/", "modules", len(named), MODULES, 160),
    ]


def _row(what: str, measure: str, value: int, before: int, at_most: int) -> dict[str, Any]:
    return {"what": what, "measure": measure, "value": value, "before": before, "at_most": at_most}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--functions", action="store_true", help="name the functions that are called, file by file")
    if parser.parse_args().functions:
        for name, files in walk().items():
            print(f"a first {name}")
            for file, functions in files.items():
                print(f"  {file}: {', '.join(functions)}")
        return
    for row in rows():
        bound = f", bound {row['at_most']:,}" if "at_most" in row else ""
        print(f"{row['what']}: {row['value']:,} {row['measure']} (before {row['before']:,}{bound})")


if __name__ == "__main__":
    main()

"""`run(FILE)` as a system: the hits of a run that any program wrote, without an index."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rusbeir.datasets import checksum_of, read_run, read_tag
from rusbeir.errors import BadInput
from rusbeir.retrieval.models.settings import escape
from rusbeir.retrieval.spec import Spec, Stage, only_argument
from rusbeir.retrieval.system import DEFAULTS, Prepared, RunSettings
from rusbeir.types import Corpus, Queries, Run


@dataclass(frozen=True, kw_only=True)
class RunSystem:
    """Answers the queries of a run file by its hits."""

    name: str
    path: Path
    engine: str = "run"

    @cached_property
    def signature(self) -> str:
        tag = f"tag:{escape(tag)}|" if (tag := read_tag(self.path)) else ""
        return f"run|{tag}sha256:{checksum_of(self.path)[:12]}"

    @cached_property
    def run(self) -> Run:
        """query_id -> {doc_id: score}, by falling score; equal scores in the order of the file."""
        return {
            query_id: dict(sorted(hits.items(), key=lambda hit: -hit[1]))
            for query_id, hits in read_run(self.path, check_ranks=True).items()
        }

    @property
    def depth(self) -> int:
        """The most hits that any query has."""
        return max(map(len, self.run.values()), default=0)

    def prepare(self, corpus: Corpus, fingerprint: str, settings: RunSettings = DEFAULTS) -> Prepared:
        """Check that the corpus has all hits. Raises BadInput where it lacks any."""
        doc_ids = dict.fromkeys(doc_id for hits in self.run.values() for doc_id in hits)
        if unknown := [doc_id for doc_id in doc_ids if not _holds(corpus, doc_id)]:
            raise BadInput(
                f"{self.path}: {len(unknown):,} of {len(doc_ids):,} documents are not in the corpus, such as "
                f"{unknown[0]!r}. Is it a run of another dataset?"
            )
        return Prepared(retriever=self, path=self.path, reused=True)

    def search(self, queries: Queries, k: int) -> Run:
        """Return at most k hits a query; {} for queries without hits in the file.

        Raises BadInput where the file has none of the queries.
        """
        if queries and not any(query_id in self.run for query_id in queries):
            present = f"; it has {next(iter(self.run))!r}" if self.run else ""
            raise BadInput(
                f"{self.path} has hits for none of the {len(queries):,} queries, such as {next(iter(queries))!r}"
                f"{present}. Is it a run of another dataset?"
            )
        return {query_id: dict(list(self.run.get(query_id, {}).items())[:k]) for query_id in queries}


def _holds(corpus: Corpus, doc_id: str) -> bool:
    try:
        corpus[doc_id]
    except KeyError:
        return False
    return True


def from_stage(stage: Stage, language: str, engine: str) -> RunSystem:
    """Make the system of a stage: `run(bm25.run.gz)`, whatever the language and engine are."""
    path = Path(only_argument(stage, "file", "bm25.run.gz"))
    if stage.options:
        raise BadInput(f"{stage.name} has no options, so {stage.options[0][0]}= means nothing here.")
    if not path.is_file():
        raise BadInput(f"There is no file {path}. Name a run: TREC's columns, gzip or not, or BEIR's JSON.")
    return RunSystem(name=str(Spec((stage,))), path=path)

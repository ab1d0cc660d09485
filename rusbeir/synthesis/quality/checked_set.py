"""The folder that quality control writes: what is left of a dataset, each decision, and what was removed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import orjson

from rusbeir import __version__
from rusbeir.datasets import (
    SPANS,
    Material,
    describe_source,
    document_line,
    name_qrels_file,
    qrels_lines,
    query_line,
    replace_files,
    whole_documents,
)
from rusbeir.errors import BadInput
from rusbeir.storage import atomic_file
from rusbeir.synthesis.cards import finish_folder
from rusbeir.synthesis.quality.decisions import (
    DECISIONS,
    REMOVED,
    UNDONE,
    Decision,
    apply_decisions,
    count_decisions,
    decision_lines,
)
from rusbeir.synthesis.quality.splits import split_dev_test
from rusbeir.synthesis.queries.generated import without
from rusbeir.synthesis.queries.writing import GENERATED, SPLIT, span_line
from rusbeir.text import write_command
from rusbeir.types import Dataset, Progress, Qrels, silent


@dataclass(frozen=True, kw_only=True)
class CheckedSet:
    """A dataset, and the folder of what quality control leaves of it."""

    material: Material
    generated: Mapping[str, Mapping[str, Any]]
    out: Path
    progress: Progress = silent

    def refuse_itself(self, dataset: str | Path | Dataset) -> None:
        """Raise BadInput where the folder is the dataset's own."""
        if isinstance(dataset, Dataset) or not (Path(dataset).exists() and self.out.exists()):
            return
        if self.out.samefile(dataset):
            raise BadInput(f"{self.out} is the dataset itself. Choose another folder for what is left of it.")

    def write(
        self, decisions: Sequence[Decision], undone: Iterable[str], *, grade: int | None, rules: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Write everything, and return the counts before and after.

        All files appear once all are complete. Raises BadInput where no query is left.
        """
        source, splits = self.material.dataset, self.material.splits
        outcomes = {split: apply_decisions(qrels, decisions, grade) for split, qrels in splits.items()}
        left = self._divide({split: outcome.qrels for split, outcome in outcomes.items() if outcome.qrels})
        if not left:
            with atomic_file(self.out / "qa" / DECISIONS) as file:
                file.writelines(decision_lines(decisions))
            raise BadInput(
                f"No query of {source.card.name} is left. See what the model said: {self.out / 'qa' / DECISIONS}."
            )
        gone = next(iter(outcomes.values())).documents
        queries = [query_id for query_id in source.queries if any(query_id in qrels for qrels in left.values())]
        with replace_files(self.out, f"`{write_command('synth', 'qc', '…', '--out', self.out)}`") as open_new:
            removed = open_new(f"qa/{REMOVED}")
            self._write_corpus(open_new("corpus.jsonl"), removed, gone)
            self._write_queries(open_new("queries.jsonl"), removed, frozenset(queries))
            for split, qrels in left.items():
                open_new(name_qrels_file(split)).writelines(qrels_lines(qrels))
            if self.generated:
                rows = without(self.generated, queries, gone)
                if any(row["span"] for row in rows):
                    open_new(SPANS).writelines(span_line(row) for row in rows if row["span"])
                open_new(GENERATED).writelines(orjson.dumps(row) + b"\n" for row in rows)
            open_new(f"qa/{DECISIONS}").writelines(decision_lines(decisions))
            open_new(f"qa/{UNDONE}").write("".join(f"{one}\n" for one in sorted(undone)).encode())
        for path in (self.out / "qrels").glob("*.tsv"):
            if path.stem not in left:
                path.unlink()
        return self._write_card(left, rules, decisions)

    def _divide(self, splits: Mapping[str, Qrels]) -> Mapping[str, Qrels]:
        """The splits: dev and test of a made set of short documents, as AIR-Bench has them; else the source's."""
        kinds = {row["kind"] for row in self.generated.values()}
        if kinds != {"qa"} or [*splits] != [SPLIT] or len(splits[SPLIT]) < 2:
            return splits
        qrels = splits[SPLIT]
        return {
            split: {query_id: qrels[query_id] for query_id in ids} for split, ids in split_dev_test([*qrels]).items()
        }

    def _write_corpus(self, kept: IO[bytes], removed: IO[bytes], gone: frozenset[str]) -> None:
        corpus = self.material.dataset.corpus
        for n, (doc, extra) in enumerate(whole_documents(corpus), 1):
            if doc.doc_id in gone:
                removed.write(orjson.dumps({"doc_id": doc.doc_id, "title": doc.title, "text": doc.text}) + b"\n")
            else:
                kept.write(document_line(doc, extra))
            self.progress("write documents", n, len(corpus))

    def _write_queries(self, kept: IO[bytes], removed: IO[bytes], left: frozenset[str]) -> None:
        for query_id, text in self.material.dataset.queries.items():
            if query_id in left:
                kept.write(query_line(query_id, text, self.material.query_metadata.get(query_id, {})))
            else:
                removed.write(orjson.dumps({"query_id": query_id, "text": text}) + b"\n")

    def _write_card(
        self, splits: Mapping[str, Qrels], rules: Mapping[str, Any], decisions: Sequence[Decision]
    ) -> dict[str, Any]:
        source = self.material.dataset
        split = "test" if "test" in splits else next(iter(splits))
        counts: dict[str, dict[str, int]] = {
            "queries": {"before": len(source.queries), "after": sum(map(len, splits.values()))},
            "judgements": {
                "before": sum(map(len, source.qrels.values())),
                "after": sum(len(grades) for qrels in splits.values() for grades in qrels.values()),
            },
        }
        card = replace(
            source.card,
            name=f"{source.card.name}@checked",
            split=split,
            revision="",
            provenance={
                "made_by": f"rusbeir {__version__}, synth qc",
                "source": describe_source(source.card, source.fingerprint),
                "rules": dict(rules),
                "counts": {"decisions": count_decisions(one.to_dict() for one in decisions), **counts},
            },
        )
        dataset, _ = finish_folder(card, self.out, self.progress)
        return {
            "name": card.name,
            "fingerprint": dataset.fingerprint,
            "documents": {"before": len(source.corpus), "after": len(dataset.corpus)},
            **counts,
            "splits": {name: len(qrels) for name, qrels in splits.items()},
        }

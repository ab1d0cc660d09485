"""The folder that quality control writes: what is left of a dataset, each decision, and what was removed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from rusbeir import __version__
from rusbeir.datasets import (
    SPANS,
    Content,
    FolderWriter,
    Material,
    describe_source,
    replace_dataset,
    whole_documents,
    write_card,
)
from rusbeir.errors import BadInput
from rusbeir.storage import atomic_file
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
        with replace_dataset(self.out, "synth", "qc") as writer:
            self._write_corpus(writer, gone)
            self._write_queries(writer, frozenset(queries))
            for split, qrels in left.items():
                writer.add_judgements(split, qrels)
            if self.generated:
                rows = without(self.generated, queries, gone)
                if any(row["span"] for row in rows):
                    writer.open(SPANS).writelines(span_line(row) for row in rows if row["span"])
                writer.open(GENERATED).writelines(orjson.dumps(row) + b"\n" for row in rows)
            writer.open(f"qa/{DECISIONS}").writelines(decision_lines(decisions))
            writer.open(f"qa/{UNDONE}").writelines(f"{decision_id}\n".encode() for decision_id in sorted(undone))
        for path in (self.out / "qrels").glob("*.tsv"):
            if path.stem not in left:
                path.unlink()
        split = "test" if "test" in left else next(iter(left))
        return self._write_card(left, writer.content(split), split, rules, decisions)

    def _divide(self, splits: Mapping[str, Qrels]) -> Mapping[str, Qrels]:
        """The splits: dev and test of a made set of short documents, as AIR-Bench has them; else the source's."""
        kinds = {row["kind"] for row in self.generated.values()}
        if kinds != {"qa"} or [*splits] != [SPLIT] or len(splits[SPLIT]) < 2:
            return splits
        qrels = splits[SPLIT]
        return {
            split: {query_id: qrels[query_id] for query_id in ids} for split, ids in split_dev_test([*qrels]).items()
        }

    def _write_corpus(self, writer: FolderWriter, gone: frozenset[str]) -> None:
        corpus, removed = self.material.dataset.corpus, writer.open(f"qa/{REMOVED}")
        for n, (doc, extra) in enumerate(whole_documents(corpus), 1):
            if doc.doc_id in gone:
                removed.write(orjson.dumps({"doc_id": doc.doc_id, "title": doc.title, "text": doc.text}) + b"\n")
            else:
                writer.add_document(doc, extra)
            self.progress("write documents", n, len(corpus))

    def _write_queries(self, writer: FolderWriter, left: frozenset[str]) -> None:
        removed = writer.open(f"qa/{REMOVED}")
        for query_id, text in self.material.dataset.queries.items():
            if query_id in left:
                writer.add_query(query_id, text, self.material.query_metadata.get(query_id, {}))
            else:
                removed.write(orjson.dumps({"query_id": query_id, "text": text}) + b"\n")

    def _write_card(
        self,
        splits: Mapping[str, Qrels],
        content: Content,
        split: str,
        rules: Mapping[str, Any],
        decisions: Sequence[Decision],
    ) -> dict[str, Any]:
        source = self.material.dataset
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
                "counts": {"decisions": count_decisions(decision.to_dict() for decision in decisions), **counts},
            },
        )
        write_card(self.out, card, content)
        return {
            "name": card.name,
            "fingerprint": content.fingerprint,
            "documents": {"before": len(source.corpus), "after": content.n_docs},
            **counts,
            "splits": {name: len(qrels) for name, qrels in splits.items()},
        }

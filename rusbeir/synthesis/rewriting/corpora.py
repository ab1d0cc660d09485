"""A folder in Cocktail's layout: the documents as people wrote them, as models rewrote them, queries and judgements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rusbeir import __version__
from rusbeir.datasets import (
    ReadRequest,
    describe_content,
    describe_source,
    open_cocktail,
    read_dataset,
    read_last_card,
    record_line,
    replace_dataset,
    whole_documents,
    write_card,
)
from rusbeir.errors import BadInput
from rusbeir.jobs import Journal
from rusbeir.synthesis.selection import Selection
from rusbeir.text import batched
from rusbeir.translation import PAGE_DOCS, Plan
from rusbeir.types import Doc, Progress

HUMAN = "human"


def read_other_corpora(out: Path, corpus: str, signature: str) -> list[dict[str, Any]]:
    """Read the card's entries on other models' corpora. BadInput where this one has another signature there."""
    rows = [row for row in read_last_card(out).get("provenance", {}).get("translators", ()) if "corpus" in row]
    if any(row["corpus"] == corpus and row["signature"] != signature for row in rows):
        raise BadInput(f"{out} contains a corpus {corpus!r} that was made with other settings. Choose another folder.")
    return [row for row in rows if row["corpus"] != corpus]


@dataclass(frozen=True, kw_only=True)
class Rewriting:
    """A finished rewriting, with its journal open."""

    selection: Selection
    plan: Plan
    journal: Journal
    out: Path
    corpus: str
    """The name of the model's corpus."""
    progress: Progress

    def documents(self) -> Iterator[tuple[Doc, Mapping[str, Any], str | None]]:
        """Yield each document, the further keys of its record, and what the model made of it; None for nothing."""
        for page in batched(whole_documents(self.selection.material.dataset.corpus), PAGE_DOCS):
            answers = self.plan.translated(self.journal, [doc.text for doc, _ in page])
            for (doc, extra), answer in zip(page, answers, strict=True):
                # A text without a letter is not sent, and is its own answer.
                yield doc, extra, None if answer == doc.text else answer

    def write_corpora(self) -> dict[str, int]:
        """Write both corpora, the queries and the judgements; how many documents the model rewrote, and how many not.

        All files appear once all are complete.
        """
        material = self.selection.material
        n = n_kept = 0
        with replace_dataset(self.out, "synth", "rewrite") as writer:
            human, model = writer.open(f"corpus/{HUMAN}.jsonl"), writer.open(f"corpus/{self.corpus}.jsonl")
            for n, (doc, extra, text) in enumerate(self.documents(), 1):
                human.write(record_line(doc, extra))
                model.write(record_line(doc if text is None else doc._replace(text=text), extra))
                n_kept += text is None
                self.progress("write documents", n, len(material.dataset.corpus))
            for query_id, query in material.dataset.queries.items():
                writer.add_query(query_id, query, material.query_metadata.get(query_id, {}))
            for split, qrels in material.splits.items():
                writer.add_judgements(split, qrels)
        return {"rewritten": n - n_kept, "kept_human": n_kept}

    def write_card(self, made: list[dict[str, Any]]) -> dict[str, Any]:
        """Write the card, which says how each model's corpus was made; its name, fingerprint, licence and counts."""
        source, splits = self.selection.source.card, list(self.selection.material.splits)
        split = "test" if "test" in splits else splits[0]
        fingerprints = self.selection.fingerprints
        card = replace(
            source,
            name=f"{source.name}@rewritten{'' if self.selection.drawn == 'all' else '-sample'}",
            split=split,
            revision="",
            ignore_titles=True,
            self_suffixes=("", *(f"-{name}" for name in self._sources())) if source.self_suffixes else (),
            provenance={
                "made_by": f"rusbeir {__version__}, synth rewrite",
                "source": describe_source(source, fingerprints),
                "translators": sorted(made, key=lambda row: str(row["corpus"])),
                "settings": {"fields": "text", "sample": self.selection.drawn},
                # The audit of a rewriting compares these two.
                "views": {"source": HUMAN, "port": self.corpus},
            },
        )
        # It cannot be hashed while it is written: a fingerprint takes the corpora of all sources one after the other,
        # but people's and the model's are written in parallel, and those of other models were written before.
        request = ReadRequest(path=self.out, language=card.language, split=split)
        content = describe_content(read_dataset(open_cocktail(request), card, self.progress))
        write_card(self.out, card, content)
        described = {"name": card.name, "fingerprint": content.fingerprint, "licence": card.licence}
        return {**described, "sources": self._sources(), "splits": splits, **content._asdict()}

    def _sources(self) -> list[str]:
        return sorted(path.stem for path in (self.out / "corpus").glob("[!.]*.jsonl"))

"""The folder of a made test set: a BEIR dataset, and the record of how each query was made."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from rusbeir import __version__
from rusbeir.datasets import SPANS, Content, describe_source, replace_dataset, whole_documents, write_card
from rusbeir.errors import BackendError, BadInput, option
from rusbeir.jobs import damage
from rusbeir.synthesis.queries.draft_journal import Drafts
from rusbeir.synthesis.queries.drafts import Draft
from rusbeir.synthesis.queries.questions import normalise
from rusbeir.types import Card, Doc, Progress

GENERATED, DROPPED = "qa/generated.jsonl", "qa/dropped.jsonl"
SPLIT = "test"
DUPLICATE = "duplicate"
"""Why a query is dropped whose words are those of an earlier one."""


def describe(dropped: Mapping[tuple[str, str], int]) -> str:
    """Describe what was dropped where and why, in words.

    >>> describe({("query", "copy"): 3})
    '3 at query: copy'
    """
    return ", ".join(f"{n:,} at {step}: {reason}" for (step, reason), n in sorted(dropped.items()))


def span_line(record: Mapping[str, Any]) -> bytes:
    """Return the line in SPANS of a query with a span, which `rusbeir diagnose position` reads."""
    start, end = record["span"]
    return f"{record['query_id']}\t{record['doc_id']}\t{start}\t{end}\n".encode()


@dataclass(frozen=True, kw_only=True)
class MadeSet:
    """A finished set of drafts, with its journal open."""

    drafts: Drafts
    model: str
    out: Path
    progress: Progress

    def write(self) -> tuple[Counter[tuple[str, str]], Content]:
        """Write documents, queries, judgements and records.

        Returns (step, reason) -> dropped drafts, and what the card says of the content.
        All files appear once all are complete. Raises BackendError where every draft was dropped.
        """
        dropped: Counter[tuple[str, str]] = Counter()
        seen: set[bytes] = set()
        n_made = 0
        with replace_dataset(self.out, "synth", "queries") as writer:
            generated, lost = writer.open(GENERATED), writer.open(DROPPED)
            spans = writer.open(SPANS) if self.drafts.order.kind == "position" else None
            for n, (doc, extra) in enumerate(whole_documents(self.drafts.order.source.corpus), 1):
                writer.add_document(doc, extra)
                self.progress("write documents", n, None)
            for page in self.drafts.pages():
                for draft in page:
                    if draft.waiting:
                        # All were answered before: what lacks an answer now has lost it.
                        raise BadInput(damage(self.drafts.journal.path, f"the answers about {draft.query_id} are gone"))
                    if not draft.dropped:
                        key = hashlib.blake2b(normalise(draft.text).encode(), digest_size=16).digest()
                        if key in seen:
                            draft.dropped = (self.drafts.steps[-1], DUPLICATE, draft.text)
                        seen.add(key)
                    if draft.dropped:
                        step, reason, message = draft.dropped
                        dropped[step, reason] += 1
                        row = {"query_id": draft.query_id, "doc_id": draft.doc_id, "step": step, "reason": reason}
                        lost.write(orjson.dumps({**row, "said": message}) + b"\n")
                        continue
                    n_made += 1
                    record = self._describe(draft)
                    generated.write(orjson.dumps(record) + b"\n")
                    writer.add_query(draft.query_id, draft.text)
                    grades = {draft.doc_id: 1, **dict.fromkeys(record["negatives"], 0)}
                    writer.add_judgements(SPLIT, {draft.query_id: grades})
                    for doc_id, text in zip(record["negatives"], draft.made.get("negatives", ()), strict=True):
                        writer.add_document(Doc(doc_id, text))
                    if spans is not None:
                        spans.write(span_line(record))
            if not n_made:
                order = self.drafts.order
                raise BackendError(
                    f"None of {order.n:,} queries of {order.source.card.name} was made ({describe(dropped)}), so "
                    f"nothing was written. Ask again with {option('retry_failed', True)}, or ask another model."
                )
        return dropped, writer.content(SPLIT)

    def _describe(self, draft: Draft) -> dict[str, Any]:
        """Describe the line of a query in GENERATED."""
        negatives = [f"{draft.query_id}-neg{n}" for n in range(len(draft.made.get("negatives", ())))]
        return {
            "query_id": draft.query_id,
            "doc_id": draft.doc_id,
            "kind": self.drafts.order.kind,
            "character": draft.character,
            "scenario": draft.scenario,
            "attributes": {name: value for name, value in draft.attributes.items() if name != "negatives"},
            "first": draft.first,
            "negatives": negatives,
            "span": draft.made.get("span"),
            "answer": draft.made["question"]["answer"] if "question" in draft.made else None,
            "model": self.model,
        }

    def finish(self, content: Content, settings: dict[str, str], signature: str, dropped: int) -> dict[str, Any]:
        """Write the card, which says how many queries were dropped, and return its name, fingerprint and counts."""
        source = self.drafts.order.source.card
        card = Card(
            name=f"{source.name}@made-{self.drafts.order.kind}",
            language=source.language,
            split=SPLIT,
            licence=source.licence,
            source=source.source,
            provenance={
                "made_by": f"rusbeir {__version__}, synth queries",
                "source": describe_source(source, self.drafts.order.source.fingerprint),
                "generator": {"model": self.model, "signature": signature},
                "settings": settings,
                "counts": {
                    "asked": self.drafts.order.n,
                    "made": self.drafts.order.n - dropped,
                    "dropped": dropped,
                },
            },
        )
        write_card(self.out, card, content)
        return {"name": card.name, "fingerprint": content.fingerprint, "licence": card.licence, **content._asdict()}

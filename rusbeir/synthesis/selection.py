"""The documents of a dataset that are rewritten: those of a usual length, and of a large corpus a part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rusbeir.datasets import Material, draw_documents, load_material, take_documents, take_split
from rusbeir.errors import BadInput, option
from rusbeir.synthesis.likeness import count_words
from rusbeir.types import Dataset, Doc, Progress, silent

MIN_WORDS, MAX_WORDS = 10, 2_000
"""The words of a document that is rewritten, as in Cocktail; others are left out of both corpora."""
MANY_DOCUMENTS, DRAWN_DOCUMENTS = 200_000, 100_000
"""From a corpus of more documents than the first, the judged ones are taken, and others up to the second."""


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The documents that are rewritten, and where they are from."""

    source: Dataset
    """All of it, with the queries of all splits that are taken."""
    material: Material
    drawn: str
    """How documents were drawn, in the words of a port's card: "all" or "1000 (seed 0)"."""
    left_out: Mapping[str, int]
    """"short", "long" and "not_drawn" -> documents that are not rewritten."""
    fingerprints: Mapping[str, str]
    """split -> fingerprint of the source with that split."""


def select_documents(
    dataset: str | Path | Dataset,
    *,
    language: str | None = None,
    split: str | None = None,
    sample: int | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> Selection:
    """Select the documents of MIN_WORDS to MAX_WORDS words; of a large corpus, and for a sample, judged ones first.

    Raises BadInput where no query keeps a relevant document.
    """
    if sample is not None and sample < 1:
        raise BadInput(f"{option('sample', sample)}: take at least 1 document.")
    material = load_material(dataset, language=language, split=split, fields=("text",), progress=progress)
    source = material.dataset
    total, n_drawn = len(source.corpus), sample
    if n_drawn is None and total > MANY_DOCUMENTS:
        n_drawn = max(DRAWN_DOCUMENTS, len({doc_id for grades in source.qrels.values() for doc_id in grades}))
    left_out = Counter(short=0, long=0)

    def find_fitting() -> Iterator[Doc]:
        for n, doc in enumerate(source.corpus, 1):
            words = count_words(doc.text)
            if MIN_WORDS <= words <= MAX_WORDS:
                yield doc
            else:
                left_out["short" if words < MIN_WORDS else "long"] += 1
            progress("count words", n, total)

    doc_ids = draw_documents(find_fitting(), source.qrels, n_drawn or total, seed)
    chosen = take_documents(source, doc_ids)
    if not chosen.qrels:
        raise BadInput(
            f"{source.card.name}: no query has a relevant document of {MIN_WORDS} to {MAX_WORDS:,} words"
            f"{f' among {n_drawn:,}; take more documents' if n_drawn else ', so there is nothing to rewrite'}."
        )
    return Selection(
        source=source,
        material=material.reduce_to(chosen),
        drawn="all" if n_drawn is None else f"{n_drawn} (seed {seed})",
        left_out={**left_out, "not_drawn": total - left_out.total() - len(doc_ids)},
        fingerprints={name: take_split(source, name, qrels).fingerprint for name, qrels in material.splits.items()},
    )

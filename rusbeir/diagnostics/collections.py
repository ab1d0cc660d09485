"""Collections in which every document has a copy from each of several sources, as Cocktail's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rusbeir.datasets import find_entry, hash_id, load, load_splits, split_view
from rusbeir.errors import BadInput
from rusbeir.types import Dataset, Progress, Qrels, silent

_MIXED = "mixed"
_OTHER = "llm"
"""The view of the one source that is not human."""
_REPORT_EVERY = 10_000


@dataclass(frozen=True, kw_only=True)
class SourceCollection:
    """The mixed corpus of several sources, whose ids end in -<source>."""

    mixed: Dataset
    sources: tuple[str, ...]
    """Human first, where it is one of them."""
    qrels: Mapping[str, Qrels]
    """split -> its judgements of all copies."""
    name: str
    """The name or path, without the view."""
    language: str
    split: str | None

    def number_of(self, doc_id: str) -> int:
        """Return the number of the source that the copy is from."""
        return next(n for n, source in enumerate(self.sources) if doc_id.endswith(f"-{source}"))

    def load_alone(self, source: str, progress: Progress) -> Dataset:
        """Load the collection of one source alone; its ids have no ending."""
        name = f"{self.name}/{source}"
        if find_entry(f"{self.name}/{_MIXED}"):
            return load(name if find_entry(name) else f"{self.name}/{_OTHER}", progress=progress)
        return load(name, language=self.language, split=self.split, progress=progress)


def load_collection(
    name_or_path: str | Path, *, language: str | None = None, split: str | None = None, progress: Progress = silent
) -> SourceCollection:
    """The collection of a registered name (cocktail/nfcorpus, or its view mixed) or at a path in Cocktail's layout.

    Raises BadInput for a dataset with one copy of each document, and for a source that lacks documents of another.
    """
    name = str(name_or_path)
    if find_entry(f"{name}/{_MIXED}"):
        name = f"{name}/{_MIXED}"
    entry = find_entry(name)
    path, view = (None, None) if entry else split_view(name)
    if (entry.options.get("view") if entry else view or _MIXED) != _MIXED:
        raise _not_mixed(name)
    loaded = load_splits(name, language=language, split=split, progress=progress)
    suffixes = loaded.id_suffixes
    if len(suffixes) < 2:
        raise _not_mixed(name)
    for suffix in suffixes:
        if others := [other for other in suffixes if other != suffix and other.endswith(suffix)]:
            raise BadInput(
                f"{name}: ids that end in {others[0]!r} end in {suffix!r}, too. Rename the file "
                f"corpus/{suffix[1:]}.jsonl."
            )
    collection = SourceCollection(
        mixed=loaded.dataset,
        sources=tuple(suffix.removeprefix("-") for suffix in suffixes),
        qrels=loaded.qrels,
        name=name.removesuffix(f"/{_MIXED}") if entry or path is None else str(path),
        language=loaded.dataset.card.language,
        split=split,
    )
    _refuse_missing(collection, progress)
    return collection


def _not_mixed(name: str) -> BadInput:
    return BadInput(
        f"{name} has one copy of each document. Source bias is measured on Cocktail's layout: corpus/human.jsonl and "
        "corpus/<source>.jsonl with the same ids, queries.jsonl and qrels/<split>.tsv, in a folder or a zip; "
        "`rusbeir datasets` lists such datasets as cocktail/…/mixed, and `rusbeir synth rewrite` makes one."
    )


def _refuse_missing(collection: SourceCollection, progress: Progress) -> None:
    """Raise BadInput where a source lacks a document of another.

    Counts and sums of hashes are compared, so that memory does not grow with the corpus.
    """
    counts, sums = [0] * len(collection.sources), [0] * len(collection.sources)
    corpus, sources = collection.mixed.corpus, collection.sources
    for n, doc in enumerate(corpus, 1):
        source = collection.number_of(doc.doc_id)
        counts[source] += 1
        sums[source] += hash_id(doc.doc_id.removesuffix(f"-{sources[source]}"))
        if n % _REPORT_EVERY == 0:
            progress("compare sources", n, len(corpus))
    if len(set(zip(counts, sums, strict=True))) == 1:
        return
    missing: dict[tuple[str, str], tuple[str, int]] = {}
    for doc in corpus:
        source_name = sources[collection.number_of(doc.doc_id)]
        doc_id = doc.doc_id.removesuffix(f"-{source_name}")
        for other in sources:
            try:
                corpus[f"{doc_id}-{other}"]
            except KeyError:
                example, count = missing.get((source_name, other), (doc_id, 0))
                missing[source_name, other] = example, count + 1
    parts = [
        f"{other} lacks {n:,} of the documents of {source_name}, such as {doc_id!r}"
        for (source_name, other), (doc_id, n) in missing.items()
    ]
    raise BadInput(
        f"{collection.mixed.card.name}: {'; '.join(parts)}. Each source must have a copy of every document: add them, "
        "or remove the others."
    )

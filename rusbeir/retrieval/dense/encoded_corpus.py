"""A corpus as an encoder sees it: which row of a store belongs to which document."""

from __future__ import annotations

import logging
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import orjson

from rusbeir.errors import BackendError, BadInput
from rusbeir.retrieval.dense.embedding_store import BLOCK_TEXTS
from rusbeir.retrieval.dense.encoder import AnyEncoder, ReportsTruncation
from rusbeir.retrieval.lexical.doc_ids import DocIds, DocIdWriter
from rusbeir.storage import atomic_folder
from rusbeir.types import Corpus, Doc, Progress

logger = logging.getLogger(__name__)

_ROWS = "rows.u32"
_OWNERS = "owners.u32"
_BUILT = "built.json"


class Rows(Protocol):
    """What a store is to a collection."""

    def __len__(self) -> int: ...

    def rows_of(self, texts: Sequence[str], encode: Callable[[Sequence[str]], Any], encoder: str) -> list[int]:
        """The row of each text; those that are missing are encoded first."""
        ...


@dataclass(frozen=True, kw_only=True)
class Built:
    """What was noted when a corpus was encoded."""

    documents: int
    passages: int
    over_length: int
    """Passages longer than the model reads at once."""
    seconds: float
    """Of the run that finished it; embeddings that were there already took no time."""


@dataclass(frozen=True, kw_only=True)
class EncodedCorpus:
    """An encoded corpus: passages in corpus order, each with its row in the store and its document."""

    doc_ids: DocIds
    rows: npt.NDArray[np.uint32]
    owners: npt.NDArray[np.uint32] | None
    """Passage -> document; None where each document is one passage."""
    built: Built


def encoded(
    folder: Path,
    corpus: Corpus,
    store: Rows,
    encoder: AnyEncoder,
    passages: Callable[[Doc], list[str]],
    progress: Progress,
    *,
    name: str,
    model: str,
) -> tuple[EncodedCorpus, bool]:
    """The encoded corpus in that folder, and whether it was there already; says what the model does not read whole."""
    reused = folder.exists()
    if not reused:
        build(folder, corpus, store, encoder, passages, progress, name=name)
    found = open_folder(folder, store)
    built = found.built
    if built.over_length and isinstance(encoder, ReportsTruncation):
        logger.warning(
            "%d of %d texts (%.2f %%) are longer than %s reads at once: %s.",
            built.over_length,
            built.passages,
            100 * built.over_length / built.passages,
            model,
            encoder.truncation,
        )
    return found, reused


def query_rows(store: Rows, texts: Sequence[str], encoder: AnyEncoder, progress: Progress, *, name: str) -> list[int]:
    """The row of each query; what the store does not hold is encoded first."""
    rows: list[int] = []
    for start in range(0, len(texts), BLOCK_TEXTS):
        rows += store.rows_of(texts[start : start + BLOCK_TEXTS], encoder.encode_queries, name)
        progress("encode queries", len(rows), len(texts))
    return rows


def build(
    folder: Path,
    corpus: Corpus,
    store: Rows,
    encoder: AnyEncoder,
    passages: Callable[[Doc], list[str]],
    progress: Progress,
    *,
    name: str,
) -> None:
    """Encode what the store does not hold; the folder appears at the end.

    passages gives a document's texts, at least one. Raises as EmbeddingStore.rows_of does.
    """
    if not len(corpus):
        raise BadInput("The corpus is empty: there is nothing to encode.")
    started = time.perf_counter()
    over_length = documents = count = 0
    single = True
    measure = encoder.count_truncated if isinstance(encoder, ReportsTruncation) else None
    with (
        atomic_folder(folder) as temporary,
        DocIdWriter(temporary) as ids,
        (temporary / _ROWS).open("wb") as row_file,
        (temporary / _OWNERS).open("wb") as owner_file,
    ):
        for owners, texts in _blocks(corpus, ids, passages):
            rows = store.rows_of(texts, encoder.encode_documents, name)
            if measure is not None:
                over_length += measure(texts)
            array("I", rows).tofile(row_file)
            array("I", owners).tofile(owner_file)
            single = single and owners == list(range(count, count + len(owners)))
            count += len(texts)
            documents = owners[-1] + 1
            progress("encode", documents, len(corpus))
        owner_file.close()
        if single:
            (temporary / _OWNERS).unlink()
        built = Built(
            documents=len(corpus),
            passages=count,
            over_length=over_length,
            seconds=time.perf_counter() - started,
        )
        (temporary / _BUILT).write_bytes(orjson.dumps(asdict(built)))


def open_folder(folder: Path, store: Rows) -> EncodedCorpus:
    """The corpus encoded in that folder. Raises BackendError where it is damaged."""
    try:
        built = Built(**orjson.loads((folder / _BUILT).read_bytes()))
        rows = np.memmap(folder / _ROWS, dtype=np.uint32, mode="r")
        owners = np.memmap(folder / _OWNERS, dtype=np.uint32, mode="r") if (folder / _OWNERS).exists() else None
        doc_ids = DocIds(folder)
        if len(rows) != built.passages or len(doc_ids) != built.documents or int(rows.max()) >= len(store):
            raise ValueError("its files do not fit together")
    except (OSError, ValueError, TypeError) as error:
        raise BackendError(
            f"The encoded corpus {folder} is damaged ({error}). Remove it: `rusbeir cache clear embeddings`."
        ) from error
    return EncodedCorpus(doc_ids=doc_ids, rows=rows, owners=owners, built=built)


def _blocks(
    corpus: Corpus, ids: DocIdWriter, passages: Callable[[Doc], list[str]]
) -> Iterator[tuple[list[int], list[str]]]:
    """Documents' numbers and texts, so many at a time: blocks begin at the same texts in every run."""
    stream = _passages(corpus, ids, passages)
    while block := list(islice(stream, BLOCK_TEXTS)):
        yield [number for number, _ in block], [text for _, text in block]


def _passages(corpus: Corpus, ids: DocIdWriter, passages: Callable[[Doc], list[str]]) -> Iterator[tuple[int, str]]:
    for number, doc in enumerate(corpus):
        ids.add(doc.doc_id)
        for text in passages(doc):
            yield number, text

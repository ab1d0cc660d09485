"""Encode a corpus or queries, and remember which row of a store belongs to which document."""

from __future__ import annotations

import contextlib
import logging
import time
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import orjson

from rusbeir.costs import CarriedSeconds
from rusbeir.datasets import DocIds, write_ids
from rusbeir.errors import BackendError, BadInput
from rusbeir.retrieval.encoding.encoder import ReportsTruncation
from rusbeir.retrieval.encoding.pools import Encoding, TextStore, encode_in_order
from rusbeir.storage import atomic_folder, cache_folder
from rusbeir.text import digest, slug
from rusbeir.types import Corpus, Doc, Queries

logger = logging.getLogger(__name__)

_ROWS = "rows.u32"
_OWNERS = "owners.u32"
_RECORD = "built.json"


@dataclass(frozen=True, kw_only=True)
class EncodedCorpus:
    """Passages in corpus order, each with its row in the store and its document."""

    doc_ids: DocIds
    rows: npt.NDArray[np.uint32]
    owners: npt.NDArray[np.uint32] | None
    """Passage -> document; None where each document is one passage."""
    truncated: int
    """How many passages are longer than the model reads at once."""
    seconds: float
    """The time of the run that finished the encoding; texts that the store held already took none."""


def find_folder(model: str, signature: str) -> Path:
    """Return the folder in rusbeir's cache for what the encoder of that signature makes of texts."""
    return cache_folder() / "embeddings" / f"{slug(model)}-{digest(signature, chars=12)}"


def open_or_encode(
    folder: Path, corpus: Corpus, encoding: Encoding, passages: Callable[[Doc], list[str]], *, model: str
) -> tuple[EncodedCorpus, bool]:
    """Return the encoded corpus in that folder, and whether it was there already.

    passages returns a document's texts, at least one; model is named in the warning of texts that it truncates. Raises
    as encode_in_order does.
    """
    reused = folder.exists()
    if not reused:
        encode(folder, corpus, encoding, passages)
    encoded = open_folder(folder, encoding.store)
    if encoded.truncated and isinstance(encoding.encoder, ReportsTruncation):
        count, total = encoded.truncated, len(encoded.rows)
        logger.warning(
            "%d of %d texts (%.2f %%) are longer than %s reads at once: %s.",
            count, total, 100 * count / total, model, encoding.encoder.truncation,
        )  # fmt: skip
    return encoded, reused


def encode_queries(queries: Queries, encoding: Encoding, carried: CarriedSeconds) -> list[int]:
    """Return the row of each query; those that the store does not hold are encoded first.

    The store keeps the seconds that encoding them takes; carried is charged with those of the queries that it held.
    """
    rows: list[int] = []
    store = encoding.store
    texts = list(dict.fromkeys(queries.values()))
    missing = [text for text, row in zip(texts, store.find(texts), strict=True) if row is None]
    if len(missing) < len(texts):
        new = set(missing)
        carried.add(store.sum_seconds([text for text in texts if text not in new]))
    started = time.perf_counter()
    encoded = encode_in_order(
        enumerate(queries.values()), encoding, lambda n: encoding.progress("encode queries", n, len(queries)),
        waiting=f"pool-{digest(*queries.values(), chars=12)}", queries=True,
    )  # fmt: skip
    for _, part, _ in encoded:
        rows += part
    if missing:
        store.keep_seconds(missing, time.perf_counter() - started)
    return rows


def encode(folder: Path, corpus: Corpus, encoding: Encoding, passages: Callable[[Doc], list[str]]) -> None:
    """Encode the texts that the store does not hold; the folder appears at the end."""
    if not len(corpus):
        raise BadInput("The corpus is empty: there is nothing to encode.")
    started = time.perf_counter()
    truncated = count = 0
    single = True
    with (
        atomic_folder(folder, keyed=True) as temporary,
        contextlib.closing(write_ids(temporary, corpus)) as docs,
        (temporary / _ROWS).open("wb") as row_file,
        (temporary / _OWNERS).open("wb") as owner_file,
        contextlib.closing(
            encode_in_order(
                _passages(docs, passages), encoding, lambda n: encoding.progress("encode", n, len(corpus)),
                waiting=f"pool-{folder.name}",
            )
        ) as encoded,
    ):  # fmt: skip
        for owners, rows, over_length in encoded:
            array("I", rows).tofile(row_file)
            array("I", owners).tofile(owner_file)
            truncated += over_length
            single = single and owners == list(range(count, count + len(owners)))
            count += len(rows)
        owner_file.close()
        if single:
            (temporary / _OWNERS).unlink()
        seconds = time.perf_counter() - started
        record = {"documents": len(corpus), "passages": count, "over_length": truncated, "seconds": seconds}
        (temporary / _RECORD).write_bytes(orjson.dumps(record))


def open_folder(folder: Path, store: TextStore) -> EncodedCorpus:
    """Open the corpus encoded in that folder. Raises BackendError where it is damaged."""
    try:
        record = orjson.loads((folder / _RECORD).read_bytes())
        encoded = EncodedCorpus(
            doc_ids=DocIds(folder),
            rows=np.memmap(folder / _ROWS, dtype=np.uint32, mode="r"),
            owners=np.memmap(folder / _OWNERS, dtype=np.uint32, mode="r") if (folder / _OWNERS).exists() else None,
            truncated=record["over_length"],
            seconds=record["seconds"],
        )
        sizes = encoded.doc_ids.count, len(encoded.rows)
        if sizes != (record["documents"], record["passages"]) or int(encoded.rows.max()) >= len(store):
            raise ValueError("its files do not fit together")
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise BackendError(
            f"The encoded corpus {folder} is damaged ({error}). Remove it: `rusbeir cache clear embeddings`."
        ) from error
    return encoded


def _passages(docs: Iterable[Doc], passages: Callable[[Doc], list[str]]) -> Iterator[tuple[int, str]]:
    for number, doc in enumerate(docs):
        for text in passages(doc):
            yield number, text

"""Many texts: in batches, and in several processes where that pays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from rusbeir.analysis.chain import chain_of
from rusbeir.analysis.pieces import pack, unpack
from rusbeir.analysis.recipes import Recipe
from rusbeir.processes import cpu_count, in_order

BATCH_CHARS = 1 << 19
BATCH_TEXTS = 4096
SERIAL_CHARS = 1 << 22
"""Left to itself, analysis starts other processes only when a stream is longer than this."""


def analyzed_lines(recipe: Recipe, texts: Iterable[str], processes: int | None) -> Iterator[str]:
    """The terms of each text joined by single spaces, in order; holds a few batches at a time."""
    batches = _batches(texts)
    if processes is None:
        processes = cpu_count()
        chars = 0
        while chars < SERIAL_CHARS or processes < 2:
            batch = next(batches, None)
            if batch is None:
                return
            chars += sum(map(len, batch))
            yield from chain_of(recipe).lines(batch)
    if processes < 2:
        for batch in batches:
            yield from chain_of(recipe).lines(batch)
    else:
        for block in in_order(partial(_remote, recipe), map(pack, batches), processes):
            yield from unpack(block)


def _remote(recipe: Recipe, packed: bytes) -> bytes:
    return chain_of(recipe).block(packed)


def _batches(texts: Iterable[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    chars = 0
    for text in texts:
        batch.append(text)
        chars += len(text)
        if chars >= BATCH_CHARS or len(batch) >= BATCH_TEXTS:
            yield batch
            batch, chars = [], 0
    if batch:
        yield batch

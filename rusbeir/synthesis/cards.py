"""The card of a folder that was just made: its fingerprint and counts are those that everybody will read."""

from __future__ import annotations

from pathlib import Path

from rusbeir.datasets import card_bytes, load_splits, write_card
from rusbeir.types import Card, Dataset, Progress


def finish_folder(card: Card, out: Path, progress: Progress) -> tuple[Dataset, dict[str, int]]:
    """Write the card of the folder out; its dataset, as read again, and n_docs, n_queries and n_qrels.

    What an earlier card says of other content is not asked.
    """
    dataset = load_splits(out, language=card.language, split=card.split, finishing=True, progress=progress).dataset
    counts = {
        "n_docs": len(dataset.corpus),
        "n_queries": len(dataset.queries),
        "n_qrels": sum(map(len, dataset.qrels.values())),
    }
    write_card(out, card_bytes(card, dataset.fingerprint, **counts))
    return dataset, counts

"""A load into a server as a program, to be killed each time further on.

python -m tests.support.killed_load FOLDER COUNTER ENGINE
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path

from rusbeir.types import Doc

DOCUMENTS = 20_000


def documents(counter: Path | None = None) -> Iterator[Doc]:
    """Documents of Zipf words; the counter gets a byte at the 2,000th, in the next run at the 4,000th, and so on."""
    random_ = random.Random(5)
    words = [f"w{number}" for number in range(2_000)]
    weights = [1 / (rank + 1) for rank in range(2_000)]
    due = 2_000 * (1 + counter.stat().st_size) if counter else None
    for row in range(DOCUMENTS):
        if counter and row == due:
            with counter.open("ab") as file:
                file.write(b".")
        yield Doc(f"d{row}", " ".join(random_.choices(words, weights, k=12)))


if __name__ == "__main__":
    from rusbeir.retrieval.lexical import engines, index
    from rusbeir.retrieval.lexical.bm25 import Bm25
    from rusbeir.types import silent
    from tests.support.stubs import Docs, Words, recipe

    class Counted(Docs):
        def __len__(self) -> int:
            return DOCUMENTS

        def __iter__(self) -> Iterator[Doc]:
            return documents(Path(sys.argv[2]))

    engine, folder = sys.argv[3], Path(sys.argv[1])
    index.build(folder, recipe(engine, Bm25(), folder), Counted(), Words(), engines.load(engine), Bm25(), silent)

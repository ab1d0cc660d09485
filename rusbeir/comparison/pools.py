"""Results on pools of several languages, split by the language of queries, or by pairs of languages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from rusbeir.comparison.filters import load_measured
from rusbeir.comparison.results import Result, read_run_of
from rusbeir.errors import BadInput, option, unknown
from rusbeir.evaluation import LanguagePart, evaluate, split_by_pair, split_by_query, strip_language
from rusbeir.types import MULTILINGUAL, Dataset, Run, select_queries

SPLITS: Mapping[str, Callable[[Dataset, Run], Iterator[LanguagePart]]] = {
    "queries": split_by_query,
    "pairs": split_by_pair,
}
"""What `split_results` splits by: the language of queries, with all documents, or each pair of languages."""

Value = TypeVar("Value")


def split_results(results: Sequence[Result], by: str, measure: str, folders: Sequence[Path]) -> list[Result]:
    """Split every result on a pool into one for each of its languages or pairs; others stay as they are.

    A part has the queries in its language, under the ids that they had before they were pooled, so that parts in
    several languages are of the same queries. Raises UnknownName for another split than those of SPLITS, and BadInput
    where no result is on a pool, or its dataset, which is looked for among the folders, or a run is not at hand.
    """
    if by not in SPLITS:
        raise unknown("split by language", by, SPLITS)
    pools = [result for result in results if result.language == MULTILINGUAL]
    if not pools:
        raise BadInput(
            f"{option('by_language', by)} splits results on a pool of several languages, and none of these is on one."
        )
    datasets = {fingerprint: dataset for fingerprint, dataset, _ in load_measured(pools, folders, "by_language")}
    split = []
    for result in results:
        if result.language != MULTILINGUAL:
            split.append(result)
            continue
        dataset = datasets[str(result.row["fingerprint"])]
        split += [_take_part(result, dataset, part, measure) for part in SPLITS[by](dataset, read_run_of(result))]
    return split


def _take_part(result: Result, dataset: Dataset, part: LanguagePart, measure: str) -> Result:
    """The result on a part of the pool, with the texts that it is about."""
    tags: tuple[str, ...] = (part.query_language,)

    def rename(values: Mapping[str, Value]) -> dict[str, Value]:
        return {strip_language(query_id, tags): values[query_id] for query_id in part.qrels}

    queries = rename(select_queries(dataset.queries, part.qrels))
    if len(queries) < len(part.qrels):
        # Two ids of the part differ in their endings alone, so these are not of the pool's making.
        tags, queries = (), dict(select_queries(dataset.queries, part.qrels))
    alone = part.language != MULTILINGUAL
    name = f"{dataset.card.name}/{part.language}" if alone else dataset.card.name
    card = replace(dataset.card, name=name, language=part.language, query_language=part.query_language)
    source = replace(dataset, queries=queries, qrels=rename(part.qrels), card=card)
    counts = evaluate(part.qrels, part.run, [measure])
    return replace(
        result,
        row={
            **result.row,
            "dataset": name,
            "language": part.language,
            "query_language": part.query_language,
            "fingerprint": source.fingerprint,
            "n_queries": counts.n_queries,
            "n_zero_hit": counts.n_zero_hit,
            "n_tied": counts.n_tied,
        },
        scores={query_id: values[measure] for query_id, values in rename(counts.per_query).items()},
        clusters=rename(result.clusters) if result.clusters else None,
        run=rename(part.run),
        source=source,
    )

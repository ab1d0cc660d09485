"""Filters of results and queries after the run, such as 'query.words<=4 and port.chrf>=60'."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from rusbeir.comparison.results import Result, load_dataset_of, read_run_of
from rusbeir.datasets import QA, TEXTS, load, read_audit, read_audited_texts
from rusbeir.errors import BadInput, RusbeirError, option, unknown
from rusbeir.evaluation import evaluate
from rusbeir.types import Dataset, Qrels

Value: TypeAlias = float | str

RESULT_FIELDS = ("dataset", "language", "query_language", "system")
QUERY_FIELDS = ("query.words", "query.chars", "query.relevant")
PORT_FIELDS = ("port.chrf", "port.flags")
"""The chrF of a query's back-translation and the number of flags on it, from `rusbeir audit check`."""
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "<=": operator.le, ">=": operator.ge, "==": operator.eq, "!=": operator.ne, "<": operator.lt, ">": operator.gt,
}  # fmt: skip
_CONDITION = re.compile(r"([a-z._]+)\s*+(<=|>=|==|!=|<|>)\s*+(.+)")
_AND = re.compile(r"(?<!\s)\s++and\s++")


@dataclass(frozen=True)
class Condition:
    """One comparison of a field with a value."""

    field: str
    sign: str
    value: Value

    def holds(self, value: Value) -> bool:
        """Return whether a field with that value passes."""
        return _OPERATORS[self.sign](value, self.value)


def parse_filter(text: str) -> tuple[Condition, ...]:
    """The conditions of a filter, joined by "and". Raises BadInput or UnknownName for what cannot be read.

    >>> parse_filter("query.words<=4 and language==ru")[0]
    Condition(field='query.words', sign='<=', value=4.0)
    """
    conditions = []
    for part in _AND.split(text.strip()):
        matched = _CONDITION.fullmatch(part)
        if matched is None:
            raise BadInput(
                f"{option('where', repr(text))}: {part!r} is not FIELD<=VALUE. Signs: {', '.join(_OPERATORS)}."
            )
        field, sign, raw = matched.groups()
        fields = (*RESULT_FIELDS, *QUERY_FIELDS, *PORT_FIELDS)
        if field not in fields:
            raise unknown("field", field, fields, owner=option("where"))
        if field in RESULT_FIELDS:
            if sign not in ("==", "!="):
                raise BadInput(f"{option('where', repr(text))}: {field} is text; compare it with == or !=.")
            conditions.append(Condition(field, sign, raw.strip("'\"")))
            continue
        try:
            conditions.append(Condition(field, sign, float(raw)))
        except ValueError:
            raise BadInput(f"{option('where', repr(text))}: {raw!r} is not a number.") from None
    return tuple(conditions)


def filter_results(results: Sequence[Result], where: str, folders: Sequence[Path]) -> list[Result]:
    """The results for which the filter holds, each with the scores and counts of the queries for which it holds.

    Conditions on queries need the dataset, by its registered name or among the folders, found by its fingerprint, and
    the runs, of which the counts are made. Raises BadInput where nothing is left, or where one of them is not at hand.
    """
    conditions = parse_filter(where)
    chosen = [
        result
        for result in results
        if all(
            c.holds(str({**result.row, "query_language": result.query_language}[c.field]))
            for c in conditions
            if c.field in RESULT_FIELDS
        )
    ]
    per_query = [c for c in conditions if c.field not in RESULT_FIELDS]
    if per_query:
        passing = {
            fingerprint: {q: qrels[q] for q, facts in queries if all(c.holds(facts[c.field]) for c in per_query)}
            for fingerprint, qrels, queries in _gather_facts(chosen, per_query, folders)
        }
        chosen = [_restrict(result, qrels) for result in chosen if (qrels := passing[str(result.row["fingerprint"])])]
    if not chosen:
        raise BadInput(f"{option('where', repr(where))} leaves no query of any result.")
    return chosen


def _restrict(result: Result, qrels: Qrels) -> Result:
    """The result on these of its queries."""
    counts = evaluate(qrels, read_run_of(result), list(result.row["measures"]))
    return replace(
        result,
        scores={query_id: value for query_id, value in result.scores.items() if query_id in qrels},
        row={**result.row, "n_zero_hit": counts.n_zero_hit, "n_tied": counts.n_tied},
    )


def _gather_facts(
    results: Sequence[Result], conditions: Sequence[Condition], folders: Sequence[Path]
) -> Iterator[tuple[str, Qrels, list[tuple[str, Mapping[str, float]]]]]:
    """Gather each dataset's fingerprint, its judgements, and the fields' values for each of its queries."""
    needs_port = any(c.field in PORT_FIELDS for c in conditions)
    for fingerprint, dataset, folder in load_measured(results, folders, "where"):
        quality = _port_quality(folder, dataset.card.name) if needs_port else {}
        yield (
            fingerprint,
            dataset.qrels,
            [
                (
                    query_id,
                    {
                        "query.words": float(len(text.split())),
                        "query.chars": float(len(text)),
                        "query.relevant": float(sum(grade > 0 for grade in dataset.qrels[query_id].values())),
                        **quality.get(query_id, {"port.chrf": float("nan"), "port.flags": 0.0}),
                    },
                )
                for query_id, text in dataset.queries.items()
            ],
        )


def load_measured(
    results: Iterable[Result], folders: Sequence[Path], purpose: str
) -> Iterator[tuple[str, Dataset, Path | None]]:
    """Yield fingerprint, dataset and, where it is one of these, folder of each dataset that was measured.

    Raises BadInput, which names the option that needs them, where a dataset is not at hand.
    """
    datasets = {(dataset := load(folder)).fingerprint: (dataset, folder) for folder in folders}
    for fingerprint, result in {str(result.row["fingerprint"]): result for result in results}.items():
        if fingerprint in datasets:
            yield fingerprint, *datasets[fingerprint]
            continue
        try:
            yield fingerprint, load_dataset_of(result, datasets.values()), None
        except RusbeirError as error:
            raise BadInput(
                f"{option(purpose)} needs the queries of {result.dataset}: name its folder with {option('data')} "
                f"({error})"
            ) from None


def _port_quality(folder: Path | None, name: str) -> dict[str, dict[str, float]]:
    if folder is None or not (folder / QA / TEXTS).is_file() or read_audit(folder) is None:
        raise BadInput(
            f"{option('where')} port.… needs the audit of {name}: name the port's folder with {option('data')}, after "
            "`rusbeir audit check FOLDER --back-translator …`."
        )
    return {
        row["id"]: {"port.chrf": float(row.get("chrF", "nan")), "port.flags": float(len(row["flags"]))}
        for row in read_audited_texts(folder)
        if row["kind"] == "query"
    }

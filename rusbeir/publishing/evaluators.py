"""Judgements for the evaluators of search engines: `_rank_eval`, OpenSearch's Search Relevance Workbench, Quepid."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from rusbeir import __version__
from rusbeir.datasets import load
from rusbeir.errors import BadInput, option, unknown
from rusbeir.retrieval import QueryTemplate, read_template
from rusbeir.storage import atomic_folder
from rusbeir.text import batched, one_line
from rusbeir.types import MAX_GRADE, Dataset, Progress, silent

_CUTOFF = 10
_REQUEST_BYTES = 9_000_000
"""What the smallest servers that are rented take in one request is 10 MiB."""
_QUERY_SET_SIZE = 1_000
"""The workbench's own limit, plugins.search_relevance.query_set.maximum."""
_MAX_QUERY_CHARS, _MAX_NAME_CHARS = 2_000, 50
_REFUSED_IN_QUERIES = re.compile(r'["\\<>#:\r\n]+')
"""The characters that the workbench takes neither in a query nor, the last four excepted, in a name."""
_REFUSED_IN_SEARCHES = ("aggregations", "aggs", "suggest", "highlight", "explain", "profile")
"""The parts of a search that `_rank_eval` refuses."""
_PLUGIN = "_plugins/_search_relevance"


@dataclass(frozen=True, kw_only=True)
class _Job:
    """A dataset to write judgements of, with the index and the search that they are for."""

    dataset: Dataset
    index: str
    template: QueryTemplate | None

    def need_search(self, target: str) -> QueryTemplate:
        if self.template is None or not self.index:
            names = f"{option('index', 'products')} and {option('body', 'query.json')}"
            raise BadInput(f"{target} sends searches to an index: name both with {names}.")
        return self.template


_Parts = Iterator[tuple[str, bytes, str]]
"""Files: the name, the content, and where it is sent."""


def publish_for(
    target: str,
    dataset: str | Path,
    *,
    to: str | Path,
    index: str = "",
    body: str | Path | None = None,
    language: str | None = None,
    split: str | None = None,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Write the judgements of a dataset into a new folder, as an engine's own evaluator takes them.

    Grades below 0 become 0, as trec_eval counts them. Evaluators know a query by its text, except for `_rank_eval`:
    queries with one text become one, with the higher of two grades of a document.

    Args:
        target: `rank-eval` (bodies of Elasticsearch's and OpenSearch's `_rank_eval`), `search-relevance` (query sets
            and judgement lists of OpenSearch's Search Relevance Workbench) or `quepid` (its CSV).
        dataset: A name or a path.
        to: The new folder.
        index: The index that is searched, by its own name rather than an alias.
        body: The file of a search body with {{query}} in it. rank-eval needs both.
        language: The language of a path without a card.
        split: The split of a path.
        progress: Receives what is being done.

    Returns:
        A report: `files`, each with `sent_to`; `n_queries`, `n_qrels`, `n_merged` (queries with the text of another)
        and `n_changed` (queries without characters that the workbench refuses); and for rank-eval `measure`, the name
        under which rusbeir computes the same number.

    Raises:
        UnknownName: There is no such target.
        BadInput: The folder holds something, or the search cannot be sent.

    Examples:
        >>> publish_for("quepid", "mini/ru", to="for-quepid")["files"][0]["file"]  # doctest: +SKIP
        'quepid.csv'
    """
    to = Path(to)
    if target not in _TARGETS:
        raise unknown("evaluator", target, _TARGETS)
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise BadInput(f"{to} holds something else. Choose a new folder, or empty it.")
    template = read_template(body) if body is not None else None
    loaded = load(dataset, language=language, split=split, progress=progress)
    job = _Job(dataset=loaded, index=index, template=template)
    report: dict[str, Any] = {
        "version": __version__,
        "dataset": loaded.card.name,
        "for": target,
        "n_queries": len(loaded.qrels),
        "n_qrels": sum(map(len, loaded.qrels.values())),
        "n_merged": 0,
        "n_changed": 0,
        "to": str(to),
    }
    parts = list(_TARGETS[target](job, report))
    with atomic_folder(to) as new:
        for name, content, _ in parts:
            (new / name).write_bytes(content)
    return report | {"files": [{"file": name, "sent_to": sent_to} for name, _, sent_to in parts]}


def _write_rank_eval(job: _Job, report: dict[str, Any]) -> _Parts:
    """Write the requests with nDCG as `_rank_eval` computes it: gains of 2^grade - 1 over log2(rank + 1).

    Its ideal has as many ranks as the search has hits, so that queries with fewer hits than relevant documents, and
    fewer than 10, score higher there.
    """
    template = job.need_search("rank-eval")
    if refused := [part for part in _REFUSED_IN_SEARCHES if part in template.render("")]:
        raise BadInput(f"_rank_eval takes no {refused[0]}: leave it out of a copy of {template.path}.")
    report["measure"] = _name_measure(max((max(grades.values()) for grades in job.dataset.qrels.values()), default=0))
    requests = (
        orjson.dumps(
            {
                "id": query_id,
                "request": template.render(job.dataset.queries[query_id]),
                "ratings": [
                    {"_index": job.index, "_id": doc_id, "rating": max(grade, 0)} for doc_id, grade in grades.items()
                ],
            }
        )
        for query_id, grades in job.dataset.qrels.items()
    )
    metric = orjson.dumps({"dcg": {"k": _CUTOFF, "normalize": True}})
    size = len(job.dataset.qrels)
    for number, part in enumerate(batched(requests, size, chars=len, max_chars=_REQUEST_BYTES), 1):
        content = b'{"metric":' + metric + b',"requests":[' + b",\n".join(part) + b"]}\n"
        yield f"rank-eval-{number:03}.json", content, f"POST /{job.index}/_rank_eval"


def _name_measure(highest: int) -> str:
    """Name nDCG with gains of 2^grade - 1 as ir-measures does; "" where the gains are too high for it."""
    gains = {grade: 2**grade - 1 for grade in range(2, min(highest, 11) + 1)}
    if any(gain > MAX_GRADE for gain in gains.values()):
        return ""
    return f"nDCG(gains={gains})@{_CUTOFF}".replace(" ", "") if gains else f"nDCG@{_CUTOFF}"


def _write_search_relevance(job: _Job, report: dict[str, Any]) -> _Parts:
    """Write query sets of as many queries as the workbench takes, and a judgement list for each."""
    name = _REFUSED_IN_QUERIES.sub(" ", job.dataset.card.name)[: _MAX_NAME_CHARS - 4].strip()
    merged = _merge_by_text(job.dataset, report, _clean)
    described = {"description": f"{name}, {report['n_queries']} queries, by rusbeir {__version__}"}
    for number, part in enumerate(batched(merged.items(), _QUERY_SET_SIZE), 1):
        named = {"name": f"{name} {number}", **described}
        queries = [{"queryText": text} for text, _ in part]
        content = orjson.dumps({**named, "sampling": "manual", "querySetQueries": queries})
        yield f"query-set-{number:03}.json", content + b"\n", f"PUT /{_PLUGIN}/query_sets"
        ratings = [
            {"query": text, "ratings": [{"docId": doc_id, "rating": f"{grade}.0"} for doc_id, grade in grades.items()]}
            for text, grades in part
        ]
        content = orjson.dumps({**named, "type": "IMPORT_JUDGMENT", "judgmentRatings": ratings})
        yield f"judgments-{number:03}.json", content + b"\n", f"PUT /{_PLUGIN}/judgments"
    if job.template is not None:
        search = orjson.dumps(job.need_search("search-relevance").render("%SearchText%")).decode()
        content = orjson.dumps({"name": name, "index": job.index, "query": search})
        yield "search-configuration.json", content + b"\n", f"PUT /{_PLUGIN}/search_configurations"


def _clean(text: str) -> str:
    """Replace what the workbench refuses in queries; most analyzers drop it anyway."""
    return " ".join(_REFUSED_IN_QUERIES.sub(" ", text).split())[:_MAX_QUERY_CHARS]


def _write_quepid(job: _Job, report: dict[str, Any]) -> _Parts:
    """Write Quepid's basic CSV: query, docid, rating."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("query", "docid", "rating"))
    for text, grades in _merge_by_text(job.dataset, report, lambda text: " ".join(text.split())).items():
        writer.writerows((text, doc_id, grade) for doc_id, grade in grades.items())
    yield "quepid.csv", out.getvalue().encode(), "a case's Import > Ratings"


def _merge_by_text(
    dataset: Dataset, report: dict[str, Any], clean: Callable[[str], str]
) -> Mapping[str, dict[str, int]]:
    """Give text -> {doc_id: grade}, and count in the report what was merged and changed.

    Raises BadInput where nothing is left of a text.
    """
    merged: dict[str, dict[str, int]] = {}
    for query_id, grades in dataset.qrels.items():
        text = clean(dataset.queries[query_id])
        if not text:
            raise BadInput(f"{dataset.card.name}: nothing is left of the text of query {one_line(query_id)!r}.")
        report["n_changed"] += text != " ".join(dataset.queries[query_id].split())
        report["n_merged"] += text in merged
        known = merged.setdefault(text, {})
        for doc_id, grade in grades.items():
            known[doc_id] = max(grade, known.get(doc_id, 0))
    return merged


_TARGETS: Mapping[str, Callable[[_Job, dict[str, Any]], _Parts]] = {
    "rank-eval": _write_rank_eval,
    "search-relevance": _write_search_relevance,
    "quepid": _write_quepid,
}

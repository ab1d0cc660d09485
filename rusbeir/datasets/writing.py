"""Write qrels and runs as TREC, tsv or JSON, completely or not at all."""

from __future__ import annotations

import gzip
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import orjson

from rusbeir.errors import BadInput
from rusbeir.storage import atomic_file
from rusbeir.text import shorten
from rusbeir.types import Qrels, Run

_HEADER = b"query-id\tcorpus-id\tscore\n"
_NO_CELL = frozenset("\t\r\n")
_NO_FILE_NAME = frozenset("/\\:")


def name_qrels_file(split: str) -> str:
    """Name the place of a split's judgements in a BEIR folder. Raises BadInput if the split cannot name a file in it.

    The name may come from a dataset of strangers, which must not decide where files are written.

    Examples:
        >>> name_qrels_file("test")
        'qrels/test.tsv'
    """
    if not split or split.startswith(".") or not split.isprintable() or not _NO_FILE_NAME.isdisjoint(split):
        raise BadInput(f"The split {shorten(split, 80)!r} cannot name a file: qrels are written to qrels/<split>.tsv.")
    return f"qrels/{split}.tsv"


def write_qrels(path: str | Path, qrels: Qrels) -> None:
    """Write judgements to a file whose name decides the format.

    Args:
        path: A name that ends in .tsv gives BEIR's tsv, one in .json JSON, any other TREC's qrels; .gz may follow.
        qrels: query_id -> {doc_id: grade}.

    Raises:
        BadInput: An id cannot be written in that format.
        BackendError: The file cannot be written; it is then as it was.

    Examples:
        >>> write_qrels("qrels/test.tsv", {"q1": {"d1": 2}})  # doctest: +SKIP
    """
    path = Path(path)
    name = path.name.removesuffix(".gz")
    if name.endswith(".json"):
        _write(path, [orjson.dumps(qrels)])
    else:
        _write(path, (qrels_lines if name.endswith(".tsv") else _trec_qrels)(qrels))


def write_run(path: str | Path, run: Run, tag: str) -> None:
    """Write a run to a file whose name decides the format; scores keep every bit.

    Hits are ranked as trec_eval ranks them: by falling score, equal scores by falling document id.

    Args:
        path: A name that ends in .json gives BEIR's JSON, any other TREC's format, which has no line for a query
            without hits; .gz may follow.
        run: query_id -> {doc_id: score}.
        tag: The name of the system, one word, in each line of TREC's format.

    Raises:
        BadInput: A score is not finite, the tag is not one word, or an id has white space.
        BackendError: The file cannot be written; it is then as it was.

    Examples:
        >>> write_run("bm25.run.gz", {"q1": {"d1": 12.5}}, tag="bm25")  # doctest: +SKIP
    """
    if not tag or tag.split() != [tag]:
        raise BadInput(f"The tag of a run must be one word, not {tag!r}.")
    path = Path(path)
    if path.name.removesuffix(".gz").endswith(".json"):
        _write(path, [orjson.dumps({query_id: finite_scores(query_id, docs) for query_id, docs in run.items()})])
    else:
        _write(path, _trec_run(run, tag))


def _write(path: Path, lines: Iterable[bytes]) -> None:
    with atomic_file(path) as file:
        if path.suffix != ".gz":
            file.writelines(lines)
            return
        # Without name and time, the same content gives the same bytes.
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
            packed.writelines(lines)


def _trec_run(run: Run, tag: str) -> Iterator[bytes]:
    for query_id, docs in run.items():
        hits = finite_scores(query_id, docs)
        for record_id in (query_id, *hits):
            if record_id.split() != [record_id] or query_id.startswith("#"):
                raise _unfit_for_trec(query_id, record_id)
        ranked = sorted(((score, doc_id) for doc_id, score in hits.items()), reverse=True)
        lines = [f"{query_id} Q0 {doc_id} {rank} {score!r} {tag}\n" for rank, (score, doc_id) in enumerate(ranked, 1)]
        yield "".join(lines).encode()


def _trec_qrels(qrels: Qrels) -> Iterator[bytes]:
    for query_id, docs in qrels.items():
        for doc_id, grade in docs.items():
            for record_id in (query_id, doc_id):
                if record_id.split() != [record_id] or query_id.startswith("#"):
                    raise _unfit_for_trec(query_id, record_id)
            yield f"{query_id} 0 {doc_id} {grade}\n".encode()


def qrels_lines(qrels: Qrels, *, header: bool = True) -> Iterator[bytes]:
    """Yield the lines of BEIR's tsv, header first. Raises BadInput for an id that a tsv cannot hold."""
    if header:
        yield _HEADER
    for query_id, docs in qrels.items():
        for doc_id, grade in docs.items():
            yield f"{_cell(query_id)}\t{_cell(doc_id)}\t{grade}\n".encode()


def finite_scores(query_id: str, docs: Mapping[str, float]) -> dict[str, float]:
    """Convert scores to Python floats; numpy's are printed differently. Raises BadInput for NaN and infinity."""
    hits = {doc_id: float(score) for doc_id, score in docs.items()}
    for doc_id, score in hits.items():
        if not math.isfinite(score):
            raise BadInput(f"The run scores document {doc_id!r} for query {query_id!r} with {score}.")
    return hits


def _unfit_for_trec(query_id: str, record_id: str) -> BadInput:
    if query_id.startswith("#"):
        return BadInput(f"The query id {query_id!r} would make its lines comments of a TREC file. Write .json.")
    return BadInput(f"The id {record_id!r} is not one word, so it cannot be in a TREC file. Write .json.")


def _cell(record_id: str) -> str:
    if not record_id.strip() or not _NO_CELL.isdisjoint(record_id):
        raise BadInput(f"The id {record_id!r} cannot be in a tsv. Write .json.")
    # BEIR and pandas read the tsv as CSV, where a cell that begins with a quote ends at the next one.
    return '"{}"'.format(record_id.replace('"', '""')) if record_id.startswith('"') else record_id

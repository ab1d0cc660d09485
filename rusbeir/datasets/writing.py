"""Write files completely or not at all: a dataset as a BEIR folder, qrels and runs as TREC, tsv or JSON."""

from __future__ import annotations

import gzip
import hashlib
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

import orjson

from rusbeir.datasets.formats.beir import CARD, UNFINISHED, card_bytes, read_last_card
from rusbeir.datasets.formats.records import document_line, query_line
from rusbeir.errors import BadInput
from rusbeir.storage import atomic_file, atomic_folder
from rusbeir.text import shorten
from rusbeir.types import Dataset, Qrels, Run, canonical_line, fingerprint

_HEADER = b"query-id\tcorpus-id\tscore\n"
_NO_CELL = frozenset("\t\r\n")
_NO_FILE_NAME = frozenset("/\\:")


def write_beir(dataset: Dataset, folder: str | Path) -> None:
    """Write corpus.jsonl, queries.jsonl, qrels/<split>.tsv and card.json; the folder appears when it is complete.

    Raises BadInput if the folder exists and is not empty, and for ids that a tsv cannot hold.

    >>> write_beir(load("xquad/ru"), "xquad-ru")  # doctest: +SKIP
    """
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(f"{folder} exists already. Remove it or choose another folder.")
    qrels_file = name_qrels_file(dataset.card.split)
    with atomic_folder(folder) as new:
        digest = hashlib.sha256()
        with (new / "corpus.jsonl").open("wb") as file:
            for doc in dataset.corpus:
                digest.update(canonical_line(doc.doc_id, doc.title, doc.text))
                file.write(document_line(doc))
        with (new / "queries.jsonl").open("wb") as file:
            for query_id, text in dataset.queries.items():
                file.write(query_line(query_id, text))
        (new / "qrels").mkdir()
        with (new / qrels_file).open("wb") as file:
            file.writelines(qrels_lines(dataset.qrels))
        content = fingerprint(digest.hexdigest(), dataset.queries, dataset.qrels)
        n_qrels = sum(map(len, dataset.qrels.values()))
        counts = {"n_docs": len(dataset.corpus), "n_queries": len(dataset.queries), "n_qrels": n_qrels}
        (new / CARD).write_bytes(card_bytes(dataset.card, content, **counts))


@contextmanager
def replace_files(folder: Path, command: str) -> Iterator[Callable[[str], IO[bytes]]]:
    """Write files of a dataset's folder, by names in it; they appear once all are complete, and `write_card` follows.

    Killed at any moment, the folder is what it was, or has no card but a note of the command, and is refused by `load`
    until the command has run again.
    """
    with ExitStack() as stack:
        files: list[IO[bytes]] = []

        def open_new(name: str) -> IO[bytes]:
            files.append(stack.enter_context(atomic_file(folder / name)))
            return files[-1]

        yield open_new
        # A disk that is full has to be noticed before anything is replaced.
        for file in files:
            file.flush()
            os.fsync(file.fileno())
        with atomic_file(folder / UNFINISHED) as note:
            note.write(orjson.dumps({"command": command, "card": read_last_card(folder)}))
        (folder / CARD).unlink(missing_ok=True)


def write_card(folder: Path, card: bytes) -> None:
    """Write the card of a folder whose files were replaced, which is whole from then on."""
    with atomic_file(folder / CARD) as file:
        file.write(card)
    (folder / UNFINISHED).unlink(missing_ok=True)


def name_qrels_file(split: str) -> str:
    """The place of a split's judgements in a BEIR folder. Raises BadInput if the split cannot name a file in it.

    The name may come from a dataset of strangers, which must not decide where files are written.

    >>> name_qrels_file("test")
    'qrels/test.tsv'
    """
    if not split or split.startswith(".") or not split.isprintable() or not _NO_FILE_NAME.isdisjoint(split):
        raise BadInput(f"The split {shorten(split, 80)!r} cannot name a file: qrels are written to qrels/<split>.tsv.")
    return f"qrels/{split}.tsv"


def write_qrels(path: str | Path, qrels: Qrels) -> None:
    """Write TREC qrels, or BEIR's tsv if the name ends in .tsv, JSON if in .json; .gz may follow."""
    path = Path(path)
    name = path.name.removesuffix(".gz")
    if name.endswith(".json"):
        _write(path, [orjson.dumps(qrels)])
    else:
        _write(path, (qrels_lines if name.endswith(".tsv") else _trec_qrels)(qrels))


def write_run(path: str | Path, run: Run, tag: str) -> None:
    """Write a TREC run, or BEIR's JSON if the name ends in .json; .gz may follow. Scores keep every bit.

    Hits are ranked as trec_eval ranks them: by falling score, equal scores by falling document id. TREC has
    no line for a query without hits; JSON keeps it. Raises BadInput for a score that is not finite and for an
    id with white space.
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


def qrels_lines(qrels: Qrels) -> Iterator[bytes]:
    """The lines of BEIR's tsv, header first. Raises BadInput for an id that a tsv cannot hold."""
    yield _HEADER
    for query_id, docs in qrels.items():
        for doc_id, grade in docs.items():
            yield f"{_cell(query_id)}\t{_cell(doc_id)}\t{grade}\n".encode()


def finite_scores(query_id: str, docs: Mapping[str, float]) -> dict[str, float]:
    """The scores as Python floats, since numpy's are printed differently. Raises BadInput for NaN and infinity."""
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

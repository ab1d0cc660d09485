"""Load documents in bulk: in parallel, repeated where the server is busy or gone, resumed after a kill.

Documents are numbered, and the number is their id on the server. They are only ever created, so sending one twice
leaves the first: replaced documents would count in Lucene's statistics until they are merged away. They are sent
in blocks of fixed rows; a block whose documents are all there is not sent again.
"""

from __future__ import annotations

import contextlib
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import orjson

from rusbeir.errors import BackendError
from rusbeir.retrieval.elasticsearch import connection, indexes
from rusbeir.retrieval.elasticsearch.connection import Server, Unavailable
from rusbeir.retrieval.elasticsearch.diagnose import find_disks
from rusbeir.retrieval.elasticsearch.mappings import ROW

logger = logging.getLogger(__name__)

BLOCK_ROWS = 1_000
_BATCH_BYTES = 4_000_000
_THREADS = 4
_ALREADY_THERE = 409
_SHARD_SECONDS = 10
"""How long a new index may take to find a node."""
_MAX_BUCKETS = 60_000
"""Servers return at most 65,536 buckets per answer."""
_MAX_ROWS = 2**31
"""The field of rows is an integer of Elasticsearch."""

Source: TypeAlias = tuple[str, dict[str, Any]]
"""A document's id, for messages, and its fields."""


@dataclass
class _Batch:
    """Documents that go in one request."""

    rows: list[int] = field(default_factory=list)
    doc_ids: list[str] = field(default_factory=list)
    lines: list[bytes] = field(default_factory=list)
    size: int = 0

    def add(self, row: int, doc_id: str, line: bytes) -> None:
        self.rows.append(row)
        self.doc_ids.append(doc_id)
        self.lines.append(line)
        self.size += len(line)

    def part(self, positions: Iterable[int]) -> _Batch:
        part = _Batch()
        for position in positions:
            part.add(self.rows[position], self.doc_ids[position], self.lines[position])
        return part


def load(server: Server, index: str, documents: Iterable[Source]) -> int:
    """Load the documents; returns their number once all of them are on the server and searchable.

    A few batches are in memory at a time. Raises BackendError, which names the document that the server refuses, or the
    disk that has no room for the index.
    """
    _refuse_full_disks(server, index)
    done = _find_whole_blocks(server, index)
    if done:
        logger.warning("%s holds %s documents already; resuming there.", index, f"{len(done) * BLOCK_ROWS:,}")
    count = 0
    with ThreadPoolExecutor(_THREADS) as pool:
        sent: deque[Future[None]] = deque()
        try:
            for batch, read in _make_batches(documents, done):
                count = read
                if batch.rows:
                    sent.append(pool.submit(_send, server, index, batch))
                if len(sent) > 2 * _THREADS:
                    sent.popleft().result()
            while sent:
                sent.popleft().result()
        finally:
            for future in sent:
                future.cancel()
    connection.retry(lambda: server.ask("POST", f"/{index}/_refresh"))
    indexes.check_count(server, index, count, " Another corpus was loaded under this name, or a node lost documents.")
    return count


def _refuse_full_disks(server: Server, index: str) -> None:
    """Raise BackendError where the shards of the index find no node, and disks are full."""
    health = f"/_cluster/health/{index}?wait_for_status=yellow&timeout={_SHARD_SECONDS}s"
    if connection.retry(lambda: server.ask("GET", health, allow=(403, 408))) is not None:
        return
    with contextlib.suppress(*connection.UNREADABLE):
        for disk in find_disks(server):
            if disk.status in {"warning", "bad"}:
                raise BackendError(f"{server.address} has no room for the index {index}: {disk.found}. {disk.remedy}")


def _make_batches(documents: Iterable[Source], done: set[int]) -> Iterator[tuple[_Batch, int]]:
    """Make batches, each within one block; yields each with the number of documents read so far."""
    batch = _Batch()
    count = 0
    for row, (doc_id, fields) in enumerate(documents):
        if row // BLOCK_ROWS not in done:
            action = b'{"create":{"_id":"%d"}}\n' % row
            batch.add(row, doc_id, action + orjson.dumps(fields, option=orjson.OPT_SERIALIZE_NUMPY) + b"\n")
        count = row + 1
        if count % BLOCK_ROWS == 0 or batch.size >= _BATCH_BYTES:
            yield batch, count
            batch = _Batch()
    yield batch, count


def _find_whole_blocks(server: Server, index: str) -> set[int]:
    """Find the numbers of the blocks whose documents have all arrived."""
    connection.retry(lambda: server.ask("POST", f"/{index}/_refresh"))
    last = _aggregate(server, index, {"max": {"field": ROW}}, _read_last)
    whole: set[int] = set()
    if last is None:
        return whole
    for start in range(0, last + 1, _MAX_BUCKETS * BLOCK_ROWS):
        end = start + _MAX_BUCKETS * BLOCK_ROWS
        histogram = {"histogram": {"field": ROW, "interval": BLOCK_ROWS, "min_doc_count": 1}}
        within = {"range": {ROW: {"gte": start, "lt": end}}}
        whole |= _aggregate(server, index, histogram, _read_whole, within)
    return whole


def _read_last(answer: Any) -> int | None:
    """Read the highest row; None where there are no documents."""
    if answer["value"] is None:
        return None
    if answer["value"] >= _MAX_ROWS:
        raise ValueError(f"{answer['value']} documents in an index")
    return int(answer["value"])


def _read_whole(answer: Any) -> set[int]:
    return {int(bucket["key"]) // BLOCK_ROWS for bucket in answer["buckets"] if bucket["doc_count"] == BLOCK_ROWS}


def _aggregate(
    server: Server, index: str, aggregation: dict[str, Any], read: Callable[[Any], Any], query: Any = None
) -> Any:
    """Ask for one aggregation and return what read makes of the answer."""
    body = {"size": 0, "aggs": {"a": aggregation}, **({"query": query} if query else {})}
    path = f"/{index}/_search?allow_partial_search_results=false"
    return connection.retry(
        lambda: server.ask("POST", path, body, read=lambda answer: read(answer["aggregations"]["a"]))
    )


def _send(server: Server, index: str, batch: _Batch) -> None:
    """Send until every document of the batch is acknowledged."""
    waiting = batch

    def send_waiting() -> None:
        nonlocal waiting
        # The alias vanishes with the index, which is thus never made again by a document, without its mapping.
        options = "require_alias=true&timeout=30s&filter_path=items.*.status,items.*.error"
        path = f"/{indexes.loading_alias(index)}/_bulk?{options}"
        read = partial(_read_refused, len(waiting.lines))
        refused = server.ask("POST", path, b"".join(waiting.lines), content="ndjson", allow=(413,), read=read)
        if refused is None:
            _send_halves(server, index, waiting)
            return
        for position, result in refused:
            if not _is_temporary(result):
                raise _refusal(server, index, waiting.doc_ids[position], result)
        if refused:
            waiting = waiting.part(position for position, _ in refused)
            reason = connection.reason_of(refused[-1][1])
            raise Unavailable(f"{server.address} did not take {len(refused):,} documents for {index}: {reason}")

    connection.retry(send_waiting)


def _read_refused(count: int, answer: Any) -> list[tuple[int, dict[str, Any]]]:
    """List (position, result) of the documents that were refused; those that are there already do not count."""
    results = [dict(item["create"]) for item in answer["items"]]
    if len(results) != count:
        raise ValueError(f"{len(results)} results for {count} documents")
    return [
        (position, result)
        for position, result in enumerate(results)
        if "error" in result and int(result["status"]) != _ALREADY_THERE
    ]


def _send_halves(server: Server, index: str, batch: _Batch) -> None:
    """Send a batch that is too large for one request in two."""
    if len(batch.rows) == 1:
        raise BackendError(
            f"Document {batch.doc_ids[0]!r} makes a request of {batch.size:,} bytes; {server.address} takes less. "
            "Raise http.max_content_length on its nodes (or the limit of a proxy before them), or split the document."
        )
    middle = len(batch.rows) // 2
    for positions in (range(middle), range(middle, len(batch.rows))):
        _send(server, index, batch.part(positions))


def _is_temporary(result: dict[str, Any]) -> bool:
    blocked = connection.kind_of(result) == connection.BLOCKED and result["status"] != 503
    return result["status"] in connection.BUSY and not blocked


def _refusal(server: Server, index: str, doc_id: str, result: dict[str, Any]) -> BackendError:
    reason = connection.reason_of(result)
    if connection.kind_of(result) == "index_not_found_exception":
        return BackendError(
            f"{server.address} lost the index {index} while it was loaded: somebody removed it. "
            "Run the same command again; it is then loaded from the start."
        )
    if connection.kind_of(result) == connection.BLOCKED:
        return BackendError(connection.describe_block(server.address, reason))
    return BackendError(f"{server.address} refuses document {doc_id!r} ({result['status']}): {reason}")

"""BM25 on an Elasticsearch server, behind the same Protocol as the embedded engines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from rusbeir.errors import BackendError
from rusbeir.retrieval.elasticsearch import bulk, connection, indexes, mappings
from rusbeir.retrieval.elasticsearch.connection import Server
from rusbeir.retrieval.elasticsearch.searcher import ElasticSearcher
from rusbeir.retrieval.lexical.bm25 import Bm25
from rusbeir.retrieval.lexical.engines import IndexKey, Terms

_POINTER = "elasticsearch.json"


@dataclass(frozen=True, kw_only=True)
class ElasticEngine:
    """The engine of a server: what lies in the folder is where the index is, and the ids by row."""

    address: str = ""
    """URLs of nodes parted by commas; RUSBEIR_ES_URL where empty."""
    name: str = "elasticsearch"

    @property
    def server(self) -> Server:
        return connection.connect(self.address)

    @property
    def signature(self) -> str:
        """With the server's version, where it tells: the scores are those of its Lucene."""
        return f"{self.server.release}|len:lucene"

    def refusal(self, bm25: Bm25) -> str | None:
        return None

    def load(self, folder: Path, rows: Iterator[Terms], bm25: Bm25, key: IndexKey) -> int:
        """Load the documents under the key's name, unless that index is there already; publish it at the end."""
        server = self.server
        name = key.name(f"{indexes.PREFIX}{key.signature.split('|')[0]}")
        held = indexes.create(server, name, key, mappings.body_of(bm25))
        if held.published:
            documents = sum(1 for _ in rows)
        else:
            documents = bulk.load(
                server, held.index, (mappings.source(row, bm25, terms) for row, terms in enumerate(rows))
            )
            indexes.publish(server, held)
        pointer = {"name": name, "uuid": held.uuid, "documents": documents}
        (folder / _POINTER).write_bytes(orjson.dumps(pointer))
        sizes = server.ask("GET", f"/{held.index}/_stats/store", allow=(403,))
        return int(sizes["_all"]["primaries"]["store"]["size_in_bytes"]) if sizes else 0

    def is_loaded(self, folder: Path) -> bool:
        try:
            pointer = _pointer(folder)
            name, uuid = pointer["name"], pointer["uuid"]
        except (OSError, ValueError, KeyError):
            return False
        held = indexes.find(self.server, name)
        return held is not None and held.published and held.uuid == uuid

    def open(self, folder: Path, bm25: Bm25) -> ElasticSearcher:
        """Raises BackendError where the index is gone or has lost documents."""
        server, pointer = self.server, _pointer(folder)
        name = pointer["name"]
        if not self.is_loaded(folder):
            raise BackendError(f"{server.address} no longer has the index {name}. Build it again.")
        indexes.check_count(server, name, pointer["documents"])
        return ElasticSearcher(server=server, index=name, bm25=bm25)


def _pointer(folder: Path) -> dict[str, Any]:
    pointer: dict[str, Any] = orjson.loads((folder / _POINTER).read_bytes())
    return pointer

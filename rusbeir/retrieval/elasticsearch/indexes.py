"""Rusbeir's indexes on a server: created under a name of their key, published by alias, listed, dropped.

The index is NAME-1 and its alias NAME. The alias appears in one step, when everything is loaded; until then
nothing searches it. Documents are written through NAME-1-load, an alias, too. A published index takes no more
documents. The mapping's _meta marks an index as rusbeir's; nothing else is ever written or removed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from rusbeir import __version__
from rusbeir.errors import BackendError, unknown
from rusbeir.retrieval.elasticsearch import connection
from rusbeir.retrieval.elasticsearch.connection import Server
from rusbeir.retrieval.lexical.engines import IndexKey
from rusbeir.text import digest, shorten

PREFIX = "rusbeir-"
_META = "rusbeir"
_LOADING: Mapping[str, Any] = {"refresh_interval": "-1", "number_of_replicas": 0}
_SERVING: Mapping[str, Any] = {"refresh_interval": None, "auto_expand_replicas": "0-1"}
_MAX_SHARDS = 8


@dataclass(frozen=True, kw_only=True)
class ServerIndex:
    """An index of rusbeir on the server."""

    name: str
    """The alias; the index is `name-1`."""
    uuid: str
    published: bool
    signature: str
    fingerprint: str

    @property
    def index(self) -> str:
        return index_of(self.name)


def index_of(name: str) -> str:
    """Name the index behind an alias of rusbeir."""
    return f"{name}-1"


def loading_alias(index: str) -> str:
    """Name the alias that documents are written through. A write to an alias that is gone makes no index."""
    return f"{index}-load"


def find(server: Server, name: str) -> ServerIndex | None:
    """Find the index of rusbeir with that name; None where the name is free.

    Raises BackendError where an index that rusbeir did not make has the name.
    """

    def read(answer: Any) -> ServerIndex | None:
        bodies = dict(answer)
        others = [other for other in bodies if other != index_of(name)]
        if others:
            what = "an index" if name in others else f"an alias of {shorten(others[0], 100)}"
            raise BackendError(
                f"{server.address} has {name} as {what} that rusbeir did not make. "
                "It is left alone; rename it, or use another server."
            )
        return _read_index(server, index_of(name), bodies[index_of(name)]) if bodies else None

    path = f"/{quote(name)},{index_of(name)}?ignore_unavailable=true"
    held: ServerIndex | None = connection.retry(lambda: server.ask("GET", path, read=read))
    return held


def create(server: Server, name: str, key: IndexKey, body: Mapping[str, Any]) -> ServerIndex:
    """Create the index of that name for that key, or find it as far as it was loaded.

    Raises BackendError where another index has the name.
    """
    held = find(server, name)
    if held is None:

        def read(health: Any) -> int:
            return int(health.get("number_of_data_nodes", 1))

        nodes = connection.retry(lambda: server.ask("GET", "/_cluster/health", allow=(403, 404), read=read)) or 1
        shards = max(1, min(_MAX_SHARDS, nodes))
        meta = {"signature": key.signature, "fingerprint": key.fingerprint, "version": __version__}
        document = {
            "settings": {**body["settings"], **_LOADING, "number_of_shards": shards},
            "mappings": {**body["mappings"], "_meta": {_META: meta}},
        }
        # 400 is also the answer where another process makes the same index at this moment: find() tells.
        answer = connection.retry(lambda: server.ask("PUT", f"/{index_of(name)}", document, allow=(400,)))
        held = find(server, name)
        if held is None:
            if answer is None:
                server.ask("PUT", f"/{index_of(name)}", document)
            raise BackendError(f"{server.address} did not make the index {index_of(name)}.")
    for part, value, expected in (
        ("signature", held.signature, key.signature),
        ("fingerprint", held.fingerprint, key.fingerprint),
    ):
        if value != expected:
            raise BackendError(
                f"{held.index} on {server.address} has {part} {shorten(value)}, not {expected}. "
                "It is left alone; rename it, or use another server."
            )
    if not held.published:
        _add_alias(server, held.index, loading_alias(held.index))
    return held


def publish(server: Server, held: ServerIndex) -> None:
    """Publish the index: replicas where there are nodes for them, refresh as usual, its alias, and no more writes."""
    connection.retry(lambda: server.ask("PUT", f"/{held.index}/_settings", {"index": _SERVING}))
    # Replicas are worth a short wait, not a failure: a node may be away.
    health = f"/_cluster/health/{held.index}?wait_for_status=green&timeout=30s"
    connection.retry(lambda: server.ask("GET", health, allow=(403, 408)))
    _add_alias(server, held.index, held.name)
    # Last: until then a load that was killed has to resume. From now on no document can be replaced unnoticed.
    connection.retry(lambda: server.ask("PUT", f"/{held.index}/_settings", {"index": {"blocks.write": True}}))


def _add_alias(server: Server, index: str, alias: str) -> None:
    actions = [{"add": {"index": index, "alias": alias}}]
    connection.retry(lambda: server.ask("POST", "/_aliases", {"actions": actions}))


def check_count(server: Server, name: str, documents: int, why: str = "") -> None:
    """Raise BackendError, which may say why, where an index does not have that many documents."""

    def read(answer: Any) -> tuple[int, int]:
        return int(answer["count"]), int(answer["_shards"]["failed"])

    count, failed = connection.retry(lambda: server.ask("GET", f"/{name}/_count", read=read))
    if count != documents or failed:
        raise BackendError(
            f"{name} on {server.address} has {count:,} documents instead of {documents:,}.{why} "
            f"Remove it with `rusbeir es drop {name}`; it is then loaded again."
        )


def list_indexes(server: Server) -> list[dict[str, Any]]:
    """List rusbeir's indexes on the server: name, documents, bytes, whether published, whether closed, and the key.

    Examples:
        >>> list_indexes(connect("http://127.0.0.1:9200"))  # doctest: +SKIP
    """

    def read_sizes(answer: Any) -> dict[str, tuple[int, int]]:
        primaries = {index: body["primaries"] for index, body in answer["indices"].items()}
        return {
            index: (int(body["docs"]["count"]), int(body["store"]["size_in_bytes"]))
            for index, body in primaries.items()
        }

    def read(answer: Any) -> list[dict[str, Any]]:
        rows = []
        for index, body in sorted(answer.items()):
            if index != index_of(index.removesuffix("-1")) or _meta(body) is None:
                continue
            held = _read_index(server, index, body)
            # A clone of an index of rusbeir has its _meta, too, under another name than that of its key.
            if not held.name.endswith(f"-{digest(held.signature, held.fingerprint, chars=12)}"):
                continue
            documents, size = sizes.get(index, (None, None))
            rows.append(
                {
                    "name": held.name,
                    "published": held.published,
                    "closed": str(body["settings"]["index"].get("verified_before_close")) == "true",
                    "documents": documents,
                    "bytes": size,
                    "signature": held.signature,
                    "fingerprint": held.fingerprint,
                }
            )
        return rows

    sizes = server.ask("GET", f"/{PREFIX}*/_stats/docs,store", allow=(403,), read=read_sizes) or {}
    rows: list[dict[str, Any]] = server.ask("GET", f"/{PREFIX}*?expand_wildcards=open,closed", read=read)
    return rows


def drop(server: Server, *names: str) -> None:
    """Remove rusbeir's indexes and their aliases.

    Raises UnknownName, and removes none, where rusbeir did not make one of them.
    """
    known = [row["name"] for row in list_indexes(server)]
    indexes = []
    for name in dict.fromkeys(name.removesuffix("-1") for name in names):
        held = find(server, name) if name in known else None
        if held is None:
            raise unknown("index of rusbeir's", name, known, owner=server.address, listing="rusbeir es list")
        indexes.append(held.index)
    for index in indexes:
        server.ask("DELETE", f"/{index}")


def _meta(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Read what `create` wrote into the mapping; None where rusbeir did not make the index."""
    meta = body["mappings"].get("_meta", {}).get(_META)
    if not isinstance(meta, Mapping) or not meta.keys() >= {"signature", "fingerprint"}:
        return None
    return meta if f"{meta['signature']}{meta['fingerprint']}".isprintable() else None


def _read_index(server: Server, index: str, body: Mapping[str, Any]) -> ServerIndex:
    name = index.removesuffix("-1")
    meta = _meta(body)
    if meta is None:
        raise BackendError(
            f"{server.address} has an index {index} that rusbeir did not make. It is left alone; rename it, "
            "or use another server."
        )
    return ServerIndex(
        name=name,
        uuid=body["settings"]["index"]["uuid"],
        published=name in body.get("aliases", {}),
        signature=str(meta["signature"]),
        fingerprint=str(meta["fingerprint"]),
    )

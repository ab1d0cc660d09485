"""An index that a shop has on a server, and the search that it sends there."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson

from rusbeir.types import Doc

SEARCH = '{"query": {"multi_match": {"query": "{{query}}", "fields": ["title^2", "text"], "type": "most_fields"}}}'


def ask(method: str, url: str, content: bytes | None = None) -> Any:
    """Send a request, of JSON or of its lines."""
    request = urllib.request.Request(url, content, {"Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request) as response:
        return orjson.loads(response.read())


def fill(url: str, index: str, documents: Iterable[Doc]) -> None:
    """Make an index of one shard with these documents, which have their ids in the field `sku`, too."""
    fields = {"title": {"type": "text"}, "text": {"type": "text"}, "sku": {"type": "keyword"}}
    settings = {"settings": {"number_of_shards": 1, "number_of_replicas": 0}, "mappings": {"properties": fields}}
    ask("PUT", f"{url}/{index}", orjson.dumps(settings))
    lines = b"".join(
        orjson.dumps({"index": {"_id": doc.doc_id}}) + b"\n"
        + orjson.dumps({"title": doc.title, "text": doc.text, "sku": doc.doc_id}) + b"\n"
        for doc in documents
    )  # fmt: skip
    assert not ask("POST", f"{url}/{index}/_bulk?refresh=true", lines)["errors"]


def write_search(folder: Path, text: str = SEARCH, name: str = "query.json") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path

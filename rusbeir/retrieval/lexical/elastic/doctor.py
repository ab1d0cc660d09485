"""What stands between this machine and a working Elasticsearch, each finding with what to do."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from typing import Any, Literal, NamedTuple

from rusbeir.errors import BackendError
from rusbeir.retrieval.lexical.elastic import bodies, connection
from rusbeir.retrieval.lexical.elastic.connection import Server

Status = Literal["good", "unknown", "warning", "bad"]
_FORBIDDEN = (401, 403, 404, 405)


class Finding(NamedTuple):
    """One thing that was looked at."""

    what: str
    status: Status
    found: str
    remedy: str = ""


def examine(server: Server) -> Iterator[Finding]:
    """Everything that can be told, in the order in which it matters; the first that is bad is often the cause.

    What the server keeps from our credentials is `unknown`, and the rest is still looked at.
    """
    try:
        server.ask("GET", "/_cluster/health?timeout=5s", allow=(403, 404, 405, 408))
    except BackendError as error:
        # The line of the error says what to do.
        yield Finding("reachable", "bad", server.address, str(error))
        return
    yield Finding("reachable", "good", server.address)
    yield _credentials(server)
    try:
        yield _version(server)
    except BackendError as error:
        yield Finding("version", "bad", server.address, str(error))
        return
    yield _licence(server)
    yield _health(server)
    yield from _disks(server)
    yield _analysis(server)
    yield _rights(server)


def _credentials(server: Server) -> Finding:
    name = connection.API_KEY if os.environ.get(connection.API_KEY) else connection.USER
    if not os.environ.get(name):
        return Finding("credentials", "good", "none are set, and none were asked for")
    if any(url.startswith("http:") for url in server.urls):
        remedy = "They travel unencrypted. Use an https:// address, or unset them where security is off."
        return Finding("credentials", "warning", f"from {name}, over http", remedy)
    return Finding("credentials", "good", f"from {name}")


def _version(server: Server) -> Finding:
    client = version("elasticsearch")

    if not server.version:
        return Finding("version", "unknown", f"the server does not tell; client {client}", "Nothing, if it is 8 or 9.")
    return Finding("version", "good", f"server {server.version}, client {client}")


def _licence(server: Server) -> Finding:
    answer = _ask(server, "/_license")
    if answer is None:
        return Finding("licence", "unknown", "the server does not tell", "Nothing: no paid feature is used.")
    licence = answer["license"]
    if licence.get("status") != "active":
        return Finding("licence", "warning", f"{licence['type']}, {licence.get('status')}", "Renew it.")
    return Finding("licence", "good", f"{licence['type']}; no paid feature is used")


def _health(server: Server) -> Finding:
    answer = _ask(server, "/_cluster/health?timeout=5s")
    if answer is None:
        return Finding(
            "health", "unknown", "these credentials may not ask", "Allow them the cluster privilege monitor."
        )
    found = f"{answer['status']}, {answer['number_of_data_nodes']} data nodes"
    if answer["status"] == "red":
        return Finding(
            "health", "bad", found, "Bring the missing nodes back; indexes without all shards do not answer."
        )
    if answer["status"] == "yellow":
        return Finding(
            "health", "warning", found, "Nothing for a single node; else some replicas have no node to go to."
        )
    return Finding("health", "good", found)


def _disks(server: Server) -> Iterator[Finding]:
    answer = _ask(server, "/_nodes/stats/fs")
    if answer is None:
        yield Finding("disk", "unknown", "these credentials may not ask", "Allow them the cluster privilege monitor.")
        return
    for node in answer["nodes"].values():
        total = node["fs"]["total"]
        used = 1 - total["available_in_bytes"] / total["total_in_bytes"]
        found = f"{node['name']}: {total['available_in_bytes'] / 1e9:,.1f} GB free, {used:.0%} used"
        if used >= 0.95:
            remedy = "Free space: from 95 % on (the flood-stage watermark) its indexes become read-only."
            yield Finding("disk", "bad", found, remedy)
        elif used >= 0.85:
            remedy = "Free space: from 85 % on it takes no new replicas, from 90 % on no new shards."
            yield Finding("disk", "warning", found, remedy)
        else:
            yield Finding("disk", "good", found)


def _analysis(server: Server) -> Finding:
    """The two ways of analysis: splitting at spaces for our terms, and a language analyzer for others' queries."""
    lacking = []
    for analyzer in ("whitespace", "russian", "english"):
        try:
            server.ask("POST", "/_analyze", {"analyzer": analyzer, "text": "a"}, allow=(403,))
        except BackendError:
            lacking.append(analyzer)
    if lacking:
        remedy = "Use a distribution with the module analysis-common, as Elastic's own."
        return Finding("analyzers", "bad" if "whitespace" in lacking else "warning", f"no {', '.join(lacking)}", remedy)
    return Finding("analyzers", "good", "whitespace, russian, english")


def _rights(server: Server) -> Finding:
    body = {"index": [{"names": ["rusbeir-*"], "privileges": ["manage", "read", "write"]}]}
    answer = _ask(server, "/_security/user/_has_privileges", body)
    if answer is None or "index" not in answer:
        return Finding("rights", "unknown", "security is off, or does not tell", "Nothing, if loading works.")
    lacking = [name for name, has in answer["index"]["rusbeir-*"].items() if not has]
    if lacking:
        remedy = "Give the key the index privileges manage, read and write on rusbeir-*."
        return Finding("rights", "bad", f"no {', '.join(lacking)} on rusbeir-*", remedy)
    return Finding("rights", "good", f"manage, read, write on rusbeir-*; up to {bodies.DEEPEST:,} hits a query")


def _ask(server: Server, path: str, body: Any = None) -> Mapping[str, Any] | None:
    """The answer; None where the server has no such page or keeps it from us."""
    try:
        answer: Mapping[str, Any] | None = server.ask(
            "POST" if body else "GET", path, body, allow=(*_FORBIDDEN, 400, 408)
        )
    except BackendError:
        return None
    return answer

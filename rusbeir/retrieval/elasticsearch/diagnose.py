"""Diagnose the connection to a server of Elasticsearch or OpenSearch: each check with its result and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.metadata import version
from typing import Any, Literal, NamedTuple

from rusbeir.errors import BackendError
from rusbeir.retrieval.elasticsearch import connection, mappings
from rusbeir.retrieval.elasticsearch.connection import Server

Status = Literal["good", "unknown", "warning", "bad"]
_FORBIDDEN = (401, 403, 404, 405)
_DISK = "cluster.routing.allocation.disk."
_WATERMARKS = {"low": "85%", "high": "90%", "flood_stage": "95%"}
"""The defaults of both products, for a server that does not say which it has."""


class Diagnosis(NamedTuple):
    """The result of one check."""

    what: str
    status: Status
    found: str
    remedy: str = ""


def examine(server: Server) -> Iterator[Diagnosis]:
    """Check a server: diagnoses in the order in which they matter; the first bad one is often the cause.

    A check that the credentials do not allow is `unknown`; the rest is still made.

    Examples:
        >>> [diagnosis.status for diagnosis in examine(connect())]  # doctest: +SKIP
    """
    try:
        server.ask("GET", "/_cluster/health?timeout=5s", allow=(403, 404, 405, 408))
    except BackendError as error:
        # The line of the error says what to do.
        yield Diagnosis("reachable", "bad", server.address, str(error))
        return
    yield Diagnosis("reachable", "good", server.address)
    yield _credentials(server)
    try:
        yield _version(server)
    except BackendError as error:
        yield Diagnosis("version", "bad", server.address, str(error))
        return
    for what, check in (
        ("licence", _licence),
        ("health", _health),
        ("disk", find_disks),
        ("analyzers", _analysis),
        ("rights", _rights),
    ):
        try:
            diagnosis = check(server)
        except connection.UNREADABLE:
            diagnosis = Diagnosis(what, "unknown", "the server answers what Elasticsearch does not", "Check the URL.")
        yield from [diagnosis] if isinstance(diagnosis, Diagnosis) else diagnosis


def _credentials(server: Server) -> Diagnosis:
    name = server.credentials.source
    if not name:
        return Diagnosis("credentials", "good", "none are set, and none were asked for")
    if any(url.startswith("http:") for url in server.urls):
        remedy = "They travel unencrypted. Use an https:// address, or unset them where security is off."
        return Diagnosis("credentials", "warning", f"from {name}, over http", remedy)
    return Diagnosis("credentials", "good", f"from {name}")


def _version(server: Server) -> Diagnosis:
    client = f"elastic-transport {version('elastic-transport')}"
    if not server.version:
        remedy = "Nothing, if it is Elasticsearch 8 or 9, or OpenSearch 2 or 3."
        return Diagnosis("version", "unknown", f"the server does not say; {client}", remedy)
    return Diagnosis("version", "good", f"{connection.TITLES[server.product]} {server.version}; {client}")


def _licence(server: Server) -> Diagnosis:
    if server.version and server.product == connection.OPENSEARCH:
        return Diagnosis("licence", "good", "Apache-2.0")
    answer = _ask(server, "/_license")
    if answer is None:
        return Diagnosis("licence", "unknown", "the server does not say", "Nothing: no paid feature is used.")
    licence = answer["license"]
    if licence.get("status") != "active":
        return Diagnosis("licence", "warning", f"{licence['type']}, {licence.get('status')}", "Renew it.")
    return Diagnosis("licence", "good", f"{licence['type']}; no paid feature is used")


def _health(server: Server) -> Diagnosis:
    answer = _ask(server, "/_cluster/health?timeout=5s")
    if answer is None:
        return Diagnosis(
            "health", "unknown", "these credentials may not ask", "Allow them the cluster privilege monitor."
        )
    state = f"{answer['status']}, {answer['number_of_data_nodes']} data nodes"
    if answer["status"] == "red":
        return Diagnosis(
            "health", "bad", state, "Bring the missing nodes back; indexes without all shards do not answer."
        )
    if answer["status"] == "yellow":
        return Diagnosis(
            "health", "warning", state, "Nothing for a single node; else some replicas have no node to go to."
        )
    return Diagnosis("health", "good", state)


def find_disks(server: Server) -> list[Diagnosis]:
    """Diagnose the disk of each node by the server's own watermarks."""
    answer = _ask(server, "/_nodes/stats/fs")
    if answer is None:
        return [
            Diagnosis("disk", "unknown", "these credentials may not ask", "Allow them the cluster privilege monitor.")
        ]
    settings = _disk_settings(server)
    return [_judge_disk(node, settings) for node in answer["nodes"].values()]


def _judge_disk(node: Mapping[str, Any], settings: Mapping[str, str]) -> Diagnosis:
    total = node.get("fs", {}).get("total", {})
    size, free = total.get("total_in_bytes", 0), total.get("available_in_bytes", 0)
    if size <= 0:
        return Diagnosis("disk", "unknown", f"{node['name']} does not say how full it is", "Look at its disk yourself.")
    used = 1 - free / size
    usage = f"{node['name']}: {free / 1e9:,.1f} GB free, {used:.0%} used"
    low, high, flood = (_limit(settings, name, size) for name in _WATERMARKS)
    if used < low:
        return Diagnosis("disk", "good", usage)
    if settings.get("threshold_enabled") == "false":
        return Diagnosis("disk", "warning", usage, "Free space: its watermarks are off, so nothing keeps some free.")
    if used < flood:
        remedy = (
            f"Free space: from {100 * low:.4g} % on it takes no new replicas, from {100 * high:.4g} % on no new shards."
        )
        return Diagnosis("disk", "warning", usage, remedy)
    remedy = f"Free space: from {100 * flood:.4g} % on (the flood-stage watermark) its indexes become read-only."
    return Diagnosis("disk", "bad", usage, remedy)


def _disk_settings(server: Server) -> dict[str, str]:
    """Read the cluster's settings of disks, as far as it gives them, such as {"watermark.low": "85%"}."""
    path = "/_cluster/settings?include_defaults=true&flat_settings=true&filter_path=*.cluster*disk*"
    answer = _ask(server, path) or {}
    # Later levels override earlier ones.
    levels = [answer.get(level, {}) for level in ("defaults", "persistent", "transient")]
    return {name.removeprefix(_DISK): value for level in levels for name, value in level.items()}


def _limit(settings: Mapping[str, str], watermark: str, size: int) -> float:
    """Compute the used share of a disk of that size at which a watermark is reached.

    It is set as such a share ("85%", "0.85"), perhaps with a most that has to be free, or as what has to be free.
    """
    value = settings.get(f"watermark.{watermark}", _WATERMARKS[watermark])
    if value[-1].isalpha():
        free = _bytes(value)
    else:
        free = size * (1 - (float(value[:-1]) / 100 if value.endswith("%") else float(value)))
        most = settings.get(f"watermark.{watermark}.max_headroom", "-1")
        if most[-1].isalpha():
            free = min(free, _bytes(most))
    return max(0.0, 1 - free / size)


def _bytes(size: str) -> float:
    """Read a size as Elasticsearch writes it: "1.5gb", "200GB", "10m", "1000b"."""
    number = size.lower().removesuffix("b")
    power = "kmgtp".find(number[-1]) + 1
    return float(number[:-1] if power else number) * float(1024**power)


def _analysis(server: Server) -> Diagnosis:
    """Check both ways of analysis: splitting at spaces for rusbeir's terms, and the language analyzers."""
    lacking = []
    for analyzer in ("whitespace", "russian", "english"):
        try:
            server.ask("POST", "/_analyze", {"analyzer": analyzer, "text": "a"}, allow=(403,))
        except BackendError:
            lacking.append(analyzer)
    if lacking:
        remedy = "Use a distribution with the module analysis-common, as Elastic's own."
        return Diagnosis(
            "analyzers", "bad" if "whitespace" in lacking else "warning", f"no {', '.join(lacking)}", remedy
        )
    return Diagnosis("analyzers", "good", "whitespace, russian, english")


def _rights(server: Server) -> Diagnosis:
    body = {"index": [{"names": ["rusbeir-*"], "privileges": ["manage", "read", "write"]}]}
    answer = _ask(server, "/_security/user/_has_privileges", body)
    if answer is None or "index" not in answer:
        return Diagnosis("rights", "unknown", "security is off, or does not say", "Nothing, if loading works.")
    lacking = [name for name, has in answer["index"]["rusbeir-*"].items() if not has]
    if lacking:
        remedy = "Give the key the index privileges manage, read and write on rusbeir-*."
        return Diagnosis("rights", "bad", f"no {', '.join(lacking)} on rusbeir-*", remedy)
    return Diagnosis("rights", "good", f"manage, read, write on rusbeir-*; up to {mappings.MAX_HITS:,} hits per query")


def _ask(server: Server, path: str, body: Any = None) -> Mapping[str, Any] | None:
    """Ask, and return the answer; None where the server has no such page or the credentials do not allow it."""
    try:
        answer: Mapping[str, Any] | None = server.ask(
            "POST" if body else "GET", path, body, allow=(*_FORBIDDEN, 400, 408)
        )
    except BackendError:
        return None
    return answer

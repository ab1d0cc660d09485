"""`server(index=products,body=query.json)` as a system: an index that is there already, searched as its users do."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson

from rusbeir.errors import BackendError, BadInput
from rusbeir.retrieval.elasticsearch import connection
from rusbeir.retrieval.elasticsearch.connection import Server, Unavailable
from rusbeir.retrieval.elasticsearch.template import QueryTemplate, read_template
from rusbeir.retrieval.lexical.engines import AT, SERVERS
from rusbeir.retrieval.models.settings import escape
from rusbeir.retrieval.spec import Options, Spec, Stage
from rusbeir.retrieval.system import DEFAULTS, Prepared, RunSettings
from rusbeir.text import batched, digest
from rusbeir.types import Corpus, Qrels, Queries, Run

logger = logging.getLogger(__name__)

OPTIONS: tuple[str, ...] = ("index", "body", "id", "min_found")
_ID = "_id"
_MIN_FOUND = 0.5
_QUERIES_PER_REQUEST = 64
_HITS_PER_REQUEST = 50_000
_IDS_PER_REQUEST = 500
_WINDOW = 10_000
"""The hits that a server returns at most, unless an index is set to more."""
_PASSING = ("creation_date", "uuid", "version", "provided_name", "number_of_replicas")
"""Settings of an index that its name, its own uuid or its copies decide, and no score."""


@dataclass(frozen=True, kw_only=True)
class ServerSystem:
    """Sends the user's own query to an index on a server, and keeps the ids and scores of its hits."""

    name: str
    address: str
    index: str
    template: QueryTemplate
    id_field: str = _ID
    min_found: float = _MIN_FOUND
    engine: str = "server"

    @property
    def server(self) -> Server:
        return connection.connect(self.address)

    @cached_property
    def signature(self) -> str:
        """The digest of the template, and of the index its uuid, the number of documents, settings and mappings."""
        server, path = self.server, f"/{quote(self.index, safe='*,')}"
        settings = self._ask(server, "GET", f"{path}/_settings")
        mappings = self._ask(server, "GET", f"{path}/_mapping")
        count = self._ask(server, "GET", f"{path}/_count")["count"]
        if not settings:
            raise BackendError(f"{server.address} has no index {self.index}.")
        uuids = sorted(str(held["settings"]["index"]["uuid"]) for held in settings.values())
        deciding = [
            [
                {key: value for key, value in settings[name]["settings"]["index"].items() if key not in _PASSING},
                mappings.get(name, {}).get("mappings"),
            ]
            for name in sorted(settings)
        ]
        recipe = digest(orjson.dumps(deciding, option=orjson.OPT_SORT_KEYS).decode(), chars=12)
        return (
            f"server|{server.release}|index:{escape(self.index)}|uuid:{'+'.join(uuids)}|docs:{count}|settings:{recipe}|"
            f"body:{self.template.digest}|id:{escape(self.id_field)}"
        )

    def check_available(self) -> None:
        """Ask for the index. Raises BackendError where the server or the index is not there."""
        _ = self.signature

    def prepare(self, corpus: Corpus, fingerprint: str, settings: RunSettings = DEFAULTS) -> Prepared:
        """Find the index; nothing is built."""
        self.check_available()
        return Prepared(retriever=self, path=self.template.path, reused=True)

    def check_judgements(self, qrels: Qrels) -> None:
        """Say how many of the judged documents the index has.

        Raises BadInput where they are too few, as those of another collection are.
        """
        doc_ids = list(dict.fromkeys(doc_id for grades in qrels.values() for doc_id in grades))
        n_found = sum(len(self._find_present(ids)) for ids in batched(doc_ids, _IDS_PER_REQUEST))
        share = n_found / len(doc_ids) if doc_ids else 1.0
        text = f"{self.index} has {n_found:,} of {len(doc_ids):,} judged documents ({share:.1%})"
        if share < self.min_found:
            raise BadInput(
                f"{text}, by {self.id_field}. Is the id another field, id=sku? Where the index is right, lower "
                "min_found= from 0.5 in the system; documents that it lacks count as not found."
            )
        logger.warning("%s, by %s.", text, self.id_field)

    def search(self, queries: Queries, k: int) -> Run:
        """Return at most k hits a query. Raises BackendError where an answer is not whole."""
        bodies = [self._shape(self.template.render(text), k) for text in queries.values()]
        batch = max(1, min(_QUERIES_PER_REQUEST, _HITS_PER_REQUEST // k))
        answers = [hits for part in batched(bodies, batch) for hits in self._search(part)]
        return dict(zip(queries, (self._read_hits(hits) for hits in answers), strict=True))

    def _shape(self, body: dict[str, Any], k: int) -> dict[str, Any]:
        """Ask for k hits and their ids alone; what the user's body says of the order stays."""
        fields = {} if self.id_field == _ID else {"fields": [self.id_field]}
        return body | {"size": k, "_source": False, "track_total_hits": False} | fields

    def _search(self, bodies: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
        server = self.server
        header = orjson.dumps({"index": self.index, "allow_partial_search_results": False})
        lines = b"".join(header + b"\n" + orjson.dumps(body) + b"\n" for body in bodies)

        def read(answer: Any) -> list[list[Any]]:
            responses = answer["responses"]
            if len(responses) != len(bodies):
                raise ValueError(f"{len(responses)} answers to {len(bodies)} searches")
            for response in responses:
                self._refuse_trouble(server, response)
            return [list(response["hits"]["hits"]) for response in responses]

        hits: list[list[Any]] = connection.retry(
            lambda: server.ask("POST", "/_msearch", lines, content="ndjson", read=read)
        )
        return hits

    def _refuse_trouble(self, server: Server, response: Mapping[str, Any]) -> None:
        """Raise BackendError where a search failed, Unavailable where it may succeed later."""
        if "error" in response:
            kind = Unavailable if connection.is_passing(response.get("status"), response) else BackendError
            reason = connection.reason_of(response)
            raise kind(f"{server.address} cannot search {self.index} with {self.template.path}: {reason}")
        if response.get("timed_out") or response["_shards"].get("failed"):
            raise Unavailable(f"{server.address} did not search all of {self.index}; such an answer is not counted.")

    def _read_hits(self, hits: Sequence[Mapping[str, Any]]) -> dict[str, float]:
        """Read id -> score in the server's order; of several hits with one id the first counts.

        A body that sorts by something else than the score gets none, or scores in another order; there the ranks of
        all hits replace them.
        """
        scores = [hit["_score"] for hit in hits if hit.get("_score") is not None]
        if broken := [score for score in scores if not math.isfinite(score)]:
            raise BackendError(f"{self.index}: the score of a hit is {broken[0]}.")
        if len(scores) < len(hits) or any(first < second for first, second in pairwise(scores)):
            scores = [float(len(hits) - rank) for rank in range(len(hits))]
        run: dict[str, float] = {}
        for hit, score in zip(hits, scores, strict=True):
            run.setdefault(self._read_id(hit), float(score))
        return run

    def _read_id(self, hit: Mapping[str, Any]) -> str:
        values = [hit[_ID]] if self.id_field == _ID else hit.get("fields", {}).get(self.id_field, ())
        if len(values) != 1:
            raise BackendError(
                f"{self.index}: document {hit[_ID]!r} has {len(values)} values of {self.id_field!r}, and an id is "
                "one value."
            )
        return str(values[0])

    def _find_present(self, doc_ids: Sequence[str]) -> set[str]:
        """Find which of the ids the index has."""
        by_id = {"ids": {"values": doc_ids}} if self.id_field == _ID else {"terms": {self.id_field: doc_ids}}
        # A field may name several documents, such as the variants of a product.
        body = self._shape({"query": {"constant_score": {"filter": by_id}}}, _WINDOW)
        return {self._read_id(hit) for hits in self._search([body]) for hit in hits} & {*doc_ids}

    def _ask(self, server: Server, method: str, path: str) -> Any:
        answer = connection.retry(lambda: server.ask(method, path, allow=(404,)))
        if answer is None:
            raise BackendError(f"{server.address} has no index {self.index}.")
        return answer


def from_stage(stage: Stage, language: str, engine: str) -> ServerSystem:
    """Make the system of a stage: `server(index=products,body=query.json)`, in any language."""
    if stage.args:
        raise BadInput(f"{stage.name} has options alone, as in '{stage.name}(index=products,body=query.json)'.")
    options = Options(stage, OPTIONS)
    if missing := [name for name in OPTIONS[:2] if name not in options]:
        raise BadInput(f"{stage.name} needs {missing[0]}=, as in '{stage.name}(index=products,body=query.json)'.")
    name, _, address = engine.partition(AT)
    if name not in ("auto", *SERVERS):
        raise BadInput(f"{stage.name} searches an index on a server, so the engine {name} means nothing here.")
    min_found = options.number("min_found", _MIN_FOUND)
    if min_found > 1:
        raise BadInput(f"{stage.name} needs min_found to be a share from 0 to 1, not {min_found:g}.")
    return ServerSystem(
        name=str(Spec((stage,))),
        address=address,
        index=options.word("index", ""),
        template=read_template(Path(options.word("body", ""))),
        id_field=options.word("id", _ID),
        min_found=min_found,
    )

"""A cluster of three nodes that loses one: every document there, every query answered with whole results.

The nodes are of release 9; `python -m benchmarks.elastic cluster` does the same with 200,000 documents on release 8.
"""

from __future__ import annotations

import sys
import threading

import pytest

from rusbeir.retrieval.elasticsearch import connection
from tests.support import drills, elastic_node

DOCUMENTS = 10_000
QUERIES = 600


@pytest.mark.filterwarnings("ignore::elastic_transport.TransportWarning")
def test_a_cluster_that_loses_a_node(node_jars, tmp_path, capfd):
    nodes = elastic_node.cluster(node_jars("9"), tmp_path / "nodes")
    try:
        engine = drills.start(nodes)
        retriever, _ = drills.load(nodes, engine, tmp_path / "index", DOCUMENTS, victim=1)
        server = connection.connect(engine.partition("@")[2])
        name = retriever.searcher.index
        count = server.ask("GET", f"/{name}/_count")["count"]
        assert count == DOCUMENTS
        assert server.ask("GET", f"/{name}/_stats/docs")["_all"]["primaries"]["docs"]["deleted"] == 0

        nodes[1].wait("green")
        queries = drills.queries(QUERIES)
        whole = retriever.search(queries, 10)
        assert all(whole.values())
        killed, _ = drills.disturbed(retriever, queries, nodes[2].kill)
        assert (len(killed), drills.differing(killed, whole)) == (QUERIES, 0)

        def freeze() -> None:
            nodes[0].freeze()
            threading.Timer(3, nodes[0].thaw).start()

        nodes[2].start()
        nodes[2].wait("green")
        frozen, _ = drills.disturbed(retriever, queries, freeze)
        assert (len(frozen), drills.differing(frozen, whole)) == (QUERIES, 0)
        with capfd.disabled():
            sys.stdout.write(
                f"\n{count:,} of {DOCUMENTS:,} documents after a kill; "
                f"{len(killed):,} queries during a kill and "
                f"{len(frozen):,} during a freeze, all with whole results\n"
            )
    finally:
        for node in nodes:
            node.stop()

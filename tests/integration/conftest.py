from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support import elastic_node


@pytest.fixture(scope="session")
def elasticsearch_9(
    node_jars: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[elastic_node.Node]:
    """A node of Elasticsearch 9 on a newer Java, which takes requests of at most 1 MB."""
    home = tmp_path_factory.mktemp("elasticsearch-9")
    settings = ("discovery.type=single-node", "http.max_content_length=1mb")
    node = elastic_node.Node(jars=node_jars("9"), home=home, settings=settings)
    node.start()
    yield node
    node.stop()


@pytest.fixture(scope="session")
def opensearch_2(
    node_jars: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[elastic_node.Node]:
    """A node of OpenSearch 2 with the k-NN plugin, which is on Maven Central for few releases."""
    home = tmp_path_factory.mktemp("opensearch-2")
    jars = node_jars("opensearch-2")
    node = elastic_node.Node(jars=jars, home=home, java=elastic_node.java(17), program=elastic_node.OPENSEARCH)
    node.start()
    yield node
    node.stop()

"""compose.yaml is valid, reaches no further than this machine, and its settings are such as a node starts with."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.support import elastic_node

FILE = Path(__file__).parent.parent.parent / "compose.yaml"
SERVICES = YAML(typ="safe").load(FILE.read_text(encoding="utf-8"))["services"]


def settings_of(service: dict) -> dict[str, str]:
    """The settings of the server itself that a node from Maven knows: x-pack is not there."""
    return {
        name: str(value)
        for name, value in service["environment"].items()
        if "." in name and not name.startswith("xpack.") and name != "network.host"
    }


def test_it_is_a_compose_file():
    done = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", FILE],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_profiles():
    assert {name: service.get("profiles") for name, service in SERVICES.items()} == {
        "elasticsearch": None,
        "node1": ["cluster"],
        "node2": ["cluster"],
        "node3": ["cluster"],
        "secured": ["secured"],
        "opensearch": ["opensearch"],
    }


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_every_service_is_pinned_bounded_watched_and_local(name):
    service = SERVICES[name]
    image, _, tag = service["image"].partition(":")
    product = "opensearchproject/opensearch" if name == "opensearch" else "elasticsearch"
    assert (image, tag.count(".")) == (product, 2)
    assert service["mem_limit"]
    assert service["healthcheck"]["test"]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert all(
        volume.split(":")[0] in YAML(typ="safe").load(FILE.read_text())["volumes"] for volume in service["volumes"]
    )


def test_ports_do_not_collide():
    ports = [port for service in SERVICES.values() for port in service["ports"]]
    assert len(set(ports)) == len(ports)


@pytest.mark.parametrize(
    ("name", "release", "java", "program"),
    [("elasticsearch", "8", 17, "EsNode"), ("opensearch", "opensearch-3", 21, elastic_node.OPENSEARCH)],
)
def test_a_node_starts_with_the_settings(node_jars, tmp_path, name, release, java, program):
    settings = settings_of(SERVICES[name])
    assert {"discovery.type", "cluster.routing.allocation.disk.watermark.low"} <= settings.keys()
    node = elastic_node.Node(
        jars=node_jars(release),
        home=tmp_path / "node",
        settings=[f"{name}={value}" for name, value in settings.items()],
        java=elastic_node.java(java),
        program=program,
    )
    try:
        node.start()
    finally:
        node.stop()

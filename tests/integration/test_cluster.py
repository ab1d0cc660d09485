"""A real Ray of several node processes: what it computes, what kills cost, and what cannot be used."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import warnings
from types import SimpleNamespace

import pytest

from benchmarks import cluster, kills, port_data
from rusbeir import Dataset, bench
from rusbeir.cluster import open_workers, workers
from rusbeir.cluster.address import Address
from rusbeir.datasets import read_run
from rusbeir.errors import BackendError, BadInput, MissingExtra
from rusbeir.retrieval.encoding import pools
from rusbeir.retrieval.models import batches as token_batches
from rusbeir.types import Doc
from tests.support import cluster_models, tiny_encoders
from tests.support.command_line import one_line

# Ray leaves files open, in this process too; one of it is enough for a machine.
pytestmark = [pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"), pytest.mark.xdist_group("ray")]

MODELS = "python:tests.support.cluster_models"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    """Two nodes of one processor each; --on ray finds them."""
    with cluster.open_nodes(tmp_path_factory.mktemp("cluster"), 1, 1, port=free_port()) as opened:
        os.environ[cluster_models.HERE] = "1"
        yield opened


OWN_RAY = """
import signal, sys
from pathlib import Path
from rusbeir.cluster import open_workers
with open_workers("ray?workers=1&cpus=0.1"):
    import ray
    node = ray.nodes()[0]
    rows = [line.split() for name in ("tcp", "tcp6") for line in Path("/proc/net", name).read_text().splitlines()[1:]]
    # A local address is hexadecimal, with its port; state 0A is that of a port that listens.
    listening = [row[1].split(":") for row in rows if row[3] == "0A"]
    ours = [address for address, port in listening if int(port, 16) == node["NodeManagerPort"]]
    print(node["NodeManagerAddress"], len(ours), *{address[-8:] for address in ours}, flush=True)
    signal.raise_signal(signal.SIGTERM)
"""


def test_a_ray_that_is_started_here_is_on_the_loopback_interface():
    """Before any test that starts a cluster, which it would find."""
    environment = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    command = [sys.executable, "-c", OWN_RAY]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout.split() == ["127.0.0.1", "1", "0100007F"], done.stderr
    assert done.returncode
    assert "SIGTERM received" not in done.stderr
    assert "*** " not in done.stderr


ADDRESSES = [
    ("dask", "on= is 'dask': write ray, or ray://HOST:PORT"),
    ("ray://", "write ray, or ray://HOST:PORT"),
    ("ray://host", "write ray, or ray://HOST:PORT"),
    ("ray://host:70000", "write ray, or ray://HOST:PORT"),
    ("ray?wokers=2", "on= has no option 'wokers'. Its options are: workers, cpus, gpus"),
    ("ray?workers=0", "workers is '0'; it must be a number above 0"),
    ("ray?workers=1.5", "workers is '1.5'"),
    ("ray?cpus=nan", "cpus is 'nan'"),
    ("ray?gpus=-1", "gpus is '-1'"),
]


@pytest.mark.parametrize(("text", "message"), ADDRESSES)
def test_what_is_no_address(text, message):
    with pytest.raises(BadInput, match="on=") as error:
        Address.parse(text)
    assert message in str(error.value)


def test_addresses():
    assert Address.parse("ray") == Address()
    assert Address.parse("ray://[::1]:10001?gpus=0.5&cpus=2") == Address(host="::1", port=10001, gpus=0.5, cpus=2)
    assert Address.parse("ray?gpus=0").gpus == 0


WRONG_CALLS = [
    (["bench", "mini/ru", "--on", "ray://127.0.0.1:{closed}"], ["No Ray answers at 127.0.0.1:", "ray start --head"]),
    (["port", "mini/en", "--to", "ru", "--translator", "google", "--out", "{out}", "--on", "ray"],
     ["google cannot run on a cluster", "--on"]),
    (["bench", "mini/ru", "--dry-run", "--on", "ray"], ["--dry-run times systems on this machine: leave out --on"]),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "parts"), WRONG_CALLS, ids=["closed port", "a service", "a forecast"])
def test_wrong_calls(arguments, parts, tmp_path):
    command = [part.format(closed=free_port(), out=tmp_path / "out") for part in arguments]
    done = subprocess.run([sys.executable, "-m", "rusbeir.cli", *command], capture_output=True, text=True, check=False)
    assert done.returncode in (1, 2)
    assert one_line(done.stderr, parts)


def test_what_answers_but_is_not_ray_is_one_line():
    def init(name, **options):
        warnings.warn("Ray Client connection timed out.\\nSee its documentation.", stacklevel=1)
        raise ConnectionError("ray client connection timeout")

    message = (
        r"Ray cannot be used at host:6379, whose port for ray:// is 10001 by default: ray client connection timeout"
    )
    with pytest.raises(BackendError, match=message):
        workers._connect(SimpleNamespace(init=init), Address.parse("ray://host:6379"))


@pytest.fixture(scope="module")
def opened(nodes):
    with open_workers("ray?workers=2&cpus=0.1") as workers:
        yield workers


@pytest.fixture
def dataset():
    documents = [Doc(f"d{i}", f"w{i % 7} w{i % 5} w{i % 3} and{' more' * (i % 9)}") for i in range(40)]
    return Dataset.of(documents, {"q1": "w1 w2", "q2": "w3 and more"}, {"q1": {"d1": 1}}, language="en")


def test_models_compute_on_workers_only(opened, dataset, fresh_cache, tmp_path):
    def systems(name):
        return [f"dense({MODELS}.{name})", f"bm25 >> rerank({MODELS}.{name},depth=20)"]

    def runs(name, on):
        return [read_run(bench(dataset, system, out=tmp_path / name, on=on)["run"]) for system in systems(name)]

    assert runs("Away", opened) == runs("Near", None)


def test_pools_on_workers_are_what_one_process_computes(opened, one_torch_thread, tmp_path, monkeypatch):
    """Of real models, the same bytes of vectors and of scores."""
    monkeypatch.setattr(pools, "POOL_TEXTS", 300)
    encoder = tiny_encoders.sentence_encoder(tmp_path / "encoder", "mean")
    cross = tiny_encoders.cross_encoder(tmp_path / "cross")
    system = f"dense({encoder},max_tokens=40) >> rerank({cross},max_tokens=64,depth=60)"
    texts = tiny_encoders.uneven(500)
    dataset = Dataset.of(
        [Doc(f"d{number}", text) for number, text in enumerate(texts)],
        {f"q{number}": text for number, text in enumerate(texts[:9])},
        {f"q{number}": {f"d{number}": 1} for number in range(9)}, language="ru",
    )  # fmt: skip
    answers, calls = {}, []
    for name, on in (("here", None), ("away", opened)):
        monkeypatch.setenv("RUSBEIR_CACHE", str(tmp_path / name))
        if on:
            monkeypatch.setattr(token_batches.Devices, "run", lambda *args: calls.append(args))
        run = read_run(bench(dataset, system, out=tmp_path / name, on=on)["run"])
        vectors = sorted((tmp_path / name / "embeddings").rglob("vectors"))
        answers[name] = run, [path.read_bytes() for path in vectors]
    assert not calls, "this process computes nothing"
    assert [len(data) // 32 // 4 for data in answers["here"][1]] == [500, 9]
    assert answers["here"] == answers["away"]


REFUSED = [
    ("of_this_process", BadInput, r"^The worker on \S+: it has .*revision:2.*, and this process .*revision:1"),
    ("lacking_an_extra", MissingExtra, r"^The worker on \S+: The toy encoder needs the package a_package_that_is"),
    ("deadly", BackendError, r"^2 workers died with the same batch"),
]


@pytest.mark.parametrize(("name", "kind", "message"), REFUSED)
def test_workers_that_cannot_be_used(name, kind, message, opened, dataset, fresh_cache, tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "MAX_DEATHS", 2)
    with pytest.raises(kind, match=message):
        bench(dataset, f"dense({MODELS}.{name})", out=tmp_path, on=opened)


def test_workers_with_another_version(nodes, monkeypatch):
    monkeypatch.setattr(workers, "__version__", "9.9")
    with (
        pytest.raises(BadInput, match=r"The worker on \S+ has rusbeir \S+, and this process 9.9"),
        open_workers("ray?workers=1&cpus=0.1"),
    ):
        pass


def test_a_port_and_its_check_over_the_network(nodes, tmp_path):
    source = port_data.write_corpus(tmp_path / "source", 60)
    outs = {"here": [], "away": ["--on", f"{nodes.client_address}?workers=2&cpus=0.5"]}
    for name, on in outs.items():
        kills.finish(kills.command(source, tmp_path / name, *cluster.OPTIONS, *on))
        kills.finish([sys.executable, "-m", "rusbeir.cli", "audit", "check", str(tmp_path / name), *on])
    assert kills.content(tmp_path / "here") == kills.content(tmp_path / "away")
    checked = [(tmp_path / name / "qa" / "segments.jsonl").read_bytes() for name in outs]
    assert checked[0] == checked[1]


def test_kills(nodes, tmp_path):
    """Last, as a node is gone after it."""
    source = port_data.write_corpus(tmp_path / "source", 150)
    killed = cluster.kill_at_work(nodes, source, tmp_path, 2)
    assert killed.differing == 0
    assert killed.paid_twice <= killed.in_flight

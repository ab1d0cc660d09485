"""A port on a Ray of several node processes: how fast, and what is lost when workers, nodes or the driver are killed.

python -m benchmarks.cluster prints the rows of `make figures`. The translator sleeps 20 ms a request and writes
down what it was asked, so that every text that was asked twice is counted.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from benchmarks import kills, port_data
from rusbeir.jobs import Limits
from rusbeir.translation.translator import Capacity

LOG = "BENCHMARKS_CLUSTER_LOG"
"""The environment's variable with the folder in which workers write down what they are asked."""
PATIENCE = {"RAY_CLIENT_SERVER_CHECK_CHANNEL_TIMEOUT_S": "120"}
"""Where other programs use the processors, Ray's 30 seconds are too few to start a server."""
LATENCY_SECONDS = 0.02
TEXTS = 4
"""Of a request."""
DOCS = 2_400
STORE_BYTES = 80 << 20


def counted(texts: list[str], source: str, target: str) -> list[str]:
    """The translations, after 20 ms; the texts are written down first, as those of a request that is paid."""
    with (Path(os.environ[LOG]) / f"{os.getpid()}.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps([time.time(), texts]) + "\n")
    time.sleep(LATENCY_SECONDS)
    return port_data.instant(texts, source, target)


counted.signature = "counted-1"  # type: ignore[attr-defined]
counted.limits = Limits(concurrency=1)  # type: ignore[attr-defined]
counted.capacity = Capacity(max_items=TEXTS, mask="bracket")  # type: ignore[attr-defined]
OPTIONS = ("--to", "ru", "--translator", "python:benchmarks.cluster.counted")


class Nodes:
    """Node processes of one Ray on this machine; the first has the head, and no processors of its own."""

    def __init__(self, cluster: Any, log: Path, port: int | None) -> None:
        self.client_address = f"ray://127.0.0.1:{port}"
        """What a program on another machine would give to --on, where there is a port."""
        self._cluster = cluster
        self._log = log
        self.last: Any = None
        """The node that was added last."""

    def add(self, cpus: int) -> None:
        """Start another node."""
        self.last = self._cluster.add_node(num_cpus=cpus, object_store_memory=STORE_BYTES)

    def kill_last(self) -> None:
        """Kill all processes of the last node, as a power failure does."""
        kill(self.last_pid, *children(self.last_pid))

    @property
    def last_pid(self) -> int:
        """Of the process that started the workers of the last node."""
        return int(self.last.all_processes["raylet"][0].process.pid)

    def asked(self) -> list[tuple[float, list[str]]]:
        """The requests so far, each with its time in seconds, by time; a line that a kill cut off is left out."""
        lines = [line for path in self._log.glob("*.jsonl") for line in path.read_text("utf-8").splitlines()]
        return sorted(json.loads(line) for line in lines if line.endswith("]"))

    def wait_for(self, requests: int, program: subprocess.Popen[bytes]) -> None:
        """Until there were so many. SystemExit where the program that asks ends before."""
        while len(self.asked()) < requests:
            if program.poll() is not None:
                _, err = program.communicate()
                raise SystemExit(f"a port ended before it was killed: exit code {program.returncode}: {err.decode()}")
            time.sleep(0.01)

    def workers(self) -> list[int]:
        """The processes that have been asked for anything."""
        return [int(path.stem) for path in self._log.glob("*.jsonl")]

    def forget(self) -> None:
        for path in self._log.glob("*.jsonl"):
            path.unlink()


def kill(*pids: int) -> None:
    """End the processes that are still there."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def children(pid: int) -> list[int]:
    """The processes below that one."""
    listed = subprocess.run(["ps", "-e", "-o", "pid=,ppid="], stdout=subprocess.PIPE, check=True, text=True).stdout
    parents = [tuple(map(int, line.split())) for line in listed.splitlines()]
    pids = [child for child, parent in parents if parent == pid]
    return [*pids, *(below for child in pids for below in children(child))]


@contextlib.contextmanager
def open_nodes(folder: Path, *cpus: int, port: int | None = None) -> Iterator[Nodes]:
    """A Ray of a head and a node for each of the numbers; programs within the block find it as `--on ray`."""
    from ray.cluster_utils import Cluster

    log = folder / "asked"
    log.mkdir()
    path = os.pathsep.join(filter(None, [str(kills.REPOSITORY), os.environ.get("PYTHONPATH", "")]))
    before, others = dict(os.environ), children(os.getpid())
    os.environ |= {LOG: str(log), "RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": path} | PATIENCE
    head = {"num_cpus": 0, "object_store_memory": STORE_BYTES, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head | ({"ray_client_server_port": port} if port else {}))
    try:
        os.environ["RAY_ADDRESS"] = cluster.address
        nodes = Nodes(cluster, log, port)
        for count in cpus:
            nodes.add(count)
        yield nodes
    finally:
        # In good order each node would take half a minute, and servers of --on ray://HOST:PORT outlive it by two.
        kill(*(pid for pid in children(os.getpid()) if pid not in others))
        for node in (*cluster.worker_nodes, cluster.head_node):
            cluster.remove_node(node, allow_graceful=False)
        cluster.shutdown()
        os.environ.clear()
        os.environ.update(before)


def count_paid_twice(nodes: Nodes) -> int:
    """How many texts were asked once more than needed, counted as often as that."""
    return sum(times - 1 for times in Counter(text for _, texts in nodes.asked() for text in texts).values())


def measure_rate(nodes: Nodes, source: Path, out: Path, workers: int) -> float:
    """Requests per second of a port with so many workers, from the first to the last."""
    nodes.forget()
    kills.finish(kills.command(source, out, *OPTIONS, "--on", f"ray?workers={workers}&cpus=0.5"))
    times = [asked_at for asked_at, _ in nodes.asked()]
    return (len(times) - 1) / (times[-1] - times[0])


class Killed(NamedTuple):
    """What became of a port whose workers were killed."""

    differing: int
    """Files that differ from those of a port without Ray."""
    paid_twice: int
    """Texts that were asked once more."""
    in_flight: int
    """Texts that may be: those of two batches of each killed worker, and of those that the program waited for."""


def kill_at_work(nodes: Nodes, source: Path, folder: Path, workers: int) -> Killed:
    """Kill a worker at a fifth of a port's requests, the last node at two fifths, and the program at three fifths."""
    nodes.forget()
    kills.finish(kills.command(source, folder / "alone", *OPTIONS))
    needed = len(nodes.asked())
    nodes.forget()
    again = kills.command(source, folder / "killed", *OPTIONS, "--on", f"ray?workers={workers}&cpus=0.5")
    process = kills.run(again)
    nodes.wait_for(needed // 5, process)
    on_node = set(children(nodes.last_pid))
    kill(min(nodes.workers(), key=lambda pid: pid in on_node))
    nodes.wait_for(2 * needed // 5, process)
    lost = 1 + len(on_node & {*nodes.workers()})
    nodes.kill_last()
    nodes.wait_for(3 * needed // 5, process)
    process.kill()
    process.communicate()
    kills.finish(again)
    alone, killed = kills.content(folder / "alone"), kills.content(folder / "killed")
    differing = sum(alone.get(name) != killed.get(name) for name in {*alone, *killed})
    # The program may also have answers at hand that it has not yet recorded.
    batches = 2 * lost + 4 * workers
    return Killed(differing, count_paid_twice(nodes), batches * TEXTS)


def rows() -> Iterator[dict[str, Any]]:
    """Ratios of speed, and what kills cost."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = port_data.write_corpus(folder / "source", DOCS)
        with open_nodes(folder, 2, 2) as nodes:
            rates = {n: measure_rate(nodes, source, folder / f"with-{n}", n) for n in (1, 2, 4)}
            for n, least in ((2, 1.9), (4, 3.6)):
                what = f"{n} workers, 20 ms a request"
                yield {"what": what, "measure": "requests/s against 1", "value": rates[n] / rates[1], "at_least": least}
            killed = kill_at_work(nodes, source, folder, 4)
    what = "a worker, a node and the program killed"
    yield {"what": what, "measure": "files that differ", "value": killed.differing, "at_most": 0}
    yield {"what": what, "measure": "texts paid twice", "value": killed.paid_twice, "at_most": killed.in_flight}


if __name__ == "__main__":
    for row in rows():
        print(orjson.dumps(row).decode(), flush=True)

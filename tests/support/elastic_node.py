"""Real nodes of Elasticsearch and OpenSearch for tests, from Maven Central: tests/support/node/ says what they are."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

SOURCE = Path(__file__).parent / "node"
RELEASES = {"8": "8.18.0", "9": "9.1.0", "opensearch-2": "2.19.0", "opensearch-3": "3.1.0"}
"""Releases whose HTTP module is on Maven Central too."""
WITH_PLUGINS, LUCENE = ("9", "opensearch-3"), "10.3.0"
"""Releases whose nodes have the analyzers of official plugins, and the Lucene that has them all on Maven Central."""
JAVA_RELEASES = {"8": "17", "9": "21", "opensearch-2": "17", "opensearch-3": "21"}
"""The oldest Java that each runs on."""
OPENSEARCH = "OsNode"
"""The program that is a node of OpenSearch."""
START_SECONDS = 120


def java(least: int) -> Path | None:
    """The bin folder of a JDK (with a compiler) of at least that version; None where there is none."""
    homes = [Path(os.environ.get("JAVA_HOME", "/nonexistent")), *sorted(Path("/usr/lib/jvm").glob("*"))]
    if on_path := shutil.which("javac"):
        homes.append(Path(on_path).resolve().parent.parent)
    for home in homes:
        if (home / "bin" / "javac").exists():
            out = subprocess.run([home / "bin" / "javac", "-version"], capture_output=True, text=True, check=True)
            if int((out.stdout or out.stderr).split()[1].split(".")[0]) >= least:
                return home / "bin"
    return None


def missing() -> str:
    """What these tests lack on this machine; '' where they can run."""
    if shutil.which("mvn") is None:
        return "Maven"
    if java(17) is None:
        return "a JDK of 17 or newer"
    return "" if java(21) else "a JDK of 21 or newer, for Elasticsearch 9 and OpenSearch 3"


def jars(major: str, folder: Path) -> Path:
    """The folder with the node's jars and classes, fetched there by Maven and compiled unless they are there."""
    target = folder / major
    with (SOURCE / "pom.xml").open("rb") as lock:
        # The processes of pytest -n share the folder, and figures that are printed meanwhile Maven's repository.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (target / "compiled").exists():
            _fetch(major, target)
            (target / "compiled").touch()
    return target


def _fetch(major: str, target: Path) -> None:
    project, kind = ("opensearch/", "os") if major.startswith("opensearch") else ("", "es")
    options = [f"-D{kind}.version={RELEASES[major]}", f"-Dout={target}"]
    if major == "opensearch-2":
        options.append(f"-Dknn.version={RELEASES[major]}.0")
    if major in WITH_PLUGINS:
        options.append(f"-Dlanguages.version={LUCENE}")
    _run(["mvn", "-q", "-B", "-f", f"{project}pom.xml", "package", *options])
    compiler = (java(21) or Path()) / "javac"
    options = ["--release", JAVA_RELEASES[major], "-cp", f"{target}/lib/*", "-d", target / "main"]
    _run([compiler, "-J-XX:TieredStopAtLevel=1", *options, f"{project}{kind.capitalize()}Node.java", "Plugins.java"])
    (target / "languages").mkdir()
    for path in (target / "main").glob("EsNode?*.class"):
        path.rename(target / "languages" / path.name)


def _run(command: Sequence[str | Path]) -> None:
    done = subprocess.run(command, cwd=SOURCE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@dataclass
class Node:
    """A node that can be started, frozen, killed and started again on its own data."""

    jars: Path
    home: Path
    settings: Sequence[str] = ("discovery.type=single-node",)
    heap: str = "512m"
    java: Path = field(default_factory=lambda: java(21) or Path())
    port: int = field(default_factory=lambda: free_port())
    program: str = "EsNode"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, *, wait: bool = True) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        with (self.home / "out.log").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    self.java / "java", f"-Xmx{self.heap}", "-XX:TieredStopAtLevel=1",
                    "-cp", f"{self.jars}/main:{self.jars}/lib/*", self.program,
                    f"path.home={self.home}", f"http.port={self.port}", *self.settings,
                ],
                stdout=log, stderr=log,
            )  # fmt: skip
        if wait:
            self.wait()

    def wait(self, status: str = "yellow") -> None:
        """Return when the node answers and its cluster is that healthy."""
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            assert self.process.poll() is None, (self.home / "out.log").read_text(errors="replace")[-3000:]
            try:
                with urllib.request.urlopen(
                    f"{self.url}/_cluster/health?wait_for_status={status}&timeout=5s"
                ) as answer:
                    answer.read()
                    return
            except OSError:
                time.sleep(0.2)
        raise AssertionError(f"{self.url} did not become {status} in {START_SECONDS} s")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.kill()


def cluster(jars: Path, home: Path, size: int = 3, heap: str = "384m", program: str = "EsNode") -> list[Node]:
    """Nodes of one cluster, not started."""
    ports = [free_port() for _ in range(size)]
    hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
    names = [f"n{number}" for number in range(size)]
    manager = "cluster_manager" if program == OPENSEARCH else "master"
    return [
        Node(
            jars=jars,
            home=home / name,
            heap=heap,
            program=program,
            settings=[
                f"node.name={name}", f"transport.port={port}", f"discovery.seed_hosts={hosts}",
                f"cluster.initial_{manager}_nodes={','.join(names)}",
            ],
        )
        for name, port in zip(names, ports, strict=True)
    ]  # fmt: skip


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port

"""Rows of the hub against a server on this machine that speaks as the hub does, and without any network."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import local_server
from tests.support.hub_folders import air_bench_versions

pytestmark = pytest.mark.usefixtures("hf_extra")

COMMIT = "0123456789abcdef0123456789abcdef01234567"
README = "---\nconfigs:\n- config_name: corpus\n  data_files: corpus.jsonl\n---\n"
FILES = {
    "some/toy/README.md": README,
    "some/toy/corpus.jsonl": '{"_id": "d1", "text": "Ёж."}\n{"_id": "d2", "text": "Ель."}\n',
    "some/toy/queries.jsonl": '{"_id": "q1", "text": "ёж"}\n',
    "some/toy/other.parquet": "never asked for",
    "some/toy/toy.py": "raise SystemExit('a script of the repository was run')",
    "some/toy-qrels/test.tsv": "query-id\tcorpus-id\tscore\nq1\td1\t1\n",
}

# The hub's library reads its settings when it is imported, so every call is a process of its own.
PROGRAM = """
import sys
from rusbeir.datasets import RegistryEntry, load, registry
from rusbeir.errors import RusbeirError
row = RegistryEntry(name="toy", format="hub", language="ru", split="test", hub=tuple(sys.argv[1:]))
registry.read_registry = lambda: {"toy": row}
told = []
try:
    dataset = load("toy", progress=lambda *step: told.append(step))
except RusbeirError as error:
    print(type(error).__name__, error)
else:
    print(len(dataset.corpus), dict(dataset.qrels), dataset.card.revision)
    print(*[step for step in told if step[0].startswith("downloading")][-1:])
"""

# AIR-Bench's test split: one of two versions in a repository, without judgements.
UNJUDGED = """
from rusbeir.datasets import RegistryEntry, load, registry
row = RegistryEntry(
    name="toy", format="hub", language="ru", split="test", hub=("AIR-Bench/toy",), judged=False,
    options={"version": "AIR-Bench_24.05", "view": "long-book"},
)
registry.read_registry = lambda: {"toy": row}
dataset = load("toy", judged=False)
print(len(dataset.corpus), dict(dataset.queries), dict(dataset.qrels))
"""


class Hub:
    """The repositories of FILES, and what was asked for."""

    def __init__(self) -> None:
        self.files = dict(FILES)
        self.asked: list[str] = []
        self.url = ""

    def answer(self, path: str) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body for the hub's two kinds of addresses."""
        parts = path.partition("?")[0].strip("/").split("/")
        if parts[:2] == ["api", "datasets"]:
            repository = "/".join(parts[2:4])
            names = {name.removeprefix(f"{repository}/") for name in self.files if name.startswith(f"{repository}/")}
            if not names:
                return 404, {"X-Error-Code": "RepoNotFound"}, b"{}"
            if parts[4] == "tree":
                tree = [self._entry(repository, name) for name in sorted(names)]
                return 200, {}, json.dumps(tree).encode()
            siblings = [{"rfilename": name} for name in sorted(names)]
            return 200, {}, json.dumps({"id": repository, "sha": COMMIT, "siblings": siblings}).encode()
        name = "/".join([*parts[1:3], *parts[5:]])
        if name not in self.files:
            return 404, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": COMMIT}, b""
        body = self.files[name].encode()
        return 200, {"X-Repo-Commit": COMMIT, "ETag": f'"{hashlib.sha1(body).hexdigest()}"'}, body

    def _entry(self, repository: str, name: str) -> dict[str, object]:
        body = self.files[f"{repository}/{name}"].encode()
        return {"type": "file", "path": name, "size": len(body), "oid": hashlib.sha1(body).hexdigest()}


@pytest.fixture
def hub() -> Iterator[Hub]:
    served = Hub()

    class Handler(local_server.Handler):
        def do_HEAD(self) -> None:
            self.answer(*served.answer(self.path))

        def do_GET(self) -> None:
            served.asked.append(self.path)
            self.do_HEAD()

    with local_server.serving(Handler) as served.url:
        yield served


class Machine:
    """A machine with its own caches of the hub and of rusbeir."""

    def __init__(self, folder: Path, hub: Hub) -> None:
        self.folder, self.hub = folder, hub
        self.printed = ""

    def load(self, *repositories: str, program: str = PROGRAM, **settings: str) -> list[str]:
        """The lines that the program prints for a row of these repositories."""
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "RUSBEIR_"))}
        environment |= {
            "HF_HOME": str(self.folder / "hf"),
            "HF_ENDPOINT": self.hub.url,
            "RUSBEIR_CACHE": str(self.folder / "cache"),
            **settings,
        }
        command = [sys.executable, "-c", program, *repositories]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
        self.printed = done.stderr
        return done.stdout.splitlines()


@pytest.fixture
def machine(tmp_path: Path, hub: Hub) -> Machine:
    return Machine(tmp_path, hub)


PINNED = (f"some/toy@{COMMIT}", f"some/toy-qrels@{COMMIT}")
RIGHT = "2 {'q1': {'d1': 1}}"


def test_only_what_is_needed_is_fetched_once_and_nothing_is_run(machine: Machine, hub: Hub):
    first = machine.load(*PINNED)
    assert first[0] == f"{RIGHT} {PINNED[0]} {PINNED[1]}"
    assert "downloading some/toy-qrels" in first[1]
    fetched = {path.rpartition("/")[2] for path in hub.asked if "/resolve/" in path}
    assert fetched == {"README.md", "corpus.jsonl", "queries.jsonl", "test.tsv"}
    hub.asked.clear()
    assert machine.load(*PINNED)[0] == first[0]
    assert hub.asked == []


def test_of_a_dataset_without_judgements_only_its_own_files_are_fetched(machine: Machine, hub: Hub, tmp_path: Path):
    folder = air_bench_versions(tmp_path / "toy", "long-book")
    hub.files = {
        f"AIR-Bench/{file.relative_to(tmp_path).as_posix()}": file.read_text(encoding="utf-8")
        for file in folder.rglob("*")
        if file.is_file()
    }
    assert machine.load(program=UNJUDGED) == ["3 {'q9': '?'} {}"]
    fetched = {path.partition("/resolve/")[2].partition("/")[2] for path in hub.asked if "/resolve/" in path}
    assert fetched == {
        "README.md", "AIR-Bench_24.05/corpus_long_book.jsonl", "AIR-Bench_24.05/queries_long_book_test.jsonl",
    }  # fmt: skip


def test_offline_with_the_files_in_the_hubs_cache(machine: Machine, tmp_path: Path):
    machine.load(*PINNED)
    for entry in (tmp_path / "cache" / "hub").iterdir():
        entry.unlink()
    assert machine.load(*PINNED, HF_HUB_OFFLINE="1")[0].startswith(RIGHT)


def test_a_newest_revision_that_changes_is_told_with_both_checksums(machine: Machine, hub: Hub, tmp_path: Path):
    machine.load("some/toy", "some/toy-qrels")
    for entry in (tmp_path / "cache" / "hub").iterdir():
        entry.unlink()
    changed = hub.files["some/toy/corpus.jsonl"] = '{"_id": "d1", "text": "Еж."}\n'
    (message,) = machine.load("some/toy", "some/toy-qrels", HF_HOME=str(tmp_path / "other"))
    assert message.startswith("BadInput")
    for text in (FILES["some/toy/corpus.jsonl"], changed):
        assert hashlib.sha256(text.encode()).hexdigest() in message


def test_without_a_network_there_is_one_line_and_no_retry_of_the_hubs_library(machine: Machine):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{closed.getsockname()[1]}"
    (line,) = machine.load(*PINNED, HF_ENDPOINT=endpoint)
    assert line.startswith("BackendError Cannot fetch some/toy@")
    assert f"no connection to {endpoint}" in line
    assert machine.printed == ""


@pytest.mark.parametrize(
    ("repositories", "settings", "message"),
    [
        (("some/nothing",), {}, "BackendError Cannot fetch some/nothing@main from the Hugging Face hub (Repository"),
        (PINNED, {"HF_HUB_OFFLINE": "1"}, f"BackendError Cannot fetch some/toy@{COMMIT} from the Hugging Face hub ("),
        ((PINNED[0],), {}, "BadInput toy: no qrels of 'test' in some/toy@"),
    ],
)
def test_what_fails_is_told_in_one_line(
    repositories: tuple[str, ...], settings: dict[str, str], message: str, machine: Machine
):
    (line,) = machine.load(*repositories, **settings)
    assert line.startswith(message)
    if line.startswith("BackendError"):
        assert "hub/some/" in line
        assert "RUSBEIR_DATA" in line

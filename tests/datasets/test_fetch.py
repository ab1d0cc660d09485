"""Where the file of a dataset is taken from: at hand, in the cache, or downloaded, and never a wrong one."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from rusbeir.datasets import RegistryEntry, fetch, load
from rusbeir.datasets import registry as registry_module
from rusbeir.datasets.fetching import download
from rusbeir.datasets.fetching.download import NotAtHand
from rusbeir.errors import BackendError, BadInput, UnknownName
from tests.support import local_server

CONTENT = b'{"data": []}'
ENTRY = RegistryEntry(
    name="toy",
    format="squad",
    language="ru",
    split="dev",
    path="toy/toy.json",
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    source="https://example.org/toy",
    n_docs=0,
    n_queries=0,
    n_qrels=0,
)
Register = Callable[..., None]


@pytest.fixture
def register(monkeypatch: pytest.MonkeyPatch, fresh_cache: Path) -> Register:
    """Make the registry hold one entry, and RUSBEIR_DATA some folders."""

    def register(*folders: Path, **changes: Any) -> None:
        entry = RegistryEntry(**{**vars(ENTRY), **changes})
        monkeypatch.setattr(registry_module, "read_registry", lambda: {entry.name: entry})
        monkeypatch.setenv("RUSBEIR_DATA", os.pathsep.join(map(str, folders)))

    return register


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """The address of a server of the files in tmp_path/served."""

    class Files(local_server.Handler, SimpleHTTPRequestHandler):
        """Those of a folder."""

    (tmp_path / "served").mkdir()
    with local_server.serving(partial(Files, directory=tmp_path / "served")) as url:
        yield url


def write(path: Path, content: bytes = CONTENT) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_the_path_of_the_entry_comes_first(register: Register, tmp_path: Path):
    write(tmp_path / "b" / "elsewhere" / "toy.json")
    exact = write(tmp_path / "b" / "toy" / "toy.json")
    register(tmp_path / "missing", tmp_path / "a", tmp_path / "b")
    assert fetch("toy") == exact


def test_a_file_of_that_name_anywhere_below_is_taken_if_its_checksum_is_right(register: Register, tmp_path: Path):
    write(tmp_path / "a" / "1" / "toy.json", b"other")
    right = write(tmp_path / "a" / "2" / "deep" / "toy.json")
    register(tmp_path / "a")
    assert fetch("toy") == right


@pytest.mark.parametrize(
    ("changes", "remedy"),
    [
        (
            {"url": "https://example.org/toy.json"},
            "put toy/toy.json with sha256 {sha256} into a folder named in RUSBEIR_DATA",
        ),
        ({}, "put toy/toy.json with sha256 {sha256} into a folder named in RUSBEIR_DATA"),
        ({"path": "", "hub": ("some/toy",)}, "put its files into hub/some/toy in a folder named in RUSBEIR_DATA"),
    ],
)
def test_without_download_what_is_missing_is_told_and_nothing_is_asked_for(
    changes: dict[str, Any], remedy: str, register: Register, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("socket.getaddrinfo", lambda *_: pytest.fail("the network was asked"))
    register(**changes)
    with pytest.raises(NotAtHand, match=re.escape(remedy.format(sha256=ENTRY.sha256))) as caught:
        load("toy", download=False)
    assert "\n" not in str(caught.value)


COUNTS = {"n_docs": 1, "n_queries": 1, "n_qrels": 1}


@pytest.mark.parametrize(
    ("counts", "difference"),
    [
        ({}, ""),
        (COUNTS, ""),
        ({**COUNTS, "n_docs": 3633}, "n_docs is 1, not 3,633"),
        ({**COUNTS, "n_queries": 323, "n_qrels": 2}, "n_queries is 1, not 323; n_qrels is 1, not 2"),
        # as registered, so that more than one is said in one line
        ({"n_docs": 2, "n_queries": 2, "n_qrels": 2}, "n_docs is 1, not 2; n_queries is 1, not 2; n_qrels is 1, not 2"),
    ],
)
def test_a_dataset_that_is_not_the_registered_one_is_refused_or_renamed(
    counts: dict[str, int], difference: str, register: Register, tmp_path: Path
):
    question = {"id": "q1", "question": "?", "answers": [{"text": "x", "answer_start": 0}]}
    content = json.dumps({"data": [{"paragraphs": [{"context": "x", "qas": [question]}]}]}).encode()
    write(tmp_path / "a" / "toy" / "toy.json", content)
    register(tmp_path / "a", sha256=hashlib.sha256(content).hexdigest(), **counts)
    if not difference:
        assert load("toy").card.name == "toy"
        return
    with pytest.raises(BadInput, match=f"^This is not the registered toy: {difference}\\. Replace") as caught:
        load("toy")
    assert "\n" not in str(caught.value)
    accepted = load("toy", accept_difference=True)
    assert (accepted.card.name, len(accepted.corpus)) == ("toy (differs)", 1)


def test_a_wrong_file_is_told_with_both_checksums(register: Register, tmp_path: Path):
    path = write(tmp_path / "a" / "toy" / "toy.json", b"other")
    register(tmp_path / "a")
    with pytest.raises(BadInput) as caught:
        fetch("toy")
    for part in (str(path), ENTRY.sha256, hashlib.sha256(b"other").hexdigest()):
        assert part in str(caught.value)


def test_a_file_that_changes_is_compared_again(register: Register, tmp_path: Path):
    path = write(tmp_path / "a" / "toy" / "toy.json")
    register(tmp_path / "a")
    assert fetch("toy") == path
    write(path, b"changed since")
    with pytest.raises(BadInput, match="expected sha256"):
        fetch("toy")


def test_a_download_is_checked_cached_and_told(register: Register, tmp_path: Path, server: str, fresh_cache: Path):
    served = write(tmp_path / "served" / "toy.json")
    register(url=f"{server}/toy.json")
    told: list[tuple[str, int, int | None]] = []
    path = fetch("toy", lambda *step: told.append(step))
    assert path.read_bytes() == CONTENT
    assert fresh_cache in path.parents
    assert told[-1] == ("downloading toy.json", len(CONTENT), len(CONTENT))
    served.unlink()
    assert fetch("toy") == path


def test_wrong_bytes_from_a_server_are_refused_and_not_kept(
    register: Register, tmp_path: Path, server: str, fresh_cache: Path
):
    write(tmp_path / "served" / "toy.json", b"tampered with")
    register(url=f"{server}/toy.json")
    with pytest.raises(BadInput, match=rf"{server}/toy\.json .*expected sha256 {ENTRY.sha256}, found"):
        fetch("toy")
    assert [file for file in fresh_cache.rglob("*") if file.is_file() and file.parent.name != "locks"] == []


@pytest.mark.parametrize("url", ["{server}/none.json", "http://127.0.0.1:9/toy.json"])
def test_a_failed_download_says_what_to_do(
    url: str, register: Register, server: str, fresh_cache: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(download, "_WAIT_SECONDS", (0.0, 0.0))
    register(url=url.format(server=server))
    with pytest.raises(
        BackendError, match=rf"Cannot download .*put toy/toy\.json with sha256 {ENTRY.sha256} into a folder"
    ):
        fetch("toy")
    assert [file for file in fresh_cache.rglob("*") if file.is_file() and file.parent.name != "locks"] == []


def test_without_an_address_the_message_says_which_file_is_needed(register: Register):
    register()
    with pytest.raises(BadInput, match=rf"toy needs toy/toy\.json.*example\.org.*{ENTRY.sha256}.*RUSBEIR_DATA"):
        fetch("toy")


def test_md5_is_checked_where_only_that_is_published(register: Register, tmp_path: Path):
    right = hashlib.md5(CONTENT).hexdigest()
    write(tmp_path / "a" / "elsewhere" / "toy.json", b"other")
    path = write(tmp_path / "a" / "there" / "toy.json")
    register(tmp_path / "a", sha256="", md5=right)
    assert fetch("toy") == path
    write(tmp_path / "a" / "toy" / "toy.json", b"other")
    with pytest.raises(BadInput, match=rf"expected md5 {right}, found {hashlib.md5(b'other').hexdigest()}"):
        fetch("toy")


def test_without_a_checksum_only_the_path_of_the_entry_counts(register: Register, tmp_path: Path):
    elsewhere = write(tmp_path / "a" / "elsewhere" / "toy.json")
    register(tmp_path / "a", sha256="")
    with pytest.raises(BadInput, match=r"whose address is not known .*: put toy/toy\.json into a folder"):
        fetch("toy")
    exact = write(tmp_path / "a" / "toy" / "toy.json", elsewhere.read_bytes())
    assert fetch("toy") == exact


def test_the_first_download_of_an_unverified_file_is_what_later_ones_are_compared_with(
    register: Register, tmp_path: Path, server: str, fresh_cache: Path
):
    served = write(tmp_path / "served" / "toy.json")
    register(sha256="", url=f"{server}/toy.json")
    path = fetch("toy")
    assert fetch("toy") == path
    path.unlink()
    served.write_bytes(b"another edition")
    with pytest.raises(BadInput) as caught:
        fetch("toy")
    record = next((fresh_cache / "recorded").iterdir())
    for part in (
        ENTRY.sha256,
        hashlib.sha256(b"another edition").hexdigest(),
        "changed since toy",
        str(record),
        server,
    ):
        assert part in str(caught.value)
    assert not path.exists()
    record.unlink()
    assert fetch("toy").read_bytes() == b"another edition"


def test_bundled_data_needs_no_fetch(register: Register, samples):
    folder = samples.beir()
    register(bundled=str(folder), format="beir", split="test")
    assert fetch("toy") == folder
    assert load("toy").card.name == "toy"


def test_self_retrieval_is_a_suffix_for_every_copy(register: Register, samples):
    folder = samples.cocktail()
    for view, suffixes in (("human", ("",)), ("mixed", ("-human", "-bot-1.0"))):
        options = {"view": view}
        register(bundled=str(folder), format="cocktail", split="test", self_retrieval=True, options=options)
        assert load("toy").card.self_suffixes == suffixes


def test_an_unknown_name_is_told(register: Register):
    register()
    with pytest.raises(UnknownName, match="No dataset 'tyo'"):
        fetch("tyo")


def test_real_data_are_where_entries_say(shared_data: Path):
    assert fetch("xquad/ru") == shared_data / "xquad" / "xquad.ru.json"

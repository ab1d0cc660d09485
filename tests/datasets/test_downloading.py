"""Downloads from a server that behaves badly: the right file at its place, or one clear line and nothing there."""

from __future__ import annotations

import hashlib
import multiprocessing
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rusbeir.datasets.fetching import download as download_module
from rusbeir.datasets.fetching.download import download, list_addresses
from rusbeir.errors import BackendError, BadInput, RusbeirError
from tests.support import local_server

CONTENT = random.Random(7).randbytes(300_000)
STALL_SECONDS = 0.4


class Server:
    """Answers each request as the next of its turns says; after the last, as that one again."""

    def __init__(self) -> None:
        self.content, self.tag = CONTENT, '"v1"'
        self.ranges = True
        self.turns: list[str] = ["all"]
        self.asked: list[str] = []
        self.url = ""

    def turn(self) -> str:
        return self.turns.pop(0) if len(self.turns) > 1 else self.turns[0]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(download_module, "_WAIT_SECONDS", (0.0, 0.0, 0.0))
    monkeypatch.setattr(download_module, "_STALL_SECONDS", STALL_SECONDS)
    monkeypatch.delenv("RUSBEIR_MIRROR", raising=False)
    monkeypatch.delenv("HF_ENDPOINT", raising=False)
    served = Server()

    class Handler(local_server.Handler):
        def do_GET(self) -> None:
            served.asked.append(self.headers.get("Range", ""))
            turn, _, argument = served.turn().partition(" ")
            if turn == "status":
                self.send_error(int(argument))
                return
            start = 0
            if served.ranges and self.headers.get("Range") and self.headers.get("If-Range") == served.tag:
                start = int(self.headers["Range"].removeprefix("bytes=").removesuffix("-"))
            if start and start >= len(served.content):
                self.send_error(416)
                return
            body = served.content[start:]
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(served.content) - 1}/{len(served.content)}")
            if served.tag:
                self.send_header("ETag", served.tag)
            if turn == "untold":
                self.close_connection = True
            else:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            body = bytes(len(body)) if turn == "wrong" else body
            self.wfile.write(body[: int(argument)] if turn in ("cut", "stall") else body)
            self.wfile.flush()
            if turn == "stall":
                time.sleep(3 * STALL_SECONDS)
            if turn in ("cut", "stall"):
                self.close_connection = True
                self.connection.shutdown(2)

    with local_server.serving(Handler) as url:
        served.url = f"{url}/folder/data.zip"
        yield served


Fetch = Callable[..., Path]


def right(part: Path) -> None:
    found = hashlib.sha256(part.read_bytes()).hexdigest()
    if found != hashlib.sha256(CONTENT).hexdigest():
        raise BadInput(f"{part} is wrong: found {found}.")


@pytest.fixture
def fetch(server: Server, tmp_path: Path) -> Fetch:
    def fetch(url: str = "", told: list[tuple[int, int | None]] | None = None) -> Path:
        steps = told if told is not None else []
        target = tmp_path / "cache" / "data.zip"
        download(
            url or server.url,
            target,
            check=right,
            remedy="put data.zip into a folder named in RUSBEIR_DATA",
            progress=lambda stage, done, total: steps.append((done, total)),
        )
        return target

    return fetch


@pytest.mark.parametrize(
    ("turns", "why"),
    [
        (["all"], "as it should be"),
        (["cut 1000", "all"], "cut once, and resumed"),
        (
            ["cut 90000", "cut 90000", "cut 50000", "cut 20000", "cut 20000", "all"],
            "cut again and again, but further",
        ),
        (["cut 0", "cut 0", "all"], "cut before anything came"),
        (["stall 70000", "all"], "nothing comes for a while"),
        (["status 503", "status 429", "all"], "busy"),
        (["cut 200000", "status 500", "all"], "cut, then broken for a moment"),
    ],
)
@pytest.mark.parametrize("ranges", [True, False])
def test_it_ends_with_the_right_file(ranges: bool, turns: list[str], why: str, server: Server, fetch: Fetch):
    server.ranges, server.turns = ranges, turns
    told: list[tuple[int, int | None]] = []
    path = fetch(told=told)
    assert path.read_bytes() == CONTENT
    assert told[-1] == (len(CONTENT), len(CONTENT))
    assert sorted(file.name for file in path.parent.iterdir()) == ["data.zip"]


def test_the_password_of_a_mirror_is_not_printed(server: Server, fetch: Fetch, monkeypatch: pytest.MonkeyPatch):
    server.turns = ["status 403"]
    mirror = server.url.replace("//", "//me:secret@").rpartition("/")[0]
    monkeypatch.setenv("RUSBEIR_MIRROR", mirror)
    monkeypatch.setenv("HF_ENDPOINT", mirror)
    with pytest.raises(BackendError, match=r"\*\*\*@.*403") as error:
        fetch("https://huggingface.co/file")
    assert "secret" not in str(error.value)
    server.turns = ["wrong"]
    with pytest.raises(BadInput, match=r"\*\*\*@") as error:
        fetch("https://huggingface.co/file")
    assert "secret" not in str(error.value)


def test_what_came_before_a_cut_is_not_asked_for_again(server: Server, fetch: Fetch):
    server.turns = ["cut 98304", "cut 49152", "all"]
    fetch()
    assert server.asked == ["", "bytes=98304-", "bytes=147456-"]


@pytest.mark.parametrize(
    ("turns", "error", "message"),
    [
        (["status 404"], BackendError, r"Cannot download {url} \(404 .*\)\. Try again, or put data\.zip into a folder"),
        (["status 401"], BackendError, r"{url} \(401"),
        (["status 503"], BackendError, r"{url} \(503"),
        (["cut 1000"], BackendError, r"{url} \(.*cut"),
        (["stall 0"], BackendError, r"{url} \(no data for 0\.4 s\)"),
        (["wrong"], BadInput, r"{url} is wrong: found"),
    ],
)
def test_it_ends_with_one_line_and_nothing_in_place(
    turns: list[str], error: type[RusbeirError], message: str, server: Server, fetch: Fetch, tmp_path: Path
):
    server.ranges, server.turns = False, turns
    with pytest.raises(error, match=message.format(url=server.url)) as caught:
        fetch()
    assert "\n" not in str(caught.value)
    left = [file.name for file in (tmp_path / "cache").iterdir()]
    assert "data.zip" not in left
    assert left == [] or turns == ["cut 1000"]


def test_a_later_call_resumes_where_the_first_gave_up(server: Server, fetch: Fetch):
    server.turns = ["cut 122880", "status 404"]
    with pytest.raises(BackendError):
        fetch()
    server.turns, server.asked = ["all"], []
    assert fetch().read_bytes() == CONTENT
    assert server.asked == ["bytes=122880-"]


@pytest.mark.parametrize("tag", ['"v2"', "", 'W/"weak"'])
def test_a_file_that_changed_meanwhile_is_not_put_together_of_two(tag: str, server: Server, fetch: Fetch):
    server.content, server.turns = bytes(len(CONTENT)), ["cut 120000", "status 404"]
    server.tag = server.tag if tag == '"v2"' else tag
    with pytest.raises(BackendError):
        fetch()
    server.content, server.tag, server.turns = CONTENT, tag, ["all"]
    assert fetch().read_bytes() == CONTENT


def test_a_part_that_is_too_long_is_thrown_away(server: Server, fetch: Fetch, tmp_path: Path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "data.zip.part").write_bytes(CONTENT + b"more")
    (tmp_path / "cache" / "data.zip.part.tag").write_text(server.tag)
    assert fetch().read_bytes() == CONTENT
    assert server.asked == [f"bytes={len(CONTENT) + 4}-", ""]


def test_mirrors_come_first_and_the_own_address_last(server: Server, fetch: Fetch, monkeypatch: pytest.MonkeyPatch):
    mirror = server.url.removesuffix("/folder/data.zip")
    monkeypatch.setenv("RUSBEIR_MIRROR", f"http://127.0.0.1:9/closed, {mirror}/")
    assert list_addresses("https://example.org/folder/data.zip?raw=1") == [
        "http://127.0.0.1:9/closed/folder/data.zip?raw=1",
        f"{mirror}/folder/data.zip?raw=1",
        "https://example.org/folder/data.zip?raw=1",
    ]
    assert fetch("http://127.0.0.1:9/folder/data.zip").read_bytes() == CONTENT


def test_a_mirror_with_wrong_bytes_is_passed_over(server: Server, fetch: Fetch, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RUSBEIR_MIRROR", server.url.removesuffix("/folder/data.zip"))
    server.turns = ["wrong", "all"]
    assert fetch().read_bytes() == CONTENT
    assert server.asked == ["", ""]


def test_all_failures_are_named(server: Server, fetch: Fetch, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RUSBEIR_MIRROR", "http://127.0.0.1:9")
    server.turns = ["status 404"]
    with pytest.raises(BackendError, match=r"127\.0\.0\.1:9: ConnectionError; 404 Not Found"):
        fetch()


def test_the_hubs_endpoint_is_that_of_its_own_library(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("RUSBEIR_MIRROR", raising=False)
    monkeypatch.setenv("HF_ENDPOINT", "https://mirror.example/")
    assert list_addresses("https://huggingface.co/datasets/a/b/resolve/main/c.zip") == [
        "https://mirror.example/datasets/a/b/resolve/main/c.zip"
    ]
    assert list_addresses("https://example.org/c.zip") == ["https://example.org/c.zip"]


def _fetch_in_a_process(url: str, target: Path) -> None:
    download(url, target, check=right, remedy="", progress=lambda *_: None)


def test_two_processes_share_one_download(server: Server, tmp_path: Path):
    target = tmp_path / "cache" / "data.zip"
    context = multiprocessing.get_context("spawn")
    both = [context.Process(target=_fetch_in_a_process, args=(server.url, target)) for _ in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join(60)
    assert [process.exitcode for process in both] == [0, 0]
    assert target.read_bytes() == CONTENT
    assert sorted(file.name for file in target.parent.iterdir()) == ["data.zip"]
    assert len(server.asked) == 1


@pytest.mark.parametrize(("told", "message"), [(True, "has 300,000 bytes, more than the 299,999"), (False, "has more")])
def test_a_file_of_absurd_length_is_not_received(
    told: bool, message: str, server: Server, fetch: Fetch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(download_module, "MAX_BYTES", len(CONTENT) - 1)
    server.turns = ["all" if told else "untold"]
    with pytest.raises(BackendError, match=rf"the server's file {message}.* of any dataset\). Try again, or"):
        fetch()
    assert list(tmp_path.rglob("*.part")) == []

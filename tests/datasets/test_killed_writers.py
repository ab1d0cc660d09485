"""Every writer of a dataset's folder, killed at each change of a file: the old dataset, the new one, or a refusal."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from rusbeir.datasets import load, write_beir
from rusbeir.datasets.formats.beir import read_card
from rusbeir.errors import BadInput
from rusbeir.synthesis import Rules, control_quality, make_queries, rewrite
from rusbeir.translation.porting.api import port
from tests.support import rewriting_model
from tests.support.generating_model import GeneratingModel
from tests.support.labelling_model import LabellingModel, small_truth, write_made_set
from tests.support.rewriting_model import RewritingModel
from tests.support.small_port import Fake, records, translated, write_source

FAST = {"first_wait_seconds": 0.0, "max_wait_seconds": 0.0}
RULES = Rules(rankers=("bm25", "bm25(profile=raw)", "bm25(profile=unicode)"))
WRITING = frozenset({"os.rename", "os.remove", "os.mkdir", "os.rmdir", "open"})
"""Events of Python's audit hooks that change files; opening to read is left out below."""


class Killed(BaseException):
    """What a process that is gone would not notice."""


class Reaper:
    """Lets a process die at its n-th change of a file below a folder: nothing that comes later changes a file there."""

    def __init__(self) -> None:
        self.folder = ""
        self.places: tuple[str, ...] = ()
        self.left = 0
        self.dead = False
        sys.addaudithook(self.see)

    def see(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.folder or event not in WRITING or not str(arguments[0]).startswith(self.places):
            return
        # What a killed job keeps of its answers is tested with the jobs.
        if Path(self.folder) / "work" in Path(str(arguments[0])).parents:
            return
        if event == "open" and str(arguments[1] or "r")[0] == "r" and not (arguments[2] or 0) & 0o101:
            return
        self.left -= 1
        if self.left < 0:
            self.dead = True
            raise Killed

    def kill(self, write: Callable[[], object], folder: Path, n: int) -> bool:
        """Whether the writer was killed; it ended before its n-th change otherwise."""
        # A new folder is filled beside its place, under a name of its own.
        self.places = str(folder), str(folder.with_name(f".{folder.name}."))
        self.folder, self.left, self.dead = str(folder), n, False
        try:
            write()
        except BaseException:
            if not self.dead:
                raise
        finally:
            self.folder = ""
        return self.dead


REAPER = Reaper()
"""One for all: an audit hook cannot be removed."""


class Writer(NamedTuple):
    """What writes an old dataset into a folder (None: the folder is new), and what then writes a new one there."""

    old: Callable[[Path], object] | None
    new: Callable[[Path], object]


def upper(text: str, nth: int) -> str:
    return translated(text).upper()


def prepare(name: str, folder: Path, serve: Callable[..., object]) -> Writer:
    if name == "write_beir":
        dataset = load("mini/ru")
        return Writer(None, lambda out: write_beir(dataset, out))
    if name == "port":
        source = write_source(folder / "source")
        return Writer(
            lambda out: port(source, to="ru", out=out, translator=Fake()),
            lambda out: port(source, to="ru", out=out, translator=Fake(answer=upper, signature="upper")),
        )
    if name == "rewrite":
        source = rewriting_model.write_source(folder / "source")
        serve(RewritingModel())
        return Writer(*(partial(_rewrite, source, llm) for llm in ("one", "two")))
    if name == "queries":
        source = rewriting_model.write_source(folder / "source")
        serve(GeneratingModel())
        return Writer(*(partial(_make, source, n) for n in (2, 4)))
    made = write_made_set(folder / "made")
    serve(LabellingModel(small_truth))
    return Writer(partial(_check, made, ()), partial(_check, made, ("ice",)))


def _rewrite(source: Path, llm: str, out: Path) -> None:
    rewrite(source, llm=llm, out=out, **FAST)


def _make(source: Path, n: int, out: Path) -> None:
    make_queries(source, language="en", llm="tiny", n=n, out=out, **FAST)


def _check(made: Path, undo: tuple[str, ...], out: Path) -> None:
    rows = records(out / "qa" / "decisions.jsonl") if undo else []
    ids = [row["id"] for row in rows if row["doc_id"] in undo and row["action"] != "keep"]
    control_quality(made, out=out, llm="labeller", rules=RULES, undo=ids, **FAST)


def content(folder: Path) -> dict[str, bytes]:
    """The files that a user reads, but for the working files and what is told of the run."""
    files = (path for path in folder.rglob("*") if path.is_file() and "work" not in path.parts)
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in files
        if path.name[0] != "." and path.parent.name != "qa"
    }


@pytest.fixture
def started(tmp_path: Path, own_cache: object) -> Path:
    return tmp_path


@pytest.mark.parametrize("name", ["write_beir", "port", "rewrite", "queries", "qc"])
def test_killed_at_any_moment(name: str, started: Path, serve: Callable[..., object]):
    writer = prepare(name, started, serve)
    before, out = started / "before", started / "out"
    if writer.old is not None:
        writer.old(before)
        shutil.copytree(before, out)
    writer.new(out)
    expected = content(out)
    fingerprints = {load(folder).fingerprint for folder in (before, out) if folder.exists()}
    assert len(fingerprints) == (1 if writer.old is None else 2)
    n = refused = 0
    while True:
        shutil.rmtree(out)
        if writer.old is not None:
            shutil.copytree(before, out)
        if not REAPER.kill(lambda: writer.new(out), out, n):
            break
        try:
            assert load(out).fingerprint == read_card(out)["fingerprint"] in fingerprints
        except BadInput as error:
            refused += 1
            message = str(error)
            assert message.count("\n") == 0
            if out.exists():
                assert f"--out {out}` was stopped while it replaced the files. Run it again" in message
            else:
                assert message == f"No file or folder {out}."
        writer.new(out)
        assert content(out) == expected, f"after a kill at change {n}"
        n += 1
    assert refused, "some moment lies between the first file and the card"
    assert n > 5

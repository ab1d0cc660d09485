from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from rusbeir.cli.main import main


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def rusbeir(monkeypatch, capfd, tmp_path) -> Callable[..., Outcome]:
    """Run a command line in a folder of its own, in this process."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str | Path) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["rusbeir", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        out, err = capfd.readouterr()
        return Outcome(int(stop.value.code or 0), out, err)

    return run


@pytest.fixture
def beir(tmp_path: Path) -> Path:
    """A small BEIR folder in Russian, to be loaded or to be spoiled."""
    folder = tmp_path / "small"
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text(
        '{"_id": "d1", "title": "Кошки", "text": "Кошка ловит мышей в доме."}\n'
        '{"_id": "d2", "title": "Собаки", "text": "Собака сторожит дом и двор."}\n'
        '{"_id": "d3", "title": "", "text": "В реках водятся рыбы."}\n',
        encoding="utf-8",
    )
    (folder / "queries.jsonl").write_text(
        '{"_id": "q1", "text": "кто ловил мышь"}\n{"_id": "q2", "text": "сторожевые собаки"}\n',
        encoding="utf-8",
    )
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t2\n", encoding="utf-8")
    (folder / "card.json").write_text('{"name": "small", "language": "ru", "split": "test"}', encoding="utf-8")
    return folder

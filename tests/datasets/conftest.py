"""A small dataset to break in one place at a time."""

from __future__ import annotations

import gzip
import importlib.util
import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ClassVar

import pyarrow
import pytest

Files = Mapping[str, str | bytes | None]


def pack(data: bytes, name: str) -> bytes:
    """The content of a file of that name."""
    if name.endswith(".zst"):
        return pyarrow.Codec("zstd").compress(data, asbytes=True)
    return gzip.compress(data) if name.endswith(".gz") else data


class Samples:
    """Writes small datasets below one folder."""

    files: ClassVar[Files] = {
        "corpus.jsonl": '{"_id": "d1", "title": "Мост", "text": "Мост через реку."}\n'
        '{"_id": "d2", "title": "", "text": "Река под мостом.", "metadata": {"url": "x"}}\n'
        '{"_id": "d3", "text": "Ёж и ель."}\n',
        "queries.jsonl": '{"_id": "q2", "text": "ёж"}\n{"_id": "q1", "text": "мост"}\n{"_id": "q9", "text": "?"}\n',
        "qrels/test.tsv": "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t1\nq2\td3\t1\n",
    }

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def beir(self, changes: Files | None = None, name: str = "sample") -> Path:
        """The sample as a folder, with files added, replaced, or (None) left out; packed by the ends of their names."""
        folder = self._folder / name
        for file, content in {**self.files, **(changes or {})}.items():
            if content is None:
                continue
            data = content.encode() if isinstance(content, str) else content
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_bytes(pack(data, file))
        return folder

    def packed(self, folder: Path, root: str = "") -> Path:
        """The folder's files in a zip next to it, below root."""
        path = folder.with_suffix(".zip")
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(folder.rglob("*")):
                if file.is_file():
                    archive.write(file, root + file.relative_to(folder).as_posix())
        return path

    def cocktail(self, changes: Files | None = None, name: str = "cocktail") -> Path:
        """Two corpora over the ids of the sample."""
        corpus = self.files["corpus.jsonl"]
        assert isinstance(corpus, str)
        two = {"corpus/human.jsonl": corpus, "corpus/bot-1.0.jsonl": corpus.replace("Мост", "Мостик")}
        return self.beir({"corpus.jsonl": None, **two, **(changes or {})}, name)

    def squad(self, *paragraphs: tuple[str, Mapping[str, int]], name: str = "squad.json") -> Path:
        """A SQuAD file of one article: each paragraph with query id -> answer_start."""
        content = [
            {"context": context, "qas": [_question(*question) for question in questions.items()]}
            for context, questions in paragraphs
        ]
        data = {"version": "1.1", "data": [{"title": "t", "paragraphs": content}]}
        path = self._folder / name
        path.write_text(json.dumps(data), encoding="utf-8")
        return path


def _question(query_id: str, start: int) -> dict[str, object]:
    return {"id": query_id, "question": f"{query_id}?", "answers": [{"text": "x", "answer_start": start}]}


@pytest.fixture
def samples(tmp_path: Path) -> Samples:
    return Samples(tmp_path)


@pytest.fixture
def hf_extra(needs: Callable[[str, bool, str], None]) -> None:
    needs("the extra hf", importlib.util.find_spec("pyarrow") is not None, "pip install 'rusbeir[hf]'")


@pytest.fixture
def datasets_library(needs: Callable[[str, bool, str], None]) -> None:
    needs("the library datasets", importlib.util.find_spec("datasets") is not None, "pip install datasets")

"""Made queries and rewritten documents whose requests are answered in files: the same bytes as one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rusbeir.errors import Suspended
from rusbeir.synthesis import make_queries, rewrite
from tests.support import generating_model, rewriting_model
from tests.support.batch_files import answer_file


def work_by_files(work: Any, folder: Path, reply: Any) -> int:
    """Call the work until nothing is left to ask; the number of files."""
    read: list[Path] = []
    for number in range(20):
        requests, answers = folder / f"requests-{number}.jsonl", folder / f"answers-{number}.jsonl"
        try:
            work(batch_out=requests, batch_in=read)
            return number
        except Suspended:
            answer_file(requests, answers, reply, seed=number)
            read = [answers]
    raise AssertionError("twenty files")


def test_queries(tmp_path, serve):
    model = serve(generating_model.GeneratingModel())
    order = {"language": "en", "n": 4, "llm": "m"}
    source = rewriting_model.write_source(tmp_path / "source")
    make_queries(source, out=tmp_path / "live", **order)
    n_asked = len(model.asked)
    n_files = work_by_files(
        lambda **batching: make_queries(source, out=tmp_path / "files", **order, **batching), tmp_path, model.reply
    )
    assert n_files >= 3  # Each step needs the answers of the one before.
    assert len(model.asked) == n_asked
    for name in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv", "qa/generated.jsonl", "qa/queries.json"):
        assert (tmp_path / "files" / name).read_bytes() == (tmp_path / "live" / name).read_bytes()


def test_rewriting(tmp_path, serve):
    model = serve(rewriting_model.RewritingModel())
    source = rewriting_model.write_source(tmp_path / "source")
    rewrite(source, out=tmp_path / "live", llm="m")
    files = work_by_files(
        lambda **batching: rewrite(source, out=tmp_path / "files", llm="m", **batching), tmp_path, model.reply
    )
    assert files == 1
    assert rewriting_model.files(tmp_path / "files") == rewriting_model.files(tmp_path / "live")

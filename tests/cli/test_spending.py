"""`--budget-chars` of every verb that sends texts to endpoints: one line, and what was answered is kept."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
from pathlib import Path

import pytest

import rusbeir.datasets
from tests.support.openai_server import Endpoint, Reply, completion, embedded, refusal

DENSE = "dense(any,runtime=openai,dtype=float32)"
LLM = "bm25 >> rerank(any,runtime=llm,depth=5,max_tokens=20)"
LIST = "bm25 >> rerank(any,runtime=llm-list,depth=50,max_tokens=20)"


class Models(Endpoint):
    """A server of embeddings and of chats; it counts characters as a budget does."""

    def reply(self, asked: dict) -> Reply:
        if asked["path"] == "/v1/embeddings":
            vectors = [[1.0, text.count("а"), text.count("о")] for text in asked["input"]]
            return Reply(body=json.dumps(embedded(vectors, asked["model"])))
        return completion("[1]", top_tokens={"yes": -0.1, "no": -2.3}, tokens=(100, 2))

    @property
    def texts(self) -> list[str]:
        """Each that was sent, in prompts with the instructions before them."""
        return [
            text
            for asked in self.asked
            for text in asked.get("input") or ["".join(message["content"] for message in asked["messages"])]
        ]

    @property
    def chars(self) -> int:
        return sum(map(len, self.texts))


@pytest.fixture
def models(serve, fresh_cache) -> Models:
    return serve(Models())


@pytest.fixture
def dev(tmp_path: Path) -> Path:
    """mini/ru with 40 queries as a development split, which `tune` takes."""
    folder = tmp_path / "dev"
    shutil.copytree(Path(rusbeir.datasets.__file__).parent / "mini" / "ru", folder)
    queries = (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)[:40]
    (folder / "queries.jsonl").write_text("".join(queries), encoding="utf-8")
    ids = {json.loads(line)["_id"] for line in queries}
    head, *lines = (folder / "qrels" / "test.tsv").read_text(encoding="utf-8").splitlines(keepends=True)
    judged = [line for line in lines if line.split("\t")[0] in ids]
    (folder / "qrels" / "dev.tsv").write_text("".join([head, *judged]), encoding="utf-8")
    (folder / "qrels" / "test.tsv").unlink()
    card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    (folder / "card.json").write_text(json.dumps({**card, "split": "dev"}), encoding="utf-8")
    return folder


QUERY = "Какая река, гора, планета или звезда была открыта первой?"
ROWS = [
    # verb, more arguments, system, budget, why it stops there
    ("index", [], DENSE, 40_000, "before the second block of documents"),
    ("search", [QUERY], DENSE, 40_000, "before the second block of documents"),
    ("search", [QUERY], LIST, 2_000, "before a later window"),
    ("tune", [], f"minmax(bm25,{DENSE})", 40_000, "before the second block of documents"),
    ("tune", [], f"minmax(bm25,{LLM})", 10_000, "before a later query"),
    ("bench", [], DENSE, 40_000, "before the second block of documents"),
    ("bench", [], LLM, 10_000, "before a later query"),
]


@pytest.mark.parametrize(("verb", "arguments", "system", "budget", "why"), ROWS)
def test_the_budget_ends(rusbeir, models, dev, verb, arguments, system, budget, why):
    command = [verb, dev, *arguments, "--system", system]
    stopped = rusbeir(*command, "--budget-chars", budget)
    [line] = [line for line in stopped.err.splitlines() if not line.startswith("rusbeir: warning: ")]
    assert line.startswith(f"rusbeir: The budget of {budget:,} characters is reached: {models.chars:,} are spent")
    assert (stopped.code, stopped.out) == (1, "")
    assert 0 < models.chars <= budget, why
    done = rusbeir(*command)
    assert done.code == 0, done.err
    assert models.chars > budget
    assert len(set(models.texts)) == len(models.texts), "what was answered is not asked again"


def test_one_budget_over_all_verbs(rusbeir, models, dev, tmp_path):
    """They count in one folder, results, where no other is given; and make it only to count."""
    assert rusbeir("search", dev, QUERY, "--budget-chars", "9").code == 0
    assert rusbeir("index", dev, "--system", DENSE).code == 0
    assert not (tmp_path / "results").exists(), "nothing was sent, or without a budget"
    budget = ["--budget-chars", 1_650]
    assert rusbeir("search", dev, QUERY, "--system", DENSE, *budget).code == 0
    bench = ["bench", dev, "--system", DENSE, *budget]
    for command in (bench, ["tune", dev, "--system", f"minmax(bm25,{DENSE})", *budget]):
        assert f"The budget of 1,650 characters is reached: {len(QUERY)} are spent" in rusbeir(*command).err
    assert rusbeir("search", dev, "Кто открыл радий?", "--system", DENSE, *budget, "--out", "other").code == 0
    assert (tmp_path / "other" / "spending.sqlite").is_file()


@pytest.mark.parametrize("system", [DENSE, LLM, LIST])
def test_errors_of_a_server_spend_nothing(rusbeir, models, dev, system):
    search = ["search", dev, QUERY, "--system", system, "--budget-chars"]
    models.script.extend([refusal(401, "no such key")] * 50)
    assert rusbeir(*search, 40_000).code == 2
    models.script.clear()
    models.asked.clear()
    assert rusbeir(*search, 40_000).code in (0, 1)
    with contextlib.closing(sqlite3.connect("results/spending.sqlite")) as db:
        assert db.execute("SELECT value FROM meta WHERE name = 'spent chars'").fetchall() == [(str(models.chars),)]
    assert models.chars > 0


def test_a_row_says_what_was_paid(rusbeir, models, dev):
    priced = LLM.replace("max_tokens=20", "max_tokens=20,input_price=2,output_price=10")
    command = ["bench", dev, "--system", priced, "--json"]
    [row] = json.loads(rusbeir(*command).out)["rows"]
    n = len(models.asked)
    assert n > 100
    assert row["tokens"] == {"input": 100 * n, "output": 2 * n}
    assert row["cost"] == pytest.approx(n * (100 * 2 + 2 * 10) / 1e6)
    [again] = json.loads(rusbeir(*command, "-k", 50).out)["rows"]
    assert not {"tokens", "cost"} & again.keys(), "scores in the cache cost nothing again"

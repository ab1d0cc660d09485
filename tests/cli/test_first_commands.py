"""What new users type before they read a page: each command does what was meant, or says in one line what to type.

Three people: a porter, an engineer who chooses a retriever, and a linguist who adds a language; eleven commands each,
and what the last two type next.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.openai_server import Endpoint

SETTINGS = "--lang en --to ru --translator llm --llm toy --out nfc-ru"
MEMORY = "--lang en --to ru --out nfc-ru --translator memory --memory pairs.tsv"


class Row(NamedTuple):
    """A command, its exit code, and what it prints, on stdout or on stderr."""

    command: str
    code: int
    output: str


PORTER = [
    Row("port nfc --to es", 2, "a folder for the port with --out, and the language of nfc with --lang."),
    Row("port nfc --to es --out nfc-es --translator apertium", 2, "Name it with --lang TAG, such as en or ru."),
    Row("port nfc --lang en --to russian --out nfc-ru --translator llm --llm toy --dry-run", 0, "Nothing was sent."),
    Row("port nfc --lang en --to xx --out nfc-xx --translator llm --llm toy", 2, "'xx'"),
    Row("port nfc --lang en --to ru --out nfc-ru --translator gpt-4o-mini", 2, "--translator llm --llm gpt-4o-mini"),
    Row(f"port nfc {SETTINGS} --budget-cost 0.0001", 2, "--option input-price=… --option output-price=…"),
    Row(f"port nfc {MEMORY} --glossary terms.csv", 0, "Glossary: 2 terms, in 4 texts."),
    Row("bench nfc-ru --split test", 0, "nDCG@10"),
    Row("audit sample nfc-ru", 2, "Did you mean 'rusbeir audit sheet'?"),
    Row("publish nfc-ru --to ready", 2, "--licence"),
    Row("datasets --lang ru --name xquad", 0, "xquad/ru"),
]
ENGINEER = [
    Row('search shop "красная куртка" --lang ru', 0, "[Красная] [куртка]"),
    Row("search shop.csv куртка --lang ru", 2, "it has id, name, description. Name it: --columns text=COLUMN."),
    Row('search shop.csv куртки --lang ru --columns "text=description,title=name"', 0, "[куртка]"),
    Row("index shop.parquet --lang ru --columns text=name+description", 0, "bm25|"),
    Row("bench shop --lang ru", 2, "Add qrels/test.tsv"),
    Row("analyze --corpus shop --lang ru", 0, "3 documents"),
    Row("compare ours.run theirs.run", 2, "rusbeir compare --qrels QRELS ours.run"),
    Row("compare --qrels judged.txt ours.run theirs.json", 0, "no system was shown to be the best"),
    Row('bench mini/ru --system "dense(text-embedding-3-small)"', 2, "dense(text-embedding-3-small,runtime=openai)"),
    Row("systems models", 0, "multilingual-e5-small"),
    Row("bench mini/ru -m SDCG@10", 2, "SDCG(max_rel=1)@10"),
    Row("report ours.run theirs.json --out site", 2, "rusbeir compare --qrels QRELS ours.run"),
    Row("report --qrels judged.txt ours.run theirs.json --out site", 0, "Open site/index.html"),
    Row("bench mini/ru --system help", 2, "Available: bm25, dense"),
]
LINGUIST = [
    Row("languages kk", 0, "Kazakh (kk)"),
    Row("languages ti", 2, "`rusbeir languages new ti` starts one"),
    Row("languages new ti --out mine", 0, "rusbeir languages check ti --analyzers mine"),
    Row("languages check ti --analyzers mine", 0, "0 failures"),
    Row("languages new tr --folder mine", 0, "nltk-turkish.txt"),
    Row("languages check tr --analyzers mine", 0, "0 failures"),
    Row("analyze қалалар", 2, "--lang ru"),
    Row("analyze қалалар --lang kk --analyzers suffixes", 2, 'stemmer = "suffixes:FILE"'),
    Row("analyze қалаларда --lang kk --analyzers rules", 0, "қала"),
    Row("analyze 'צה\"ל' --lang he", 0, "צה״ל"),
    Row('search shop куртки --lang ru --system "bm25(profile=shop)" --analyzers russian', 0, "[куртка]"),
    Row("languages new ka --corpus georgian.tsv --folder seen", 0, "ka-candidates.txt"),
    Row("languages check kk", 0, "0 failures"),
    Row("port nfc --lang en --to ka --translator memory --memory georgian.tsv --out nfc-ka", 0, "rusbeir bench nfc-ka"),
    Row("datasets validate nfc-ka", 0, "0 errors"),
    Row("bench nfc-ka --split test", 0, "nDCG@10"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What the three have before they begin."""
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    products = [
        {"id": "p1", "name": "Красная куртка", "description": "Тёплая красная куртка на зиму."},
        {"id": "p2", "name": "Синяя рубашка", "description": "Лёгкая рубашка из синего хлопка."},
        {"id": "p3", "name": "Шапка", "description": "Вязаная шапка из серой шерсти."},
    ]
    parquet.write_table(pyarrow.Table.from_pylist(products), tmp_path / "shop.parquet")
    english = {"d1": "A warm red jacket for the winter.", "d2": "A light shirt of blue cotton.", "d3": "A hat of wool."}
    queries = {"q1": ("dev", "winter jacket", "d1"), "q2": ("test", "shirt", "d2"), "q3": ("train", "wool", "d3")}
    files = {
        "shop.csv": "id,name,description\n" + "".join(f"{','.join(row.values())}\n" for row in products),
        "shop/corpus.jsonl": _lines(
            {"_id": row["id"], "title": row["name"], "text": row["description"]} for row in products
        ),
        "nfc/corpus.jsonl": _lines({"_id": doc_id, "title": "", "text": text} for doc_id, text in english.items()),
        "nfc/queries.jsonl": _lines({"_id": query_id, "text": text} for query_id, (_, text, _) in queries.items()),
        **{
            f"nfc/qrels/{split}.tsv": f"query-id\tcorpus-id\tscore\n{query_id}\t{doc_id}\t1\n"
            for query_id, (split, _, doc_id) in queries.items()
        },
        "pairs.tsv": "".join(
            f"{text}\t{text.upper()} и\n" for text in (*english.values(), "winter jacket", "shirt", "wool")
        ),
        "georgian.tsv": "".join(
            f"{text}\t{translation}\n"
            for text, translation in zip(
                (*english.values(), "winter jacket", "shirt", "wool"),
                ("თბილი წითელი ქურთუკი", "ლურჯი პერანგი", "შალის ქუდი", "ქურთუკი", "პერანგი", "შალი"),
                strict=True,
            )
        ),
        "terms.csv": "wool,шерсть\njacket,куртка\n",
        "judged.txt": "q1 0 d1 1\nq2 0 d2 1\n",
        "ours.run": "q1 Q0 d1 1 2.5 ours\nq2 Q0 d1 1 2.5 ours\n",
        "theirs.json": '{"q1": {"d1": 2.0}, "q2": {"d2": 1.5}}',
        "suffixes/kk.toml": 'suffixes = "plurals.tsv"\n',
        "rules/kk.toml": 'stemmer = "suffixes:plurals.tsv"\n',
        "rules/plurals.tsv": "лар\nларда\n",
        "russian/ru.toml": '[profiles.shop]\ninherits = "default"\nstop_extra = ["куртёнка"]\n',
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def _lines(records: Iterable[Mapping[str, str]]) -> str:
    return "".join(f"{json.dumps(record, ensure_ascii=False)}\n" for record in records)


@pytest.mark.parametrize("road", [PORTER, ENGINEER, LINGUIST], ids=["porter", "engineer", "linguist"])
def test_first_commands(rusbeir: Callable[..., object], endpoint: Endpoint, folder: Path, road: list[Row], monkeypatch):
    for row in road:
        monkeypatch.setenv("RUSBEIR_ANALYZERS", "")
        outcome = rusbeir(*shlex.split(row.command))
        printed = outcome.out + outcome.err
        assert (outcome.code, row.output in printed) == (row.code, True), f"{row.command}: {outcome.code}\n{printed}"
        if row.code:
            assert outcome.err.count("\n") == 1, f"{row.command}:\n{printed}"

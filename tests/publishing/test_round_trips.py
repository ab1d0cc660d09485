"""Whatever rusbeir makes is published so that every reader gives it back: its splits, its languages, what made it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from rusbeir import bench, load
from rusbeir.audit import audit_port
from rusbeir.audit.port_checks.cleaning import apply_cleaning, plan_cleaning
from rusbeir.datasets.formats.beir import list_splits, read_card
from rusbeir.errors import BadInput
from rusbeir.nano import make_nano
from rusbeir.publishing import publish
from rusbeir.synthesis import Rules, control_quality, make_queries, rewrite
from rusbeir.translation.porting.api import port
from tests.nano.test_nano import CHOOSE, HELD_OUT
from tests.support.generating_model import GeneratingModel
from tests.support.labelling_model import LabellingModel, small_truth, write_made_set
from tests.support.openai_server import Endpoint
from tests.support.rewriting_model import RewritingModel
from tests.support.rewriting_model import write_source as write_texts
from tests.support.small_port import Fake, add_split, write_source

Serve = Callable[[Endpoint], Endpoint]
WORDS = (
    "water",
    "boils",
    "snow",
    "falls",
    "rain",
    "river",
    "mountain",
    "lake",
    "bear",
    "wolf",
    "hare",
    "night",
    "morning",
)


def make_port(folder: Path, serve: Serve) -> Path:
    port(write_source(folder / "source"), to="ru", out=folder / "made", translator=Fake())
    return folder / "made"


def make_three_splits(folder: Path, serve: Serve) -> Path:
    source = add_split(write_source(folder / "source"))
    (source / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\nq4\td3\t1\n")
    port(source, to="ru", out=folder / "made", translator=Fake())
    return folder / "made"


def make_clean(folder: Path, serve: Serve) -> Path:
    made = make_three_splits(folder, serve)
    audit_port(made, processes=1, round_trip=False)
    plan_cleaning(made)
    apply_cleaning(made, out=folder / "clean")
    return folder / "clean"


def make_query_port(folder: Path, serve: Serve) -> Path:
    source = add_split(write_source(folder / "source"))
    port(source, to="ru", out=folder / "made", translator=Fake(), fields=["query"])
    return folder / "made"


def make_document_port(folder: Path, serve: Serve) -> Path:
    port(write_source(folder / "source"), to="ru", out=folder / "made", translator=Fake(), fields=["title", "text"])
    return folder / "made"


def make_small(folder: Path, serve: Serve) -> Path:
    make_nano("mini/ru", to=folder / "made", systems=CHOOSE, held_out=HELD_OUT, queries=30, depth=5, others=3)
    return folder / "made"


def make_made(folder: Path, serve: Serve) -> Path:
    serve(GeneratingModel())
    rows = [
        {"_id": f"d{n}", "title": "", "text": f"{' '.join(f'{word}{n}' for word in WORDS)} at place number {n}."}
        for n in range(6)
    ]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    make_queries(folder / "corpus.jsonl", language="en", llm="toy-7b", out=folder / "made", n=4)
    return folder / "made"


def make_checked(folder: Path, serve: Serve) -> Path:
    serve(LabellingModel(small_truth))
    rules = Rules(rankers=("bm25", "bm25(profile=raw)", "bm25(profile=unicode)"))
    control_quality(write_made_set(folder / "source"), out=folder / "made", llm="toy-7b", rules=rules)
    return folder / "made"


def make_rewritten(folder: Path, serve: Serve) -> Path:
    serve(RewritingModel())
    rewrite(write_texts(folder / "source"), llm="toy-7b", out=folder / "made")
    return folder / "made"


KINDS = [
    # what, its splits, what the card names, what it must not say
    (make_port, {"test"}, ["(Russian)", "fake-1"], ["No person has read"]),
    (make_three_splits, {"dev", "test", "train"}, ["of the split `test`", "of all splits together"], []),
    (make_clean, {"dev", "test", "train"}, ["audit clean"], []),
    (
        make_query_port,
        {"test", "train"},
        [
            "documents in English, queries in Russian",
            "eval_langs=['eng-Latn', 'rus-Cyrl']",
            "Not translated: titles, texts.",
        ],
        ["benchmark in Russian"],
    ),
    (make_document_port, {"test"}, ["documents in Russian, queries in English", "['rus-Cyrl', 'eng-Latn']"], []),
    (make_small, {"test"}, ["a small version of mini/ru"], ["of the split"]),
    (
        make_made,
        {"test"},
        ["The language model toy-7b wrote", "prompts:", "Of 4 queries asked for,", "No person has read these queries."],
        [],
    ),
    (
        make_checked,
        {"dev", "test"},
        [
            "model:toy-7b", "`bm25(profile=unicode)`", "source: drop-query 1", "candidate: add-judgement 1",
            "Queries: 4 before, 3 after.", "No person has read these queries.", "rankers checked its judgements",
        ],
        ["No check is recorded"],
    ),
    (make_rewritten, {"test", "train"}, ["toy-7b", "rewrote 5 documents"], []),
]  # fmt: skip


@pytest.mark.parametrize(("make", "splits", "present", "absent"), KINDS, ids=[row[0].__name__ for row in KINDS])
def test_every_reader_gives_it_back(make, splits, present, absent, tmp_path, serve, own_cache, monkeypatch):
    import datasets
    import ir_datasets

    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    folder, to = make(tmp_path, serve), tmp_path / "published"
    report = publish(folder, to=to, i_have_permission=True)
    page = (to / "README.md").read_text(encoding="utf-8")
    assert [text for text in present if text not in page] == []
    assert [text for text in absent if text in page] == []
    assert report["splits"].keys() == set(list_splits(folder, None)) == splits

    original = load(folder)
    row = bench(folder, k=10, measures="nDCG@10", out=tmp_path / "rows")
    publish(to, to=tmp_path / "again", i_have_permission=True)
    for path in (to, to / "beir.zip", tmp_path / "again"):
        dataset = load(path)
        names = ("name", "language", "query_language", "split", "provenance")
        assert [getattr(dataset.card, name) for name in names] == [getattr(original.card, name) for name in names]
        assert dataset.fingerprint == original.fingerprint
        assert read_card(path)["fingerprint"] == original.fingerprint
        its_row = bench(path, k=10, measures="nDCG@10", out=tmp_path / f"rows-{len(str(path))}")
        same = ("measures", "language", "query_language", "split", "fingerprint")
        assert {name: its_row[name] for name in same} == {name: row[name] for name in same}
        for split in splits:
            assert load(path, split=split).qrels == load(folder, split=split).qrels
    assert load(to, split="all").fingerprint == load(folder, split="all").fingerprint == report["fingerprint"]

    # As the card says it: every snippet is run, with the folder in the place of its name.
    loading, mteb_task, *_ = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names = {}
    exec(loading.replace("FOLDER OR REPOSITORY", str(to)), names)
    assert {line["query-id"] for line in names["qrels"]} == original.qrels.keys()
    assert {line["_id"]: line["text"] for line in names["queries"]}.items() >= original.queries.items()
    for split in splits:
        read = datasets.load_dataset(str(to), "default", split=split, cache_dir=str(tmp_path / "cache"))
        judged = load(folder, split=split).qrels
        assert [(line["query-id"], line["corpus-id"], line["score"]) for line in read] == [
            (query_id, doc_id, grade) for query_id, grades in judged.items() for doc_id, grade in grades.items()
        ]
        tables = ir_datasets.create_dataset(
            docs_tsv=str(to / "trec" / "docs.tsv"),
            queries_tsv=str(to / "trec" / "queries.tsv"),
            qrels_trec=str(to / "trec" / f"qrels.{split}.txt"),
        )
        assert [doc.doc_id for doc in tables.docs_iter()] == [doc.doc_id for doc in original.corpus]
        assert {(judgement.query_id, judgement.doc_id): judgement.relevance for judgement in tables.qrels_iter()} == {
            (query_id, doc_id): grade for query_id, grades in judged.items() for doc_id, grade in grades.items()
        }
    exec(mteb_task.replace("FOLDER OR REPOSITORY", str(to)).replace("COMMIT", "local"), names)
    task = names["Task"]()
    task.load_data()
    assert task.metadata.eval_splits == [original.card.split]
    assert task.dataset["default"][original.card.split]["relevant_docs"] == original.qrels
    (command,) = re.findall(r"`rusbeir bench (FOLDER)`", page)
    assert command == "FOLDER"


def test_documents_are_analysed_in_their_own_language(tmp_path, caplog, own_cache):
    """English documents with Russian queries: the analyzer is the English one, and the row has both languages."""
    source = write_source(tmp_path / "source")
    port(source, to="ru", out=tmp_path / "ru", translator=Fake(), fields=["query"])
    card = read_card(tmp_path / "ru")
    assert (card["name"], card["language"], card["query_language"]) == ("small@ru", "en", "ru")
    row = bench(tmp_path / "ru", "bm25", out=tmp_path / "rows")
    assert (row["language"], row["query_language"]) == ("en", "ru")
    assert "|lang:en|" in row["signature"]
    assert "BM25 analyses all queries as texts in the language of the documents" in caplog.text
    # What is in two languages cannot be sent as one.
    with pytest.raises(BadInput, match="documents in 'en' and queries in 'ru': translate one of them"):
        port(tmp_path / "ru", to="de", out=tmp_path / "de", translator=Fake())
    back = Fake(answer=lambda text, nth: "The ice on the lake melts in the morning")
    report = port(tmp_path / "ru", to="en", out=tmp_path / "en", translator=back, fields=["query"])
    card = load(tmp_path / "en").card
    assert (report["from"], card.language, card.query_language) == ("ru", "en", "")

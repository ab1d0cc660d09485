"""A port compared with a human translation: scores are those of sacrebleu, and what is not compared is counted."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from rusbeir.audit import audit_port
from rusbeir.audit.port_checks.aligned import open_port
from rusbeir.audit.port_checks.gates import parse_gates
from rusbeir.audit.port_checks.reference import compare_port
from rusbeir.datasets import load, write_beir
from rusbeir.errors import BadInput
from rusbeir.types import Dataset, Doc
from tests.support.small_port import DOCS, QUERIES, translated, write_source

METRICS = {"BLEU": BLEU(trg_lang="ru"), "chrF": CHRF(), "chrF++": CHRF(word_order=2), "TER": TER()}


def theirs(hypotheses: list[str], references: list[str]) -> dict[str, float | None]:
    return {name: metric.corpus_score(hypotheses, [references]).score for name, metric in METRICS.items()}


def scores_of(level: dict) -> dict[str, float | None]:
    return {name: level[name] for name in METRICS}


def as_people(text: str) -> str:
    return translated(text).replace("тает", "таял").replace("кипит", "закипает")


@pytest.fixture
def reference(make_port, tmp_path) -> Path:
    """The small source as people translated it, without d2 and its title of d3, with a document that no port has."""
    docs = [{**doc, "title": as_people(doc["title"]), "text": as_people(doc["text"])} for doc in DOCS]
    del docs[1]
    docs[1]["title"] = ""
    folder = write_source(tmp_path / "people", [*docs, {"_id": "d9", "title": "", "text": "Никто."}])
    lines = [json.dumps({**query, "text": as_people(query["text"])}) + "\n" for query in QUERIES]
    (folder / "queries.jsonl").write_text("".join(lines))
    (folder / "card.json").write_text(json.dumps({"name": "people", "language": "ru", "split": "test"}))
    return folder


def test_scores_are_those_of_sacrebleu(make_port, reference):
    folder = make_port()
    report = audit_port(folder, source=folder.parent / "small", reference=reference, processes=1)
    compared = report["reference"]
    assert compared["name"] == "people"
    documents, queries = compared["levels"]["documents"], compared["levels"]["queries"]
    assert (documents["n"], documents["lacking"], queries["n"], queries["lacking"]) == (3, 1, 2, 0)
    # A document is one line; the title that the reference does not have is left out on both sides.
    hypotheses = ["Вода кипит Лёд тает. Снег падает. - Медведь 5 kg - Волк 7 kg", "Лёд тает. Снег падает.", "1987"]
    references = ["Вода закипает Лёд таял. Снег падает. - Медведь 5 kg - Волк 7 kg", "Лёд таял. Снег падает.", "1987"]
    assert scores_of(documents) == theirs(hypotheses, references)
    assert scores_of(queries) == theirs(["лёд тает", "гора озеро утро"], ["лёд таял", "гора озеро утро"])
    assert compared["signatures"]["BLEU"].startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    page = (folder / "qa" / "report.html").read_text()
    assert "Compared with people" in page
    assert f"{documents['TER']:.2f}" in page


def test_a_port_of_xquad_and_the_russian_one(shared_data, tmp_path):
    """Forty Russian paragraphs and their questions with every tenth word gone, as a port; in two processes."""
    english, russian = load("xquad/en"), load("xquad/ru")
    docs = {doc.doc_id: doc.text for doc in islice(russian.corpus, 40)}
    answerable = {query_id: grades for query_id, grades in russian.qrels.items() if grades.keys() <= docs.keys()}
    queries = {query_id: russian.queries[query_id] for query_id in answerable}
    ported = Dataset.of(
        [Doc(doc_id, shortened(text)) for doc_id, text in docs.items()],
        {query_id: shortened(text) for query_id, text in queries.items()},
        answerable,
        language="ru",
        name="shortened",
        split=russian.card.split,
    )
    write_beir(ported, tmp_path / "port")
    made = open_port(tmp_path / "port", source="xquad/en")
    assert made.source.fingerprint == english.fingerprint
    levels = compare_port(made, russian, processes=2)["levels"]
    for level, texts in (("documents", docs), ("queries", queries)):
        references = [" ".join(text.split()) for text in texts.values()]
        assert levels[level]["n"] == len(references) > 30
        expected = theirs([shortened(text) for text in references], references)
        if level == "documents":
            # Paragraphs of more than a hundred words.
            expected["TER"] = None
        assert scores_of(levels[level]) == expected


def shortened(text: str) -> str:
    return " ".join(word for n, word in enumerate(text.split(), 1) if n % 10)


def test_what_is_empty_counts_against_the_port(make_port, reference):
    folder = make_port()
    text = (folder / "queries.jsonl").read_text().replace("лёд тает", "")
    (folder / "queries.jsonl").write_text(text)
    made = open_port(folder, source=folder.parent / "small")
    queries = compare_port(made, load(reference), processes=1)["levels"]["queries"]
    assert (queries["n"], queries["lacking"]) == (2, 0)
    assert scores_of(queries) == theirs(["", "гора озеро утро"], ["лёд таял", "гора озеро утро"])


def test_gates_and_what_is_not_a_reference(make_port, reference):
    folder = make_port()
    source = folder.parent / "small"
    gates = parse_gates("reference.chrf>=99,reference.ter.queries<=60")
    report = audit_port(folder, source=source, reference=reference, gates=gates, processes=1)
    (failed,) = report["gates"]["failed"]
    assert failed.startswith("reference.chrf>=99 does not hold: reference.chrf is ")
    with pytest.raises(BadInput, match=r"is in 'en', but .* is in 'ru'"):
        audit_port(folder, source=source, reference=source)
    with pytest.raises(BadInput, match="have no query id in common"):
        audit_port(folder, source=source, reference="mini/ru")
    (reference / "card.json").unlink()
    assert (
        audit_port(folder, source=source, reference=reference, processes=1)["reference"]["levels"]
        == (report["reference"]["levels"])
    )

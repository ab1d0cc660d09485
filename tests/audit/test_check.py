"""The audit of a small port: what the report says, what it is made of, and what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from rusbeir.audit import audit_port
from rusbeir.audit.port_checks.aligned import open_port
from rusbeir.audit.port_checks.cleaning import apply_cleaning, plan_cleaning
from rusbeir.audit.port_checks.gates import (
    collect_figures,
    find_failed_gates,
    list_figures,
    parse_gates,
    refuse_unknown,
)
from rusbeir.audit.port_checks.scores import chrf, count_chrf
from rusbeir.audit.port_checks.segment_checks import CHECKS
from rusbeir.datasets import load, write_audit_command
from rusbeir.errors import BackendError, BadInput, UnknownName
from rusbeir.jobs import Journal
from rusbeir.translation.translator import Flag
from tests.support.backwards import back
from tests.support.small_port import TRANSLATION, Fake, records, translated


def test_a_perfect_port(make_port, back_translator):
    folder = make_port()
    report = audit_port(folder, source=folder.parent / "small", back_translator=back_translator, processes=1)
    assert (report["n_documents"], report["n_queries"], report["n_segments"]) == (4, 2, 9)
    assert report["levels"]["queries"]["chrF++"] == 100
    assert report["levels"]["segments"]["mean"] == 100
    assert report["flagged"] == {"segments": 0, "share": 0}
    assert report["back_translators"] == ["back-1"]
    assert report["round_trip"]["kept"] == 1
    assert {row["query_id"] for row in records(folder / "qa" / "round-trip" / "queries.jsonl")} == {"q1", "q2"}
    back_docs = records(folder / "qa" / "round-trip" / "back" / "corpus.jsonl")
    source = records(folder.parent / "small" / "corpus.jsonl")
    assert [(doc["title"], doc["text"]) for doc in back_docs] == [(doc["title"], doc["text"]) for doc in source]
    assert json.loads((folder / "qa" / "report.json").read_bytes()) == json.loads(json.dumps(report))


def test_a_bad_translation_shows_where_it_hurts(make_port, back_translator):
    folder = make_port(answer=lambda text, nth: translated(text).replace("Гора", "Волк").replace("озеро", "заяц"))
    report = audit_port(folder, source=folder.parent / "small", back_translator=back_translator, processes=1)
    (worst, *_) = report["worst"]
    assert worst["source"] == "mountain lake morning"
    assert worst["back"] == "mountain hare morning"
    assert worst["chrF"] < 80
    rows = {row["query_id"]: row for row in records(folder / "qa" / "round-trip" / "queries.jsonl")}
    assert rows["q1"]["chrF"] == 100
    assert rows["q2"]["chrF"] == worst["chrF"]
    quarters = report["round_trip"]["quartiles"]["of the query"]
    assert [(row["n"], row["to"]) for row in quarters] == [(1, worst["chrF"]), (1, 100)]


def test_nothing_is_sent_twice(make_port, back_translator):
    folder = make_port()
    source = folder.parent / "small"
    first = audit_port(folder, source=source, back_translator=back_translator, processes=1)
    n_sent = len(back_translator.sent)
    assert audit_port(folder, source=source, back_translator=back_translator, processes=2) == first
    # When the port changes, only new segments are sent.
    lines = (folder / "queries.jsonl").read_text().replace("лёд тает", "лёд тает ночь")
    (folder / "queries.jsonl").write_text(lines)
    changed = audit_port(folder, source=source, back_translator=back_translator, processes=1)
    assert back_translator.sent[n_sent:] == ["лёд тает ночь"]
    assert changed["levels"]["queries"]["p5"] < 100


def test_what_has_no_back_translation_counts_as_it_is(make_port):
    from rusbeir.translation.translator import Failure

    folder = make_port()
    lines = []

    def answer(text: str, nth: int) -> object:
        return Failure("refused", "", False) if text == "лёд тает" else back(text)

    report = audit_port(
        folder, source=folder.parent / "small", back_translator=Fake(answer=answer), processes=1, tell=lines.append
    )
    assert any("1 of 9 segments have no back-translation" in line for line in lines)
    assert report["levels"]["queries"]["n"] == 2
    assert report["levels"]["queries"]["mean"] == 50


def test_the_port_is_read_once(make_port, back_translator, monkeypatch):
    folder = make_port()
    opened, open_for_real = [], Journal.open

    def open_journal(path, meta, **options):
        opened.append(path.relative_to(folder).as_posix())
        return open_for_real(path, meta)

    monkeypatch.setattr(Journal, "open", open_journal)
    audit_port(folder, source=folder.parent / "small", back_translator=back_translator, processes=1)
    assert opened == ["work/journal.sqlite", "qa/back/work/journal.sqlite"]
    # Only the journal is written, no dataset of segments.
    assert {path.name for path in (folder / "qa" / "back" / "work").iterdir()} <= {
        "journal.sqlite",
        "journal.sqlite.lock",
        "port.lock",
    }


class LowChrf:
    """A check of the caller's: the back-translation has little in common with the source."""

    def prepare(self, texts):
        return self if texts.translated_back else None

    def __call__(self, segments):
        backs, sources = zip(*((checked.back, checked.segment.source) for checked in segments), strict=True)
        scored = chrf(count_chrf(backs, sources))
        return [Flag("low-chrf", f"{score:.0f}") if score < 50 else None for score in scored]


def test_a_check_is_one_entry_of_the_table(make_port):
    """Its flag is counted, gated by, explained on the page and cleaned by; not applied, it has no figure to gate by."""
    folder = make_port()
    source = folder.parent / "small"
    checks = {**CHECKS, "low-chrf": LowChrf()}
    spoiled = Fake(answer=lambda text, nth: "Zzz" if text == "лёд тает" else back(text))
    gates = parse_gates("low-chrf<1%")
    report = audit_port(folder, source=source, back_translator=spoiled, checks=checks, gates=gates, processes=1)
    assert report["flags"]["low-chrf"] == {"segments": 1, "share": 1 / 9, "documents": 0, "queries": 1}
    assert report["gates"]["failed"] == ["low-chrf<1% does not hold: low-chrf is 11.11%"]
    assert "Flagged: low-chrf" in (folder / "qa" / "report.html").read_text()
    assert plan_cleaning(folder, flags=["low-chrf"], source=source)["queries"] == [{"id": "q1", "flags": ["low-chrf"]}]
    report = audit_port(folder, source=source, checks=checks, gates=gates, processes=1)
    assert "low-chrf" not in report["flags"]
    assert report["gates"]["failed"] == ["low-chrf<1% does not hold: low-chrf was not measured"]


def test_docs_explain_every_check():
    page = (Path(__file__).parents[2] / "docs" / "audit.md").read_text(encoding="utf-8")
    assert [name for name in CHECKS if f"| `{name}` |" not in page] == []


def test_a_folder_that_cannot_be_written(make_port):
    folder = make_port()
    shutil.rmtree(folder / "qa")
    (folder / "qa").write_text("")
    with pytest.raises(BackendError, match=r"Cannot write .*qa"):
        audit_port(folder, source=folder.parent / "small", processes=1)


def test_segments(make_port):
    folder = make_port()
    port = open_port(folder, source=folder.parent / "small")
    aligned = list(port.records())
    for record in aligned:
        for field in record.fields:
            assert "".join(part.source for part in field.parts) == field.source
            assert "".join(part.translation for part in field.parts) == field.translation
    assert [part.source for part in aligned[0].segments][1:] == ["Ice melts. Snow falls.", "Bear 5 kg", "Wolf 7 kg"]
    with Journal.open(folder / "work" / "journal.sqlite", {}) as journal:
        translators = journal.get_meta("translators")
        journal.set_meta({"translators": "{"})
    with pytest.raises(BadInput, match=r"work/journal\.sqlite: The journal is damaged"):
        list(port.records())
    with Journal.open(folder / "work" / "journal.sqlite", {}) as journal:
        journal.set_meta({"translators": translators})
    # Without the journal, segments are lines.
    shutil.move(folder / "work" / "journal.sqlite", folder / "gone")
    assert [part.source for part in next(port.records()).segments][1:] == [
        "Ice melts. Snow falls.",
        "- Bear 5 kg",
        "- Wolf 7 kg",
    ]


def test_languages_without_an_analyzer(make_port, back_translator):
    """The audit ended in a KeyError after the whole back-translation."""
    folder = make_port()
    for card in (folder.parent / "small" / "card.json", folder / "card.json"):
        card.write_text(card.read_text(encoding="utf-8").replace('"en"', '"tlh"'), encoding="utf-8")
    report = audit_port(folder, source=folder.parent / "small", back_translator=back_translator, processes=1)
    signatures = {name: row["signature"] for name, row in report["round_trip"]["rows"].items()}
    assert {name for name, signature in signatures.items() if "lang:tlh|tok:unicode" in signature} == {"source", "back"}


@pytest.mark.parametrize("splits", [["test"], {"test": 1}])
def test_a_damaged_card(make_port, splits):
    folder = make_port()
    card = json.loads((folder / "card.json").read_bytes())
    card["provenance"]["source"]["splits"] = splits
    (folder / "card.json").write_text(json.dumps(card), encoding="utf-8")
    with pytest.raises(BadInput, match=r"card\.json: provenance\.source\.splits is not an object of strings"):
        audit_port(folder, source=folder.parent / "small")


def test_without_back_translator(make_port):
    folder = make_port()
    report = audit_port(folder, source=folder.parent / "small", processes=1)
    assert report["levels"] == {}
    assert report["round_trip"] is None
    assert "chrF of the back-translation" not in (folder / "qa" / "report.html").read_text()


def test_what_is_not_a_port(tmp_path, make_port):
    folder = make_port()
    with pytest.raises(BadInput, match="is not a folder"):
        audit_port(tmp_path / "nowhere")
    with pytest.raises(BadInput, match="is not a port: no card"):
        audit_port(tmp_path / "small")
    (folder / "work" / "source.txt").write_text(str(tmp_path / "moved"))
    with pytest.raises(BadInput, match=r"port of 'moved', but its source cannot be read: .* Give the source with"):
        audit_port(folder)
    (folder / "work" / "source.txt").unlink()
    with pytest.raises(BadInput, match=r"no dataset of that name here\. Give the source with source="):
        audit_port(folder)
    with pytest.raises(BadInput, match="was not made from mini/en"):
        audit_port(folder, source="mini/en")
    with pytest.raises(BadInput, match="no query id in common"):
        audit_port(tmp_path / "small", source="mini/en")


@pytest.mark.parametrize("gate", ["chrf", "chrf>>5", "chrf>=", ">=5", "chrf>=5;flagged<1", "", "chrf>=5%%"])
def test_gates_that_do_not_parse(gate):
    with pytest.raises(BadInput, match="is not a condition"):
        parse_gates(gate)


@pytest.mark.parametrize(
    ("gate", "failed"),
    [
        ("chrf>=55", []),
        ("chrf>=55, flagged<=2%", ["flagged<=2% does not hold: flagged is 2.50%"]),
        ("chrf > 60.5", ["chrf > 60.5 does not hold: chrf is 60.5"]),
        ("chrf++.queries==50,refusal<=0", []),
        ("reference.bleu>=30,reference.chrf.queries>=60", ["reference.bleu>=30 does not hold: reference.bleu is 20"]),
        ("reference.chrf>=60", ["reference.chrf>=60 does not hold: reference.chrf was not measured"]),
        ("ndcg-kept>=95%", ["ndcg-kept>=95% does not hold: ndcg-kept is 90.00%"]),
    ],
)
def test_gates(gate, failed):
    report = {
        "flagged": {"segments": 5, "share": 0.025},
        "flags": {"refusal": {"share": 0.0}},
        "levels": {"documents": {"chrF": 60.5, "chrF++": 59, "mean": 61}, "queries": {"chrF": 51, "chrF++": 50}},
        "reference": {"levels": {"documents": {"n": 3, "BLEU": 20}, "queries": {"n": 2, "chrF": 60}}},
        "round_trip": {"kept": 0.9},
    }
    assert find_failed_gates(parse_gates(gate), collect_figures(report)) == failed
    known = list_figures(["refusal"], translated_back=True, compared=True)
    assert collect_figures(report).keys() <= set(known)
    with pytest.raises(UnknownName, match="Did you mean 'refusal'"):
        refuse_unknown(parse_gates("refusals<=0"), known)
    with pytest.raises(UnknownName, match="'chrf'"):
        refuse_unknown(parse_gates("chrf>5"), list_figures(["refusal"], translated_back=False, compared=False))
    assert find_failed_gates(parse_gates("chrf>5"), {}) == ["chrf>5 does not hold: chrf was not measured"]


@pytest.fixture
def damaged(make_port) -> Path:
    """A port in which d3 is a refusal, and q1 begins with a remark of the model."""
    folder = make_port()
    for name, old, new in [
        ("corpus.jsonl", 'Лёд тает. Снег падает."', 'Извините, но я не могу перевести этот текст."'),
        ("queries.jsonl", "лёд тает", "Вот перевод:\\n\\nлёд тает"),
    ]:
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new))
    return folder


def test_cleaning(damaged, tmp_path):
    source = tmp_path / "small"
    report = audit_port(damaged, source=source, processes=1)
    assert report["flags"]["refusal"] == {"segments": 1, "share": 1 / 9, "documents": 1, "queries": 0}
    assert report["flags"]["chat-prefix"]["queries"] == 1
    before = {path: path.read_bytes() for path in damaged.glob("*.jsonl")}
    plan = plan_cleaning(damaged, source=source)
    # d3 was the only relevant document of q2; q1 keeps d1.
    assert plan["documents"] == [{"id": "d3", "flags": ["refusal"]}]
    assert plan["queries"] == [{"id": "q2", "flags": ["no relevant document is left"]}]
    assert plan["repaired"] == [
        {"kind": "query", "id": "q1", "field": "query", "before": "Вот перевод:\n\nлёд тает", "after": "лёд тает"}
    ]
    assert plan["before"] == {"documents": 4, "queries": 2, "judgements": 3}
    assert plan["after"] == {"documents": 3, "queries": 1, "judgements": 1}
    card = apply_cleaning(damaged, tmp_path / "clean", source=source)
    assert {path: path.read_bytes() for path in damaged.glob("*.jsonl")} == before
    clean = load(tmp_path / "clean")
    assert clean.card == card
    assert clean.qrels == {"q1": {"d1": 2}}
    assert clean.queries == {"q1": "лёд тает"}
    assert [doc.doc_id for doc in clean.corpus] == ["d1", "d2", "d4"]
    assert records(tmp_path / "clean" / "corpus.jsonl")[0]["metadata"] == {"a": 1}
    assert clean.card.provenance["cleaned"]["before"] == plan["before"]
    # The cleaned port is a port.
    assert audit_port(tmp_path / "clean", source=source, processes=1)["flagged"]["segments"] == 0


def test_cleaning_refuses_what_was_not_checked_or_has_changed(damaged, tmp_path):
    source = tmp_path / "small"
    with pytest.raises(BadInput, match="has not been checked yet"):
        plan_cleaning(damaged, source=source)
    with pytest.raises(BadInput, match="has no cleaning plan"):
        apply_cleaning(damaged, tmp_path / "clean", source=source)
    audit_port(damaged, source=source, processes=1)
    with pytest.raises(UnknownName, match="No flag 'refused'"):
        plan_cleaning(damaged, flags=["refused"], source=source)
    with pytest.raises(BadInput, match="above 0"):
        plan_cleaning(damaged, share=0, source=source)
    plan_cleaning(damaged, source=source)
    with pytest.raises(BadInput, match="already exists"):
        apply_cleaning(damaged, tmp_path / "small", source=source)
    text = (damaged / "queries.jsonl").read_text()
    (damaged / "queries.jsonl").write_text(text.replace("гора", "река").replace("Гора", "река") + "")
    (damaged / "queries.jsonl").write_text(text.replace("утро", "ночь"))
    with pytest.raises(BadInput, match="before the port changed"):
        apply_cleaning(damaged, tmp_path / "clean", source=source)
    with pytest.raises(BadInput, match="has changed since"):
        plan_cleaning(damaged, source=source)
    assert not (tmp_path / "clean").exists()


def test_vocabulary_goes_back():
    assert [back(russian) for russian in TRANSLATION.values()] == list(TRANSLATION)


@pytest.mark.parametrize(
    ("card", "source", "words"),
    [
        ("{}", None, " --source SOURCE"),
        ('{"provenance": {"source": {"name": "small"}}}', None, ""),
        ('{"provenance": {"source": {"name": "small"}}}', "my source", " --source 'my source'"),
    ],
)
def test_a_command_names_the_source_that_no_card_names(tmp_path, card, source, words):
    """The source of a port that others made was given with an option, and the next command needs it, too."""
    (tmp_path / "card.json").write_text(card)
    command = write_audit_command("check", tmp_path, "--back-translator", "NAME", source=source)
    assert command == f"rusbeir audit check {tmp_path}{words} --back-translator NAME"

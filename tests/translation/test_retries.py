"""Segments of a finished port that are translated again, and the files that name them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from rusbeir.errors import BackendError, BadInput
from rusbeir.jobs import Journal
from rusbeir.translation.porting.api import port
from rusbeir.translation.segments.glossary import Glossary
from rusbeir.translation.translator import Capacity, Failure
from tests.support.small_port import Fake, add_split, dataset_bytes, failing, records, translated, write_source

SENTENCES = Capacity(max_items=3, mask="bracket", levels=("sentence",))


@pytest.fixture
def ported(tmp_path: Path) -> Path:
    """The folder of a port by Fake, one segment for each sentence, next to its source."""
    out = tmp_path / "out"
    port(write_source(tmp_path / "small"), to="ru", translator=Fake(capacity=SENTENCES), out=out)
    return out


def write_segments(tmp_path: Path, *rows: dict[str, Any]) -> Path:
    path = tmp_path / "segments.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def louder(text: str, nth: int) -> str:
    return translated(text).upper()


MELTS = {"kind": "document", "id": "d1", "field": "text", "segment": 1, "source": "Ice melts."}
LAKE = {"kind": "query", "id": "q2"}


def test_only_what_the_file_names_is_translated_again(ported, tmp_path):
    other = Fake(answer=louder, signature="other-1")
    path = write_segments(tmp_path, MELTS, LAKE)
    report = port(tmp_path / "small", to="ru", translator=other, out=ported, retry_segments=path)
    assert sorted(other.sent) == ["Ice melts.", "mountain lake morning"]
    assert report["retried"] == {"changed": 2, "same": 0, "failed": 0}
    texts = {row["_id"]: row["text"] for row in records(ported / "corpus.jsonl")}
    # The same sentence is one segment, wherever it is.
    assert texts["d1"] == "ЛЁД ТАЕТ. Снег падает.\n\n- Медведь 5 kg\n- Волк 7 kg\n"
    assert texts["d3"] == "ЛЁД ТАЕТ. Снег падает."
    assert records(ported / "qa" / "retried.jsonl") == [
        {"source": "Ice melts.", "before": "Лёд тает.", "after": "ЛЁД ТАЕТ."},
        {"source": "mountain lake morning", "before": "гора озеро утро", "after": "ГОРА ОЗЕРО УТРО"},
    ]
    card = json.loads((ported / "card.json").read_text())
    assert [(row["signature"], row["segments"]) for row in card["provenance"]["translators"]] == [
        ("fake-1", 9),
        ("other-1", 2),
    ]
    # The command of the beginning asks nothing and keeps the new texts.
    before, fake = dataset_bytes(ported), Fake(capacity=SENTENCES)
    port(tmp_path / "small", to="ru", translator=fake, out=ported)
    assert fake.sent == []
    assert dataset_bytes(ported) == before


def test_the_same_translator_is_asked_again_each_time(ported, tmp_path):
    path = write_segments(tmp_path, LAKE)
    for nth in range(1, 4):
        fake = Fake(answer=lambda text, _, nth=nth: f"{translated(text)} {nth}", capacity=SENTENCES)
        port(tmp_path / "small", to="ru", translator=fake, out=ported, retry_segments=path)
        assert fake.sent == ["mountain lake morning"]
        assert records(ported / "queries.jsonl")[1]["text"] == f"гора озеро утро {nth}"


def test_what_fails_keeps_its_translation_and_is_asked_again_alone(ported, tmp_path):
    path = write_segments(tmp_path, MELTS, LAKE)
    refusing = Fake(answer=failing("refused", "mountain", retry=False), signature="other-1")
    report = port(tmp_path / "small", to="ru", translator=refusing, out=ported, retry_segments=path)
    assert report["retried"] == {"changed": 0, "same": 1, "failed": 1}
    assert records(ported / "queries.jsonl")[1]["text"] == "гора озеро утро"
    other = Fake(answer=louder, signature="other-1")
    report = port(tmp_path / "small", to="ru", translator=other, out=ported, retry_segments=path)
    assert (other.sent, report["retried"]["changed"]) == (["mountain lake morning"], 1)


def test_a_stop_loses_neither_old_nor_new_translations(ported, tmp_path):
    path, before = write_segments(tmp_path, MELTS, LAKE), dataset_bytes(ported)

    def stop(text: str, nth: int) -> str | Failure:
        if "mountain" in text:
            raise BackendError("the line is dead")
        return louder(text, nth)

    capacity = Capacity(max_items=1, mask="bracket")
    with pytest.raises(BackendError, match="the line is dead"):
        port(
            tmp_path / "small", to="ru", translator=Fake(answer=stop, signature="other-1", capacity=capacity),
            out=ported, retry_segments=path,
        )  # fmt: skip
    assert dataset_bytes(ported) == before
    other = Fake(answer=louder, signature="other-1", capacity=capacity)
    port(tmp_path / "small", to="ru", translator=other, out=ported, retry_segments=path)
    assert other.sent == ["mountain lake morning"]
    assert records(ported / "corpus.jsonl")[2]["text"] == "ЛЁД ТАЕТ. Снег падает."


def test_another_cut_of_the_same_segments(ported, tmp_path):
    """A chain whose parts take texts of other sizes: what a part of a segment lacks leaves it as it was."""
    path = write_segments(tmp_path, {"kind": "document", "id": "d1", "field": "text"})
    chain = [
        Fake(answer=failing("no-entry", "Bear", retry=False), signature="a", capacity=SENTENCES),
        Fake(answer=louder, signature="b"),
    ]
    report = port(
        tmp_path / "small", to="ru", translator=chain, out=ported, retry_segments=path, export=path.with_suffix(".tsv")
    )
    assert report["retried"] == {"changed": 1, "same": 3, "failed": 0}
    assert records(ported / "corpus.jsonl")[0]["text"] == "Лёд тает. Снег падает.\n\n- МЕДВЕДЬ 5 kg\n- Волк 7 kg\n"
    pairs = path.with_suffix(".tsv").read_text().splitlines()
    assert "Bear 5 kg\tМЕДВЕДЬ 5 kg" in pairs
    assert "Bear 5 kg\tМедведь 5 kg" not in pairs


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["{kind: query}"], r"segments.jsonl:1: .*not JSON.*correct it"),
        ([json.dumps(LAKE), '{"kind": "title", "id": "d1"}'], r"segments.jsonl:2: .*kind is 'title'"),
        (['{"kind": "query"}'], r"segments.jsonl:1: .*id is missing"),
        ([json.dumps(LAKE), '{"kind": "query", "id": "q9"}'], r"segments.jsonl:2: small has no query 'q9'.*Remove"),
        (['{"kind": "document", "id": "q2"}'], r"segments.jsonl:1: small has no document 'q2'"),
        (['{"kind": "document", "id": "d4", "field": "text"}'], r"segments.jsonl:1: .*'d4' has no field 'text'"),
        (['{"kind": "document", "id": "d1", "segment": 1}'], r"segments.jsonl:1: .*several fields; add \"field\""),
        ([json.dumps({**MELTS, "segment": 9})], r"segments.jsonl:1: .*has 4 segments there"),
        ([json.dumps({**MELTS, "segment": 2})], r"segments.jsonl:1: segment 2 .*'Snow falls\.' in this port, not 'Ice"),
        ([], r"segments.jsonl names no segment"),
    ],
)  # fmt: skip
def test_files_that_name_no_segments(ported, tmp_path, lines, message):
    path = tmp_path / "segments.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines))
    before = dataset_bytes(ported)
    fake = Fake(signature="other-1")
    with pytest.raises(BadInput, match=message):
        port(tmp_path / "small", to="ru", translator=fake, out=ported, retry_segments=path)
    assert fake.sent == []
    assert dataset_bytes(ported) == before


def test_there_must_be_a_port(ported, tmp_path):
    path = write_segments(tmp_path, LAKE)
    with pytest.raises(BadInput, match="new contains no port, so there is nothing to retry"):
        port(tmp_path / "small", to="ru", translator=Fake(), out=tmp_path / "new", retry_segments=path)
    with Journal.open(tmp_path / "killed" / "work" / "journal.sqlite", {}):
        pass  # A kill came before anything was noted.
    with pytest.raises(BadInput, match=r"never started|different settings"):
        port(tmp_path / "small", to="ru", translator=Fake(), out=tmp_path / "killed", retry_segments=path)
    with pytest.raises(BadInput, match="two steps"):
        port(tmp_path / "small", to="ru", translator=Fake(), out=ported, retry_segments=path, retry_failed=True)


def write_bare_source(tmp_path: Path) -> Path:
    """A source of three splits whose language no card names."""
    source = add_split(write_source(tmp_path / "bare"))
    (source / "card.json").unlink()
    shutil.copy(source / "qrels" / "train.tsv", source / "qrels" / "dev.tsv")
    return source


@pytest.mark.parametrize(
    "choices",
    [
        {},
        {"split": "test"},
        {"all_queries": True},
        {"fields": ("text", "query")},
        {"sample": 2, "seed": 7},
        {"glossary": Glossary({"Mountain": "Гора-гора", "kg": None})},
        {"split": "test", "sample": 3, "fields": ("query",)},
    ],
    ids=lambda choices: "-".join(choices) or "language",
)
def test_a_retry_need_not_repeat_how_the_port_was_made(tmp_path, choices):
    """Only the segments differ afterwards, although Wolf stays untranslated and no option but the file is given."""
    source, out = write_bare_source(tmp_path), tmp_path / "out"

    def leave(text: str, nth: int) -> str:
        return text if "Wolf" in text else translated(text)

    first = Fake(answer=leave, capacity=SENTENCES)
    port(source, to="ru", translator=first, out=out, language="en", keep_untranslated=True, **choices)
    before = dataset_bytes(out)
    again = Fake(answer=louder, signature="other-1", capacity=SENTENCES)
    report = port(source, to="ru", translator=again, out=out, retry_segments=write_segments(tmp_path, LAKE))
    assert again.sent == ["mountain lake morning"]
    assert report["retried"] == {"changed": 1, "same": 0, "failed": 0}
    after = dataset_bytes(out)
    different = {name for name in before if before[name] != after[name]}
    assert before.keys() == after.keys()
    assert different <= {"queries.jsonl", "card.json", "qa/summary.json", "qa/flagged.jsonl"}


def test_what_a_retry_is_told_counts(tmp_path):
    source, out = write_bare_source(tmp_path), tmp_path / "out"
    port(source, to="ru", translator=Fake(), out=out, language="en", sample=2)
    path = write_segments(tmp_path, LAKE)
    with pytest.raises(BadInput, match=r"sample was '2 \(seed 0\)' and is now '3 \(seed 0\)'"):
        port(source, to="ru", translator=Fake(signature="b"), out=out, retry_segments=path, sample=3)


def test_all_retries_are_on_file(ported, tmp_path, monkeypatch):
    for nth, row in enumerate((MELTS, LAKE)):
        fake = Fake(answer=louder, signature=f"other-{nth}", capacity=SENTENCES)
        port(tmp_path / "small", to="ru", translator=fake, out=ported, retry_segments=write_segments(tmp_path, row))
    changes = [
        {"source": "Ice melts.", "before": "Лёд тает.", "after": "ЛЁД ТАЕТ."},
        {"source": "mountain lake morning", "before": "гора озеро утро", "after": "ГОРА ОЗЕРО УТРО"},
    ]
    assert records(ported / "qa" / "retried.jsonl") == changes
    # A kill after the file was written, and before the journal was, leads to no second line.
    path = write_segments(tmp_path, {"kind": "query", "id": "q1"})
    quiet = Fake(answer=lambda text, nth: translated(text) + "!", signature="other-2", capacity=SENTENCES)
    record = Journal.record
    monkeypatch.setattr(Journal, "record", lambda journal, rows: _stop_at_changes(record, journal, rows))
    with pytest.raises(KeyboardInterrupt):
        port(tmp_path / "small", to="ru", translator=quiet, out=ported, retry_segments=path)
    monkeypatch.undo()
    port(tmp_path / "small", to="ru", translator=quiet, out=ported, retry_segments=path)
    assert records(ported / "qa" / "retried.jsonl") == [
        *changes, {"source": "ice melts", "before": "лёд тает", "after": "лёд тает!"},
    ]  # fmt: skip


def _stop_at_changes(record: Any, journal: Journal, rows: Any) -> None:
    if any(row.worker == "retried" for row in rows):
        raise KeyboardInterrupt
    record(journal, rows)

"""`rusbeir validity --attribute` and `rusbeir port --retry-segments`: from a damaged port to a repaired one."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from rusbeir.translation.porting.api import port
from tests.support.command_line import one_line
from tests.support.small_port import records

MINI = Path(__file__).parent.parent.parent / "rusbeir" / "datasets" / "mini"


@pytest.fixture
def damaged(tmp_path: Path) -> tuple[Path, Path, set[str]]:
    """The folder of mini in Russian with the wrong translation of 20 queries, its good memory, the ids of these."""
    pairs = dict(line.split("\t") for line in (MINI / "memory.en-ru.tsv").read_text(encoding="utf-8").splitlines())
    queries = {row["_id"]: row["text"] for row in records(MINI / "en" / "queries.jsonl")}
    wrong = random.Random(1).sample(sorted(queries), 20)
    taken = [queries[query_id] for query_id in wrong]
    damage = {text: pairs[other] for text, other in zip(taken, taken[1:] + taken[:1], strict=True)}
    for name, memory in (("good", pairs), ("bad", {**pairs, **damage})):
        lines = [f"{source}\t{target}\n" for source, target in memory.items()]
        (tmp_path / f"{name}.tsv").write_text("".join(lines), encoding="utf-8")
    (tmp_path / "back.tsv").write_text("".join(f"{b}\t{a}\n" for a, b in pairs.items()), encoding="utf-8")
    port("mini/en", to="ru", translator="memory", memory=tmp_path / "bad.tsv", out=tmp_path / "mini-ru")
    return tmp_path / "mini-ru", tmp_path / "good.tsv", set(wrong)


def test_a_damaged_port_is_repaired(rusbeir, damaged, tmp_path):
    folder, memory, wrong = damaged
    back = ["--back-translator", "memory", "--memory", tmp_path / "back.tsv"]
    assert rusbeir("audit", "check", folder, *back).code == 0
    validity = ["validity", "--attribute", "--pair", f"mini/en={folder}", "--system", "bm25"]
    report = json.loads(rusbeir(*validity, "--json").out)
    (attribution,) = report["attributions"]
    assert (attribution["verdict"], attribution["translated_back"]) == ("queries", True)
    # Two sentences that became one come back as one of them.
    assert attribution["documents"]["value"] == pytest.approx(0, abs=0.005)
    named = {segment["id"] for segment in report["segments"] if segment["kind"] == "query"}
    # A few of them cost nothing: bm25 found nothing for them anyway.
    assert len(wrong) - 5 <= len(named) <= len(report["segments"]) <= len(wrong)
    assert named <= wrong
    gains = [segment["gain"] for segment in report["segments"]]
    assert gains == sorted(gains, reverse=True)
    assert records(Path(report["file"])) == report["segments"]
    printed = rusbeir(*validity)
    assert "costs more than that of the documents" in printed.out
    assert f"--retry-segments {report['file']}" in printed.err
    retry = ["port", "mini/en", "--to", "ru", "--out", folder, "--translator", "memory", "--memory", memory]
    assert f"{len(named)} segments have a new translation" in rusbeir(*retry, "--retry-segments", report["file"]).err
    good = {row["_id"]: row["text"] for row in records(MINI / "ru" / "queries.jsonl")}
    repaired = {row["_id"]: row["text"] for row in records(folder / "queries.jsonl")}
    assert {query_id for query_id in good if good[query_id] != repaired[query_id]} == wrong - named
    outcome = rusbeir(*validity)
    assert outcome.code == 2
    assert one_line(outcome.err, ["has changed since it was translated back", "--back-translator"])


def test_segments_that_a_translator_lacks(rusbeir, damaged, tmp_path):
    folder, memory, _ = damaged
    (tmp_path / "segments.jsonl").write_text('{"kind": "query", "id": "q-law-04"}\n')
    (tmp_path / "one.tsv").write_text("x\ty\n")
    retry = [
        "port",
        "mini/en",
        "--to",
        "ru",
        "--out",
        folder,
        "--translator",
        "memory",
        "--retry-segments",
        "segments.jsonl",
    ]
    outcome = rusbeir(*retry, "--memory", "one.tsv")
    assert outcome.code == 1
    assert "1 failed and keep their old one" in outcome.err
    (tmp_path / "segments.jsonl").write_text('{"kind": "query", "id": "q-law-99"}\n')
    outcome = rusbeir(*retry, "--memory", memory)
    assert outcome.code == 2
    assert one_line(outcome.err, ["segments.jsonl:1", "no query 'q-law-99'", "Remove the line"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--attribute"], "give one --pair ORIGINAL=PORT, --system, and no scores"),
        (["results", "--attribute", "--pair", "mini/en=mini/ru"], "and no scores"),
        (["--pair", "mini/en=mini/ru"], "Name scores"),
        (["results", "--pair", "mini/en=mini/ru", "--system", "bm25"], "--system belongs to --attribute"),
        (["--attribute", "--pair", "mini/en=mini/ru"], "mini/ru has no back-translation"),
    ],
)
def test_calls_that_are_wrong(rusbeir, arguments, message):
    outcome = rusbeir("validity", *arguments)
    assert outcome.code == 2
    assert one_line(outcome.err, [message])

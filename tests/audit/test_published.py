"""The audit of ports that others made: each planted fault is found, and nothing in a good port."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from rusbeir.audit import check_published
from rusbeir.audit.port_checks.gates import parse_gates
from rusbeir.audit.published_ports.features import find_skeleton
from rusbeir.datasets import write_beir
from rusbeir.errors import BadInput, UnknownName
from rusbeir.evaluation.significance import detectable_deviations
from rusbeir.translation.checks.checks import doubled
from rusbeir.translation.translator import Segment
from rusbeir.types import Dataset, Doc
from tests.support.small_port import records

N_DOCS, N_QUERIES = 120, 40
WORDS = [
    first + second + third
    for first in ("ba", "ko", "mi", "tu")
    for second in "lnrst"
    for third in ("del", "fom", "gar")
]
LETTERS = str.maketrans("abdefgiklmnorstu", "оцжыфхвмнзрещпкл")


def translate(text: str) -> str:
    """The text in a language of its own: each word has its translation, and shares no letter with it."""
    return text.translate(LETTERS)


def make_texts() -> tuple[dict[str, str], dict[str, str]]:
    draw = random.Random(0)
    docs = {f"d{n}": f"{' '.join(draw.choices(WORDS, k=15))}." for n in range(N_DOCS)}
    queries = {f"q{n}": " ".join(docs[f"d{n}"].split()[:9]) for n in range(N_QUERIES)}
    return docs, queries


def write(folder: Path, docs: dict[str, str], queries: dict[str, str], language: str, **qrels: dict[str, int]) -> Path:
    judged = {query_id: qrels.get(query_id, {f"d{query_id[1:]}": 1}) for query_id in queries}
    write_beir(
        Dataset.of([Doc(*doc) for doc in docs.items()], queries, judged, language=language, name=folder.name), folder
    )
    return folder


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write(tmp_path / "source", *make_texts(), "en")


@pytest.fixture
def translated() -> tuple[dict[str, str], dict[str, str]]:
    docs, queries = make_texts()
    return {key: translate(text) for key, text in docs.items()}, {key: translate(text) for key, text in queries.items()}


def test_a_good_port(source, translated, tmp_path):
    report = check_published(
        source, write(tmp_path / "port", *translated, "ru"), out=tmp_path / "qa", processes=1,
        gates=parse_gates("lost<=0,collapse<=0,drift<=0,dropped<=0,detectable<=1,twins<=0"),
    )  # fmt: skip
    assert report["gates"]["failed"] == []
    assert report["integrity"]["sentences"] == []
    assert report["integrity"]["lengths"]["text"]["median"] == 1
    assert json.loads((tmp_path / "qa" / "report.json").read_bytes()) == json.loads(json.dumps(report))
    assert "Nothing is lost" in (tmp_path / "qa" / "report.html").read_text()
    # Again, into the same folder.
    assert check_published(source, tmp_path / "port", out=tmp_path / "qa", processes=1)["gates"] is None


def test_every_fault_is_found(source, translated, tmp_path):
    docs, queries = translated
    del docs["d1"], docs["d2"], queries["q3"]
    docs["extra"] = docs["d4"] + " "
    docs["d5"], docs["d6"], docs["d7"] = docs["d6"], docs["d7"], docs["d5"]
    queries["q20"], queries["q30"] = queries["q30"], queries["q20"]
    docs["d8"] = docs["d9"]
    docs["d100"] = docs["d10"].upper()
    queries["q11"] = ""
    docs["d12"] = f"{docs['d12']} {docs['d12']}"
    port = write(tmp_path / "port", docs, queries, "ru", q1={"d1": 1, "d50": 0})
    report = check_published(source, port, out=tmp_path / "qa", processes=1)
    integrity = report["integrity"]
    assert integrity["documents"] == {
        "source": 120, "port": 119, "lost": 2, "added": 1, "lost_ids": ["d1", "d2"], "added_ids": ["extra"]
    }  # fmt: skip
    assert (integrity["queries"]["lost"], integrity["queries"]["lost_ids"]) == (1, ["q3"])
    assert (integrity["judgements"]["missing"], integrity["judgements"]["missing_ids"]) == (2, ["d1", "d2"])
    assert integrity["dropped"]["ids"] == {
        "q1": "no relevant document is left", "q2": "no relevant document is left", "q3": "lost"
    }  # fmt: skip
    assert integrity["dropped"]["detectable_ratio"] == pytest.approx(
        detectable_deviations(37) / detectable_deviations(40)
    )
    assert integrity["collapse"]["documents"]["texts"] == 4
    assert {text["id"] for group in integrity["collapse"]["documents"]["examples"] for text in group["texts"]} == {
        "d8", "d9", "d10", "d100"
    }  # fmt: skip
    twins = [{"query": "q8", "relevant": "d8", "twins": ["d9"]}, {"query": "q9", "relevant": "d9", "twins": ["d8"]},
             {"query": "q10", "relevant": "d10", "twins": ["d100"]}]  # fmt: skip
    assert records(tmp_path / "qa" / "twins.jsonl") == twins
    drifted = {(row["record_id"], row["other_id"]) for row in integrity["drift"]["examples"]}
    assert drifted == {("d5", "d6"), ("d6", "d7"), ("d7", "d5"), ("q20", "q30"), ("q30", "q20")}
    assert report["flags"]["empty"]["queries"] == 1
    assert report["flags"]["doubled"]["documents"] == 1
    page = (tmp_path / "qa" / "report.html").read_text()
    assert "Translate these texts again" in page
    assert "that became one text" in page


def test_rows_that_moved(source, translated, tmp_path):
    """From one row on, each text is that of the next; the text of the last row is of nothing in the source."""
    docs, queries = translated
    for n in range(40, 50):
        docs[f"d{n}"] = docs[f"d{n + 1}"]
    docs["d50"] = " ".join(word[::-1] for word in docs["d0"].split())
    report = check_published(source, write(tmp_path / "port", docs, queries, "ru"), out=tmp_path / "qa", processes=1)
    drifted = {(row["record_id"], row["other_id"]) for row in records(tmp_path / "qa" / "drift.jsonl")}
    assert drifted == {*((f"d{n}", f"d{n + 1}") for n in range(40, 50)), ("d50", None)}
    assert report["integrity"]["drift"]["documents"] == 11
    assert "fits no source" in (tmp_path / "qa" / "report.html").read_text()


@pytest.mark.parametrize(
    ("change", "message", "reason"),
    [
        ({"language": "en"}, "both in 'en'", "the language of the source"),
        ({"rename": "x"}, "no query id in common", "other ids"),
        ({"out": "source"}, "holds something else", "a folder with other files"),
        ({"split": "dev"}, "No split 'dev'", "a split that is not in both"),
    ],
)
def test_bad_input(source, translated, tmp_path, change, message, reason):
    docs, queries = translated
    queries = {f"{change.get('rename', '')}{key}": text for key, text in queries.items()}
    if "rename" in change:
        port = tmp_path / "port"
        write_beir(
            Dataset.of(
                [Doc(*doc) for doc in docs.items()], queries, {key: {"d1": 1} for key in queries}, language="ru"
            ),
            port,
        )
    else:
        port = write(tmp_path / "port", docs, queries, change.get("language", "ru"))
    with pytest.raises((BadInput, UnknownName), match=message):
        check_published(source, port, out=tmp_path / change.get("out", "qa"), split=change.get("split"))


def test_the_source_itself(source, translated, tmp_path):
    copy = write(tmp_path / "copy", *make_texts(), "ru")
    with pytest.raises(BadInput, match="is the source itself"):
        check_published(source, copy, out=tmp_path / "qa")


@pytest.mark.parametrize(
    ("source", "answer", "flagged", "reason"),
    [
        ("A red cat.", "Рыжий кот. Рыжий кот.", True, "twice"),
        ("A red cat.", "Рыжий кот\nрыжий кот!", True, "case and punctuation differ"),
        ("A red cat.", "Рыжий кот.", False, "once"),
        ("Bora Bora", "Бора-Бора", False, "so is the source"),
        ("mum", "мама", False, "a short word"),
        ("Row, row, row", "Греби, греби, греби", False, "three times is not twice"),
        ("a tiny little cat", "маленький-маленький", True, "as if the text were said twice"),
    ],
)
def test_doubled(source, answer, flagged, reason):
    assert (doubled(Segment(source, answer, "en", "ru")) is not None) is flagged


@pytest.mark.parametrize(
    ("word", "other", "same", "reason"),
    [
        ("panthers", "пантерс", True, "a name"),
        ("luther", "лютер", True, "th"),
        ("shelly", "шелли", True, "sh and a double letter"),
        ("inflammation", "inflamación", True, "a loanword with an accent"),
        ("water", "вода", False, "another word"),
        ("東京都庁前駅", "東京都庁", True, "the first characters of a script without consonants"),
    ],
)
def test_skeletons(word, other, same, reason):
    assert (find_skeleton(word) == find_skeleton(other)) is same

"""`rusbeir port`: what it prints, its exit codes, and one line for everything that can be wrong."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import rusbeir as package
from tests.support.command_line import one_line
from tests.support.small_port import DOCS, records, translated, write_source

REPOSITORY = Path(__file__).parent.parent.parent
MINI_MEMORY = Path(package.__file__).parent / "datasets" / "mini" / "memory.en-ru.tsv"


@pytest.fixture
def apertium(needs):
    needs("apertium", shutil.which("apertium") is not None, "apt-get install apertium-eng-spa")


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A small English source, with a memory of it beside it."""
    source = write_source(tmp_path / "small")
    texts = {text for doc in DOCS for text in (doc["title"], doc["text"]) if text}
    texts |= {query["text"] for query in records(source / "queries.jsonl")}
    lines = [json.dumps({"source": text, "target": translated(text)}) + "\n" for text in sorted(texts)]
    (tmp_path / "memory.jsonl").write_text("".join(lines))
    (tmp_path / "short.jsonl").write_text("".join(line for line in lines if "Rain" not in line))
    return source


MEMORY = ["--to", "ru", "--translator", "memory", "--memory", "memory.jsonl", "--out", "out"]


def test_port_and_bench(rusbeir, small):
    outcome = rusbeir("port", small, *MEMORY)
    assert outcome.code == 0
    assert "small@ru" in outcome.out
    assert outcome.err.index("rusbeir audit check out") < outcome.err.index("rusbeir bench out"), "the next step first"
    row = json.loads(rusbeir("bench", "out", "--json").out)["rows"][0]
    assert (row["dataset"], row["language"], row["n_docs"]) == ("small@ru", "ru", 4)


@pytest.mark.parametrize("spelling", ["russian", "Russian", "rus", "RU"])
def test_the_language_of_a_port_is_its_tag(rusbeir, small, spelling):
    outcome = rusbeir("port", small, *MEMORY, "--to", spelling, "--json")
    (report,) = json.loads(outcome.out)["ports"]
    assert (report["to"], report["name"]) == ("ru", "small@ru")
    assert json.loads(Path("out/card.json").read_text())["language"] == "ru"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--to", "español", "--translator", "apertium"], "No language 'español'. Did you mean 'es'?"),
        (["--to", "xx"], "No language 'xx'. Languages are named by BCP 47"),
        (["--lang", "englisch"], "No language 'englisch'. Did you mean 'en'?"),
    ],
)
def test_a_language_that_does_not_exist(rusbeir, small, arguments, message):
    outcome = rusbeir("port", small, *MEMORY, *arguments)
    assert outcome.code == 2
    assert one_line(outcome.err, [message])
    assert "apt-get" not in outcome.err


def test_apertium_is_asked_for_the_language_of_that_name(rusbeir, small, apertium):
    outcome = rusbeir("port", small, "--to", "spanish", "--translator", "apertium", "--out", "out", "--json")
    assert json.loads(outcome.out)["ports"][0]["to"] == "es"


def test_use_of_a_glossary_is_said_before_anything_is_sent(rusbeir, small):
    """Ice is in two documents and a query, wolf in a document; yeti is nowhere."""
    Path("terms.csv").write_text("ice,лёд\nWolf,=\nyeti,йети\n", encoding="utf-8")
    outcome = rusbeir("port", small, *MEMORY, "--glossary", "terms.csv")
    assert outcome.code == 0
    said = outcome.err.index("Glossary: 3 terms, in 3 texts.")
    assert said < outcome.err.index("1 of its 3 terms in no text: 'yeti'.") < outcome.err.index("Check it:")
    (report,) = json.loads(rusbeir("port", small, *MEMORY, "--glossary", "terms.csv", "--json").out)["ports"]
    assert report["glossary"] == {"terms": 3, "texts": 3, "unused": ["yeti"]}
    outcome = rusbeir("port", small, *MEMORY, "--glossary", "terms.csv", "--dry-run")
    assert "in no text: 'yeti'" in outcome.err
    Path("terms.tsv").write_text("ice,лёд\n", encoding="utf-8")
    outcome = rusbeir("port", small, *MEMORY, "--glossary", "terms.tsv")
    assert outcome.code == 2
    assert one_line(outcome.err, ["terms.tsv:1: 'ice,лёд' is one column", "are read from a .csv"])


@pytest.mark.parametrize("source", [[], ["--source", "small"]], ids=["recorded", "given"])
def test_a_source_without_a_card_goes_through_the_audit(rusbeir, small, tmp_path, source):
    (small / "card.json").unlink()
    assert rusbeir("port", "small", "--lang", "en", *MEMORY).code == 0
    files = [path for path in Path("out").rglob("*") if path.suffix in (".json", ".jsonl", ".tsv")]
    assert not any(str(tmp_path).encode() in path.read_bytes() for path in files), "a path of this machine"
    for verb in (["check", "out"], ["sheet", "out", "-n", "4"], ["clean", "out", "--apply"]):
        outcome = rusbeir("audit", *verb, *source)
        assert outcome.code == 0, outcome.err
    assert rusbeir("audit", "check", "out-clean", "--source", "small").code == 0
    assert not (small / "card.json").exists()


def test_json(rusbeir, small):
    document = json.loads(rusbeir("port", small, *MEMORY, "--json").out)
    (report,) = document["ports"]
    assert report["missing"] == 0
    assert report["name"] == "small@ru"
    assert report["fingerprint"] == json.loads(Path("out/card.json").read_text())["fingerprint"]


def test_missing_translations(rusbeir, small):
    arguments = [part.replace("memory.jsonl", "short.jsonl") for part in MEMORY]
    outcome = rusbeir("port", small, *arguments)
    assert outcome.code == 1
    assert one_line(outcome.err, ["1 of 7 segments", "1 no-entry", "--retry-failed --translator OTHER", "out/qa"])
    assert not Path("out/corpus.jsonl").exists()
    document = json.loads(rusbeir("port", small, *arguments, "--json").out)
    assert document["ports"][0]["missing"] == 1
    again = rusbeir("port", small, *MEMORY, "--retry-failed")
    assert again.code == 0
    assert records(Path("out/corpus.jsonl"))[1]["text"] == "Дождь падает https://a.org/b. Река ночь."
    # without a translator: those that the folder's port had last are known by name
    assert rusbeir("port", small, "--to", "ru", "--out", "out", "--retry-failed").code == 2


def test_several_datasets(rusbeir, small, tmp_path):
    outcome = rusbeir("port", small, "mini/en", *MEMORY)
    assert outcome.code == 1, "the memory knows nothing of mini"
    assert one_line(outcome.err, ["segments of mini/en have no translation"])
    folder = str(small).replace("/", "-").strip("-")
    assert (tmp_path / "out" / folder / "corpus.jsonl").exists()
    assert (tmp_path / "out" / "mini-en" / "qa" / "failures.jsonl").exists()


def test_dry_run(rusbeir, small, monkeypatch):
    for variable in ("GOOGLE_API_KEY", "DEEPL_AUTH_KEY", "GOOGLE_APPLICATION_CREDENTIALS"):
        monkeypatch.delenv(variable, raising=False)
    outcome = rusbeir("port", small, "--to", "ru", "--translator", "google-cloud,deepl", "--dry-run", "--json")
    assert outcome.code == 0
    rows = json.loads(outcome.out)["estimates"]
    assert [row["translator"] for row in rows] == ["google-cloud", "deepl"]
    assert rows[0]["volume"] == {"texts": 8, "segments": 9, "unique": 8, "chars": 134}
    assert rows[0]["cost"] == pytest.approx(134 * 20 / 1e6)
    assert rows[0]["requests"] == 1
    assert rows[1]["sends"] == "DeepL"
    table = rusbeir("port", small, "--to", "ru", "--translator", "memory", "--memory", "memory.jsonl", "--dry-run")
    assert "nobody" in table.out
    assert "Nothing was sent." in table.err
    assert not Path("out").exists()


def test_a_local_translator_is_timed_and_used(rusbeir, small, apertium):
    row = json.loads(rusbeir("port", small, "--to", "es", "--translator", "apertium", "--dry-run", "--json").out)
    assert row["estimates"][0]["seconds"] > 0
    assert rusbeir("port", small, "--to", "es", "--translator", "apertium", "--out", "out").code == 0


def test_who_receives_what_is_said_before(rusbeir, small, monkeypatch, needs):
    needs("openai", find_spec("openai") is not None, "pip install 'rusbeir[llm]'")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    options = ["--option", "breaker=1", "--option", "input-price=1", "--option", "output-price=2"]
    outcome = rusbeir("port", small, "--to", "ru", "--translator", "llm", "--llm", "m", "--out", "out", *options)
    assert outcome.code == 1
    assert "llm: the server at OPENAI_BASE_URL receives 8 texts of 134 characters; less than 0.01 USD." in outcome.err
    assert one_line(outcome.err, ["everything finished is saved"])
    assert "sk-x" not in outcome.err


def test_export_and_fields(rusbeir, small):
    outcome = rusbeir("port", small, *MEMORY, "--fields", "title,query", "--export", "pairs.tsv")
    assert outcome.code == 0
    assert "Water boils\tВода кипит\n" in Path("pairs.tsv").read_text(encoding="utf-8")


def test_the_other_datasets_go_on(rusbeir, small, tmp_path):
    """One that cannot be read is named with the language, in a line of its own."""
    outcome = rusbeir("port", "no/such", small, *MEMORY)
    assert outcome.code == 1
    assert one_line(outcome.err, ["no/such to ru: No dataset 'no/such'"])
    folder = str(small).replace("/", "-").strip("-")
    assert (tmp_path / "out" / folder / "card.json").exists()


def test_everything_that_is_missing_is_said_at_once(rusbeir):
    assert one_line(rusbeir("port").err, ["Missing: DATASET..., --to. Example: rusbeir port", "--translator", "--out"])
    outcome = rusbeir("port", "mini/en", "--to", "ru")
    assert one_line(outcome.err, ["--translator", "and a folder for the port", "--out"])


def test_the_script_is_the_same(small, tmp_path):
    script = REPOSITORY / "scripts" / "translate_beir.py"
    done = subprocess.run(
        [sys.executable, script, "small", *MEMORY, "--json"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["ports"][0]["name"] == "small@ru"


BOMB = """<?xml version="1.0"?><!DOCTYPE tmx [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>
<tmx version="1.4"><body><tu><tuv xml:lang="en"><seg>&b;</seg></tuv></tu></body></tmx>"""

BAD = [
    # what is written first, arguments, code, parts of the line, why
    ({"small/corpus.jsonl": '{"_id": "d1", "text": "x"}\n' * 2}, MEMORY, 2, ["corpus.jsonl:2", "d1"], "duplicate ids"),
    ({"small/corpus.jsonl": b'{"_id": "d1", "text": "\xff"}\n'}, MEMORY, 2, ["corpus.jsonl:1", "UTF-8"], "not UTF-8"),
    ({}, ["--to", "kz", *MEMORY[2:]], 2, ["No language 'kz'", " kk,", "BCP 47"], "unknown language"),
    ({}, ["--to", "rusian", *MEMORY[2:]], 2, ["No language 'rusian'", "Did you mean 'ru'?"], "a misspelt name"),
    ({}, ["--to", "en", *MEMORY[2:]], 2, ["already in 'en'"], "the source's language"),
    ({"out/notes.txt": "mine"}, MEMORY, 2, ["out contains files but no port"], "a folder of something else"),
    ({"out": "mine"}, MEMORY, 2, ["out is a file"], "a file for a folder"),
    ({}, [*MEMORY[:4], "--out", "out"], 2, ["--memory FILE"], "no memory"),
    ({}, [*MEMORY, "--memory", "none.tsv"], 2, ["none.tsv"], "no such memory"),
    ({"m.tsv": "one\ttwo\tthree\n"}, [*MEMORY, "--memory", "m.tsv"], 2, ["m.tsv:1", "3 columns"], "memory: columns"),
    ({"m.jsonl": '{"source": "a"\n'}, [*MEMORY, "--memory", "m.jsonl"], 2, ["m.jsonl:1", "JSON"], "memory: cut line"),
    ({"m.tmx": BOMB}, [*MEMORY, "--memory", "m.tmx"], 2, ["m.tmx:1", "refused"], "memory: XML bomb"),
    ({"g.tsv": "ice\tлёд\nice\tмороз\n"}, [*MEMORY, "--glossary", "g.tsv"], 2, ["g.tsv:2", "line 1"], "two meanings"),
    ({}, [*MEMORY, "--budget-chars", "3"], 2, ["The budget of 3 characters", "--budget-chars"], "budget: a segment"),
    ({}, [*MEMORY, "--budget-cost", "0"], 2, ["--budget-cost", "above 0"], "budget: nothing"),
    ({}, [*MEMORY, "--fields", "body"], 2, ["no field 'body'", "title, text, query"], "unknown field"),
    ({}, [*MEMORY, "--sample", "0"], 2, ["--sample"], "no sample"),
    ({}, [*MEMORY, "--translator", "deepl"], 2, ["does not take the option 'memory'"], "an option of another"),
    ({}, ["--to", "ru", "--translator", "deepl", "--out", "out"], 2, ["DEEPL_AUTH_KEY"], "no credentials"),
    (
        {},
        ["--to", "ru", "--translator", "gpt-4o-mini", "--out", "out"],
        2,
        ["--translator llm --llm gpt-4o-mini."],
        "a model",
    ),
    ({}, ["--to", "ru", "--translator", "googel", "--out", "out"], 2, ["'googel'", "'google'"], "unknown translator"),
    ({}, ["--to", "ru", "--out", "out"], 2, ["--translator", "apertium", "python:"], "no translator"),
    ({}, MEMORY[:6], 2, ["--out"], "no folder"),
    ({}, [*MEMORY, "--retry-failed"], 2, ["out contains no port", "--retry-failed"], "nothing to retry"),
    (
        {},
        [*MEMORY, "--option", "seed=3"],
        2,
        ["--option seed", "not an option of a translator"],
        "an option of the port",
    ),
    ({}, [*MEMORY, "--option", "rate"], 2, ["--option 'rate'", "name=value"], "an option without value"),
    ({}, ["--to", "ru", "--translator", "python:no.such", "--out", "out"], 2, ["python:no.such"], "no such function"),
    (
        {},
        ["--to", "ru", "--translator", "opus-mt", "--model", "no/such", "--out", "out"],
        2,
        ["no/such"],
        "no model folder",
    ),
    ({}, [*MEMORY, "--export", "pairs.doc"], 2, ["pairs.doc", ".tmx"], "an export of another kind"),
]


@pytest.mark.parametrize(("files", "arguments", "code", "parts", "why"), BAD, ids=[row[4] for row in BAD])
def test_bad_input(rusbeir, small, monkeypatch, needs, files, arguments, code, parts, why):
    for variable in ("DEEPL_AUTH_KEY", "DEEPL_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    if why == "no model folder":
        needs("ctranslate2", find_spec("ctranslate2") is not None, "pip install 'rusbeir[mt]'")
    for name, content in files.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    outcome = rusbeir("port", small, *arguments)
    assert outcome.code == code, outcome.err
    assert one_line(outcome.err, parts)
    assert not Path("out/corpus.jsonl").exists()


def test_a_pair_that_there_is_not(rusbeir, small, apertium):
    outcome = rusbeir("port", small, "--to", "ru", "--translator", "apertium", "--out", "out")
    assert outcome.code == 2
    assert one_line(outcome.err, ["eng-rus", "There are:", "eng-spa"])


OTHER_PORTS = [
    # what is changed, parts of the line
    (["--to", "uk"], ["to was 'ru' and is now 'uk'"]),
    (["--fields", "text"], ["fields was 'title,text,query' and is now 'text'"]),
    (["--sample", "2"], ["sample was 'all'"]),
    (["--glossary", "g.tsv"], ["glossary was 'none'"]),
]


@pytest.mark.parametrize(("change", "parts"), OTHER_PORTS, ids=[row[0][0] for row in OTHER_PORTS])
def test_a_folder_of_another_port(rusbeir, small, change, parts):
    assert rusbeir("port", small, *MEMORY).code == 0
    Path("g.tsv").write_text("ice\tлёд\n", encoding="utf-8")
    before = {path: path.read_bytes() for path in Path("out").rglob("*.json*")}
    outcome = rusbeir("port", small, *MEMORY, *change)
    assert outcome.code == 2
    assert one_line(outcome.err, parts)
    assert {path: path.read_bytes() for path in Path("out").rglob("*.json*")} == before


def test_a_source_that_was_changed(rusbeir, small):
    assert rusbeir("port", small, *MEMORY).code == 0
    with (small / "corpus.jsonl").open("a") as file:
        file.write('{"_id": "d9", "text": "Hare"}\n')
    outcome = rusbeir("port", small, *MEMORY)
    assert outcome.code == 2
    assert one_line(outcome.err, ["corpus was"])

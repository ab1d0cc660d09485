"""Every command that a verb prints does what it says when it is pasted, also where paths have spaces."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import rusbeir as package
from tests.support.generating_model import GeneratingModel
from tests.support.rewriting_model import RewritingModel, write_source

MINI = Path(package.__file__).parent / "datasets" / "mini"
PRINTED = re.compile(r"`(rusbeir [^`]+)`|(?:[:;]|then) (rusbeir [^;`\n]+)")
PORT = ["--lang", "en", "--translator", "memory", "--memory", "my memory.tsv"]


def list_printed(text: str) -> list[list[str]]:
    """The commands in what a verb printed, as a shell reads them; not names of verbs, nor gaps to fill in."""
    commands = [shlex.split(quoted or bare)[1:] for quoted, bare in PRINTED.findall(text)]
    return [words for words in commands if len(words) > 1 and not any(word in ("SHEETS", "DIR", "…") for word in words)]


@pytest.fixture
def run(rusbeir, monkeypatch, tmp_path) -> Callable[..., tuple[int, str]]:
    """Run a command in a folder with mini in English, without a card, and its memory; the code and all it printed."""
    shutil.copytree(MINI / "en", tmp_path / "my source")
    (tmp_path / "my source" / "card.json").unlink()
    shutil.copy(MINI / "memory.en-ru.tsv", tmp_path / "my memory.tsv")
    pairs = [line.split("\t") for line in (MINI / "memory.en-ru.tsv").read_text(encoding="utf-8").splitlines()]
    (tmp_path / "my way back.tsv").write_text("".join(f"{b}\t{a}\n" for a, b in pairs), encoding="utf-8")
    monkeypatch.setenv("RUSBEIR_ANALYZERS", "")

    def run(*words: str) -> tuple[int, str]:
        # What --analyzers names is in force in its own process alone.
        monkeypatch.setenv("RUSBEIR_ANALYZERS", "")
        outcome = rusbeir(*words)
        return outcome.code, outcome.out + outcome.err

    return run


def test_a_port_and_what_follows(run):
    code, text = run("port", "my source", "--to", "ru", "--out", "my port", *PORT)
    assert code == 0
    assert list_printed(text) == [["audit", "check", "my port"], ["bench", "my port"]]
    # What is not there yet is answered with the command that makes it.
    apply = ["audit", "clean", "my port", "--apply"]
    code, text = run("audit", "judge", "my port", "--llm", "toy")
    assert (code, list_printed(text)) == (2, [["audit", "check", "my port"]])
    for words in list_printed(text):
        assert run(*words)[0] == 0
    assert run(*apply)[0] == 0
    assert run("bench", "my port")[0] == 0


def test_the_source_is_named_again_where_it_was_named(run, tmp_path):
    assert run("port", "my source", "--to", "ru", "--out", "my port", *PORT)[0] == 0
    shutil.move(tmp_path / "my source", tmp_path / "moved source")
    source = ["--source", "moved source"]
    (check,) = list_printed(run("audit", "judge", "my port", "--llm", "toy", *source)[1])
    assert check == ["audit", "check", "my port", *source]
    assert run(*check)[0] == 0


def test_segments_are_translated_again(run, tmp_path):
    memory = tmp_path / "my memory.tsv"
    good = memory.read_text(encoding="utf-8")
    pairs = [line.split("\t") for line in good.splitlines()]
    queries = {json.loads(line)["text"] for line in (MINI / "en" / "queries.jsonl").read_text().splitlines()}
    # Every second query has the translation of another one.
    wrong = {pair[0]: pairs[0][1] for pair in pairs[::2] if pair[0] in queries}
    memory.write_text("".join(f"{a}\t{wrong.get(a, b)}\n" for a, b in pairs), encoding="utf-8")
    assert run("port", "my source", "--to", "ru", "--out", "my port", *PORT)[0] == 0
    back = ["--back-translator", "memory", "--memory", "my way back.tsv"]
    assert run("audit", "check", "my port", *back)[0] == 0
    code, text = run("validity", "--attribute", "--pair", "my source=my port", "--system", "bm25")
    assert code == 0
    (words,) = list_printed(text)
    words[words.index("NAME")] = "memory"
    memory.write_text(good, encoding="utf-8")
    code, text = run(*words, "--memory", "my memory.tsv")
    assert code == 0
    assert "segments have a new translation" in text


@pytest.mark.parametrize(
    ("language", "own"), [("eo", ["--analyzers", "my languages"]), ("ti", [])], ids=["own file", "no file"]
)
def test_a_port_into_a_language_that_rusbeir_has_no_file_for(run, language, own):
    code, text = run("languages", "new", "eo", "--folder", "my languages")
    assert code == 0
    (check,) = list_printed(text)
    assert check == ["languages", "check", "eo", "--analyzers", "my languages"]
    assert run(*check)[0] in (0, 1), "its lines are to be edited first"
    code, text = run("port", "my source", "--to", language, "--out", "my port", *PORT, *own)
    assert code == 0
    commands = list_printed(text)
    assert commands[1] == ["bench", "my port", *(own or ["--system", "bm25(profile=unicode)"])]
    for words in commands:
        assert run(*words)[0] == 0


def test_a_small_version(run):
    systems = ["--system", "bm25", "--system", "bm25(profile=raw)"]
    code, text = run("nano", "mini/ru", "--to", "my nano", "--queries", "20", *systems)
    assert code == 0, text
    assert list_printed(text) == [["bench", "my nano"]]
    assert run("bench", "my nano")[0] == 0


def test_tuned_weights_are_an_option_to_paste(run, tmp_path, rusbeir):
    shutil.copytree(MINI / "ru", tmp_path / "development")
    shutil.move(tmp_path / "development" / "qrels" / "test.tsv", tmp_path / "development" / "qrels" / "dev.tsv")
    (tmp_path / "development" / "card.json").write_text('{"name": "development", "language": "ru", "split": "dev"}')
    tuned = rusbeir("tune", "development", "--system", "minmax(bm25,bm25(profile=raw))")
    option, system = shlex.split(tuned.out)
    assert option == "--system"
    assert re.fullmatch(r"minmax\(bm25,bm25\(profile=raw\),weights=[\d.]+:[\d.]+\)", system)
    row = json.loads(rusbeir("bench", "mini/ru", *shlex.split(tuned.out), "--json").out)["rows"][0]
    assert row["system"] == system


def test_a_rewritten_dataset(run, serve, tmp_path):
    serve(RewritingModel())
    write_source(tmp_path / "my texts")
    code, text = run("synth", "rewrite", "my texts", "--llm", "toy", "--out", "my rewritten")
    assert code == 0, text
    commands = list_printed(text)
    assert [words[:2] for words in commands] == [["audit", "check"], ["audit", "sheet"], ["diagnose", "source-bias"]]
    for words in commands:
        code, text = run(*words)
        assert code == 0, text


@pytest.mark.parametrize(("kind", "verbs"), [("qa", ["bench"]), ("position", ["bench", "diagnose"])])
def test_made_queries(run, serve, tmp_path, kind, verbs):
    serve(GeneratingModel())
    arguments = ["--lang", "en", "--llm", "tiny", "-n", "8", "--kind", kind, "--out", "my queries"]
    code, text = run("synth", "queries", "my source", *arguments)
    assert code == 0, text
    commands = list_printed(text)
    assert [words[0] for words in commands] == verbs
    for words in commands:
        code, text = run(*words)
        assert code == 0, text


def test_the_upload_of_what_was_published(run, tmp_path):
    """The line is for the hub's own program; its words are those of that program, its folder is there."""
    code, text = run("publish", "mini/ru", "--to", "my published")
    assert code == 0, text
    (line,) = re.findall(r"hf upload .*", text)
    hf, upload, repository, folder, *rest = shlex.split(line)
    assert (hf, upload, repository) == ("hf", "upload", "OWNER/NAME")
    assert (tmp_path / folder / "README.md").exists()
    assert rest == ["--repo-type", "dataset", "--exclude", "qa/*"]

"""The lemma cache on disk and analysis in several processes: never a wrong term, whatever happens to the file."""

from __future__ import annotations

import itertools
import json
import logging
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time

import loky
import pymorphy3
import pytest

from rusbeir import processes
from rusbeir.analysis import Analyzer, analyzer, lemmas
from rusbeir.analysis.chain import load_chain
from rusbeir.storage import cache_folder

FILL = """
import itertools, pymorphy3
from rusbeir.analysis.lemmas import find_lemmas
forms = sorted(set(itertools.islice(pymorphy3.MorphAnalyzer().dictionary.words.iterkeys("вы"), 6000)))
print("ready", flush=True)
lemmas = find_lemmas("pymorphy3", "ru", forms)
print(len(lemmas))
"""


@pytest.fixture(autouse=True)
def nothing_remembered(fresh_cache):
    """Each test starts with an empty cache on disk and none in memory."""
    for remembered in (load_chain, lemmas._cache):
        remembered.cache_clear()
    yield
    for remembered in (load_chain, lemmas._cache):
        remembered.cache_clear()


@pytest.fixture(scope="module")
def forms():
    keys = pymorphy3.MorphAnalyzer().dictionary.words.iterkeys
    return sorted({form for prefix in ("вы", "сто", "ёл", "пе") for form in itertools.islice(keys(prefix), 3000)})


def cache_file():
    return cache_folder() / "lemmas" / f"{lemmas.describe_lexicon('pymorphy3', 'ru')}.sqlite"


def rows():
    with sqlite3.connect(cache_file()) as connection:
        lemma_of = dict(connection.execute("SELECT word, lemma FROM lemmas"))
    connection.close()
    return lemma_of


def test_lemmas_are_those_of_the_likeliest_parse(forms):
    morph = pymorphy3.MorphAnalyzer()
    lemmatise = lemmas.load_lemmatiser("pymorphy3", "ru")
    others = [*"аАяТтхХ", "и", "ООН", "Москва", "зелёный", "зеленый", "бутявка", "covid", "xiv", "2020", "кое", "ъъъ"]
    words = random.Random(7).sample(forms, 3000) + others + [form[:-1] + "ук" for form in forms[::40]]
    assert [lemmatise(word) for word in words] == [morph.parse(word)[0].normal_form for word in words]
    assert lemmatise("\U00017000") == "\U00017000", "pymorphy3 raises for letters without a Unicode name"


def test_answers_are_remembered_and_used():
    assert Analyzer("ru", "rusbeir-paper").analyze("столами") == ["стол"]
    assert rows() == {"столами": "стол"}
    with sqlite3.connect(cache_file()) as connection:
        connection.execute("UPDATE lemmas SET lemma = 'дом'")
    connection.close()
    load_chain.cache_clear()
    assert Analyzer("ru", "rusbeir-paper").analyze("столами") == ["дом"], "the file was not asked"


def test_two_processes_fill_one_cache(forms):
    workers = [subprocess.Popen([sys.executable, "-c", FILL], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    answers = [worker.communicate(timeout=120)[0].split() for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0]
    stored = rows()
    assert answers == [["ready", str(len(stored))]] * 2
    lemmatise = lemmas.load_lemmatiser("pymorphy3", "ru")
    assert stored == {word: lemmatise(word) for word in stored}


def test_a_killed_writer_leaves_a_cache_that_works():
    worker = subprocess.Popen([sys.executable, "-c", FILL], stdout=subprocess.PIPE, text=True)
    assert worker.stdout is not None
    assert worker.stdout.readline() == "ready\n"
    deadline = time.monotonic() + 60
    while not (cache_file().exists() and rows_or_none()) and time.monotonic() < deadline:
        time.sleep(0.005)
    os.kill(worker.pid, signal.SIGKILL)
    worker.communicate()
    lemmatise = lemmas.load_lemmatiser("pymorphy3", "ru")
    assert all(lemmatise(word) == lemma for word, lemma in rows().items())
    assert Analyzer("ru", "rusbeir-paper").analyze("столами выучили") == ["стол", "выучить"]
    assert rows()["столами"] == "стол"


def rows_or_none():
    try:
        return rows()
    except sqlite3.OperationalError:
        return None


@pytest.mark.parametrize("damage", ["text", "empty folder in its place", "no folder", "other table"])
def test_a_file_that_cannot_be_used_is_done_without(damage, caplog):
    path = cache_file()
    if damage == "no folder":
        path.parent.parent.mkdir(parents=True)
        path.parent.write_text("a file where the folder should be")
    else:
        path.parent.mkdir(parents=True)
    if damage == "text":
        path.write_bytes(b"not a database " * 500)
    elif damage == "empty folder in its place":
        path.mkdir()
    elif damage == "other table":
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE lemmas (x INTEGER)")
        connection.close()
    with caplog.at_level(logging.WARNING):
        assert Analyzer("ru", "rusbeir-paper").analyze("столами") == ["стол"]
        assert Analyzer("ru", "rusbeir-paper").analyze("городами") == ["город"]
        assert Analyzer("ru", "rusbeir-paper").analyze("городами столами") == ["город", "стол"]
    assert len(caplog.records) == 1
    assert str(path) in caplog.text


def test_memory_in_place_of_the_file_is_bounded(monkeypatch, tmp_path):
    monkeypatch.setattr(lemmas, "MAX_MEMORY_WORDS", 3)
    cache = lemmas.LemmaCache(tmp_path)
    for word in "абвгде":
        cache.add({word: word})
    assert cache.find("абвгде") == {word: word for word in "где"}


def test_other_processes_give_the_same_lines(shared_data):
    articles = json.loads((shared_data / "xquad" / "xquad.ru.json").read_text(encoding="utf-8"))["data"]
    texts = [paragraph["context"] for article in articles for paragraph in article["paragraphs"]] * 4
    texts += ["", "строка\nи ещё\r\n одна", "кот \ud800 пёс", "а\x01б"]
    analyzer_of_russian = Analyzer("ru")
    serial = list(analyzer_of_russian.analyze_lines(texts, processes=1))
    assert list(analyzer_of_russian.analyze_lines(iter(texts), processes=2)) == serial


def test_a_stream_of_new_words_gets_workers_by_itself(monkeypatch):
    monkeypatch.setattr(analyzer, "MAX_BATCH_TEXTS", 10)
    monkeypatch.setattr(processes, "cpu_count", lambda: 2)
    for name in ("START_SECONDS", "STARTED_SECONDS", "BUSY_SHARE"):
        monkeypatch.setattr(processes, name, 0)
    started = []
    start = loky.get_reusable_executor
    monkeypatch.setattr(loky, "get_reusable_executor", lambda **options: started.append(options) or start(**options))
    texts = [f"слово {number} городами" for number in range(200)]
    assert list(Analyzer("ru").analyze_lines(texts)) == list(Analyzer("ru").analyze_lines(texts, processes=1))
    assert [options["max_workers"] for options in started] == [1]


def test_the_stream_is_read_as_it_is_needed(monkeypatch):
    monkeypatch.setattr(analyzer, "MAX_BATCH_TEXTS", 10)
    taken = itertools.count()
    lines = Analyzer("en").analyze_lines((f"word {next(taken)}" for _ in range(100_000)), processes=2)
    assert next(lines).startswith("word 0")
    assert next(taken) < 200
    lines.close()


def test_a_worker_that_dies_costs_nothing_but_time(monkeypatch, caplog):
    monkeypatch.setattr(analyzer, "MAX_BATCH_TEXTS", 10)
    texts = [f"слово {number} городами" for number in range(300)]
    expected = list(Analyzer("ru").analyze_lines(texts, processes=1))
    executors = []
    start = loky.get_reusable_executor
    monkeypatch.setattr(
        loky, "get_reusable_executor", lambda **options: executors.append(start(**options)) or executors[0]
    )

    def stream():
        for number, text in enumerate(texts):
            if number == 100:
                os.kill(min(executors[0]._processes), signal.SIGKILL)
                deadline = time.monotonic() + 60
                while not executors[0]._flags.broken and time.monotonic() < deadline:
                    time.sleep(0.01)
            yield text

    with caplog.at_level(logging.WARNING):
        assert list(Analyzer("ru").analyze_lines(stream(), processes=2)) == expected
    assert "worker process died" in caplog.text

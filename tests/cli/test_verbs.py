"""Each verb: what it prints, as a table and as JSON, and what it leaves behind."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from rusbeir import storage
from rusbeir.analysis import language_files
from rusbeir.cli import main, output
from rusbeir.datasets import RegistryEntry, registry
from rusbeir.errors import BadInput

ROW_KEYS = [
    "dataset", "language", "query_language", "split", "system", "engine", "signature", "fingerprint", "measures",
    "measures_answered",
    "depth", "n_docs", "n_queries", "n_clusters", "n_zero_hit", "n_tied", "n_judged_missing", "seconds", "bytes",
    "costs", "run", "per_query", "version",
]  # fmt: skip


def test_version(rusbeir):
    assert rusbeir("--version").out == "rusbeir 0.1.0\n"


VERBS = ["analyze", "audit agree", "audit check", "audit clean", "audit judge", "audit score", "audit sheet",
         "bench", "cache info", "cache clear", "datasets", "datasets info", "datasets fetch",
         "datasets validate", "demo", "eval", "index", "languages", "search"]  # fmt: skip


@pytest.mark.parametrize("verb", VERBS)
def test_help_has_an_example(rusbeir, verb):
    outcome = rusbeir(*verb.split(), "--help")
    assert outcome.code == 0
    assert "Example: rusbeir" in outcome.out
    assert "--json" in outcome.out


def test_bench_row(rusbeir, beir):
    outcome = rusbeir("bench", beir, "--json")
    document = json.loads(outcome.out)
    assert document["version"] == "0.1.0"
    (row,) = document["rows"]
    assert list(row) == ROW_KEYS
    assert (row["dataset"], row["language"], row["split"], row["system"]) == ("small", "ru", "test", "bm25")
    assert (row["n_docs"], row["n_queries"], row["n_zero_hit"]) == (3, 2, 0)
    assert row["measures"]["nDCG@10"] == 1.0
    assert list(row["seconds"]) == ["analyse", "index", "search", "evaluate"]
    assert list(row["bytes"]) == ["index", "peak_rss"]
    assert Path(row["run"]).exists()
    assert orjson.loads(Path(row["per_query"]).read_bytes())["q1"]["nDCG@10"] == 1.0
    assert [orjson.loads(line) for line in Path("results/rows.jsonl").read_bytes().splitlines()] == [row]


def test_bench_refuses_what_is_not_the_registered_dataset(rusbeir, beir, monkeypatch):
    entry = RegistryEntry(name="toy", format="beir", language="ru", split="test", path="toy.zip", n_docs=3633)
    monkeypatch.setattr(registry, "read_registry", lambda: {"toy": entry})
    monkeypatch.setenv("RUSBEIR_DATA", str(beir.parent))
    shutil.make_archive(str(beir.parent / "toy"), "zip", beir)
    outcome = rusbeir("bench", "toy")
    assert (outcome.code, outcome.out) == (2, "")
    assert "This is not the registered toy: n_docs is 3, not 3,633." in " ".join(outcome.err.split())
    assert "--accept-difference" in outcome.err
    (row,) = json.loads(rusbeir("bench", "toy", "--accept-difference", "--json").out)["rows"]
    assert row["dataset"] == "toy (differs)"
    assert json.loads(rusbeir("datasets", "info", "toy", "--json").out)["name"] == "toy (differs)"


def test_info_of_what_is_not_on_this_machine_is_what_is_registered(rusbeir, monkeypatch):
    monkeypatch.setenv("RUSBEIR_DATA", "")
    outcome = rusbeir("datasets", "info", "beir/msmarco/test", "--json")
    document = json.loads(outcome.out)
    assert outcome.code == 0
    entry = registry.get_entry("beir/msmarco/test")
    assert (document["url"], document["md5"], document["n_docs"]) == (entry.url, entry.md5, entry.n_docs)
    assert "rusbeir datasets fetch beir/msmarco/test" in outcome.err
    assert "sha256" not in document, "nothing is said of what is not known"
    table = rusbeir("datasets", "info", "mteb/rubq")
    assert table.code == 0
    assert registry.get_entry("mteb/rubq").hub[0].partition("@")[0] in table.out


@pytest.mark.parametrize(
    ("name", "verified"),
    [("posir/ru/mining", False), ("beir/msmarco/test", True), ("mini/ru", True), ("xquad/vi", False)],
)
def test_info_says_unverified_as_the_list_does(rusbeir, monkeypatch, name, verified):
    monkeypatch.setenv("RUSBEIR_DATA", "")
    assert json.loads(rusbeir("datasets", "info", name, "--json").out)["verified"] is verified
    assert ("unverified" in rusbeir("datasets", "info", name).out) is not verified


def test_validate_counts_problems_and_not_lines(rusbeir, beir):
    with (beir / "qrels" / "test.tsv").open("a") as file:
        file.writelines(f"q1\tnone{n}\t1\n" for n in range(55))
    outcome = rusbeir("datasets", "validate", beir)
    assert outcome.code == 1
    assert "55 errors, 0 warnings" in outcome.err
    document = json.loads(rusbeir("datasets", "validate", beir, "--json").out)
    assert document["errors"] == 55
    assert len(document["findings"]) == 21
    assert document["findings"][-1] | {"file": ""} == {
        "level": "error", "file": "", "line": None, "message": "and 35 more like this (missing document)", "n": 35,
    }  # fmt: skip


def test_bench_reuses_and_forces(rusbeir, beir):
    first = rusbeir("bench", beir, "--json").out
    assert rusbeir("bench", beir, "--json").out == first
    assert len(Path("results/rows.jsonl").read_text().splitlines()) == 1
    rusbeir("bench", beir, "--force")
    rusbeir("bench", beir, "-k", "5")
    rusbeir("bench", beir, "--system", "bm25(profile=raw)")
    assert len(Path("results/rows.jsonl").read_text().splitlines()) == 4


def test_bench_measures_changed_data_again(rusbeir, beir):
    rusbeir("bench", beir)
    with (beir / "corpus.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"_id": "d4", "title": "", "text": "Мышь живёт в поле."}\n')
    row = json.loads(rusbeir("bench", beir, "--json").out)["rows"][0]
    assert row["n_docs"] == 4


def test_bench_several(rusbeir, beir):
    outcome = rusbeir("bench", beir, beir, "--system", "bm25", "--system", "bm25(profile=raw)", "-m", "RR@10")
    assert outcome.code == 0
    assert outcome.out.count("small") == 4
    assert "bm25(profile=raw)" in outcome.out


def test_bench_dry_run_measures_nothing(rusbeir, beir):
    document = json.loads(rusbeir("bench", beir, beir, "--dry-run", "--json").out)
    assert [(one["dataset"], one["system"], one["sampled"]) for one in document["forecasts"]] == [
        ("small", "bm25", 3)
    ] * 2
    table = rusbeir("bench", beir, "--dry-run")
    assert table.out.split()[:3] == ["disk", "memory", "dataset"]
    assert "Endpoints were not asked." in table.err
    assert not Path("results").exists()


def test_self_retrieval_is_removed_before_the_cut_off(rusbeir, beir):
    (beir / "queries.jsonl").write_text('{"_id": "d1", "text": "кошка ловит мышей"}\n', encoding="utf-8")
    (beir / "qrels" / "test.tsv").write_text("d1\td2\t1\n")
    (beir / "card.json").write_text(
        '{"name": "self", "language": "ru", "split": "test", "self_suffixes": [""]}', encoding="utf-8"
    )
    row = json.loads(rusbeir("bench", beir, "-k", "1", "--json").out)["rows"][0]
    assert row["measures"]["RR@10"] == 0.0
    assert row["n_zero_hit"] == 1, "the only hit was the query itself"


def test_a_query_that_is_a_document_is_warned_of_and_left_out_on_request(rusbeir, beir):
    """BEIR leaves such hits out of ArguAna's runs: without that the relevant hit is at rank 2, 1/log2(3) = 63.09."""
    (beir / "queries.jsonl").write_text('{"_id": "d1", "text": "Кошка ловит мышей."}\n', encoding="utf-8")
    (beir / "corpus.jsonl").write_text(
        '{"_id": "d1", "text": "Кошка ловит мышей."}\n{"_id": "d2", "text": "Кошки ловят мышей и рыб."}\n'
        '{"_id": "d3", "text": "Собака лает."}\n',
        encoding="utf-8",
    )
    (beir / "qrels" / "test.tsv").write_text("d1\td2\t1\n")
    Path("found.run").write_text("d1 Q0 d1 1 2.0 t\nd1 Q0 d2 2 1.0 t\n")
    warning = "1 queries are documents of the corpus, such as 'd1'. They find themselves first."
    assert warning in rusbeir("datasets", "validate", beir).out
    card = json.loads((beir / "card.json").read_text(encoding="utf-8")) if (beir / "card.json").exists() else {}
    for wanted, expected in ((False, 0.6309), (True, 1.0)):
        (beir / "card.json").write_text(json.dumps(card | {"language": "ru", "self_retrieval": wanted}))
        done = rusbeir("bench", beir, "-m", "nDCG@10", "--json")
        assert json.loads(done.out)["rows"][0]["measures"]["nDCG@10"] == pytest.approx(expected, abs=1e-4)
        assert ('"self_retrieval": true' in done.err) is not wanted
        evaluated = json.loads(rusbeir("eval", beir, "found.run", "-m", "nDCG@10", "--json").out)
        assert evaluated["measures"]["nDCG@10"] == pytest.approx(expected, abs=1e-4)
    assert warning not in rusbeir("datasets", "validate", beir).out


def test_counts_are_printed_as_trec_eval_prints_them(rusbeir):
    """trec_eval -c prints num_q 2, num_rel 2, num_ret 1 for this run."""
    Path("two.qrels").write_text("q1 0 d1 1\nq2 0 d1 1\n")
    Path("half.run").write_text("q1 Q0 d1 1 1.0 t\n")
    names = ["-m", "num_q", "-m", "num_rel", "-m", "num_ret", "-m", "map"]
    done = rusbeir("eval", "two.qrels", "half.run", *names)
    printed = [line.split() for line in done.out.splitlines()]
    assert [cells for cells in printed if cells and cells[0] in ("NumQ", "NumRel", "NumRet", "AP")] == [
        ["NumQ", "2", "1"], ["NumRel", "2", "1"], ["NumRet", "1", "1"], ["AP", "50.00", "100.00"],
    ]  # fmt: skip
    per_query = rusbeir("eval", "two.qrels", "half.run", *names, "--per-query").out.splitlines()
    assert [line.split() for line in per_query if line.split()[:1] == ["q2"]] == [["q2", "1", "1", "0", "0.0000"]]


def test_counts_are_not_compared(rusbeir, beir):
    rusbeir("bench", beir, "-m", "NumRet", "--system", "bm25", "--system", "bm25(profile=raw)")
    done = rusbeir("compare", "results", "-m", "NumRet")
    assert (done.code, "NumRet is a count, and no system is better for it." in done.err) == (2, True)


def test_a_dataset_that_cannot_be_measured_costs_its_own_rows_only(rusbeir):
    system = "bm25(profile=rusbeir-paper)"
    outcome = rusbeir("bench", "mini/ru", "mini/en", "nowhere", "--system", system, "-m", "RR@10", "--json")
    document = json.loads(outcome.out)
    assert (outcome.code, [row["dataset"] for row in document["rows"]]) == (1, ["mini/ru"])
    assert [(failure["system"], failure["dataset"]) for failure in document["failed"]] == [
        (system, "mini/en"), (system, "nowhere"),
    ]  # fmt: skip
    # It is said before anything is measured, and again at the end.
    assert outcome.err.count("No profile 'rusbeir-paper' of language 'en'") == 2
    assert f"warning: {system} on nowhere cannot run: No dataset 'nowhere'" in outcome.err
    refused = rusbeir("bench", "mini/en", "nowhere", "--system", system)
    assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1)


def test_warns_of_empty_queries(rusbeir, beir):
    (beir / "queries.jsonl").write_text(
        '{"_id": "q1", "text": "и в на"}\n{"_id": "q2", "text": "собака"}\n', encoding="utf-8"
    )
    outcome = rusbeir("bench", beir, "--json")
    assert json.loads(outcome.out)["rows"][0]["n_zero_hit"] == 1
    assert "1 of 2 queries" in outcome.err


def test_search_and_index(rusbeir, beir):
    assert "d1" in rusbeir("search", beir, "мышь").out.splitlines()[3]
    hits = json.loads(rusbeir("search", beir, "мышь", "--json").out)["hits"]
    assert [hit["doc_id"] for hit in hits] == ["d1"]
    path = rusbeir("index", beir).out.strip()
    assert Path(path).is_dir()
    assert json.loads(rusbeir("index", beir, "--json").out)["path"] == path


def test_analyze(rusbeir):
    assert rusbeir("analyze", "--lang", "ru", "--profile", "rusbeir-paper", "Мамы мыли рамы").out == "мама мыть рама\n"
    explained = json.loads(rusbeir("analyze", "--lang", "ru", "и мамы", "--json").out)
    assert [token["surface"] for token in explained["tokens"]] == ["и", "мамы"]
    assert explained["tokens"][0]["dropped"]
    assert len(explained["terms"]) == 1
    assert "stop" in rusbeir("analyze", "--lang", "ru", "и мамы", "--explain").out


def test_analyze_counts_the_terms_of_documents_alone(rusbeir, tmp_path):
    (tmp_path / "shop.csv").write_text("id,text\np1,Кошка и кошки.\np2,У кошек рыба.\np3,и\n", encoding="utf-8")
    outcome = rusbeir("analyze", "--corpus", "shop.csv", "--lang", "ru", "--json")
    counted = json.loads(outcome.out)
    assert "Columns: id=id,text=text\n" in outcome.err
    figures = ("n_documents", "n_empty", "n_terms", "n_distinct", "n_once", "max_terms", "n_explained")
    # A document of stop words alone keeps them.
    assert [counted[name] for name in figures] == [3, 0, 5, 3, 2, 2, 3]
    assert counted["common"][0] == {
        "term": "кошк", "documents": 2, "occurrences": 3, "words": ["кошек", "кошка", "кошки"],
    }  # fmt: skip
    assert counted["joined"] == [{"term": "кошк", "n_words": 3, "words": ["кошек", "кошка", "кошки"]}]
    assert counted["dropped"] == [
        {"word": "и", "occurrences": 1, "reason": "stop word"}, {"word": "у", "occurrences": 1, "reason": "stop word"},
    ]  # fmt: skip
    (tmp_path / "shop.csv").write_text("id,text\np1,Кошка.\np2,?!\n", encoding="utf-8")
    told = rusbeir("analyze", "--corpus", "shop.csv", "--lang", "ru", "--profile", "blend").out
    assert "Documents without terms, which no query finds: 1 (p2)" in told
    assert ("~" in told, "кошка" in told) == (False, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "either a text"),
        (["мамы", "--corpus", "mini/ru", "--lang", "ru"], "either a text"),
        (["мамы"], 'as in analyze --lang ru "Мамы мыли рамы"'),
        (["--corpus", "mini/ru", "--explain"], "with --corpus, leave it out"),
    ],
)
def test_what_analyze_needs(rusbeir, arguments, message):
    outcome = rusbeir("analyze", *arguments)
    assert (outcome.code, outcome.err.count("\n"), message in outcome.err) == (2, 1, True)


def test_languages(rusbeir):
    rows = json.loads(rusbeir("languages", "--json").out)
    assert [row["language"] for row in rows] == list(language_files())


def test_eval(rusbeir, beir):
    Path("my.run").write_text("q1 Q0 d1 1 2.5 x\n")
    document = json.loads(rusbeir("eval", beir / "qrels" / "test.tsv", "my.run", "-m", "RR@10", "--json").out)
    assert (document["measures"], document["measures_answered"]) == ({"RR@10": 0.5}, {"RR@10": 1.0})
    table = rusbeir("eval", beir / "qrels" / "test.tsv", "my.run", "--per-query")
    assert "50.00" in table.out
    assert "2 judged queries, 1 without hits" in table.err


def test_eval_of_several_runs(rusbeir, beir):
    Path("good.run").write_text("q1 Q0 d2 1 2.5 x\nq2 Q0 d1 1 2.5 x\n")
    Path("bad.run").write_text("q1 Q0 d9 1 2.5 x\n")
    qrels = beir / "qrels" / "test.tsv"
    table = rusbeir("eval", qrels, "good.run", "bad.run", "-m", "recip_rank", "-m", "ndcg_cut_10")
    rows = {line.split()[0]: line.split() for line in table.out.splitlines() if line.split()}
    assert rows["run"][1:3] == ["RR", "nDCG@10"]
    assert rows["bad.run"][1:3] == ["0.00", "0.00"]
    assert "warning: bad.run and" in table.err
    assert "good.run and" not in table.err
    document = json.loads(rusbeir("eval", qrels, "good.run", "bad.run", "-m", "RR", "--json").out)
    one = json.loads(rusbeir("eval", qrels, "bad.run", "-m", "RR", "--json").out)
    assert [row["run"] for row in document["runs"]] == ["good.run", "bad.run"]
    assert {"qrels": document["qrels"]} | document["runs"][1] == one


def test_eval_on_the_qrels_of_a_dataset(rusbeir, beir):
    Path("my.run").write_text("q1 Q0 d1 1 2.5 x\n")
    by_file = json.loads(rusbeir("eval", beir / "qrels" / "test.tsv", "my.run", "--json").out)
    by_folder = json.loads(rusbeir("eval", beir, "my.run", "--json").out)
    assert by_folder == by_file | {"qrels": str(beir)}
    assert "no query in common" in rusbeir("eval", "mini/ru", "my.run").err


def test_datasets(rusbeir):
    rows = {row["name"]: row for row in json.loads(rusbeir("datasets", "--json").out)}
    assert rows["xquad/ru"]["n_docs"] == 240
    assert (rows["xquad/ru"]["verified"], rows["xquad/vi"]["verified"]) == (True, False)
    lines = {line.split()[0]: line for line in rusbeir("datasets", "--lang", "ru").out.splitlines() if line.split()}
    assert "unverified" not in lines["xquad/ru"]
    assert "unverified" in lines["rusbeir/rus-scifact"]


def test_validate(rusbeir, beir):
    assert rusbeir("datasets", "validate", beir).code == 0
    with (beir / "qrels" / "test.tsv").open("a") as file:
        file.write("q1\tmissing\t1\n")
    outcome = rusbeir("datasets", "validate", beir)
    assert outcome.code == 1
    assert "test.tsv:4" in outcome.out
    assert "missing" in outcome.out


def test_cache(rusbeir, beir, fresh_cache):
    rusbeir("index", beir)
    assert "indexes" in rusbeir("cache", "info").out
    assert json.loads(rusbeir("cache", "clear", "indexes", "--json").out)["freed_bytes"] > 0
    assert "indexes" not in json.loads(rusbeir("cache", "info", "--json").out)["bytes"]
    rusbeir("cache", "clear")
    assert list(fresh_cache.iterdir()) == []


def test_cache_clear_leaves_what_rusbeir_did_not_make(rusbeir, fresh_cache, tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk" / "lemmas.sqlite").write_text("lemmas")
    (fresh_cache / "thesis").mkdir(parents=True)
    (fresh_cache / "corpora").mkdir()
    (fresh_cache / "models").mkdir()
    (fresh_cache / "lemmas").symlink_to(tmp_path / "disk")
    (fresh_cache / "runs").symlink_to(tmp_path / "missing")
    outcome = rusbeir("cache", "clear")
    assert outcome.code == 0
    assert f"removed {fresh_cache / 'corpora'}: 0 bytes" in outcome.err
    assert "not removed, since rusbeir did not make it: models, thesis" in outcome.err
    assert sorted(path.name for path in fresh_cache.iterdir()) == ["models", "thesis"]
    assert (tmp_path / "disk" / "lemmas.sqlite").exists()
    assert rusbeir("cache", "clear", "thesis").code == 2


def test_cache_clear_knows_every_part():
    sources = "".join(path.read_text() for path in Path(storage.__file__).parent.rglob("*.py"))
    made = set(re.findall(r'cache_folder\(\) / "(\w+)"', sources))
    assert made - {"models"} == set(storage.CACHE_PARTS)


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("the file\n  a.tsv:3", "the file a.tsv:3"),
        ("the id 'a\x1b[31m\x00\u202e'", r"the id 'a\x1b[31m\x00\u202e'"),
        ("a lone \ud800", r"a lone \ud800"),
        ("a.tsv:3: " + "x" * 50_000_000 + " is repeated", None),
        ("a.tsv:3: " + "\x00" * 50_000 + " is repeated", None),
    ],
    ids=["lines", "controls", "surrogate", "50 MB", "escaped"],
)
def test_an_error_is_one_short_printable_line(message, line, monkeypatch, capsys):
    def fail(**options):
        raise BadInput(message)

    monkeypatch.setattr(main, "app", fail)
    with pytest.raises(SystemExit):
        main.main()
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert len(said) <= 2_100
    assert said.rstrip("\n").isprintable()
    if line is not None:
        assert said == f"rusbeir: {line}\n"
    else:
        assert said.startswith("rusbeir: a.tsv:3: ")
        assert said.endswith(" is repeated\n")


def test_output_is_plain_off_a_terminal(rusbeir, beir):
    outcome = rusbeir("bench", beir)
    assert "\x1b" not in outcome.out + outcome.err


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("rusbeir ben", ["bench"]),
        ("rusbeir bench xquad/ru/s", ["xquad/ru/sentences"]),
        ("rusbeir bench x --engine tan", ["tantivy"]),
        ("rusbeir bench x --system bm25(profile=rus", ["bm25(profile=rusbeir-paper)"]),
        ("rusbeir analyze --lang e", ["el", "en", "es", "et", "eu"]),
    ],
)
def test_completion(words, offered):
    environment = os.environ | {
        "_RUSBEIR_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    program = Path(sys.executable).parent / "rusbeir"
    done = subprocess.run([program], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.split() == offered


def test_progress_without_a_terminal_is_plain_lines(capfd, monkeypatch):
    clock = iter(range(0, 1000, 6))
    monkeypatch.setattr("time.monotonic", lambda: float(next(clock)))
    with output.progress() as report:
        for done in range(0, 50, 10):
            report("index", done, 100)
    assert capfd.readouterr().err.splitlines() == [
        "index: 20 of 100 (2/s, 48 s left)",
        "index: 40 of 100 (2/s, 36 s left)",
    ]


def test_languages_as_people_write_them(rusbeir, beir):
    (beir / "card.json").unlink()
    for spelling in ("RU", "ru-RU", "Russian"):
        (row,) = json.loads(rusbeir("bench", beir, "--lang", spelling, "--json").out)["rows"]
        assert row["language"] == "ru"


def test_no_dataset_in_a_language_is_said(rusbeir):
    outcome = rusbeir("datasets", "--lang", "la")
    assert (outcome.code, outcome.out) == (0, "")
    assert "No registered dataset is in 'la'" in outcome.err


def test_short_help(rusbeir):
    assert rusbeir("audit", "check", "-h").out == rusbeir("audit", "check", "--help").out

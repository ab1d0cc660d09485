"""Tasks of MTEB run with rusbeir's systems, and their result files; the tasks are mteb's own mock tasks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import rusbeir.mteb
from rusbeir.errors import BackendError, BadInput, UnknownName
from rusbeir.mteb import find_task_language, find_tasks, run_tasks
from rusbeir.mteb.task_runs import _read_published
from rusbeir.text import digest
from rusbeir.types import Doc
from tests.support.command_line import one_line

MOCKS = "python:mteb.mocks.mock_tasks."
# nDCG@10 of mteb-2.26.24's own BM25, mteb/baseline-bm25s, on each subset of the mock tasks.
SCORE = 0.63093


def write_published(
    folder: Path, model: str, task: str, score: float | None, revision: str = "0_1_10", version: str = "2.1.0"
) -> Path:
    path = folder / "results" / model.replace("/", "__") / revision / f"{task}.json"
    path.parent.mkdir(parents=True)
    entries = [{"hf_subset": subset, "main_score": score, "languages": ["eng-Latn"]} for subset in ("default",)]
    scores = {"val": entries, "test": entries}
    path.write_text(json.dumps({"task_name": task, "mteb_version": version, "scores": scores}))
    return path


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rusbeir.cli", "mteb", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_verb_writes_what_mteb_reads(tmp_path):
    write_published(tmp_path / "published", "mteb/baseline-bm25s", "MockRetrievalTask", 0.5)
    tasks = [MOCKS + name for name in ("MockRetrievalTask", "MockMultilingualRetrievalTask", "MockRerankingTask")]
    where = ("--out", tmp_path / "out", "--results", tmp_path / "published", "--json")
    done = run(*tasks, MOCKS + "MockClassificationTask", *where)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["left_out"] == ["MockClassificationTask"]
    first, second, _ = answer["tasks"]
    # The third one's relevant candidate is the second hit of each query, and its measure is MAP.
    assert [task["score"] for task in answer["tasks"]] == pytest.approx([SCORE, SCORE, 0.5])
    assert (first["measure"], first["subsets"], second["subsets"]) == ("ndcg_at_10", 1, 2)
    assert first["published"] == {"mteb/baseline-bm25s": 0.5}
    assert first["differences"]["mteb/baseline-bm25s"] == pytest.approx(SCORE - 0.5)
    # The layout of embeddings-benchmark/results.
    path = Path(first["path"])
    assert path.relative_to(tmp_path / "out" / "results").parts[0].startswith("rusbeir__bm25-")
    assert len(path.relative_to(tmp_path / "out" / "results").parts) == 3
    meta = json.loads((path.parent / "model_meta.json").read_text())
    assert (meta["model_type"], meta["languages"]) == (["sparse"], ["eng-Latn", "fra-Latn"])
    settings = [json.loads(line) for line in (path.parent / "run_settings.jsonl").read_text().splitlines()]
    assert settings[0]["encode_kwargs"]["signature"].startswith("bm25|lang:task|v:")


def test_a_result_serves_again_and_a_table_compares(tmp_path, monkeypatch):
    (task,), _ = find_tasks([MOCKS + "MockRetrievalTask"])
    write_published(tmp_path, "someone/model", "MockRetrievalTask", 0.9)
    first = list(run_tasks([task], "bm25", out=tmp_path / "out", results=tmp_path, against=["someone/model", "no/one"]))
    assert (first[0].published, first[0].failure) == ({"someone/model": 0.9}, "")
    written = first[0].path.stat().st_mtime_ns
    (again,) = run_tasks([task], "bm25", out=tmp_path / "out")
    assert (again.score, again.path.stat().st_mtime_ns) == (first[0].score, written)
    (forced,) = run_tasks([task], "bm25", out=tmp_path / "out", force=True)
    assert (forced.score, forced.path.stat().st_mtime_ns > written) == (first[0].score, True)


def test_languages_are_chosen(tmp_path):
    (task,), _ = find_tasks([MOCKS + "MockMultilingualRetrievalTask"], languages=["fra"])
    (score,) = run_tasks([task], "bm25", out=tmp_path)
    assert score.subsets == 1
    assert json.loads((score.path.parent / "model_meta.json").read_text())["languages"] == ["fra-Latn"]


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (ConnectionError("no route to the hub"), "ConnectionError: no route to the hub"),
        (KeyError("corpus"), "KeyError: 'corpus'"),
    ],
)
def test_a_task_that_fails_is_said_and_the_others_run(tmp_path, error, failure):
    (task,), _ = find_tasks([MOCKS + "MockRetrievalTask"])
    (broken,), _ = find_tasks([MOCKS + "MockInstructionRetrieval"])
    broken.load_data = lambda **settings: (_ for _ in ()).throw(error)
    scores = list(run_tasks([broken, task], "bm25", out=tmp_path))
    assert [score.score is None for score in scores] == [True, False]
    assert scores[0].failure == failure


def test_the_name_of_a_submission_tells_settings_apart(tmp_path, monkeypatch):
    """Else a result of other settings would serve; by default the name is that of the system alone."""

    def name(**settings: str) -> str:
        made = rusbeir.mteb.model("bm25", **settings)
        made.submission = ("eng-Latn",)
        return made.mteb_model_meta.name

    default = name()
    assert default == f"rusbeir/bm25-{digest('bm25', chars=6)}"
    names = [default, name(engine="bm25s"), name(language="ru"), name(language="en")]
    assert len({*names}) == len(names)
    signature = rusbeir.mteb.model("bm25").signature
    (tmp_path / "ru.toml").write_text('stopwords = "none"\n', encoding="utf-8")
    monkeypatch.setenv("RUSBEIR_ANALYZERS", str(tmp_path))
    assert (name() == default, name(language="ru") == names[2]) == (False, False)
    assert name(language="en") == names[3], "the file is of another language"
    assert rusbeir.mteb.model("bm25").signature != signature


@pytest.mark.parametrize(
    ("revisions", "why"),
    [
        ({"new": ("1.9.0", 0.1), "old": ("1.10.0", 0.7)}, "the newest mteb counts, not the newest file"),
        ({"external": ("2.9.0", 0.1), "0a": ("1.1.0", 0.7)}, "a known revision before one that is not"),
    ],
)
def test_one_published_revision_counts(tmp_path, revisions, why):
    (task,), _ = find_tasks([MOCKS + "MockRetrievalTask"])
    for age, (revision, (version, score)) in enumerate(revisions.items()):
        path = write_published(tmp_path, "a/b", task.metadata.name, score, revision, version)
        os.utime(path, (1000 - age, 1000 - age))
    assert _read_published(tmp_path / "results", "a/b", task) == pytest.approx(0.7), why


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "MockRetrievalTask.json:1: not JSON"),
        ("[]", "is no result of MTEB"),
        ('{"scores": {"test": [{"hf_subset": "default"}]}}', "is no result of MTEB"),
        ('{"scores": {"test": [{"hf_subset": "default", "main_score": null}]}}', ""),
    ],
)
def test_a_published_file_without_scores_is_left_out(tmp_path, caplog, text, reason):
    (task,), _ = find_tasks([MOCKS + "MockRetrievalTask"])
    write_published(tmp_path, "a/b", task.metadata.name, 0.5).write_text(text)
    assert _read_published(tmp_path / "results", "a/b", task) is None
    assert reason in caplog.text
    assert bool(caplog.text) == bool(reason)


@pytest.mark.parametrize(
    ("name", "languages", "reason"),
    [
        ("python:math.sqrt", [], "python:math.sqrt fails when it is called: TypeError"),
        ("python:gc.collect", [], "python:gc.collect returns int, not a task of mteb"),
        (MOCKS + "MockRetrievalTask", ["english"], "mteb does not know a language of english"),
    ],
)
def test_names_of_no_task_are_one_line(name, languages, reason):
    with pytest.raises((BadInput, BackendError), match=reason):
        find_tasks([name], languages=languages)


def test_what_is_wrong_is_one_line(tmp_path):
    with pytest.raises(UnknownName, match=r"No benchmark or task of MTEB 'SciFac'. Did you mean 'SciFact'"):
        find_tasks(["SciFac"])
    (task,), _ = find_tasks([MOCKS + "MockRetrievalTask"])
    with pytest.raises(BadInput, match="has no results of MTEB"):
        list(run_tasks([task], out=tmp_path, results=tmp_path))
    done = run(MOCKS + "MockRetrievalTask", "--against", "x/y")
    assert (done.returncode, one_line(done.stderr, ["--against needs --results"])) == (2, True)


LANGUAGES = [
    # eval_langs, documents, the tag
    (["python-Code"], ["def main(): pass"], "en"),
    (["eng-Latn", "python-Code"], ["def main(): pass"], "en"),
    (["eng-Latn", "gaz-Latn"], ["Mootummaan Itoophiyaa beeksise"], "om"),
    (["eng-Latn", "kin-Latn"], ["The government has announced that the road is open to all."], "en"),
    (["eng-Latn", "dzo-Tibt"], ["འབྲུག་རྒྱལ་ཁབ་"], "dz"),
    (["fil-Latn", "eng-Latn"], ["Ang pamahalaan ay nagpahayag na bukas na ang daan."], "fil"),
]


@pytest.mark.parametrize(("named", "texts", "tag"), LANGUAGES)
def test_a_pair_of_languages_runs(named, texts, tag):
    docs = [Doc(str(number), text) for number, text in enumerate(texts)]
    assert find_task_language(SimpleNamespace(name="T", eval_langs=named), "default", docs) == tag

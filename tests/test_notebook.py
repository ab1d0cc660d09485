"""Corpora and datasets as Python objects, and what a notebook shows of them and of progress."""

from __future__ import annotations

import copy
import json
import pickle
import sys
from types import SimpleNamespace

import pytest

import rusbeir
from rusbeir import notebook
from rusbeir.types import Dataset, Doc

HOSTILE = "<script>alert(1)</script>\ud800\u202e"
DOCS = [Doc("d1", "Кошка спит.", "Кошки"), Doc("d2", "Собака лает."), Doc("d3", "Рыба молчит.")]


@pytest.fixture(params=["memory", "file"])
def dataset(request, tmp_path, fresh_cache) -> Dataset:
    made = Dataset.of(DOCS, {"q1": "кошка"}, {"q1": {"d1": 1}}, language="ru", name="pets", licence="CC0")
    if request.param == "memory":
        return made
    rusbeir.write_beir(made, tmp_path / "pets")
    return rusbeir.load(tmp_path / "pets")


@pytest.mark.parametrize(
    ("key", "found"),
    [
        ("d2", "d2"),
        (0, "d1"),
        (2, "d3"),
        (-1, "d3"),
        (-3, "d1"),
        (True, "d2"),
        (slice(1, None), ["d2", "d3"]),
        (slice(None, None, -1), ["d3", "d2", "d1"]),
        (slice(5, 9), []),
    ],
)
def test_documents_are_asked_for_by_id_place_and_slice(dataset, key, found):
    answer = dataset.corpus[key]
    assert (answer.doc_id if isinstance(answer, Doc) else [doc.doc_id for doc in answer]) == found


@pytest.mark.parametrize(
    ("key", "error", "message"),
    [
        ("d9", KeyError, "d9"),
        (3, IndexError, "has 3 documents, and none at place 3"),
        (-4, IndexError, "none at place -4"),
        (1.0, TypeError, "not for a float"),
        (None, TypeError, "not for a NoneType"),
    ],
)
def test_what_is_not_there_is_said_as_python_does(dataset, key, error, message):
    with pytest.raises(error, match=message):
        dataset.corpus[key]


@pytest.mark.parametrize(
    ("wanted", "inside"),
    [
        ("d1", True),
        ("d9", False),
        (DOCS[1], True),
        (DOCS[1]._replace(text="Another text"), False),
        (Doc("d9", ""), False),
        (0, False),
        ((), False),
        ((1, 2), False),
        (None, False),
    ],
)
def test_in_looks_for_an_id_or_a_document(dataset, wanted, inside):
    """Without `in` of its own, Python compared each document with the id: False for one that is there."""
    assert (wanted in dataset.corpus) is inside


def test_a_dataset_is_shown_in_one_line(dataset):
    assert repr(dataset) == ("<Dataset pets: language ru, split test, 3 documents, 1 queries, 1 judgements>")
    assert repr(dataset.corpus).endswith("Corpus: 3 documents>")
    assert repr(copy.copy(dataset)) == repr(dataset)
    assert pickle.loads(pickle.dumps(dataset.corpus))[0] == DOCS[0]


def test_html_holds_the_beginning_and_nothing_that_runs(tmp_path, fresh_cache):
    """A lone surrogate, which no notebook file can hold, becomes a question mark."""
    docs = [Doc(f"d{n}", "long " * 200, HOSTILE.replace("\ud800", "")) for n in range(50)]
    made = Dataset.of(docs, {"q": "<b>bold</b>"}, {"q": {"d1": 1}}, language="en", name=HOSTILE, licence=HOSTILE)
    for shown in (made._repr_html_(), made.corpus._repr_html_()):
        shown.encode()
        assert "<script" not in shown
        assert "&lt;script&gt;" in shown
        assert "… 47 more" in shown
        assert len(shown) < 5000
    assert "&lt;b&gt;bold" in made._repr_html_()
    assert "CC0" in Dataset.of(DOCS, {"q": "x"}, {"q": {"d1": 1}}, language="ru", licence="CC0")._repr_html_()


def test_rows_runs_and_explanations_are_tables(tmp_path, fresh_cache):
    rows = rusbeir.bench("mini/ru", {"words": "bm25(profile=raw)", "stems": "bm25"}, measures="nDCG@10", out=tmp_path)
    again = rusbeir.bench("mini/ru", "bm25", measures="nDCG@10", out=tmp_path)
    frame = rows.to_pandas()
    assert list(frame["label"]) == ["words", "stems"]
    assert list(frame["nDCG@10"]) == [row["measures"]["nDCG@10"] for row in rows]
    assert {"nDCG@10_answered", "search_seconds", "index_bytes"} <= set(frame.columns)
    assert not any(isinstance(cell, (dict, list)) for cell in frame.to_numpy().ravel())
    assert again == rows[1]
    assert json.loads(json.dumps(rows)) == rows == [dict(row) for row in rows]
    assert f"<td><bdi>{100 * rows[0]['measures']['nDCG@10']:.2f}</bdi></td>" in rows._repr_html_()
    assert ("words" in rows._repr_html_(), "words" in again._repr_html_()) == (True, False)
    assert again.to_pandas().shape[0] == 1

    run = rusbeir.search("mini/ru", "bm25", k=1)
    assert list(run.to_pandas().columns) == ["query_id", "rank", "score", "doc_id"]
    assert f"… {len(run.to_pandas()) - notebook.SHOWN_ROWS} more" in run._repr_html_()
    tokens = rusbeir.Analyzer("ru").explain("На столе")
    assert tokens.to_pandas().iloc[0]["dropped"] == "stop word"
    assert "<td><bdi>столе</bdi></td>" in tokens._repr_html_()


class Display:
    """What a kernel gets: every new output, and every change of it."""

    def __init__(self) -> None:
        self.outputs: list[list[str]] = []

    def display(self, html: str, *, display_id: bool) -> SimpleNamespace:
        assert display_id
        self.outputs.append([html])
        return SimpleNamespace(update=self.outputs[-1].append)


@pytest.fixture
def kernel(monkeypatch) -> Display:
    display = Display()
    shell = SimpleNamespace(kernel=object())
    module = SimpleNamespace(HTML=str, display=display.display)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell, display=module))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    monkeypatch.setattr(notebook, "SECONDS_BETWEEN_UPDATES", 0)
    monkeypatch.setattr(notebook, "_bars", {})
    return display


def test_progress_in_a_notebook(kernel, tmp_path, fresh_cache, capsys):
    rusbeir.bench("mini/ru", "bm25", out=tmp_path, progress=rusbeir.show_progress)
    assert any('<progress value="125" max="125"></progress> index: 125 of 125' in out[-1] for out in kernel.outputs)
    assert capsys.readouterr().err == ""


def test_a_stage_that_begins_again_has_a_new_bar(kernel):
    for done in (1, 2, 1, 5, 1):
        notebook.show_progress("<encode>", done, 5)
    notebook.show_progress("count", 7, None)
    assert [len(out) for out in kernel.outputs] == [2, 2, 1, 1]
    assert kernel.outputs[-1] == ["count: 7"]
    assert "&lt;encode&gt;: 5 of 5" in kernel.outputs[1][1]


def test_elsewhere_progress_is_lines(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace()))
    lines: list[str] = []
    seconds = iter([0.0, 4.0, 10.0])
    monkeypatch.setattr(notebook, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    monkeypatch.setattr(notebook, "_write_line", notebook.report_lines(lines.append))
    for done in (5, 7, 10):
        notebook.show_progress("index", done, 20)
    assert lines == ["index: 10 of 20 (1/s, 10 s left)"]

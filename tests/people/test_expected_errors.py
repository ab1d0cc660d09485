"""The share of segments that is expected to be bad: intervals in simulations, lists, and what the commands print."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from rusbeir.audit import audit_port
from rusbeir.cli.audit_expected import print_expected
from rusbeir.datasets import write_audit_command
from rusbeir.people.expected_errors import _Sample, _Segments, _weigh_list, estimate_share, expect_errors
from rusbeir.people.judge import judge_port
from rusbeir.people.sampling import draw_rows
from rusbeir.translation.porting.retries import SHAPE
from tests.people.test_span_judge import Marker
from tests.support.small_port import records


def simulate(generator: np.random.Generator, n_texts: int = 400) -> tuple[_Segments, np.ndarray]:
    """A port of texts of 1 to 8 segments, whose scores say something of which are bad."""
    sizes = generator.integers(1, 9, n_texts)
    texts = np.repeat(np.arange(n_texts), sizes)
    hard = generator.beta(0.5, 4, n_texts)[texts]
    bad = generator.random(len(texts)) < hard
    scores = 1 - hard + generator.normal(0, 0.2, len(texts)) - 0.3 * bad
    keys = [("document", f"d{text}", "text", n) for n, text in enumerate(texts)]
    numbers = {("document", f"d{text}"): text for text in range(n_texts)}
    chars = np.full(len(texts), 100)
    return _Segments(texts, keys, chars, np.zeros(len(texts), dtype=bool), {"kiwi": scores}, numbers), bad


def test_intervals_hold_the_share():
    """Samples as they are drawn, with rare strata too often; scores make the interval narrower."""
    generator = np.random.default_rng(3)
    held, widths = {"kiwi": 0, "none": 0}, {"kiwi": 0.0, "none": 0.0}
    n_ports = 150
    for seed in range(n_ports):
        segments, bad = simulate(generator)
        sizes = np.bincount(segments.texts)
        rows = [
            {"kind": "document", "id": f"d{n}", "chars": int(100 * sizes[n]), "flags": [],
             "qe": {"kiwi": float(segments.scores["kiwi"][segments.texts == n].mean())}}
            for n in range(len(sizes))
        ]  # fmt: skip
        drawn = draw_rows(rows, 80, seed)
        texts = np.array([int(record_id[1:]) for _, record_id in drawn])
        weights = np.array([weight for _, weight in drawn.values()])
        sample = _Sample(texts, weights, bad & np.isin(segments.texts, texts))
        for name, scores in (("kiwi", segments.scores["kiwi"]), ("none", None)):
            share = estimate_share(segments, sample, scores)
            held[name] += share.interval[0] <= bad.mean() <= share.interval[1]
            widths[name] += share.interval[1] - share.interval[0]
    assert all(n >= 0.92 * n_ports for n in held.values()), held
    assert widths["kiwi"] < 0.95 * widths["none"]


def test_a_whole_port_has_no_interval():
    segments, bad = simulate(np.random.default_rng(1), 30)
    sample = _Sample(np.arange(30), np.ones(30), bad)
    share = estimate_share(segments, sample, segments.scores["kiwi"])
    assert share.value == pytest.approx(bad.mean())
    assert share.interval == (share.value, share.value)


def test_nothing_bad_in_a_sample_is_not_nothing_bad_in_the_port():
    segments, bad = simulate(np.random.default_rng(1), 200)
    sample = _Sample(np.arange(20), np.full(20, 10.0), np.zeros_like(bad))
    share = estimate_share(segments, sample, None)
    assert share.value == 0
    # Wilson's interval for none of 20, of which a tenth of the port is known.
    assert share.interval == pytest.approx((0, 0.1475), abs=0.001)


def test_one_judged_segment_says_little_of_a_list():
    segments, bad = simulate(np.random.default_rng(1), 200)
    sample = _Sample(np.arange(20), np.full(20, 10.0), np.ones_like(bad))
    members = segments.texts == 0
    row = _weigh_list("kiwi-1", members, segments, sample, 0.1, Path("kiwi-1.jsonl"))
    assert row.bad.value == 1
    # Wilson's interval for one of one text, of which a tenth of the port is known.
    assert row.bad.interval == pytest.approx((0.224, 1), abs=0.01)


@pytest.fixture
def port(make_port, serve, tmp_path, monkeypatch) -> Path:
    """A port with scores and verdicts; ten texts would be asked for."""
    monkeypatch.setattr("rusbeir.people.expected_errors.MIN_TEXTS", 3)
    folder = make_port()
    (tmp_path / "kiwi.tsv").write_text("segment\tscore\nd1\t0.3\nd2\t0.9\nd3\t0.4\nq1\t0.2\nq2\t0.8\n")
    audit_port(folder, processes=1, round_trip=False, qe=[str(tmp_path / "kiwi.tsv")])
    assert expect_errors(folder) is None, "nothing was judged yet"
    serve(Marker())
    return folder


def test_lists(port, capsys):
    judge_port(port, llm="m", n=6)
    expected = expect_errors(port)
    assert expected["by"] == "kiwi"
    assert json.loads((port / "qa" / "expected.json").read_text())["share"]["value"] == expected["share"]["value"]
    lists = {row["name"]: row for row in expected["lists"]}
    rows = records(port / "qa" / "segments.jsonl")
    # The judge marks "тает" in three texts, each time in one segment, and all texts were judged.
    bad = [row for row in rows if "тает" in row["translation"]]
    assert len(bad) == 3
    assert expected["share"]["value"] == pytest.approx(3 / len(rows))
    assert lists["judged"]["segments"] == 3
    judged = records(port / "qa" / "retry" / "judged.jsonl")
    assert [(row["id"], row["field"], row["segment"], row["source"]) for row in judged] == [
        (row["id"], row["field"], row["segment"], row["source"]) for row in bad
    ]
    assert judged[0].keys() <= {key.removesuffix("?") for key in SHAPE}, "as --retry-segments reads them"
    worst = lists["kiwi-20"]
    assert (worst["segments"], worst["judged"]) == (2, 2)
    assert worst["bad"]["value"] == 0.5, "q1 is bad, and the first segment of d1 is not"
    assert worst["gain"]["value"] == pytest.approx((0.5 - 3 / len(rows)) * 2 * 1000 / worst["chars"])
    print_expected(expected)
    captured = capsys.readouterr()
    assert "Expected to have a major error: 33.3% of 9 segments (33.3% to 33.3%)" in " ".join(captured.err.split())
    assert f"--retry-segments {port / 'qa' / 'retry' / 'kiwi-20.jsonl'}" in " ".join(captured.err.split())


def test_what_to_do_without_verdicts(port, capsys):
    command = write_audit_command("judge", port, "--llm", "MODEL")
    print_expected(None, command=command)
    assert f"rusbeir audit judge {port} --llm MODEL" in " ".join(capsys.readouterr().err.split())
    print_expected(None)
    assert capsys.readouterr().err == ""

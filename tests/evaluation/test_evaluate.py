"""Scores against trec_eval's rules: hand-worked rows, and trec_eval's own code on random tie-heavy runs."""

from __future__ import annotations

import math
import random
import re
import subprocess
import sys

import ir_measures
import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from rusbeir.errors import BadInput, MissingExtra, UnknownName
from rusbeir.evaluation import DEFAULT_MEASURES, check_measures, evaluate
from rusbeir.evaluation import measures as measures_module

LOG3 = math.log2(3)
ROWS = [
    # qrels, run, measure, over all, over answered, why
    ({"q": {"a": 1}}, {"q": {"a": 1.0}}, "nDCG@10", 1.0, 1.0, "one hit, relevant"),
    ({"q": {"a": 1}}, {"q": {"b": 2.0, "a": 1.0}}, "nDCG@10", 1 / LOG3, 1 / LOG3, "relevant at rank 2"),
    ({"q": {"a": 1}, "p": {"a": 1}}, {"q": {"a": 1.0}}, "nDCG@10", 0.5, 1.0, "a query absent from the run is 0"),
    ({"q": {"a": 1}, "p": {"a": 1}}, {"q": {"a": 1.0}, "p": {}}, "AP@10", 0.5, 1.0, "so is one without hits"),
    ({"q": {"a": 0}}, {"q": {"a": 1.0}}, "nDCG@10", 0.0, 0.0, "a judged query with nothing relevant counts as 0"),
    ({"q": {"a": 2, "b": 1}}, {"q": {"b": 2.0, "a": 1.0}}, "nDCG@10", (1 + 2 / LOG3) / (2 + 1 / LOG3), None, "linear"),
    ({"q": {"a": 1, "b": 1}}, {"q": {"a": 1.0}}, "AP@10", 0.5, None, "AP divides by all relevant documents"),
    ({"q": {"a": 1, "b": 1}}, {"q": {"a": 1.0}}, "R@10", 0.5, None, "recall"),
    ({"q": {"c": 1}}, {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}, "RR@10", 1 / 3, None, "reciprocal rank"),
    ({"q": {"c": 1}}, {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}, "RR@2", 0.0, None, "beyond the cut-off"),
    ({"q": {"c": 1}}, {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}, "RR@3", 1 / 3, None, "on the cut-off"),
    ({"q": {"a": 1}}, {"q": {"a": 1.0, "b": 1.0}}, "RR@10", 0.5, None, "ties go by falling id: b before a"),
    ({"q": {"9": 1}}, {"q": {"9": 1.0, "10": 1.0}}, "RR@10", 1.0, None, "as text: 9 before 10"),
    ({"q": {"a": 1}}, {"q": {"a": 1.0, "b": 1 - 1e-9}}, "RR@10", 0.5, None, "trec_eval's scores are single precision"),
    ({"q": {"a": 1}}, {"q": {"a": 1.0}, "zz": {"x": 1.0}}, "RR@10", 1.0, None, "unjudged queries are left aside"),
    ({"q": {"a": 2, "b": 1}}, {"q": {"b": 2.0, "a": 1.0}}, "AP(rel=2)@10", 0.5, None, "a level of relevance"),
    ({"q": {"a": 1}, "p": {"a": 1}}, {"q": {"a": 1.0}, "p": {}}, "IPrec@0.0", 0.5, 1.0, "no division by 0 hits"),
    ({"q": {"a": 1}, "p": {"a": 1}}, {"q": {"a": 1.0}}, "NumQ", 2, 1, "trec_eval -c: the queries of the qrels"),
    ({"q": {"a": 2, "b": 0}, "p": {"a": 1}}, {"q": {"a": 1.0}}, "NumRel", 2, 1, "counts are summed"),
    ({"q": {"a": 1}, "p": {"a": 1}}, {"q": {"a": 2.0, "b": 1.0}}, "NumRet", 2, 2, "hits in all"),
    ({"q": {"a": 1}, "p": {"a": 1}}, {"q": {"a": 2.0, "b": 1.0}}, "NumRet(rel=1)", 1, 1, "relevant hits in all"),
]  # fmt: skip


@pytest.mark.parametrize(("qrels", "run", "measure", "over_all", "over_answered", "why"), ROWS)
def test_hand_worked(qrels, run, measure, over_all, over_answered, why):
    result = evaluate(qrels, run, [measure])
    assert result.measures[measure] == pytest.approx(over_all, abs=1e-7), why
    if over_answered is not None:
        assert result.measures_answered[measure] == pytest.approx(over_answered, abs=1e-7), why


EXPONENTIAL = (1 + 3 / LOG3) / (3 + 1 / LOG3)
OTHERS = [
    # qrels, run, measure, over all, why
    ({"q": {"a": 0, "b": 1}}, {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}, "Judged@10", 2 / 3, "of the hits there are"),
    ({"q": {"a": 1}}, {"q": {"x": 3.0, "a": 2.0, "y": 1.0}}, "Judged@2", 1 / 2, "of the first two"),
    ({"q": {"a": -1}}, {"q": {"a": 2.0, "b": 1.0}}, "Judged@10", 1 / 2, "a negative grade is a judgement"),
    ({"q": {"a": 1}, "p": {"a": 1}}, {"q": {"a": 1.0}, "p": {}}, "Judged@10", 1 / 2, "a query without hits is 0"),
    ({"q": {"a": 1}, "p": {"a": 1}}, {"q": {"a": 1.0}}, "Judged@10", 1 / 2, "so is one absent from the run"),
    ({"q": {"a": 1}}, {"q": {"a": 1.0, "b": 1.0}}, "Judged@1", 0.0, "ties as in trec_eval: b before a"),
    ({"q": {"a": 1}}, {"q": {"a": 1.0, "b": 1 - 1e-9}}, "Judged@1", 0.0, "single precision"),
    ({"q": {"a": 4}}, {"q": {"a": 1.0}}, "ERR@10", 15 / 16, "(2^4 - 1) / 2^4, of the highest grade that gdeval takes"),
    ({"q": {"a": 1, "b": 4}}, {"q": {"a": 2.0, "b": 1.0}}, "ERR@10", 1 / 16 + 15 / 16 * 15 / 16 / 2, "a cascade"),
    ({"a-1 x": {"d 1": 4}, "b-1": {"d": 4}}, {"a-1 x": {"d 1": 1.0}}, "ERR@10", 15 / 32, "ids of any form"),
    ({"q": {"a": 0}}, {"q": {"a": 1.0}}, "ERR@10", 0.0, "nothing relevant counts as 0"),
    ({"q": {"a": 2, "b": 1}}, {"q": {"b": 2.0, "a": 1.0}}, "nDCG(dcg='exp-log2')@10", EXPONENTIAL, "2^g - 1"),
    ({"q": {"a": 1}}, {"q": {"b": 2.0, "a": 1.0}}, "Compat", 0.475 / 1.475, "rank-biased overlap"),
    ({"q": {"a": -2}}, {"q": {"a": 1.0}}, "nDCG@10", 0.0, "only negative grades: trec_eval itself crashes"),
    ({"q": {"a": -1}}, {"q": {"a": 1.0}}, "AP", 0.0, "or reads memory of others"),
]  # fmt: skip


@pytest.mark.parametrize(("qrels", "run", "measure", "expected", "why"), OTHERS)
def test_measures_of_other_providers(qrels, run, measure, expected, why):
    assert evaluate(qrels, run, measure).measures[measure] == pytest.approx(expected, abs=1e-5), why


@pytest.mark.parametrize("seed", range(3))
def test_equal_to_ir_measures(seed):
    """Where scores differ, ids are plain and every query has a hit, its providers need no preparation."""
    chance = random.Random(seed)
    docs = [f"d{i}" for i in range(60)]
    qrels = {str(i): {d: chance.choice([0, 1, 1, 2]) for d in chance.sample(docs, 8)} for i in range(40)}
    run = {q: {d: chance.random() for d in chance.sample(docs, chance.randrange(1, 40))} for q in qrels}
    names = ["Judged@5", "Judged@30", "ERR@5", "ERR@20", "nDCG(dcg='exp-log2')@10", "Compat(p=0.9)"]
    expected = ir_measures.iter_calc([ir_measures.parse_measure(name) for name in names], qrels, run)
    result = evaluate(qrels, run, names).per_query
    n_values = 0
    for metric in expected:
        assert result[metric.query_id][str(metric.measure)] == pytest.approx(metric.value, abs=1e-9)
        n_values += 1
    assert n_values == len(names) * len(qrels)


def test_rank_biased_precision(needs):
    needs("cwl-eval", ir_measures.cwl_eval.is_available(), "pip install 'rusbeir[measures]'")
    qrels, run = {"q": {"a": 1, "b": 2}}, {"q": {"a": 3.0, "x": 2.0, "b": 1.0}}
    measures = evaluate(qrels, run, ["RBP(rel=1)", "RBP(rel=2,p=0.5)"]).measures
    assert measures == pytest.approx({"RBP(rel=1)": 0.2 * (1 + 0.64), "RBP(rel=2,p=0.5)": 0.5 * 0.25})


def test_a_provider_that_is_not_installed(monkeypatch):
    monkeypatch.setattr(ir_measures.cwl_eval, "_is_available", False)
    with pytest.raises(MissingExtra, match=r"'RBP\(rel=1\)' needs cwl_eval \(pip install 'rusbeir\[measures\]'\)"):
        check_measures("RBP(rel=1)")


def test_a_measure_is_added_without_editing_code(monkeypatch):
    class Hits(ir_measures.Measure):
        NAME = __name__ = "Hits"

    class Evaluator(ir_measures.Evaluator):
        def _iter_calc(self, run):
            for query_id, hits in run.items():
                yield ir_measures.Metric(query_id, Hits(), len(hits))

    class Provider(ir_measures.Provider):
        SUPPORTED_MEASURES = (Hits(),)

        def _evaluator(self, measures, qrels):
            return Evaluator(measures, qrels)

    monkeypatch.setitem(ir_measures.measures.registry, "Hits", Hits())
    monkeypatch.setattr(ir_measures.DefaultPipeline, "providers", [*ir_measures.DefaultPipeline.providers, Provider()])
    assert evaluate({"q": {"a": 1}}, {"q": {"a": 2.0, "b": 1.0}}, ["Hits", "P@1"]).measures == {"Hits": 2, "P@1": 1}


def test_what_a_provider_cannot_take_is_said():
    with pytest.raises(BadInput, match="ir-measures cannot compute ERR@10 from these judgements"):
        evaluate({"q": {"a": 5}}, {"q": {"a": 1.0}}, "ERR@10")


def test_one_measure_as_a_string():
    assert check_measures("MAP@10") == check_measures(["MAP@10", "AP@10"]) == ("AP@10",)


def test_nothing_answered():
    result = evaluate({"q": {"a": 1}}, {"q": {}}, ["nDCG@10"])
    assert (result.measures, result.measures_answered, result.n_zero_hit) == ({"nDCG@10": 0.0}, {}, 1)


def _random_case(seed: int, n_scores: int):
    chance = random.Random(seed)
    docs = [f"d{i}" for i in range(60)]
    qrels = {f"q{i}": {d: chance.choice([0, 1, 1, 2]) for d in chance.sample(docs, 8)} for i in range(40)}
    run = {q: {d: chance.randrange(n_scores) / 7 for d in chance.sample(docs, chance.randrange(40))} for q in qrels}
    return qrels, run


@pytest.mark.parametrize("n_scores", [2, 5, 1000])
@pytest.mark.parametrize("seed", range(5))
def test_equal_to_trec_eval(seed, n_scores):
    qrels, run = _random_case(seed, n_scores)
    names = {
        "nDCG@1": "ndcg_cut_1", "nDCG@10": "ndcg_cut_10", "AP@10": "map_cut_10", "AP": "map",
        "R@100": "recall_100", "P@5": "P_5", "RR": "recip_rank",
    }  # fmt: skip
    expected = pytrec_eval.RelevanceEvaluator(
        qrels, {"ndcg_cut.1,10", "map_cut.10", "map", "recall.100", "P.5", "recip_rank"}
    ).evaluate(run)
    result = evaluate(qrels, run, list(names))
    for query_id in qrels:
        for ours, theirs in names.items():
            assert result.per_query[query_id][ours] == expected[query_id][theirs]
    for ours, theirs in names.items():
        mean = sum(values[theirs] for values in expected.values()) / len(qrels)
        assert result.measures[ours] == pytest.approx(mean, abs=1e-12)


NEGATIVE = {
    "nDCG": "ndcg", "nDCG@10": "ndcg_cut_10", "AP": "map", "AP@10": "map_cut_10", "R@10": "recall_10", "P@5": "P_5",
    "RR": "recip_rank", "Rprec": "Rprec", "Bpref": "bpref", "infAP": "infAP", "IPrec@0.5": "iprec_at_recall_0.50",
    "SetP": "set_P", "SetR": "set_recall", "SetAP": "set_map", "SetF": "set_F", "Success@5": "success_5",
    "NumRet": "num_ret", "NumRel": "num_rel",
}  # fmt: skip


def _negative_case(seed: int):
    """Queries of 25 judgements with grades from -3 to 5, of which some have only negative ones."""
    chance = random.Random(seed)
    docs = [f"d{i}" for i in range(60)]
    highest = [chance.choice([-2, -1, 0, 1, 5]) for _ in range(40)]
    qrels = {f"q{i}": {d: chance.randint(-3, high) for d in chance.sample(docs, 25)} for i, high in enumerate(highest)}
    run = {q: {d: chance.randrange(20) / 7 for d in chance.sample(docs, chance.randrange(1, 50))} for q in qrels}
    return qrels, run


@pytest.mark.parametrize("seed", range(4))
def test_negative_grades_give_what_trec_eval_gives_where_it_is_defined(seed):
    """trec_eval's table of grades ends at the highest one of a query: below 0, it writes outside of its memory."""
    qrels, run = _negative_case(seed)
    names = set(NEGATIVE.values())
    defined = {q: grades for q, grades in qrels.items() if max(grades.values()) >= 0}
    parameters = {"ndcg_cut.10", "map_cut.10", "recall.10", "P.5", "iprec_at_recall.0.50", "success.5"}
    plain = {
        name for name in names if not any(name.startswith(parameter.split(".")[0] + "_") for parameter in parameters)
    }
    expected = pytrec_eval.RelevanceEvaluator(defined, parameters | plain).evaluate(run)
    result = evaluate(qrels, run, list(NEGATIVE)).per_query
    for query_id, grades in qrels.items():
        for ours, theirs in NEGATIVE.items():
            undefined = len(run[query_id]) if ours == "NumRet" else 0.0
            value = expected[query_id][theirs] if query_id in defined else undefined
            assert result[query_id][ours] == value, (query_id, ours, grades)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("measure", ["ERR@10", "nDCG(dcg='exp-log2')@10", "Compat", "nDCG(judged_only=True)@5"])
def test_negative_grades_are_not_relevant_for_other_providers(seed, measure):
    qrels, run = _negative_case(seed)
    low = {q: {d: min(grade, 4) for d, grade in grades.items()} for q, grades in qrels.items()}
    gone = {q: {d: g if g >= 0 else 0 for d, g in grades.items()} for q, grades in low.items()}
    if "judged_only" in measure:
        gone = {q: {d: g for d, g in grades.items() if g >= 0} or {"none": 0} for q, grades in low.items()}
    assert evaluate(low, run, measure).per_query == evaluate(gone, run, measure).per_query


def test_bpref_leaves_negative_grades_out():
    """By its definition: the relevant hit has one judged non-relevant hit above it; b, of grade -1, is not judged."""
    qrels, run = {"q": {"a": 0, "b": -1, "c": 1, "d": 1}}, {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}
    assert evaluate(qrels, run, "Bpref").measures["Bpref"] == pytest.approx((1 - 1 / 1) / 2)
    assert evaluate({"q": {"b": -1, "c": 1, "d": 1}}, run, "Bpref").measures["Bpref"] == pytest.approx(1 / 2)


UNUSABLE = [
    ({"q": {"a": 10**9}}, {}, "document 'a' for query 'q' is 1000000000; expected an integer from -1,000 to 1,000"),
    ({"q": {"a": -(10**5)}}, {}, "is -100000; expected"),
    ({"q\0": {"a": 1}}, {}, r"The id 'q\x00' has a character"),
    ({"q": {"a\0": 1}}, {}, r"The id 'a\x00' has a character"),
    ({"q": {"a": 1}}, {"q": {"b\0": 1.0}}, r"The id 'b\x00' has a character"),
    ({"q\ud800": {"a": 1}}, {}, r"The id 'q\ud800' has a character"),
    ({"q": {"a": 0.5}}, {"q": {"a": 1.0}}, "trec_eval cannot compute RR from these judgements and this run"),
    ({"q": {"a": 1}}, {"q": {"a": "1"}}, "trec_eval cannot compute RR from these judgements and this run"),
]


@pytest.mark.parametrize(("qrels", "run", "message"), UNUSABLE)
def test_what_trec_eval_cannot_take_is_refused(qrels, run, message):
    with pytest.raises(BadInput) as caught:
        evaluate(qrels, run, "RR")
    assert message in str(caught.value)


def test_a_query_with_an_empty_judgement_is_0():
    assert evaluate({"q": {}, "p": {"a": 1}}, {"q": {"a": 1.0}, "p": {"a": 1.0}}, "AP").per_query["q"] == {"AP": 0.0}


TIES = [
    ({"a": 1}, {"a": 2.0, "b": 1.0}, 0, "no ties"),
    ({"a": 1}, {"a": 1.0, "b": 1.0}, 1, "the order decides between rank 1 and 2"),
    ({"a": 1, "b": 1}, {"a": 1.0, "b": 1.0}, 0, "equal grades: any order scores the same"),
    ({"a": 2, "b": 1}, {"a": 1.0, "b": 1.0}, 1, "two grades"),
    ({"a": 1}, {"a": 3.0, "b": 1.0, "c": 1.0}, 0, "the tie is among unjudged documents"),
    ({"a": 0}, {"a": 1.0, "b": 1.0}, 0, "judged 0 and unjudged are the same"),
    ({"a": 1}, {"a": 1.0, "b": 1 - 1e-9}, 1, "equal in single precision"),
]
OTHER_TIES = [
    ("Judged@1", {"a": 0}, {"a": 1.0, "b": 1.0}, 1, "judged 0 and unjudged are not the same"),
    ("Judged@2", {"a": 0}, {"a": 1.0, "b": 1.0}, 0, "both are among the first two"),
    ("ERR@10", {"a": 1}, {"a": 1.0, "b": 1.0}, 1, "the order decides between rank 1 and 2"),
    ("ERR@1", {"a": 1}, {"c": 2.0, "a": 1.0, "b": 1.0}, 0, "beyond the cut-off"),
    ("nDCG(judged_only=True)@1", {"a": 1, "b": 0}, {"u": 2.0, "a": 1.0, "b": 1.0}, 1, "without u they come first"),
]


@pytest.mark.parametrize(("grades", "hits", "n_tied", "why"), TIES)
def test_tied(grades, hits, n_tied, why):
    assert evaluate({"q": grades}, {"q": hits}).n_tied == n_tied, why


@pytest.mark.parametrize(("measure", "grades", "hits", "n_tied", "why"), OTHER_TIES)
def test_tied_in_other_measures(measure, grades, hits, n_tied, why):
    assert evaluate({"q": grades}, {"q": hits}, measure).n_tied == n_tied, why


@pytest.mark.parametrize(
    "measures", [DEFAULT_MEASURES, ("nDCG@3", "RR@5"), ("P@5", "AP"), ("Judged@5", "Compat")], ids=" ".join
)
@pytest.mark.parametrize("seed", range(5))
def test_tied_queries_are_those_that_shuffling_ids_changes(seed, measures):
    """Renaming documents changes trec_eval's tie order and nothing else."""
    qrels, run = _random_case(seed, n_scores=6)
    chance = random.Random(seed)
    seen: dict[str, set[tuple[float, ...]]] = {q: set() for q in qrels}
    for _ in range(60):
        names = [f"d{i}" for i in range(60)]
        chance.shuffle(names)
        new = {f"d{i}": name for i, name in enumerate(names)}
        renamed = evaluate(
            {q: {new[d]: g for d, g in grades.items()} for q, grades in qrels.items()},
            {q: {new[d]: s for d, s in hits.items()} for q, hits in run.items()},
            measures,
        )
        for query_id, values in renamed.per_query.items():
            seen[query_id].add(tuple(round(values[name], 9) for name in measures))
    assert evaluate(qrels, run, measures).n_tied == sum(len(values) > 1 for values in seen.values())


def test_input_is_left_as_it_was():
    qrels, run = _random_case(1, 5)
    before = repr((qrels, run))
    evaluate(qrels, run)
    assert repr((qrels, run)) == before


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ndcg@10", "Did you mean 'nDCG@10'"),
        ("judged@10", "Did you mean 'Judged@10'"),
        ("ERR", "with these parameters. It computes ERR@REQUIRED."),
        ("gm_map", "ir-measures, and so rusbeir, lacks trec_eval's measure 'gm_map'."),
        ("relative_P_5", "lacks trec_eval's measure 'relative_P_5'."),
        ("", "No measure ''"),
        ("nDCG@", "No measure 'nDCG@'"),
        ("__import__('os')", "No measure"),
    ],
)
def test_unknown_measure(name, message):
    with pytest.raises(UnknownName, match=message.replace("(", r"\(")):
        check_measures([name])


BOUNDS = [
    ("P@0", "the cut-off must be an integer from 1 to 1,000,000"),
    ("nDCG@99999999999999999999", "the cut-off must be"),
    ("P@True", "the cut-off must be"),
    ("AP(rel=-1)", "rel must be an integer from 0 to 1,000"),
    ("nDCG(gains={0:-1,1:-2})@10", "each gain must be an integer from 0 to 1,000"),
    ("nDCG(gains={0:0,1:999999999})@10", "each gain must be"),
    ("nDCG(gains={'a':0,1:2})@10", "each grade of gains must be"),
    ("IPrec@1e999", "the recall must be from 0 to 1"),
]


@pytest.mark.parametrize(("name", "message"), BOUNDS)
def test_parameters_out_of_bounds(name, message):
    """A cut-off of 0 ends the process in trec_eval's code, and a negative gain is a negative grade."""
    with pytest.raises(BadInput, match=message):
        check_measures(name)


@pytest.mark.parametrize(
    "name",
    ["(" * 300, "nDCG@10" * 1000, "nDCG@10; nDCG@5", "nDCG(10)", "nDCG(**{})@5", "x.nDCG@10", "P@f()", "P@'5'", "\0"],
)
def test_hostile_names(name):
    with pytest.raises(UnknownName, match="No measure") as caught:
        check_measures(name)
    assert len(str(caught.value)) < 600


TREC_EVAL_NAMES = [
    ("map", "AP"), ("map_cut_100", "AP@100"), ("map_cut.100", "AP@100"), ("ndcg", "nDCG"), ("ndcg_cut_10", "nDCG@10"),
    ("recip_rank", "RR"), ("P_30", "P@30"), ("recall_100", "R@100"), ("success_5", "Success@5"), ("bpref", "Bpref"),
    ("iprec_at_recall_0.10", "IPrec@0.1"), ("num_rel_ret", "NumRet(rel=1)"), ("set_F", "SetF"), ("Rprec", "Rprec"),
]  # fmt: skip


@pytest.mark.parametrize(("theirs", "canonical"), TREC_EVAL_NAMES)
def test_names_of_trec_eval(theirs, canonical):
    assert check_measures(theirs) == (canonical,)


def test_names_are_parsed_without_what_python_3_14_removed():
    """ast.Num, Str and NameConstant are gone there, and ir-measures' own parser asks for them."""
    code = (
        "import ast\n"
        "for name in ('Num', 'Str', 'NameConstant', 'Bytes', 'Ellipsis'):\n"
        "    if hasattr(ast, name): delattr(ast, name)\n"
        "from rusbeir.evaluation import evaluate\n"
        "names = ['nDCG@10', 'AP(rel=2)@10', \"nDCG(gains={1:2,2:4})@5\", 'Judged@10', 'IPrec@0.5', 'map']\n"
        "print(list(evaluate({'q': {'a': 2}}, {'q': {'a': 1.0}}, names).measures.values()))\n"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "[1.0, 1.0, 1.0, 1.0, 1.0, 1.0]\n", done.stderr


def test_no_queries():
    with pytest.raises(BadInput, match="no query"):
        evaluate({}, {})


def test_scores_beyond_single_precision_tie_without_a_warning():
    """trec_eval reads them as infinite."""
    run = {"q1": {"d1": 2e40, "d2": 3e40}}
    assert evaluate({"q1": {"d1": 1, "d2": 0}}, run, ["nDCG@1", "Judged@1"]).n_tied == 1


SMALL_FLOATS = st.sampled_from([0.0, 0.25, 0.5, 1.0]) | st.floats(-10, 10, width=32)
RUNS = st.dictionaries(st.sampled_from("abcdefgh"), SMALL_FLOATS, max_size=8)
GRADES = st.dictionaries(st.sampled_from("abcdefghij"), st.integers(-2, 3), min_size=1, max_size=10)
COMMON = [
    "nDCG@3",
    "nDCG",
    "AP@2",
    "AP",
    "AP(rel=2)@5",
    "MAP",
    "R@3",
    "P@5",
    "RR",
    "MRR@2",
    "Success@1",
    "SetP",
    "SetR",
]
COMMON += ["NumRet", "NumRel", "NumQ"]


@given(grades=GRADES, hits=RUNS)
def test_without_trec_eval(grades, hits):
    """Where trec_eval has no wheel, its common measures are computed by NumPy: the same values."""
    qrels, run = {"q1": grades, "q2": {"a": 1}}, {"q1": hits}
    expected = evaluate(qrels, run, COMMON)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measures_module, "HAS_IR_MEASURES", False)
        actual = evaluate(qrels, run, COMMON)
    assert actual.per_query.keys() == expected.per_query.keys()
    for query_id, values in expected.per_query.items():
        assert actual.per_query[query_id] == pytest.approx(dict(values), abs=1e-12)
    assert actual.n_tied == expected.n_tied


def test_an_uncommon_measure_without_trec_eval(monkeypatch):
    monkeypatch.setattr(measures_module, "HAS_IR_MEASURES", False)
    with pytest.raises(UnknownName, match=r"No measure 'Bpref'.*The package ir-measures"):
        check_measures("Bpref")


@pytest.mark.parametrize(
    ("name", "missing"), [("SDCG@10", "max_rel, as in SDCG(max_rel=1)@10"), ("P", "cutoff, as in P@10")]
)
def test_a_measure_without_a_parameter_that_it_needs(name, missing):
    with pytest.raises(BadInput, match=f"needs {re.escape(missing)}"):
        check_measures(name)

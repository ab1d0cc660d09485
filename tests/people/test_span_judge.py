"""Errors that a judge marks: found in the texts, weighed, put to the vote, shown, and what is said of bad answers."""

from __future__ import annotations

import json
import random
from itertools import permutations
from pathlib import Path

import pytest

from rusbeir.audit import audit_port, open_port
from rusbeir.audit.quality_estimation.segment_scores import Extent, read_segment_scores
from rusbeir.cli.audit_judgements import print_judgements
from rusbeir.errors import BadInput, UnknownName
from rusbeir.jobs import Unfit
from rusbeir.people.error_spans import ErrorSpan, MarkedError, add_costs, locate_errors
from rusbeir.people.judge import estimate_judgements, judge_port
from rusbeir.people.sampling import draw_sample
from rusbeir.people.span_agreement import compute_f, credit_spans
from rusbeir.people.span_judge import make_prompt, read_answer
from rusbeir.people.span_report import describe_spans
from tests.support.openai_server import Endpoint, Reply, completion


def mark(
    words: str, severity: str = "minor", side: str = "translation", kind: str = "mistranslation"
) -> dict[str, str]:
    return {"in": side, "span": words, "kind": kind, "severity": severity}


LOCATIONS = [
    # Errors, and where they are found; counts that are not 0.
    ([("translation", "кот", "minor")], [("translation", 4, 7)], {"verified": 1}, "as it is"),
    ([("translation", "кот", "minor")] * 2, [("translation", 4, 7), ("translation", 22, 25)], {"verified": 2}, "twice"),
    ([("translation", "кот", "minor")] * 3, [("translation", 4, 7), ("translation", 22, 25)],
     {"verified": 2, "overlapping": 1}, "more often than it occurs"),
    ([("translation", "«кот»", "minor")], [("translation", 4, 7)], {"verified": 1}, "quoted by the judge"),
    ([("translation", "спал  на\nковре", "minor")], [("translation", 8, 21)], {"verified": 1}, "other white space"),
    ([("translation", "пёс", "major")], [], {"not_in_text": 1}, "in neither text"),
    ([("translation", "  ", "major")], [], {"not_in_text": 1}, "no words"),
    ([("translation", "slept", "minor")], [("source", 8, 13)], {"verified": 1, "moved": 1}, "in the other text"),
    ([("source", "the mat", "major")], [("source", 17, 24)], {"verified": 1}, "missing in the translation"),
    ([("translation", "кот спал", "minor"), ("translation", "спал", "critical")], [("translation", 8, 12)],
     {"verified": 1, "overlapping": 1}, "the more severe of two"),
    ([("translation", "спал на", "minor"), ("translation", "на ковре", "minor")], [("translation", 8, 15)],
     {"verified": 1, "overlapping": 1}, "the first of two as severe"),
]  # fmt: skip


@pytest.mark.parametrize(("errors", "expected", "counts", "why"), LOCATIONS, ids=[row[3] for row in LOCATIONS])
def test_where_errors_are(errors, expected, counts, why):
    marked = [MarkedError(side, words, "other", severity) for side, words, severity in errors]
    located = locate_errors(marked, "The cat slept on the mat.", "Это кот спал на ковре кот.")
    if why == "missing in the translation":
        assert located.spans[0].side == "source"
    else:
        assert [span[:3] for span in located.spans] == expected
    assert {name: n for name, n in located.counts.items() if n} == {"marked": len(errors), **counts}


def test_costs_are_those_of_wmt():
    spans = [
        ErrorSpan("translation", 0, 1, kind, severity)
        for kind, severity in (
            ("style", "minor"), ("punctuation", "minor"), ("punctuation", "major"), ("grammar", "major"),
            ("untranslated", "critical"),
        )
    ]  # fmt: skip
    assert [span.cost for span in spans] == [1, 0.1, 5, 5, 25]
    assert add_costs(spans) == -36.1
    assert add_costs([]) == 0


UNFIT = [
    ({"errors": []}, "score", "without a score"),
    ({"errors": [], "score": 101}, "score", "above the scale"),
    ({"errors": [], "score": -1}, "score", "below the scale"),
    ({"errors": [], "score": True}, "score", "not a number"),
    ({"errors": [], "score": "90"}, "score", "a string"),
    ({"errors": [], "score": float("nan")}, "score", "NaN"),
    ({"score": 90}, "errors", "without errors"),
    ({"errors": ["bad"], "score": 90}, "errors", "not an object"),
    ({"errors": [mark("кот", severity="grave")], "score": 90}, "errors", "a severity of its own"),
    ({"errors": [mark("кот", kind="tone")], "score": 90}, "errors", "a kind of its own"),
    ({"errors": [{**mark("кот"), "span": 5}], "score": 90}, "errors", "a place instead of words"),
    ({"errors": [mark("пёс")], "score": 90}, "spans", "all errors invented"),
]


@pytest.mark.parametrize(("answer", "reason", "why"), UNFIT, ids=[row[2] for row in UNFIT])
def test_answers_that_are_asked_for_again(answer, reason, why):
    with pytest.raises(Unfit, match=f"^{reason}$"):
        read_answer("esa", answer, "A cat.", "Кот, кот.")


def test_mqm_needs_no_score():
    verdict = read_answer("mqm", {"errors": [mark("кот"), mark("пёс")]}, "A cat.", "Этот кот.")
    assert verdict == {
        "errors": [{"in": "translation", "start": 5, "end": 8, "span": "кот", "category": "mistranslation",
                    "severity": "minor", "score": 1}],
        "spans": {"marked": 2, "verified": 1, "moved": 0, "not_in_text": 1},
    }  # fmt: skip


CREDITS = [
    # Spans (start, end) of two annotations; precise and recalled sums by hand.
    ([], [], 0, 0),
    ([(0, 4)], [], 0, 0),
    ([(0, 4)], [(4, 8)], 0, 0),
    ([(0, 4)], [(0, 4)], 1, 1),
    ([(0, 10)], [(0, 5), (5, 10)], 0.5, 1),
    ([(0, 4), (4, 8)], [(2, 6)], 0.5, 0.5),
    ([(0, 4), (3, 10)], [(3, 4), (0, 3)], 3 / 4 + 1 / 7, 2),
]


@pytest.mark.parametrize(("first", "second", "precise", "recalled"), CREDITS)
def test_credits_of_spans(first, second, precise, recalled):
    spans, others = ([Extent("translation", *ends) for ends in side] for side in (first, second))
    credits = credit_spans(spans, others)
    assert credits == (pytest.approx(precise), len(first), pytest.approx(recalled), len(second))
    mirrored = credit_spans(others, spans)
    assert compute_f(mirrored) == pytest.approx(compute_f(credits))
    assert credit_spans(spans, [other._replace(side="source") for other in others])[::2] == (0, 0)


def test_the_matching_has_the_highest_f():
    """Compared with all matchings, on spans that overlap in many ways."""
    draw = random.Random(4)
    for _ in range(200):
        first, second = (
            [
                Extent("translation", start, start + draw.randint(1, 9))
                for start in (draw.randint(0, 12) for _ in range(4))
            ]
            for _ in range(2)
        )
        best = 0.0
        for order in permutations(second):
            shared = [max(0, min(a.end, b.end) - max(a.start, b.start)) for a, b in zip(first, order, strict=True)]
            precision = sum(n / (a.end - a.start) for n, a in zip(shared, first, strict=True)) / 4
            recall = sum(n / (b.end - b.start) for n, b in zip(shared, order, strict=True)) / 4
            best = max(best, 2 * precision * recall / (precision + recall) if precision + recall else 0)
        assert compute_f(credit_spans(first, second)) == pytest.approx(best, abs=1e-9)


@pytest.fixture
def checked(make_port) -> Path:
    folder = make_port()
    audit_port(folder, processes=1, round_trip=False)
    return folder


def answer(score: object, *errors: dict[str, str]) -> Reply:
    return completion(json.dumps({"errors": list(errors), "score": score}))


class Marker(Endpoint):
    """Marks the words «тает» and ice wherever they are, and one that no text has."""

    def reply(self, asked):
        user = asked["messages"][1]["content"]
        text, translation = user.partition("Translation (Russian):\n")[::2]
        errors = [mark("тает", "major")] if "тает" in translation else []
        errors += [mark("ice", "minor", "source", "omission"), mark("ни слова", "critical")] if "ice" in text else []
        return answer(100 - 10 * len(errors), *errors)


def read_rows(folder: Path) -> dict[str, dict]:
    lines = (folder / "qa" / "spans.jsonl").read_text().splitlines()
    return {row["id"]: row for row in map(json.loads, lines)}


def test_spans_of_a_port(checked, serve, tmp_path):
    endpoint = serve(Marker())
    report = judge_port(checked, llm="fake-judge", n=6)
    assert (report["protocol"], report["n"], report["judged"], report["invalid"]) == ("esa", 6, 6, 0)
    rows = read_rows(checked)
    first = rows["q1"]
    assert (first["score"], first["mqm"], first["major"]) == (70, -6, True)
    assert [(error["in"], error["start"], error["end"], error["span"]) for error in first["errors"]] == [
        ("source", 0, 3, "ice"), ("translation", 4, 8, "тает"),
    ]  # fmt: skip
    assert report["spans"]["not_in_text"] == 1, "one text has the word ice in small letters"
    assert report["errors"]["omission"] == {"minor": 1, "major": 0, "critical": 0}
    assert report["errors"]["mistranslation"]["major"] == 3
    assert report["marked"] == 3
    # What was drawn is all of the port, so the weighted means are those of the sample, without any uncertainty.
    assert report["means"]["major"] == {"sample": 0.5, "port": 0.5, "interval": (0.5, 0.5)}
    schema = endpoint.asked[0]["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["score"] == {"type": "integer", "minimum": 0, "maximum": 100}
    page = Path(report["page"]).read_text()
    assert '<mark class="major" title="major: mistranslation">тает</mark>' in page
    assert '<mark class="minor" title="minor: omission">ice</mark> melts' in page
    n_asked = len(endpoint.asked)
    again = judge_port(checked, llm="fake-judge", n=6)
    assert len(endpoint.asked) == n_asked, "nothing is paid for twice"
    assert again["means"] == report["means"]
    # What was marked can be held against people as it is.
    scores = read_segment_scores(checked / "qa" / "spans.jsonl")
    assert scores.scores[""]["query/q1"] == 70
    assert scores.severe["", "query/q1"]


def test_protocols_do_not_share_answers(checked, serve):
    endpoint = serve(Marker())
    esa = judge_port(checked, llm="m", n=4)
    n_asked = len(endpoint.asked)
    mqm = judge_port(checked, llm="m", n=4, protocol="mqm")
    assert len(endpoint.asked) == 2 * n_asked
    assert "score" not in endpoint.asked[-1]["response_format"]["json_schema"]["schema"]["properties"]
    assert (list(esa["means"]), list(mqm["means"])) == (["score", "mqm", "major"], ["mqm", "major"])
    assert esa["judge"].startswith("judge|protocol:esa|model:m|rubric:")
    assert mqm["judge"].split("|")[3] == esa["judge"].split("|")[3], "the same file of prompts"
    row = read_rows(checked)["q1"]
    assert row["score"] == row["mqm"] == -6


def test_votes(checked, endpoint):
    """Three answers about one text: medians, the errors of the median answer, and their agreement."""
    good, bad = answer(90, mark("тает", "minor")), answer(40, mark("Лёд тает", "major"))
    seed = choose_seed(checked)
    endpoint.script.extend([good, bad, answer(80, mark("тает", "minor"))])
    report = judge_port(checked, llm="m", n=1, votes=3, seed=seed, concurrency=1)
    assert [asked["seed"] for asked in endpoint.asked] == [seed, seed + 100, seed + 200]
    assert [asked["temperature"] for asked in endpoint.asked] == [0.0, 0.7, 0.7]
    (row,) = read_rows(checked).values()
    assert (row["score"], row["mqm"], row["major"]) == (80, -1, False)
    assert [vote["score"] for vote in row["votes"]] == [90, 40, 80]
    assert row["errors"][0]["severity"] == "minor"
    agreement = report["agreement"]
    assert (agreement["n"], report["answers"]) == (1, 3)
    assert agreement["score"]["value"] == pytest.approx((50 + 10 + 40) / 3)
    assert agreement["major"]["value"] == pytest.approx(1 / 3)
    # The spans are the same twice, and half as long as the other: precision and recall are 1, 1, 1/2 in both orders.
    precision, recall = (4 / 8 + 1 + 1) / 3, (1 + 1 + 4 / 8) / 3
    assert agreement["spans"]["value"] == pytest.approx(2 * precision * recall / (precision + recall))
    # A fourth vote is the only one that is asked for.
    endpoint.script.append(good)
    judge_port(checked, llm="m", n=1, votes=4, seed=seed, concurrency=1)
    assert len(endpoint.asked) == 4


def choose_seed(folder: Path) -> int:
    """A seed by which the only text of the sample is d3."""
    port = open_port(folder)
    return next(seed for seed in range(100) if draw_sample(port, 1, seed)[0].record_id == "d3")


def test_scores_outside_the_scale_are_counted(checked, endpoint):
    endpoint.script.extend([answer(400)] * 3 + [answer(90)])
    report = judge_port(checked, llm="m", n=2, concurrency=1)
    assert (report["judged"], report["invalid"], report["invalid_answers"]) == (1, 1, 3)
    assert report["means"]["score"]["sample"] == 90


def test_a_judge_that_sees_nothing_is_named(checked, endpoint, capsys):
    endpoint.script.extend([answer(100)] * 6)
    report = judge_port(checked, llm="m", n=6, concurrency=1)
    assert report["marked"] == 0
    assert report["errors"] == {}
    print_judgements(report)
    text = " ".join(capsys.readouterr().err.split())
    assert f"The judge marked no error in any of the {report['judged']} texts." in text


def test_what_is_left_out_is_said(checked, serve, capsys):
    serve(Marker())
    print_judgements(judge_port(checked, llm="m", n=6, votes=2))
    captured = capsys.readouterr()
    assert "2 of 10 marked spans are left out: 2 are in neither text, 0 overlap another one." in captured.err
    assert "F of the spans" in captured.out


def test_a_judge_of_the_translators_family(checked, endpoint, capsys):
    card = json.loads((checked / "card.json").read_text())
    card["provenance"]["translators"] = [{"signature": "llm|model:qwen3-235b|prompt:1"}]
    (checked / "card.json").write_text(json.dumps(card))
    endpoint.script.append(answer(90))
    report = judge_port(checked, llm="Qwen/qwen3-30b", n=1)
    assert report["shared_families"] == ["qwen"]
    print_judgements(report)
    assert "of one family (qwen)" in capsys.readouterr().err


def test_the_card_repeats_what_was_marked(checked, serve):
    assert describe_spans(checked) == ("", 0)
    serve(Marker())
    judge_port(checked, llm="m", n=6)
    sentence, n_changed = describe_spans(checked)
    assert sentence.startswith("A language model marked the errors of ")
    assert "have a major error in its eyes" in sentence
    assert n_changed == 0
    queries = checked / "queries.jsonl"
    queries.write_text(queries.read_text().replace("лёд тает", "тает лёд"))
    assert describe_spans(checked)[1] == 1


def test_what_votes_and_protocols_there_are(checked):
    with pytest.raises(UnknownName, match="No protocol 'esaa'"):
        judge_port(checked, llm="m", protocol="esaa")
    with pytest.raises(BadInput, match="votes=2 is of marked errors"):
        judge_port(checked, llm="m", protocol="likert", votes=2)
    with pytest.raises(BadInput, match="votes=0 is too small"):
        estimate_judgements(checked, votes=0)
    single, three = (estimate_judgements(checked, n=4, votes=votes) for votes in (1, 3))
    assert three["requests"] == 3 * single["requests"]
    assert three["input_tokens"] == pytest.approx(3 * single["input_tokens"], abs=3)


def test_the_prompt_is_whole():
    system, user = make_prompt("esa", "en", "ru", "{braces} A", "Б")
    assert "from English to Russian" in system["content"]
    assert '{"errors": [{"in": "translation"' in system["content"]
    assert "score the whole translation from 0 to 100" in system["content"]
    assert "score" not in make_prompt("mqm", "en", "ru", "A", "Б")[0]["content"]
    assert user["content"] == "Source (English):\n{braces} A\n\nTranslation (Russian):\nБ\n"

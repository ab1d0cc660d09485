"""Language models as rerankers: a server with scripted answers, and SmolLM2 behind llama.cpp's own server."""

from __future__ import annotations

import math
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from rusbeir.datasets import load
from rusbeir.errors import BackendError
from rusbeir.jobs import BudgetReached, CharBudget
from rusbeir.retrieval import RunSettings, resolve
from rusbeir.retrieval.models.settings import Model
from rusbeir.retrieval.rerank.llm import ListReranker, YesNoReranker, _log_odds, read_order
from rusbeir.retrieval.rerank.score_cache import ScoreCache
from tests.support.openai_server import Endpoint, Reply, completion, refusal


class Judge(Endpoint):
    """A chat endpoint whose `answer` makes the message and its first tokens of a prompt."""

    def __init__(self) -> None:
        super().__init__()
        self.answer = lambda prompt: ("yes", {"yes": -0.1, "no": -2.3})

    def reply(self, request: dict) -> Reply:
        text, tokens = self.answer(request["messages"][-1]["content"])
        return completion(text, top_tokens=tokens)


@pytest.fixture
def judge(serve, fresh_cache):
    return serve(Judge())


@pytest.fixture(scope="module")
def mini():
    return load("mini/ru")


def search(mini, system, queries, k=100, budget=None):
    ready = resolve(system, language=mini.card.language).prepare(mini.corpus, "f", RunSettings(budget=budget))
    return ready.retriever.search(queries, k)


def few(mini, n):
    return few_of(mini.queries, n)


def few_of(queries, n):
    return dict(list(queries.items())[:n])


@pytest.mark.parametrize(
    ("top", "expected"),
    [
        ((("yes", -800.0), ("no", -900.0)), 100.0),
        ((("no", -0.1), ("maybe", -2000.0)), -1999.9),
    ],
)
def test_log_odds_of_chances_below_the_smallest_float(top, expected):
    assert _log_odds(top) == pytest.approx(expected)


def test_log_odds_of_yes(judge, mini, caplog):
    tokens = iter(
        [
            {"Yes": math.log(0.5), " yes": math.log(0.25), "No": math.log(0.25)},
            {"no": math.log(0.8), "Yes": math.log(0.1), "maybe": math.log(0.05)},
            {"yes": math.log(0.6), "perhaps": math.log(0.2)},
            {"Well": math.log(0.9), "I": math.log(0.1)},
        ]
    )
    requests: dict[str, dict] = {}
    lock = threading.Lock()

    def answer(prompt):
        with lock:
            requests[prompt] = next(tokens)
            return "x", requests[prompt]

    judge.answer = answer
    run = search(mini, "bm25", mini.queries, 4)
    query = next(mini.queries[query_id] for query_id, hits in run.items() if len(hits) == 4)
    system = "bm25 >> rerank(any-model,runtime=llm,depth=4)"
    hits = search(mini, system, {"q": query})["q"]
    expected = sorted([math.log(0.75 / 0.25), math.log(0.1 / 0.8), math.log(0.6 / 0.2), 0.0], reverse=True)
    assert list(hits.values()) == pytest.approx(expected)
    assert "said neither yes nor no of 1 documents" in caplog.text
    assert "Queries and documents are sent to http://127.0.0.1" in caplog.text
    assert all(call["logprobs"] and call["max_tokens"] == 1 for call in judge.asked)
    assert all(query in prompt for prompt in requests)
    search(mini, system, {"q": query})
    assert len(judge.asked) == 4, "what was paid for is kept"


@pytest.mark.parametrize("strange", [float("-inf"), float("nan"), 10**400, -(10**400)])
def test_what_is_not_a_log_probability_is_left_out(judge, mini, strange):
    judge.answer = lambda prompt: ("yes", {"yes": -0.1, "no": strange, "maybe": -2.1})
    hits = search(mini, "bm25 >> rerank(any-model,runtime=llm,depth=2)", few(mini, 1))
    assert all(score == pytest.approx(2.0) for score in hits[next(iter(hits))].values())


def test_a_server_without_log_probabilities(judge, mini):
    judge.answer = lambda prompt: ("yes", None)
    with pytest.raises(BackendError, match=r"without log-probabilities.*runtime=llm-list"):
        search(mini, "bm25 >> rerank(any-model,runtime=llm,depth=2)", few(mini, 1))


def test_answers_before_a_failure_are_kept(judge, mini):
    """Eight requests are under way at once; the ninth is answered without what the reranker needs."""
    lock = threading.Lock()
    answered = []

    def answer(prompt):
        with lock:
            answered.append(prompt)
            return "yes", {"yes": -0.1, "no": -2.3} if len(answered) <= 8 else None

    judge.answer = answer
    query_id, hits = max(search(mini, "bm25", mini.queries).items(), key=lambda run: len(run[1]))
    queries = {query_id: mini.queries[query_id]}
    system = f"bm25 >> rerank(any-model,runtime=llm,depth={len(hits)})"
    assert len(hits) > 9
    with pytest.raises(BackendError, match="without log-probabilities"):
        search(mini, system, queries)
    judge.answer = lambda prompt: ("yes", {"yes": -0.1, "no": -2.3})
    judge.asked.clear()
    assert len(search(mini, system, queries)[query_id]) == len(hits)
    assert len(hits) - 8 <= len(judge.asked) < len(hits)


def test_windows_bring_the_best_to_the_front(judge, mini, tmp_path):
    """A model that sorts a window perfectly, by the text's length, brings the longest of 50 to the first place."""

    def answer(prompt):
        run = re.findall(r"^\[(\d+)\] (.*)$", prompt, re.MULTILINE)
        return " > ".join(f"[{n}]" for n, text in sorted(run, key=lambda hit: -len(hit[1]))), None

    judge.answer = answer
    texts = [f"{doc.title} {doc.text}" for doc in mini.corpus][:50]
    reranker = ListReranker(model=Model(name="any-model", max_tokens=2000))
    cache = ScoreCache(tmp_path / "scores.sqlite")
    scores = cache.score(reranker, "Земля", texts, "any-model").scores
    lengths = [len(" ".join(text.split())) for _, text in sorted(zip(scores, texts, strict=True), reverse=True)]
    assert lengths[:10] == sorted(lengths, reverse=True)[:10]
    assert len(judge.asked) == 4, "50 documents in windows of 20, 10 apart"
    assert sorted(scores) == list(range(50))
    assert cache.score(reranker, "Земля", texts, "any-model").scores == scores
    assert len(judge.asked) == 4, "every window is kept"


@pytest.mark.parametrize(("documents", "windows"), [(0, 0), (1, 0), (2, 1), (20, 1), (21, 2), (30, 2), (31, 3)])
def test_windows_cover_every_document(judge, tmp_path, documents, windows):
    """By the sizes 20 and 10; a single document needs no sorting."""
    judge.answer = lambda prompt: ("", None)
    texts = [f"text {n}" for n in range(documents)]
    scores = ScoreCache(tmp_path / "scores.sqlite").score(
        ListReranker(model=Model(name="any-model")), "q", texts, "any-model"
    )
    assert scores.scores == [float(documents - 1 - n) for n in range(documents)]
    assert len(judge.asked) == windows


@pytest.mark.parametrize(("runtime", "chars"), [("llm", 12_000), ("llm-list", 5_000)])
def test_a_budget_stops_before_what_does_not_fit(judge, mini, tmp_path, runtime, chars):
    """A query's documents, or a window, are paid for together, so that nothing is under way when the budget ends."""
    judge.answer = lambda prompt: ("[1]", {"yes": -0.1, "no": -2.3})
    system = f"bm25 >> rerank(any-model,runtime={runtime},depth=30,max_tokens=20)"
    with pytest.raises(BudgetReached, match="characters is reached"):
        search(mini, system, few(mini, 8), budget=CharBudget(tmp_path, chars))
    sent = sum(len(message["content"]) for call in judge.asked for message in call["messages"])
    assert 0 < sent <= chars
    before = len(judge.asked)
    search(mini, system, few(mini, 8))
    first = len(judge.asked)
    assert first > before
    judge.asked.clear()
    search(mini, system, few(mini, 8))
    assert judge.asked == [], "every answer of the stopped run was kept"


UNSORTED = [
    # answer, how it ended, why
    ("I cannot help with that.", "stop", "no document"),
    ("[0] > [99]", "stop", "no document of the window"),
    ("[2] > [1]", "length", "cut off before all were named"),
    ("<think>[3] is better than [2], and [1]", "length", "cut off while it was thinking"),
    ("<think>[3] > [1] > [2]</think>Sorry.", "stop", "its reasoning is not an answer"),
]


@pytest.mark.parametrize(("text", "finish", "why"), UNSORTED, ids=[row[2] for row in UNSORTED])
def test_an_answer_that_does_not_sort_a_window_is_reported_and_not_kept(judge, mini, caplog, text, finish, why):
    system = "bm25 >> rerank(any-model,runtime=llm-list,depth=3)"
    run = search(mini, "bm25", mini.queries, 3)
    queries = {query_id: mini.queries[query_id] for query_id, hits in run.items() if len(hits) == 3}
    queries = few_of(queries, 2)
    judge.script += [completion(text, finish=finish), completion("[3] > [1] > [2]")]
    first, second = (list(hits) for hits in search(mini, system, queries).values())
    before = [list(run[query_id]) for query_id in queries]
    assert first == before[0]
    assert second == [before[1][index] for index in (2, 0, 1)]
    assert "any-model did not sort 1 lists" in caplog.text
    judge.script += [completion("<think>[1]?</think>[3] > [2]")]
    again, _ = (list(hits) for hits in search(mini, system, queries).values())
    assert again == [before[0][index] for index in (2, 1, 0)]
    assert len(judge.asked) == 3, "what was sorted is kept, what was not is asked about again"
    assert caplog.text.count("did not sort") == 1
    assert all(call["max_tokens"] > 2000 for call in judge.asked), "room to think"


@pytest.mark.parametrize(
    ("runtime", "text", "line"),
    [
        ("llm", "Well", "any-model said neither yes nor no of 9 documents: they score 0."),
        ("llm-list", "Well", "any-model did not sort 3 lists: "),
    ],
)
def test_unjudged_documents_are_reported_once(judge, mini, caplog, runtime, text, line):
    judge.answer = lambda prompt: (text, {text: -0.1})
    run = search(mini, "bm25", mini.queries, 3)
    queries = few_of({q: mini.queries[q] for q, hits in run.items() if len(hits) == 3}, 3)
    search(mini, f"bm25 >> rerank(any-model,runtime={runtime},depth=3)", queries)
    assert caplog.text.count("any-model said neither") + caplog.text.count("any-model did not") == 1
    assert line in caplog.text


def test_nobody_pays_twice(judge, tmp_path):
    """Each ScoreCache has its own locks, so two threads behave as two processes do."""

    def answer(prompt):
        time.sleep(0.3)
        return "yes", {"yes": -0.1}

    judge.answer = answer

    def score():
        reranker = YesNoReranker(model=Model(name="any-model"))
        return ScoreCache(tmp_path / "scores.sqlite").score(reranker, "q", ["one", "two"], "any-model").scores

    with ThreadPoolExecutor(2) as both:
        first, second = (both.submit(score) for _ in range(2))
        assert first.result() == second.result()
    assert len(judge.asked) == 2


@pytest.mark.parametrize(
    ("runtime", "signature"),
    [
        ("llm", "any-model|runtime:llm|yes-no:1|chars:3072"),
        ("llm-list", "any-model|runtime:llm-list|window:20/10|chars:768"),
    ],
)
def test_a_revision_tells_apart_what_a_server_calls_by_one_name(runtime, signature):
    def resolve_reranker(options):
        return resolve(f"bm25 >> rerank(any-model,runtime={runtime}{options})", language="ru").signature

    assert f"|{signature}|depth:" in resolve_reranker("")
    assert f"|{signature}|revision:qwen3-8b|depth:" in resolve_reranker(",revision=qwen3-8b")


def test_a_rejected_prompt_names_the_endpoint(judge, mini):
    judge.script += [refusal(400, "Blocked", code="content_filter")]
    with pytest.raises(
        BackendError, match=r"did not judge\. The endpoint rejects the request \(refused: 400 Blocked\)\. Scores"
    ):
        search(mini, "bm25 >> rerank(any-model,runtime=llm,depth=3)", few(mini, 1))


def test_cut_documents_are_reported(judge, mini, caplog):
    search(mini, "bm25 >> rerank(any-model,runtime=llm,depth=3,max_tokens=2)", few(mini, 1))
    assert "1 of 1 pairs (100.00 %) are longer than any-model reads at once: cut at 6 characters" in caplog.text


@pytest.mark.parametrize(
    ("answer", "n", "order", "why"),
    [
        ("[3] > [1] > [2]", 3, [2, 0, 1], "as asked for"),
        ("The best is 2.", 3, [1, 0, 2], "those left out follow in their order"),
        ("[2] > [2] > [1]", 2, [1, 0], "named twice"),
        ("[0] > [7] > [99999999999]", 2, [0, 1], "numbers of no document"),
        ("I cannot help with that.", 3, [0, 1, 2], "no numbers"),
        ("", 2, [0, 1], "nothing"),
    ],
)
def test_read_order(answer, n, order, why):
    assert read_order(answer, n) == order


@pytest.mark.parametrize("runtime", ["llm", "llm-list"])
def test_a_real_model_scores_every_hit(smollm, monkeypatch, fresh_cache, runtime):
    mini = load("mini/en")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{smollm.listening_address}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    system = f"bm25 >> rerank(SmolLM2-135M,runtime={runtime},depth=3,max_tokens=50)"
    run = search(mini, system, few(mini, 2))
    bm25 = search(mini, "bm25", few(mini, 2), 3)
    for query_id, hits in run.items():
        assert set(hits) == set(bm25[query_id])
        assert list(hits.values()) == sorted(hits.values(), reverse=True)
    if runtime == "llm":
        assert len({score for hits in run.values() for score in hits.values()}) > 2, "real log-probabilities"

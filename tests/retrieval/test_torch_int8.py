"""Networks in integers of 8 bits: they order as float32 does, are made once, and are named in signatures."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from rusbeir.cli.main import main
from rusbeir.errors import BadInput, MissingExtra
from rusbeir.retrieval import resolve
from rusbeir.retrieval.models import eight_bits
from rusbeir.types import Doc
from tests.support import tiny_encoders
from tests.support.torch_systems import Docs

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("fresh_cache")]

QUERIES = {"q": "кошка ловит мышь", "long": "собака сторожит дом " * 8}


def search(system: str) -> dict[str, dict[str, float]]:
    docs = Docs(Doc(f"d{number}", text) for number, text in enumerate(tiny_encoders.uneven(40)))
    return resolve(system, language="ru").prepare(docs, "f").retriever.search(QUERIES, 40)


@pytest.mark.parametrize(
    "system",
    ["dense({cls}{})", "sparse({splade}{})", "sparse({router}{})", "late({late}{})", "bm25 >> rerank({cross}{})"],
    ids=["dense", "sparse", "router", "late", "cross-encoder"],
)
def test_scores_are_close_to_those_of_float32(models, system, monkeypatch, capsys):
    exact, rounded = (search(system.format(option, **models)) for option in ("", ",precision=int8"))
    for query in QUERIES:
        assert rounded[query].keys() == exact[query].keys()
        scores = np.array([[exact[query][doc_id], rounded[query][doc_id]] for doc_id in exact[query]])
        assert np.corrcoef(scores.T)[0, 1] > 0.9, "weights at random lose more than a model's"
        assert not np.array_equal(*scores.T), "integers round"
    assert capsys.readouterr().out == ""
    assert sys.modules["openvino_telemetry"] is None, "no server is told"
    monkeypatch.setattr(eight_bits, "_convert", None)
    assert resolve(system.format(",precision=int8", **models), language="ru").signature
    encoder = resolve(system.format(",precision=int8", **models), language="ru")
    again = (encoder.reranker if "rerank" in system else encoder.encoder).signature
    assert "precision:int8/openvino-20" in again
    assert "/mini:30" in again


def test_it_is_quantised_once(models, monkeypatch):
    system = resolve(f"dense({models['cls']},precision=int8)", language="ru")
    first = system.encoder.encode_documents(tiny_encoders.uneven(40))
    monkeypatch.setattr(eight_bits, "_convert", None)
    again = resolve(f"dense({models['cls']},precision=int8)", language="ru").encoder
    assert np.array_equal(again.encode_documents(tiny_encoders.uneven(40)), first)
    assert again.encode_documents(tiny_encoders.uneven(40)[7:8])[0] == pytest.approx(first[7], abs=1e-6), "any batch"


def test_refused(models, monkeypatch):
    with pytest.raises(BadInput, match="precision=int8 is computed on the processor: leave out device=cuda"):
        resolve(f"dense({models['cls']},precision=int8,device=cuda)", language="ru").check_available()
    with pytest.raises(BadInput, match=r"The heads of .* are not computed in int8: precision=bfloat16 is\."):
        _ = resolve(f"sparse({models['m3']},like=bge-m3,precision=int8)", language="ru").signature
    with pytest.raises(BadInput, match="changes its network by adapters"):
        resolve(f"dense({models['jina']},like=jina-embeddings-v3,precision=int8)", language="ru").check_available()
    monkeypatch.setitem(sys.modules, "nncf", None)
    monkeypatch.setattr(eight_bits, "require_version", lambda *names: "1")
    with pytest.raises(MissingExtra, match=r"precision=int8 needs the package nncf: .*rusbeir\[int8\]"):
        resolve(f"dense({models['cls']},precision=int8)", language="ru").encoder.encode_queries(["кошка"])


def test_bench_says_what_a_precision_costs(models, tmp_path, monkeypatch, capfd):
    system = f"dense({models['cls']},precision=int8)"

    def bench(*arguments: str) -> tuple[int, str]:
        command = ["rusbeir", "bench", "mini/ru", "--check-precision", "--out", str(tmp_path / "out"), *arguments]
        monkeypatch.setattr(sys, "argv", command)
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0), capfd.readouterr().err

    code, said = bench("--system", system)
    assert code == 0, said
    assert f"{system} on mini/ru: nDCG@10 " in said
    assert "against float32 (95 % interval " in said
    assert "82 queries" in said
    code, said = bench()
    assert code == 2
    assert "--check-precision compares precisions with float32, but no system has one" in said

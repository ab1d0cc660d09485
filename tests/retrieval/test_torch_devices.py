"""Batches, precisions and devices of models, and what happens where memory or a device is missing."""

from __future__ import annotations

import contextlib
import random

import numpy as np
import pytest

from rusbeir.errors import BackendError, BadInput
from rusbeir.retrieval import resolve
from rusbeir.retrieval.models import batches as token_batches
from rusbeir.retrieval.models import linear_layers
from tests.support import tiny_encoders
from tests.support.torch_systems import TEXTS, search

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("fresh_cache")]


def encoder(models, system):
    return resolve(f"dense({models['cls']},max_tokens=40{system})", language="ru").encoder


def test_batches_change_float32_vectors_by_less_than_a_millionth(models, monkeypatch):
    """Kernels sum in another order for other shapes; docs/evaluate.md states the bound."""
    generator = random.Random(6)
    texts = [" ".join(generator.choices(tiny_encoders.WORDS, k=generator.randint(0, 60))) for _ in range(300)]
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
                inputs = torch.randn(shape, generator=numbers)
                assert (
                    layer(inputs) - (inputs @ layer.weight.T + (0 if layer.bias is None else layer.bias))
                ).abs().sum() < 1e-5
        assert layers[0].to(torch.bfloat16)(inputs.to(torch.bfloat16)).dtype == torch.bfloat16
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
    single, double = encoder(models, ""), encoder(models, ",device=cpu+cpu")
    assert single.signature == double.signature
    texts = TEXTS * 10
    # The same batches, so the same bits.
    assert (single.encode_documents(texts) == double.encode_documents(texts)).all()


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
    (
        "precision=int4",
        0,
        False,
        LookupError,
        "No precision 'int4' of dense. Did you mean 'int8'? Available: bfloat16,",
    ),
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

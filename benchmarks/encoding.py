"""Encoding a corpus by `dense(MODEL)`, compared with sentence-transformers' own calls: `python -m benchmarks.encoding`.

`python -m benchmarks.encoding card` measures an accelerator instead, with the architecture of bge-m3 and random weights
(the arithmetic is the same): passages per second in bfloat16, at 512 tokens and at the lengths of mMARCO's passages.
`card --tiny` runs the same code with a tiny model on any machine.
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

MMARCO_TOKENS = 77
"""Of a passage on average, log-normal: an estimate, 56 words in English and about 1.4 tokens a word."""
BGE_M3 = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}
TINY = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}


def passages(n: int) -> list[str]:
    """Distinct texts with the lengths of NFCorpus's documents and XQuAD's paragraphs, in a fixed random order."""
    from rusbeir.datasets import load

    texts = [doc.text for name in ("cocktail/nfcorpus/human", "xquad/en") for doc in load(name).corpus]
    order = np.random.default_rng(0).permutation(n)
    varied = []
    for row in order.tolist():
        words = texts[row % len(texts)].split()
        turn = row // len(texts)
        varied.append(" ".join(words[turn:] + words[:turn]) + f" {turn}" * (turn > 0))
    return varied


def encode(encoder: Any, texts: list[str]) -> Any:
    """The vectors that rusbeir stores, in the order of the texts."""
    from rusbeir.retrieval.encoding import encoded_corpus
    from rusbeir.retrieval.encoding.embedding_store import EmbeddingStore
    from rusbeir.retrieval.encoding.pools import Encoding
    from rusbeir.types import Doc

    with tempfile.TemporaryDirectory() as folder:
        store = EmbeddingStore(Path(folder) / "store", "float32")
        docs: Any = [Doc(str(row), text) for row, text in enumerate(texts)]
        target = Path(folder) / "corpus"
        encoding = Encoding(store=store, encoder=encoder, name="benchmark")
        encoded_corpus.encode(target, docs, encoding, lambda doc: [doc.text])
        return store.read(encoded_corpus.open_folder(target, store).rows)


@contextlib.contextmanager
def timed_model(transformer: Any) -> Iterator[list[float]]:
    """The seconds of every call of the model, while the block runs."""
    seconds: list[float] = []
    before = transformer.register_forward_pre_hook(lambda *_: seconds.append(-time.perf_counter()))
    after = transformer.register_forward_hook(lambda *_: seconds.append(seconds.pop() + time.perf_counter()))
    try:
        yield seconds
    finally:
        before.remove()
        after.remove()


def measure(n: int, parts: int = 10) -> dict[str, float]:
    """Ratios of seconds, the largest difference of a number in a vector, and the tokens computed in calls of 64 texts.

    The calls alternate over parts of one corpus, so that other work on the machine slows all of them alike.
    """
    from rusbeir.retrieval import resolve

    encoder: Any = resolve("dense(all-MiniLM-L6-v2)", language="en").encoder
    transformer = encoder.transformer
    texts = passages(n)
    lengths = encoder.tokenize(texts, queries=False).lengths
    calls: dict[str, Callable[[list[str]], Any]] = {
        "ours": lambda some: encode(encoder, some),
        "plain": lambda some: transformer.encode(some, normalize_embeddings=True, show_progress_bar=False),
        "blocks": lambda some: np.concatenate(
            [
                transformer.encode(some[start : start + 64], normalize_embeddings=True)
                for start in range(0, len(some), 64)
            ]
        ),
    }
    encode(encoder, passages(64))
    seconds = dict.fromkeys(calls, 0.0)
    model_seconds = difference = 0.0
    for part in range(parts):
        rates = {}
        some = texts[part * n // parts : (part + 1) * n // parts]
        for name in list(calls)[part % 3 :] + list(calls)[: part % 3]:
            with timed_model(transformer) as in_model:
                started = time.perf_counter()
                rates[name] = calls[name](some)
                seconds[name] += time.perf_counter() - started
            model_seconds += sum(in_model) if name == "ours" else 0.0
        difference = max(difference, float(np.abs(rates["ours"] - rates["plain"]).max()))
    return {
        "passages_per_second": n / seconds["ours"],
        "of_plain": seconds["plain"] / seconds["ours"],
        "of_blocks": seconds["blocks"] / seconds["ours"],
        "outside_model": 1 - model_seconds / seconds["ours"],
        "difference": difference,
        "tokens_in_blocks": _count_padded(texts, lengths) / float(lengths.sum()),
    }


def _count_padded(texts: list[str], lengths: npt.NDArray[np.int64], call: int = 64, batch: int = 32) -> int:
    """The tokens, padding included, that calls of so many texts compute: each sorts its texts by their characters."""
    count = 0
    for start in range(0, len(texts), call):
        order = sorted(range(start, min(start + call, len(texts))), key=lambda row: -len(texts[row]))
        parts = [lengths[order[first : first + batch]] for first in range(0, len(order), batch)]
        count += sum(len(part) * int(part.max()) for part in parts)
    return count


def make_model(folder: Path, sizes: dict[str, int]) -> None:
    """An encoder of bge-m3's architecture with random weights, for texts of which each word is one token."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import XLMRobertaConfig, XLMRobertaModel

    from tests.support import tiny_encoders

    with torch.device("meta"):
        model = XLMRobertaModel(
            XLMRobertaConfig(**sizes, vocab_size=250_002, max_position_embeddings=8_194, type_vocab_size=1)
        )
    model.to_empty(device="cpu").to(torch.bfloat16)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.02)
    plain = folder / "plain"
    model.save_pretrained(plain)
    tiny_encoders.tokenizer(plain)
    pooling = Pooling(sizes["hidden_size"], pooling_mode="cls")
    SentenceTransformer(modules=[Transformer(str(plain)), pooling]).save(str(folder / "model"))


def draw_texts(n: int, tokens: int | None) -> list[str]:
    """Texts of so many tokens each, special tokens included; with None of the lengths of mMARCO."""
    from tests.support import tiny_encoders

    rng = np.random.default_rng(0)
    lengths = np.full(n, tokens) if tokens else rng.lognormal(np.log(MMARCO_TOKENS) - 0.08, 0.4, n).clip(8, 512)
    return [" ".join(rng.choice(tiny_encoders.WORDS, int(length) - 2)) for length in lengths]


def peak_flops(device: str, precision: str, size: int) -> float:
    """Floating-point operations a second of one large product of matrices."""
    import torch

    matrix = torch.ones((size, size), dtype=getattr(torch, precision), device=device)
    best = float("inf")
    for _ in range(5):
        started = time.perf_counter()
        for _ in range(10):
            product = matrix @ matrix
        product.sum().item()
        best = min(best, time.perf_counter() - started)
    return 10 * 2 * size**3 / best


def measure_card(n: int, *, tiny: bool) -> list[dict[str, Any]]:
    """Passages a second in bfloat16 on the best device, next to sentence-transformers' defaults (float32, 32 texts)."""
    from sentence_transformers import SentenceTransformer

    from rusbeir.retrieval import resolve

    sizes, rows = (TINY if tiny else BGE_M3), []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_model(folder, sizes)
        encoder: Any = resolve(f"dense({folder}/model,max_tokens=512,precision=bfloat16)", language="en").encoder
        plain = SentenceTransformer(f"{folder}/model", model_kwargs={"dtype": "float32"})
        half = SentenceTransformer(f"{folder}/model", model_kwargs={"dtype": "bfloat16"})
        plain.max_seq_length = half.max_seq_length = 512
        peak = peak_flops(str(plain.device), "bfloat16", 512 if tiny else 8_192)
        hidden, inner = sizes["hidden_size"], sizes["intermediate_size"]
        for what, tokens in (("512 tokens", 512), ("mMARCO's lengths", None)):
            texts = draw_texts(n, tokens)
            lengths = encoder.tokenize(texts, queries=False).lengths
            # Of the linear layers, and of attention: two products, each of 2 · hidden · length² operations.
            of_tokens = 2 * (4 * hidden**2 + 2 * hidden * inner) * lengths.sum() + 4 * hidden * (lengths**2).sum()
            encode(encoder, texts[:256])
            seconds = {"ours": _seconds(lambda some=texts: encode(encoder, some))}
            for name_of, model in (("plain", plain), ("plain in bfloat16", half)):
                model.encode(texts[:64])
                few = texts[: max(1, n // 4)]
                seconds[name_of] = n / len(few) * _seconds(lambda model=model, few=few: model.encode(few))
            rows.append(
                {
                    "what": f"{what}, {plain.device}",
                    "passages_per_second": n / seconds["ours"],
                    "of_plain": seconds["plain"] / seconds["ours"],
                    "of_plain_bfloat16": seconds["plain in bfloat16"] / seconds["ours"],
                    "share_of_peak": sizes["num_hidden_layers"] * float(of_tokens) / seconds["ours"] / peak,
                }
            )
    return rows


def _seconds(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="?", choices=["corpus", "card"], default="corpus")
    parser.add_argument("--passages", type=int, default=20_000)
    parser.add_argument("--tiny", action="store_true", help="a tiny model, on any machine")
    arguments = parser.parse_args()
    if arguments.what == "corpus":
        print(measure(arguments.passages))
    else:
        for row in measure_card(arguments.passages, tiny=arguments.tiny):
            print(row)

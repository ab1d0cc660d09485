"""Neural translators of some kilobytes that translate letter by letter, without training and without torch.

The weights are set so that the decoder looks at the source token of its own position and writes its counterpart:
random codes stand for positions, one dimension for each token, and what is added is subtracted elsewhere, so that
layer norms only scale. So what a batch answers is known, while CTranslate2 runs as it runs a real model.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import sentencepiece
from ctranslate2.specs import TransformerSpec

from tests.support.translation_servers import LETTERS

SPECIAL = ["<unk>", "<s>", "</s>"]
_POSITIONS = 512
_CODE = 64
_SHARPNESS = 400.0


def make(folder: Path, family: str, *, languages: tuple[str, ...] = (), never_ends: bool = False) -> Path:
    """A model in the folder, of the family opus-mt, nllb or madlad; languages are its tokens for them."""
    folder.mkdir(parents=True)
    latin = sorted({chr(code) for code in range(33, 127)} | {"▁"})
    cyrillic = sorted({char.translate(LETTERS) for char in latin})
    if family == "opus-mt":
        source, target = [*SPECIAL, *languages, *latin], [*SPECIAL, *cyrillic]
        _tokenizer(folder / "source.spm", latin)
        _tokenizer(folder / "target.spm", cyrillic)
    else:
        source = target = [*SPECIAL, *languages, *dict.fromkeys(latin + cyrillic)]
        _tokenizer(folder / {"nllb": "sentencepiece.bpe.model", "madlad": "spiece.model"}[family], latin + cyrillic)
    # NLLB's answer begins with its language, so positions agree; the others leave out the source's first token.
    shift = len(languages[:1]) if family != "nllb" else 0
    counterpart = {token: token.translate(LETTERS) for token in source}
    counterpart |= {token: token for token in [*SPECIAL, *languages]} | {"<unk>": "?"}
    if never_ends:
        counterpart["</s>"] = "?"
    spec = _spec(source, target, counterpart, shift)
    spec.validate()
    spec.save(str(folder))
    assert json.loads((folder / "config.json").read_text())["decoder_start_token"] == "</s>"
    return folder


def _tokenizer(path: Path, chars: list[str]) -> None:
    """A SentencePiece model with a piece for each character."""
    lines = path.with_suffix(".txt")
    lines.write_text("".join(f"{char} {char}{char}\n" for char in chars if char != "▁"), encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(lines),
        model_prefix=str(path.with_suffix("")),
        model_type="char",
        vocab_size=len(set(chars)) + 3,
        hard_vocab_limit=False,
        character_coverage=1.0,
        minloglevel=2,
    )
    path.with_suffix(".model").rename(path)
    path.with_suffix(".vocab").unlink()
    lines.unlink()


def _spec(source: list[str], target: list[str], counterpart: dict[str, str], shift: int) -> TransformerSpec:
    n = len(source)
    tokens = slice(0, n)  # and n: minus their sum
    codes = slice(n + 1, n + 1 + _CODE)
    negated = slice(n + 1 + _CODE, n + 1 + 2 * _CODE)
    copied = slice(n + 1 + 2 * _CODE, 2 * n + 1 + 2 * _CODE)
    depth = copied.stop + (-copied.stop) % 8

    def zeros(*shape: int) -> np.ndarray:
        return np.zeros(shape, dtype=np.float32)

    positions = np.random.default_rng(5).choice([-1.0, 1.0], size=(_POSITIONS + 2, _CODE)).astype(np.float32)

    def encodings(first: int) -> np.ndarray:
        table = zeros(_POSITIONS, depth)
        table[:, codes] = positions[first : first + _POSITIONS]
        table[:, negated] = -positions[first : first + _POSITIONS]
        return table

    spec = TransformerSpec.from_config((1, 1), 1, pre_norm=True)
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    spec.config.decoder_start_token = "</s>"
    for part, vocabulary, first in ((spec.encoder, source, 0), (spec.decoder, target, shift)):
        part.scale_embeddings = False
        part.position_encodings.encodings = encodings(first)
        _set_norm(part.layer_norm, depth)
        layer = part.layer[0]
        _set_norm(layer.self_attention.layer_norm, depth)
        _set_linear(layer.self_attention.linear[0], zeros(3 * depth, depth))
        _set_linear(layer.self_attention.linear[1], zeros(depth, depth))
        _set_norm(layer.ffn.layer_norm, depth)
        _set_linear(layer.ffn.linear_0, zeros(8, depth))
        _set_linear(layer.ffn.linear_1, zeros(depth, 8))
        embeddings = part.embeddings[0] if isinstance(part.embeddings, list) else part.embeddings
        embeddings.weight = zeros(len(vocabulary), depth)
    weight = spec.encoder.embeddings[0].weight
    weight[:, tokens] = 4 * np.eye(n, dtype=np.float32)
    weight[:, n] = -4

    attention = spec.decoder.layer[0].attention
    _set_norm(attention.layer_norm, depth)
    queries, keys_and_values, output = zeros(depth, depth), zeros(2 * depth, depth), zeros(depth, depth)
    queries[:_CODE, codes] = _SHARPNESS * np.eye(_CODE)
    keys_and_values[:_CODE, codes] = np.eye(_CODE)
    keys_and_values[depth : depth + n, tokens] = np.eye(n)
    output[copied, :n] = np.eye(n)
    _set_linear(attention.linear[0], queries)
    _set_linear(attention.linear[1], keys_and_values)
    _set_linear(attention.linear[2], output)

    projection = zeros(len(target), depth)
    for i, token in enumerate(source):
        projection[target.index(counterpart[token]) if counterpart[token] in target else 0, copied.start + i] = 10
    _set_linear(spec.decoder.projection, projection)
    return spec


def _set_norm(norm: object, depth: int) -> None:
    norm.gamma = np.ones(depth, dtype=np.float32)  # type: ignore[attr-defined]
    norm.beta = np.zeros(depth, dtype=np.float32)  # type: ignore[attr-defined]


def _set_linear(linear: object, weight: np.ndarray) -> None:
    linear.weight = weight  # type: ignore[attr-defined]
    linear.bias = np.zeros(weight.shape[0], dtype=np.float32)  # type: ignore[attr-defined]

"""The neural translators that run here, through CTranslate2: OPUS-MT, NLLB and MADLAD."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any, NamedTuple

from rusbeir.errors import BadInput, require
from rusbeir.jobs import Limits
from rusbeir.languages import iso639_3
from rusbeir.translation.backends import ctranslate2_models
from rusbeir.translation.backends.common import ask_sendable, forbid_retry, judge_answer
from rusbeir.translation.backends.ctranslate2_models import ModelFolder, ModelSource
from rusbeir.translation.backends.registry import codes_of
from rusbeir.translation.translator import Capacity, Failure, Outcome

_END = "</s>"
_DEVICES = ("auto", "cpu", "cuda")


class Marks(NamedTuple):
    """The tokens by which a model is told the languages."""

    before: tuple[str, ...] = ()
    """Tokens in front of those of the source."""
    prefix: tuple[str, ...] = ()
    """That the answer begins with."""


def _marian(folder: ModelFolder, source: str, target: str) -> Marks:
    """Return None for a model of one pair, >>rus<< for one of several targets."""
    known = tuple(token[2:-2] for token in folder.vocabulary if re.fullmatch(r">>[A-Za-z_-]+<<", token))
    if not known:
        return Marks()
    codes = codes_of("opus-mt").among(known)
    return Marks(before=(f">>{codes.target(_three_letters(target))}<<",))


def _nllb(folder: ModelFolder, source: str, target: str) -> Marks:
    known = tuple(token for token in folder.vocabulary if re.fullmatch(r"[a-z]{3}_[A-Z][a-z]{3}", token))
    codes = codes_of("nllb", "nllb-languages").among(known)
    return Marks(before=(_flores(source, codes.source, known),), prefix=(_flores(target, codes.target, known),))


def _flores(tag: str, find: Callable[[str], str], known: Sequence[str]) -> str:
    """Return the FLORES code: by the aliases, by script where the tag names one, else the language's only one."""
    language, *rest = tag.replace("_", "-").split("-")
    three = iso639_3(language.lower())
    script = next((part.title() for part in rest if len(part) == 4 and part.isalpha()), "")
    ours = [code for code in known if code.startswith(f"{three}_") and code.endswith(script)]
    if len(ours) == 1:
        return ours[0]
    if f"{three}_{script}" in known:
        return f"{three}_{script}"
    return find(tag)


def _madlad(folder: ModelFolder, source: str, target: str) -> Marks:
    known = tuple(token[2:-1] for token in folder.vocabulary if re.fullmatch(r"<2[A-Za-z_]+>", token))
    return Marks(before=(f"<2{codes_of('madlad').among(known).target(target)}>",))


def _three_letters(tag: str) -> str:
    first, *rest = tag.split("-")
    return "-".join([iso639_3(first.lower()), *rest])


class ModelFamily(NamedTuple):
    """The differences between one kind of model and another."""

    marks: Callable[[ModelFolder, str, str], Marks]
    default: str
    original: str
    tokenizers: tuple[tuple[str, ...], ...]
    max_tokens: int
    """The longest input that the model was trained for."""


MODEL_FAMILIES: Mapping[str, ModelFamily] = {
    "opus-mt": ModelFamily(
        _marian,
        "opus-mt-{source}-{target}",
        "Helsinki-NLP/opus-mt-{source}-{target}",
        (("source.spm", "target.spm"),),
        512,
    ),
    "nllb": ModelFamily(
        _nllb,
        "nllb-200-distilled-600M",
        "facebook/nllb-200-distilled-600M",
        (("sentencepiece.bpe.model",),),
        512,
    ),
    "madlad": ModelFamily(
        _madlad, "madlad400-3b-mt", "google/madlad400-3b-mt", (("spiece.model",), ("sentencepiece.model",)), 512
    ),
}


class _Engine(NamedTuple):
    model: Any
    source: Any
    target: Any


@dataclass(frozen=True, kw_only=True)
class Neural:
    """A model in a folder, which answers many sentences at once. It is loaded at the first of them."""

    name: str
    """A name of MODEL_FAMILIES."""
    source: str
    target: str
    model: str = ""
    """A folder, or the id of a converted model on the Hugging Face hub; "" is the default folder in the cache."""
    device: str = "cpu"
    compute_type: str = "default"
    """CTranslate2's type of numbers; default is the model's own."""
    beam_size: int = 4
    batch_tokens: int = 2048
    """Tokens in one batch of the model, padding included."""
    threads: int = 0
    """0 lets CTranslate2 choose."""
    limits: Limits
    capacity: Capacity
    _lock: Lock = field(default_factory=Lock, init=False, repr=False, compare=False)
    _engines: list[_Engine] = field(default_factory=list, init=False, repr=False, compare=False)

    @property
    def signature(self) -> str:
        """Reads the model's folder, and fetches it where it is on the hub."""
        ctranslate2 = require("ctranslate2", *ctranslate2_models.EXTRA)
        name = "_".join((self.model or self._model_source.default).split("|")).rstrip("/").replace(" ", "_")
        return (
            f"{self.name}|model:{name.rpartition('/')[2]}@{self._folder.revision}|beam:{self.beam_size}"
            f"|compute:{self.compute_type}|ctranslate2-{ctranslate2.__version__}"
        )

    def check(self, source: str, target: str) -> None:
        """BadInput without a model, for a pair it has not and for settings that cannot be; MissingExtra.

        A model of the hub is looked at when it is fetched: at the first signature or text.
        """
        for name, least in (("beam_size", 1), ("batch_tokens", 1), ("threads", 0)):
            if getattr(self, name) < least:
                raise BadInput(f"{name} is {getattr(self, name)}: it must be at least {least}.")
        if self.device not in _DEVICES:
            raise BadInput(f"device is {self.device!r}: it must be one of {', '.join(_DEVICES)}.")
        for package in ("ctranslate2", "sentencepiece"):
            require(package, *ctranslate2_models.EXTRA)
        if ctranslate2_models.on_hub(self.model):
            require("huggingface_hub", *ctranslate2_models.EXTRA)
        else:
            self._marks(source, target)

    async def translate(self, texts: Sequence[str], source: str, target: str) -> list[Outcome]:
        """Translate the texts, all in one call of the model."""
        return await ask_sendable(texts, lambda sent: asyncio.to_thread(self._batch, sent, source, target))

    async def close(self) -> None:
        """Free the model's memory. It is loaded again when it is needed."""
        with self._lock:
            self._engines.clear()

    @property
    def _family(self) -> ModelFamily:
        return MODEL_FAMILIES[self.name]

    @property
    def _model_source(self) -> ModelSource:
        pair = {"source": self.source, "target": self.target}
        return ModelSource(
            translator=self.name,
            default=self._family.default.format(**pair),
            original=self._family.original.format(**pair),
            tokenizers=self._family.tokenizers,
        )

    @cached_property
    def _folder(self) -> ModelFolder:
        return ctranslate2_models.find(self.model, self._model_source)

    def _marks(self, source: str, target: str) -> Marks:
        if self.name == "opus-mt" and (source, target) != (self.source, self.target):
            raise BadInput(f"This opus-mt translates {self.source} into {self.target}, not {source} into {target}.")
        return self._family.marks(self._folder, source, target)

    def _engine(self) -> _Engine:
        with self._lock:
            if not self._engines:
                model = require("ctranslate2", *ctranslate2_models.EXTRA).Translator(
                    str(self._folder.path),
                    device=self.device,
                    compute_type=self.compute_type,
                    intra_threads=self.threads,
                )
                load = require("sentencepiece", *ctranslate2_models.EXTRA).SentencePieceProcessor
                source, target = self._folder.tokenizers
                self._engines.append(_Engine(model, load(model_file=str(source)), load(model_file=str(target))))
            return self._engines[0]

    def _batch(self, texts: list[str], source: str, target: str) -> list[Outcome]:
        marks = self._marks(source, target)
        engine = self._engine()
        end = () if self._folder.config.get("add_source_eos") else (_END,)
        tokens = [[*marks.before, *engine.source.encode(text, out_type=str), *end] for text in texts]
        longest = self._family.max_tokens
        fitting = [row for row in tokens if len(row) <= longest]
        results = iter(
            engine.model.translate_batch(
                fitting,
                target_prefix=[list(marks.prefix)] * len(fitting) if marks.prefix else None,
                batch_type="tokens",
                max_batch_size=self.batch_tokens,
                beam_size=self.beam_size,
                max_input_length=0,
                max_decoding_length=longest,
                return_end_token=True,
                disable_unk=True,
            )
            if fitting
            else ()
        )
        return [
            self._outcome(text, engine, next(results).hypotheses[0], len(marks.prefix))
            if len(row) <= longest
            else Failure("too-long", f"{len(row)} tokens, more than the model's {longest}", False)
            for text, row in zip(texts, tokens, strict=True)
        ]

    def _outcome(self, text: str, engine: _Engine, hypothesis: list[str], n_prefix: int) -> Outcome:
        if not hypothesis or hypothesis[-1] != _END:
            return Failure("malformed", f"the model did not come to an end within {len(hypothesis)} tokens", False)
        return forbid_retry(judge_answer(text, engine.target.decode(hypothesis[n_prefix:-1])))

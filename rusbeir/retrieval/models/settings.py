"""Read the settings of encoders and rerankers from models.toml, and change them by a stage's options."""

from __future__ import annotations

import logging
import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from rusbeir.errors import BadInput, UnknownName, unknown, warn_once
from rusbeir.jobs import FREE, Price
from rusbeir.retrieval.spec import Options
from rusbeir.types import join_title

logger = logging.getLogger(__name__)

_DEVICE = re.compile("cpu|mps|cuda(:[0-9]{1,3})?")

Kind = Literal["dense", "sparse", "late", "rerank"]
KINDS: tuple[Kind, ...] = ("dense", "sparse", "late", "rerank")

PRICES = ("input_price", "output_price")
"""Options of a stage at an endpoint: money per million tokens sent and answered. They are not in the signature."""
RUNNING = ("precision", "device")
"""Options of a stage whose model runs in this process: how it computes, and where."""
SETTINGS = (
    "like", "revision", "pooling", "max_tokens", "query_prefix", "document_prefix", "separator", *RUNNING, *PRICES
)  # fmt: skip
"""Options of a stage that set or change a model's settings."""

PREFIXES = ("query_prefix", "document_prefix")
POOLINGS = ("mean", "cls", "lasttoken", "max")
INT8 = "int8"
"""The precision of networks that OpenVINO computes in integers of 8 bits."""
PRECISIONS = ("float32", "bfloat16", "float16", INT8)


@dataclass(frozen=True, kw_only=True)
class Model:
    """A model's settings. Empty or None means unknown: the model's own files then decide."""

    name: str
    hub: str = ""
    """The repository on the Hugging Face hub, or a folder."""
    converted_from: str = ""
    """The authors' repository, which mteb runs, where hub is a conversion of it."""
    revision: str = ""
    licence: str = ""
    parameters: int | None = None
    """The number of the model's parameters."""
    dim: int | None = None
    max_tokens: int | None = None
    """Tokens read of a text (for rerankers, of a pair), special tokens included."""
    pooling: str = ""
    query_prefix: str = ""
    document_prefix: str = ""
    own_prompts: tuple[str, ...] = ()
    """The names of PREFIXES that neither models.toml nor an option sets: prompts in the model's own files are used."""
    separator: str = "\n"
    """Joins title and text, by default as in RusBEIR; left out where a document has no title."""
    runtimes: tuple[str, ...] = ()
    """The runtimes that can run it, the default first."""
    package: str = ""
    """A Python package with the weights in its folder `model`."""
    adapters: tuple[str, ...] = ()
    """The LoRA adapters for queries and for documents, folders of the repository; both or none."""
    layer: int = 0
    """The layer whose score a layer-wise reranker returns; 0 for its default."""
    remote_code: bool = False
    """Whether it needs the repository's own code."""
    precision: str = PRECISIONS[0]
    """One of PRECISIONS."""
    device: str = ""
    """Devices joined by +, such as cpu, mps, cuda or cuda:0+cuda:1; empty for the best device. Not in a signature."""
    price: Price = FREE
    """The price of an endpoint's tokens; FREE where it is not known."""
    unverified: tuple[str, ...] = ()
    """Names of settings, set or empty, that neither mteb nor the model's card confirms."""

    @property
    def loaded_precision(self) -> str:
        """The precision in which weights are loaded: integers are made of float32."""
        return PRECISIONS[0] if self.precision == INT8 else self.precision

    def join(self, title: str, text: str) -> str:
        """Return a document's text as the encoder gets it, without the prefix."""
        return join_title(title, text, self.separator)

    @property
    def signature(self) -> str:
        """Name, revision and what a stage may change: `bge-m3@5617a9f6|pool:cls|max:8192|query:|document:`."""
        prefixes = f"query:{escape(self.query_prefix)}|document:{escape(self.document_prefix)}"
        adapters = f"|adapters:{'+'.join(self.adapters)}" if self.adapters else ""
        name = f"{self.name}@{self.revision[:8] or 'unknown'}"
        return f"{name}|pool:{self.pooling}|max:{self.max_tokens}|{prefixes}{adapters}"


DEFAULT_RUNTIMES: Mapping[Kind, tuple[str, ...]] = {
    **dict.fromkeys(KINDS, ("sentence-transformers",)),
    "rerank": ("cross-encoder",),
}
LATE = "late"
"""The runtime by which late models rerank."""
HEADS = {"sparse": "flagembedding", "late": "flagembedding"}
"""Kind -> the runtime that reads heads of dense models as models of that kind."""


@cache
def read_models(kind: Kind) -> Mapping[str, Model]:
    """Read short name -> settings, in the file's order; those of heads come first."""
    tables = tomllib.loads((Path(__file__).parent / "models.toml").read_text(encoding="utf-8"))
    models = {}
    if head := HEADS.get(kind):
        dense = read_models("dense").items()
        models = {name: replace(model, runtimes=(head,)) for name, model in dense if head in model.runtimes}
    if kind == "rerank":
        models = {
            name: replace(row, runtimes=(LATE,))
            for name, row in read_models("late").items()
            if row.runtimes != (HEADS["late"],)
        }
    for name, row in tables.get(kind, {}).items():
        settings: dict[str, Any] = {"name": name, "runtimes": DEFAULT_RUNTIMES[kind], **row}
        for key in ("runtimes", "adapters", "unverified"):
            settings[key] = tuple(settings.get(key, ()))
        models[name] = Model(**settings)
    return models


def find(kind: Kind, name: str, options: Options, *, any_name: bool = False) -> Model:
    """Find the model of that name, with a stage's options applied.

    A repository (owner/name) or folder that is not in models.toml takes its settings from the options and its own
    files, with a warning. any_name allows other names, too, for runtimes whose models are those of an endpoint. Raises
    UnknownName for other names, and BadInput for impossible settings.
    """
    known = read_models(kind)
    model = known.get(name)
    if model is None:
        if "/" not in name and not any_name:
            # No file system has longer names, and to look for such a file is an error.
            if len(name.encode(errors="surrogatepass")) < 256 and Path(name).is_dir():
                raise UnknownName(f"{name} is not in models.toml. For the model in the folder {name}, write ./{name}.")
            raise _name_family(kind, name) or _explain_unknown(kind, name, known)
        like = options.word("like", "")
        if like and like not in known:
            raise unknown("model", like, known)
        # A folder or repository is its own name; the runtimes of the row are those that can run this kind of model.
        base = known[like] if like else Model(name=name, runtimes=DEFAULT_RUNTIMES[kind])
        model = replace(
            base, name=name, hub=name, converted_from="", revision="", package="", licence="", unverified=()
        )
        if like and not any_name:
            warn_once(logger, f"{name} is not in models.toml: prefixes, pooling and lengths are those of {like}.")
        elif kind in ("dense", "sparse") and not any_name:
            model = replace(model, own_prompts=tuple(prefix for prefix in PREFIXES if prefix not in options))
    elif options.word("like", ""):
        raise BadInput(f"like= is for models that are not in models.toml; {name} is in it.")
    else:
        _warn_of_differences(model, options)
    return replace(
        model,
        revision=options.word("revision", model.revision),
        pooling=options.word("pooling", model.pooling, (*POOLINGS, model.pooling)),
        max_tokens=options.whole("max_tokens", model.max_tokens or 0, least=0) or None,
        query_prefix=options.word("query_prefix", model.query_prefix),
        document_prefix=options.word("document_prefix", model.document_prefix),
        separator=options.word("separator", model.separator),
        layer=options.whole("layer", model.layer, least=0),
        precision=options.word("precision", model.precision, PRECISIONS),
        device=_read_device(options),
        price=Price(*(options.number(name, 0.0) for name in PRICES)),
    )


def _name_family(kind: Kind, name: str) -> BadInput | None:
    """Return what is wrong with the name of a model of another kind; None where there is no such model."""
    others = [other for other in KINDS if other != kind and name in read_models(other)]
    if not others:
        return None
    return refuse_family(kind, name, others[0])


def refuse_family(kind: Kind, name: str, family: Kind) -> BadInput:
    """Return the error for a model of that family where one of another kind is needed."""
    system = f"bm25 >> rerank({name})" if family == "rerank" else f"{family}({name})"
    if (kind, family) == ("rerank", "late"):
        system = f"rerank({name},runtime={LATE})"
    return BadInput(f"{name} is a {family} model, not a {kind} one: write {system}.")


def _explain_unknown(kind: Kind, name: str, known: Collection[str]) -> UnknownName:
    """Return the error for a name that no table has; dense models and rerankers may be those of an endpoint."""
    listed = unknown(f"{kind} model", name, known, listing="rusbeir systems")
    if (runtime := {"dense": "openai", "rerank": "llm"}.get(kind)) is None:
        return listed
    return UnknownName(f"{listed} A model at an endpoint is named with its runtime: {kind}({name},runtime={runtime}).")


def _read_device(options: Options) -> str:
    names = options.word("device", "")
    if names and not all(_DEVICE.fullmatch(name) for name in names.split("+")):
        raise BadInput(f"No device {names!r}. Write cpu, mps, cuda, a card such as cuda:1, or several: cuda:0+cuda:1.")
    return names


def _warn_of_differences(model: Model, options: Options) -> None:
    """Warn where a model, run as models.toml says, differs from what MTEB measures under its name."""
    if model.converted_from:
        warn_once(
            logger,
            f"{model.name} is read from {model.hub}, a conversion of {model.converted_from}, which MTEB runs: "
            "figures cannot be compared by revision.",
        )
    if model.query_prefix.startswith("Instruct:") and "query_prefix" not in options:
        warn_once(
            logger,
            f"{model.name} gets the same instruction on every dataset, while MTEB has one for each task: figures will "
            "not equal MTEB's. Set query_prefix= to give another.",
        )


def escape(text: str) -> str:
    """Escape white space and bars in a text, for a signature."""
    marks = {" ": "_", "\n": "\\n", "\t": "\\t", "|": "\\x7c"}
    return "".join(marks.get(character, character) for character in text)

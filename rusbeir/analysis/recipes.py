"""Languages and their recipes, read from analyzers/*.toml on use."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unicodedata import unidata_version

from rusbeir.analysis import folding, lemmas, stemmers, stopwords, tokenisers
from rusbeir.errors import BadInput, unknown
from rusbeir.storage import data_folder

BASE = "base"
"""analyzers/base.toml: the profiles that every language starts from."""

STOP_MATCHES = ("surface", "lemma", "both")
STEM_INPUTS = ("lemma", "surface")
NUMBERS = ("keep", "drop")


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One profile of one language: every setting that decides which terms a text has.

    The steps stand in the order in which they are taken.
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
    stop: str = "none"
    """A list of analyzers/stopwords, or none."""
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
            f"stop:{stopwords.summary(self.stop, self.stop_extra)}"
            + ("" if self.stop_match == "surface" else f"@{self.stop_match}"),
            f"unicode:{unidata_version}",
        ]
        return "|".join(part for part in parts if part)


@dataclass(frozen=True, kw_only=True)
class Language:
    """A language that texts can be analysed in."""

    code: str
    """BCP 47."""
    name: str
    profiles: Mapping[str, Recipe]


def languages() -> Mapping[str, Language]:
    """Code -> language, in the order of the codes; read anew at each call.

    >>> sorted(languages()["ru"].profiles)
    ['default', 'raw', 'rusbeir-paper', 'snowball']
    """
    folder = data_folder("analyzers")
    base = _read(folder / f"{BASE}.toml")["profiles"]
    return {path.stem: _language(path, base) for path in sorted(folder.glob("*.toml")) if path.stem != BASE}


def recipe(language: str, profile: str) -> Recipe:
    """The recipe of that name; UnknownName where the language or the profile does not exist."""
    folder = data_folder("analyzers")
    path = folder / f"{language}.toml"
    codes = [file.stem for file in folder.glob("*.toml") if file.stem != BASE]
    if language not in codes:
        raise unknown("language", language, codes, listing="rusbeir languages")
    profiles = _language(path, _read(folder / f"{BASE}.toml")["profiles"]).profiles
    if profile not in profiles:
        raise unknown("profile", profile, profiles, of=f"language {language!r}", listing="rusbeir languages")
    return profiles[profile]


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: {error}. An analyzer file is TOML in UTF-8.") from error


def _language(path: Path, base: Mapping[str, Mapping[str, Any]]) -> Language:
    table = _read(path)
    own = table.pop("profiles", {})
    for key in ("name", "stopwords", "snowball"):
        if not isinstance(table.get(key), str):
            raise BadInput(f'{path}: {key} is missing. It is a line such as: {key} = "…".')
    if extra := table.keys() - {"name", "stopwords", "snowball"}:
        raise BadInput(f"{path}: no key {min(extra)!r}. Keys: name, stopwords, snowball, profiles.")
    names = {key: table[key] for key in ("stopwords", "snowball")}
    profiles = {
        profile: _recipe(path, profile, {**base.get(profile, {}), **own.get(profile, {})}, names)
        for profile in [*base, *(profile for profile in own if profile not in base)]
    }
    return Language(code=path.stem, name=table["name"], profiles=profiles)


def _recipe(path: Path, profile: str, settings: Mapping[str, Any], names: Mapping[str, str]) -> Recipe:
    where = f"{path}, profile {profile!r}"
    result = Recipe(language=path.stem)
    known = {field.name: getattr(result, field.name) for field in fields(Recipe) if field.name != "language"}
    for key, value in settings.items():
        if key not in known:
            raise BadInput(f"{where}: no key {key!r}. Keys: {', '.join(known)}.")
        given = tuple(value) if isinstance(value, list) else value
        if type(given) is not type(known[key]):
            raise BadInput(f"{where}: {key} cannot be {value!r}. An example: {key} = {known[key]!r}.")
        if isinstance(given, str):
            given = given.format(**names)
        known[key] = given
    result = replace(result, **known)
    for key, value, allowed in _choices(result):
        if value not in allowed:
            raise BadInput(f"{where}: {key} cannot be {value!r}. Values: {', '.join(sorted(allowed))}.")
    return result


def _choices(recipe: Recipe) -> list[tuple[str, str, tuple[str, ...]]]:
    return [
        ("tokens", recipe.tokens, tuple(tokenisers.TOKENISERS)),
        ("normalise", recipe.normalise, tuple(folding.NORMALISATIONS)),
        ("case", recipe.case, tuple(folding.CASES)),
        *(("fold", name, tuple(folding.FOLDS)) for name in recipe.fold),
        ("numbers", recipe.numbers, NUMBERS),
        ("lemmas", recipe.lemmas, ("none", *lemmas.LEXICONS)),
        ("stop", recipe.stop, ("none", *stopwords.names())),
        ("stop_match", recipe.stop_match, STOP_MATCHES),
        ("stemmer", recipe.stemmer, ("none", *stemmers.names())),
        ("stem", recipe.stem, STEM_INPUTS),
    ]

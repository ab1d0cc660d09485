"""Languages and their recipes, read from language files (<code>.toml, stop lists in stopwords/) on use."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from importlib.metadata import entry_points, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from rusbeir.analysis import folding, lemmas, stemmers, tokenisers
from rusbeir.errors import BadInput, UnknownName, option, unknown
from rusbeir.languages import MACROLANGUAGES, read_language_tag
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
TERMS = ("words", "grams", "both")
APOSTROPHES = ("split", "cut", "keep")
FILELESS = ("raw", "unicode")
"""The profiles that take nothing from a language file, so that every language has them."""

LANGUAGE_KEYS = ("name", "why", "stopwords", "snowball", "lemmas")
"""What a language file says in addition to its profiles, all of it text. The last three replace {key} in profiles."""


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
    elision: tuple[str, ...] = ()
    """What is removed before an apostrophe at the start of a word: l, dell."""
    apostrophe: str = "split"
    """split: a word ends at an apostrophe. cut: the apostrophe and what follows are removed (a suffix of a name in
    Turkish). keep: it is a letter (in Ukrainian)."""
    tokens: str = "words"
    """A name of rusbeir.analysis.tokenisers.TOKENISERS; segmenters need an extra."""
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
    keep_only_stop_words: bool = False
    """Whether a text of nothing but stop words, a query or a title such as The Who, keeps them."""
    compounds: str = "none"
    """simplemma: the words that a compound consists of are indexed in addition to it."""
    stemmer: str = "none"
    """snowball:<algorithm>, porter (Lucene's) or none."""
    stem: str = "lemma"
    """What the stemmer is given; without a lexicon the lemma is the folded token."""
    stem_min_chars: int = 1
    """Where the stem would be shorter, what the stemmer was given is kept."""
    term_fold: tuple[str, ...] = ()
    """Folds of stems, and of words for grams: stemmers know words with their accents."""
    terms: str = "words"
    """words, grams (the characters of words that are no stop words, in overlapping runs), or both."""
    gram_chars: int = 4
    """The length of a gram."""

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
        stemmer = self.stemmer.replace(":", "-") + (f"-{version('PyStemmer')}" if ":" in self.stemmer else "")
        tokens = "" if self.tokens == "python-word" else f"-regex-{version('regex')}"
        if self.tokens in tokenisers.SEGMENTERS:
            tokens = f"-{tokenisers.describe_segmenter(self.tokens)}"
        parts = [
            f"lang:{self.language}",
            f"tok:{self.tokens}{tokens}",
            f"norm:{self.normalise}",
            f"case:{self.case}",
            f"fold:{'+'.join(self.fold) or 'none'}",
            f"elision:{'+'.join(self.elision)}" if self.elision else "",
            f"apostrophe:{self.apostrophe}" if self.apostrophe != "split" else "",
            "possessive" if self.possessive else "",
            "numbers:drop" if self.numbers == "drop" else "",
            f"min:{self.min_chars}" if self.min_chars > 1 else "",
            f"lem:{lemmas.describe_lexicon(self.lemmas, self.language)}"
            + (f"@{self.lemma_min_chars}" if self.lemma_min_chars > 1 else ""),
            f"compounds:{lemmas.describe_lexicon(self.compounds, self.language)}" if self.compounds != "none" else "",
            f"stem:{stemmer}"
            + ("@surface" if self.stem == "surface" else "")
            + (f"@{self.stem_min_chars}" if self.stem_min_chars > 1 else ""),
            f"termfold:{'+'.join(self.term_fold)}" if self.term_fold else "",
            f"stop:{stop}"
            + ("" if self.stop_match == "surface" else f"@{self.stop_match}")
            + ("@keep" if self.keep_only_stop_words else ""),
            f"terms:{self.terms}{self.gram_chars}" if self.terms != "words" else "",
        ]
        return "|".join(part for part in parts if part)


@dataclass(frozen=True, kw_only=True)
class Language:
    """A language that texts can be analysed in."""

    code: str
    """BCP 47."""
    name: str
    why: str
    """Why its recipe is what it is, in one line."""
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


def find_language(text: str) -> str:
    """The tag that is meant, as read_language_tag reads it; without a region that has no language file of its own.

    Bokmål (nb) and Nynorsk (nn), without files of their own, are Norwegian.

    >>> [find_language(text) for text in ("RU", "Russian", "ru-RU", "zh-Hans", "kk", "nb-NO")]
    ['ru', 'ru', 'ru', 'zh-Hans', 'kk', 'no']
    """
    tag, files = read_language_tag(text), language_files()
    primary, _, region = tag.partition("-")
    if tag in files or len(region) not in (0, 2):
        return tag
    return next((code for code in (primary, MACROLANGUAGES.get(primary, tag)) if code in files), tag)


def read_language(code: str) -> Language:
    """The language of that code, from its file alone.

    Raises UnknownName where it has no file, and BadInput, with file and line or key, where the file is wrong.

    >>> sorted(read_language("ru").profiles)
    ['blend', 'default', 'grams', 'lemmas', 'raw', 'rusbeir-paper', 'snowball', 'stems', 'unicode']
    """
    path = next((path for path in _find_files() if path.stem == code), None)
    if path is None and (meant := find_language(code)) != code:
        return read_language(meant)
    if path is None:
        known = unknown("language", code, language_files(), listing="rusbeir languages")
        raise UnknownName(
            f"{known} Any language can be searched by bm25(profile=unicode) and by dense systems, such as "
            "dense(multilingual-e5-small). A language file of your own is found in the folder that "
            f"{option('analyzers', python=FOLDERS_VARIABLE)} names; `rusbeir languages new {code}` starts one: "
            "docs/add-a-language.md."
        )
    if not re.fullmatch("[a-z]{2,3}(-[A-Za-z0-9]{1,8})*", code):
        raise BadInput(f"{path}: a language file is named after the BCP 47 code of its language, as kk.toml.")
    for other in sorted(path.parent.glob("*.toml")):
        if other != path and other.stem.lower().replace("_", "-") == code.lower():
            raise BadInput(f"{path} and {other.name} are both for the language {code!r}. Remove one of them.")
    table = _read_toml(path)
    own = table.pop("profiles", {})
    if "name" not in table:
        raise BadInput(f'{path}: name is missing. Add a line such as: name = "…".')
    for key, value in table.items():
        if key not in LANGUAGE_KEYS:
            raise BadInput(f"{_place(path, key)}: unknown key {key!r}. Keys: {', '.join(LANGUAGE_KEYS)}, profiles.")
        if not isinstance(value, str):
            raise BadInput(f'{_place(path, key)}: {key} cannot be {value!r}. An example: {key} = "…".')
    if not (isinstance(own, dict) and all(isinstance(settings, dict) for settings in own.values())):
        raise BadInput(f"{path}: profiles are tables, such as [profiles.default].")
    base = _read_toml(data_folder("analyzers") / f"{BASE}.toml")["profiles"]
    settings = {profile: {**base.get(profile, {}), **own.get(profile, {})} for profile in dict.fromkeys([*base, *own])}
    profiles = {profile: _make_recipe(path, profile, settings, {**_NO_NAMES, **table}) for profile in settings}
    return Language(code=code, name=table["name"], why=table.get("why", ""), path=path, profiles=profiles)


_NO_NAMES = dict.fromkeys(("stopwords", "snowball", "lemmas"), "none")


def read_recipe(language: str, profile: str) -> Recipe:
    """The recipe of that profile. Raises UnknownName where the language has no such profile, and as read_language.

    >>> read_recipe("xx", "unicode").language
    'xx'
    """
    if profile in FILELESS and (language := find_language(language)) not in language_files():
        path = data_folder("analyzers") / f"{BASE}.toml"
        return replace(_make_recipe(path, profile, _read_toml(path)["profiles"], _NO_NAMES), language=language)
    profiles = read_language(language).profiles
    if profile not in profiles:
        raise unknown("profile", profile, profiles, owner=f"language {language!r}", listing="rusbeir languages")
    return profiles[profile]


def _place(path: Path, key: str, profile: str = "") -> str:
    """The file with the line of that key, for messages; where the line is not in the file, the profile."""
    inside = not profile
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if line.strip().startswith("["):
            inside = line.strip("[] ").partition("]")[0] == f"profiles.{profile}"
        elif inside and line.partition("=")[0].strip() == key:
            return f"{path}:{number}" + (f", profile {profile!r}" if profile else "")
    return f"{path}, profile {profile!r}"


def _find_files() -> Iterator[Path]:
    """Every language file, in the order in which folders count."""
    folders = [Path(given).expanduser() for given in os.environ.get(FOLDERS_VARIABLE, "").split(os.pathsep) if given]
    for folder in folders:
        if not folder.is_dir():
            raise BadInput(f"No folder {str(folder)!r}, which {option('analyzers', python=FOLDERS_VARIABLE)} names.")
    folders.append(data_folder("analyzers"))
    for entry in sorted(entry_points(group=ENTRY_POINTS), key=lambda entry: entry.name):
        try:
            spec = find_spec(entry.value)
            if spec is None or not spec.submodule_search_locations:
                raise ModuleNotFoundError(f"{entry.value} is not a package")
            folders += map(Path, spec.submodule_search_locations)
        except (Exception, SystemExit) as error:  # whatever somebody's package raises when it is imported
            logger.warning("The entry point %s = %s in %s is ignored: %s", entry.name, entry.value, ENTRY_POINTS, error)
    for folder in folders:
        yield from sorted(path for path in folder.glob("*.toml") if path.stem != BASE)


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, RecursionError, ValueError) as error:
        raise BadInput(f"{path}: {error}. A language file is TOML in UTF-8.") from error


def _make_recipe(path: Path, profile: str, profiles: Mapping[str, dict[str, Any]], names: Mapping[str, str]) -> Recipe:
    settings = dict(profiles[profile])
    line = [profile]
    while parent := settings.pop("inherits", ""):
        if parent not in profiles or parent in line:
            others = ", ".join(sorted(profiles.keys() - set(line)))
            raise BadInput(f"{_place(path, 'inherits', line[-1])}: inherits cannot be {parent!r}. Values: {others}.")
        settings = {**profiles[parent], **settings}
        line.append(parent)
    default = Recipe(language=path.stem)
    known = {field.name: getattr(default, field.name) for field in fields(Recipe) if field.name != "language"}
    known["stop"] = default.stop.name
    for key, value in settings.items():
        if key not in known:
            raise BadInput(f"{_place(path, key, profile)}: unknown key {key!r}. Keys: inherits, {', '.join(known)}.")
        given = tuple(value) if isinstance(value, list) else value
        words = given if isinstance(given, tuple) else ()
        if type(given) is not type(known[key]) or not all(isinstance(word, str) for word in words):
            raise BadInput(
                f"{_place(path, key, profile)}: {key} cannot be {value!r}. An example: {key} = {known[key]!r}."
            )
        if isinstance(given, str):
            for name in _NO_NAMES:
                given = given.replace(f"{{{name}}}", names[name])
            given = given.replace("snowball:none", "none")
        known[key] = given
    folders = (data_folder("analyzers"), path.parent)
    stop_files = {file.stem: file for folder in folders for file in sorted(folder.glob("stopwords/*.txt"))}
    allowed = {
        "tokens": tokenisers.TOKENISERS,
        "normalise": folding.NORMALISATIONS,
        "case": folding.CASES,
        "fold": folding.FOLDS,
        "apostrophe": APOSTROPHES,
        "numbers": NUMBERS,
        "lemmas": ("none", *lemmas.LEXICONS),
        "stop": (NO_STOP_WORDS.name, *stop_files),
        "stop_match": STOP_MATCHES,
        "compounds": ("none", "simplemma"),
        "stemmer": ("none", *stemmers.STEMMERS),
        "stem": STEM_INPUTS,
        "term_fold": folding.FOLDS,
        "terms": TERMS,
    }
    template = {"lemmas": "lemmas", "stop": "stopwords", "stemmer": "snowball"}
    for key, values in allowed.items():
        for value in known[key] if isinstance(known[key], tuple) else (known[key],):
            if value not in values:
                place = _place(path, key, profile)
                if ":" not in place and key in template:
                    place = _place(path, template[key])
                raise BadInput(f"{place}: {key} cannot be {value!r}. Values: {', '.join(sorted(values))}.")
    if known["gram_chars"] < 1:
        raise BadInput(f"{_place(path, 'gram_chars', profile)}: gram_chars cannot be {known['gram_chars']}.")
    if (name := known["stop"]) == NO_STOP_WORDS.name:
        known["stop"] = NO_STOP_WORDS
    else:
        known["stop"] = StopList(name, read_stop_words(stop_files[name]))
    return replace(default, **known)


def read_stop_words(path: Path) -> frozenset[str]:
    """The words of a stop list: one a line, below a header of # lines; in NFC, in lower case and none twice."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: {error}. A stop list is text in UTF-8, one word a line.") from error
    words: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        word = line.strip()
        if not word or line.startswith("#"):
            continue
        if word != unicodedata.normalize("NFC", word):
            raise BadInput(f"{path}:{number}: {word!r} is not in Unicode's normal form C. Save the file in NFC.")
        if word != word.lower():
            raise BadInput(f"{path}:{number}: {word!r} has capitals and would match nothing. Write it in lower case.")
        if word in words:
            raise BadInput(f"{path}:{number}: {word!r} is in line {words[word]} already. Remove one of them.")
        if len(word.split()) > 1:
            raise BadInput(f"{path}:{number}: {word!r} is more than one word. A stop list has one word a line.")
        words[word] = number
    return frozenset(words)

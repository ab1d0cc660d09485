"""Languages, read from language files (<code>.toml, stop lists in stopwords/) on use."""

from __future__ import annotations

import logging
import os
import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rusbeir.analysis import folding, lemmas, stemmers, tokenisers
from rusbeir.analysis.recipes import (
    APOSTROPHES,
    NO_STOP_WORDS,
    NUMBERS,
    STEM_INPUTS,
    STOP_MATCHES,
    TERMS,
    Recipe,
    StopList,
    read_stop_words,
    split_names,
)
from rusbeir.analysis.user_rules import (
    FILE,
    PYTHON,
    SUFFIXES,
    Rules,
    read_function,
    read_lemmas,
    read_suffixes,
    read_synonyms,
)
from rusbeir.errors import BadInput, UnknownName, option, unknown
from rusbeir.languages import MACROLANGUAGES, read_language_tag, scripts_of
from rusbeir.storage import data_folder

logger = logging.getLogger(__name__)

FOLDERS_VARIABLE = "RUSBEIR_ANALYZERS"
"""The environment variable that names folders of language files; a path list."""

ENTRY_POINTS = "rusbeir.analyzers"
"""The group of entry points by which an installed package names a package of its own that holds language files."""

BASE = "base"
"""analyzers/base.toml: the profiles that every language starts from, those of other folders included."""

FILELESS = ("raw", "unicode")
"""The profiles that take nothing from a language file, so that every language has them."""
SCRIPT_PROFILES = ("default", "unicode")
"""The profiles that begin with what base.toml says about the scripts of a language."""

NAMES = ("stopwords", "snowball", "stemmer", "lemmas", "synonyms")
"""Keys of a language file that replace {key} in profiles."""
LANGUAGE_KEYS = ("name", "why", "extends", *NAMES)
"""What a language file says in addition to its profiles, all of it text."""
NOTHING = "none"
_FILLED_BY = {
    "lemmas": ("lemmas",),
    "stop": ("stopwords",),
    "stemmer": ("stemmer", "snowball"),
    "synonyms": ("synonyms",),
}
"""Setting of a profile -> the keys of the language file that fill it."""


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
    extends: str = ""
    """The code of rusbeir's language that the file changes; empty where it starts from base.toml alone."""


def language_files() -> Mapping[str, Path]:
    """List the language files by code, in the order of the codes, without opening them.

    Of two files for one language the first counts: folders of RUSBEIR_ANALYZERS in their order, then rusbeir's own,
    then those of installed packages (entry points rusbeir.analyzers). So what a user names replaces a shipped
    language, and an installed package only adds languages.

    Returns:
        Code -> path of the language file.

    Raises:
        BadInput: A folder that RUSBEIR_ANALYZERS names does not exist.

    Example:
        >>> language_files()["ru"].name
        'ru.toml'
    """
    files: dict[str, Path] = {}
    for path in _find_files():
        files.setdefault(path.stem, path)
    return dict(sorted(files.items()))


def find_language(text: str) -> str:
    """Find the tag of the language file that serves a language.

    Args:
        text: A BCP 47 tag or an English name, spelled as people do.

    Returns:
        The tag as read_language_tag reads it, without a region that has no language file. Bokmål (nb) and Nynorsk
        (nn), without files of their own, are Norwegian.

    Example:
        >>> [find_language(text) for text in ("RU", "Russian", "ru-RU", "zh-Hans", "kk", "nb-NO")]
        ['ru', 'ru', 'ru', 'zh-Hans', 'kk', 'no']
    """
    tag, files = read_language_tag(text), language_files()
    primary, _, region = tag.partition("-")
    if tag in files or len(region) not in (0, 2):
        return tag
    return next((code for code in (primary, MACROLANGUAGES.get(primary, tag)) if code in files), tag)


def read_language(code: str) -> Language:
    """Read the language of that code from its file, and from rusbeir's file that it extends.

    Args:
        code: BCP 47.

    Returns:
        The language with all its profiles.

    Raises:
        UnknownName: The language has no file.
        BadInput: The file is wrong; the message names file and line or key.

    Example:
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
    _check_name(path, code)
    table = read_language_file(path)
    extended = _find_extended(path, table)
    language = _make_language(path, table, extended)
    if shipped := _shipped_file(path):
        _warn_of_missing_steps(language, _make_language(shipped, read_language_file(shipped), None))
    return language


def read_recipe(language: str, profile: str) -> Recipe:
    """The recipe of that profile. Raises UnknownName where the language has no such profile, and as read_language.

    >>> read_recipe("xx", "unicode").language
    'xx'
    """
    if profile in FILELESS and (language := find_language(language)) not in language_files():
        path = data_folder("analyzers") / f"{BASE}.toml"
        recipe = _make_recipe(path, profile, _base_profiles(language), dict.fromkeys(NAMES, NOTHING))
        return replace(recipe, language=language)
    profiles = read_language(language).profiles
    if profile not in profiles:
        raise unknown("profile", profile, profiles, owner=f"language {language!r}", listing="rusbeir languages")
    return profiles[profile]


def _find_files() -> Iterator[Path]:
    """Every language file, in the order in which folders count."""
    names = os.environ.get(FOLDERS_VARIABLE, "").split(os.pathsep)
    folders = [Path(name).expanduser() for name in names if name]
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


def _check_name(path: Path, code: str) -> None:
    if not re.fullmatch("[a-z]{2,3}(-[A-Za-z0-9]{1,8})*", code):
        raise BadInput(f"{path}: a language file is named after the BCP 47 code of its language, as kk.toml.")
    for other in sorted(path.parent.glob("*.toml")):
        if other != path and other.stem.lower().replace("_", "-") == code.lower():
            raise BadInput(f"{path} and {other.name} are both for the language {code!r}. Remove one of them.")


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, RecursionError, ValueError) as error:
        raise BadInput(f"{path}: {error}. A language file is TOML in UTF-8.") from error


def read_language_file(path: Path) -> dict[str, Any]:
    """The content of the file, whose keys are known and whose profiles are tables."""
    table = _read_toml(path)
    profiles = table.setdefault("profiles", {})
    for key, value in table.items():
        if key not in (*LANGUAGE_KEYS, "profiles"):
            raise BadInput(f"{_locate(path, key)}: unknown key {key!r}. Keys: {', '.join(LANGUAGE_KEYS)}, profiles.")
        if key != "profiles" and not isinstance(value, str):
            raise BadInput(f'{_locate(path, key)}: {key} cannot be {value!r}. An example: {key} = "…".')
    if not (isinstance(profiles, dict) and all(isinstance(settings, dict) for settings in profiles.values())):
        raise BadInput(f"{path}: profiles are tables, such as [profiles.default].")
    return table


def _shipped_file(path: Path) -> Path | None:
    """rusbeir's own file for the language of a user's file; None where there is none, or it is the file itself."""
    shipped = data_folder("analyzers") / path.name
    return shipped if shipped != path and shipped.is_file() else None


def _find_extended(path: Path, table: Mapping[str, Any]) -> Path | None:
    """rusbeir's file that the table changes: the one that extends names, else the one for the same code."""
    if "extends" not in table:
        return _shipped_file(path)
    if table["extends"] == NOTHING:
        return None
    extended = data_folder("analyzers") / f"{table['extends']}.toml"
    codes = sorted(file.stem for file in extended.parent.glob("*.toml") if file.stem != BASE)
    if extended == path or extended.stem not in codes:
        raise BadInput(
            f"{_locate(path, 'extends')}: extends cannot be {table['extends']!r}. "
            f"Values: {NOTHING}, or a language of rusbeir: {', '.join(codes)}."
        )
    return extended


def _make_language(path: Path, table: Mapping[str, Any], extended: Path | None) -> Language:
    """The language of a file's content, laid over that of the extended file and over base.toml."""
    inherited = read_language_file(extended) if extended else {"profiles": {}}
    names = {**dict.fromkeys(NAMES, ""), **inherited, **table}
    if not names.get("name"):
        raise BadInput(f'{path}: name is missing. Add a line such as: name = "…".')
    layers = (_base_profiles(path.stem), inherited["profiles"], table["profiles"])
    settings: dict[str, dict[str, Any]] = {}
    for profiles in layers:
        for profile, values in profiles.items():
            settings[profile] = {**settings.get(profile, {}), **values}
    names["snowball"] = names["snowball"] or NOTHING
    names["stemmer"] = names["stemmer"] or f"{stemmers.SNOWBALL}{names['snowball']}"
    for key in NAMES:
        names[key] = names[key] or NOTHING
    return Language(
        code=path.stem,
        name=names["name"],
        why=names.get("why", ""),
        path=path,
        profiles={profile: _make_recipe(path, profile, settings, names) for profile in settings},
        extends=extended.stem if extended else "",
    )


def _base_profiles(code: str) -> dict[str, dict[str, Any]]:
    """The profiles of base.toml, with what it says about the scripts of the language."""
    base = _read_toml(data_folder("analyzers") / f"{BASE}.toml")
    profiles: dict[str, dict[str, Any]] = base["profiles"]
    for script in scripts_of(code):
        for profile in SCRIPT_PROFILES:
            profiles[profile] |= base.get("scripts", {}).get(script, {})
    return profiles


@cache
def _warn_once(message: str) -> None:
    logger.warning("%s", message)


def _warn_of_missing_steps(language: Language, shipped: Language) -> None:
    """Warn once where a user's file takes fewer steps than rusbeir's for the same language."""
    steps = language.profiles["default"].steps
    missing = {step: value for step, value in shipped.profiles["default"].steps.items() if step not in steps}
    if missing:
        listed = "; ".join(step if value in step else f"{step} ({value})" for step, value in missing.items())
        _warn_once(
            f"{language.path} analyses {shipped.name} without steps that rusbeir's own file takes: {listed}. To keep "
            f'them, remove extends = "{NOTHING}" or what switches them off.'
        )


def _find_line(path: Path, key: str, profile: str) -> int:
    """The number of the line that sets the key in the profile, or before all profiles; 0 where there is none."""
    inside = not profile
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if line.strip().startswith("["):
            inside = line.strip("[] ").partition("]")[0] == f"profiles.{profile}"
        elif inside and line.partition("=")[0].strip() == key:
            return number
    return 0


def _locate(path: Path, key: str, profile: str = "") -> str:
    """The line of a setting, for messages: that of the profile, else that of the key which fills it."""
    if number := _find_line(path, key, profile):
        return f"{path}:{number}" + (f", profile {profile!r}" if profile else "")
    for name in _FILLED_BY.get(key, ()):
        if number := _find_line(path, name, ""):
            return f"{path}:{number}"
    return f"{path}, profile {profile!r}"


def _make_recipe(path: Path, profile: str, profiles: Mapping[str, dict[str, Any]], names: Mapping[str, str]) -> Recipe:
    """The recipe of one profile. Raises BadInput, with the line, for a wrong key or value."""
    settings = _fill_settings(path, profile, _inherit(path, profile, profiles), names)
    _check_values(path, profile, settings)
    settings["stop"] = _read_stop_list(path, profile, settings["stop"])
    settings["rules"] = tuple(_read_rules(path, profile, settings))
    return replace(Recipe(language=path.stem), **settings)


def _inherit(path: Path, profile: str, profiles: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """The settings of the profile and of those that it inherits from."""
    settings = dict(profiles[profile])
    ancestors = [profile]
    while parent := settings.pop("inherits", ""):
        if parent not in profiles or parent in ancestors:
            others = ", ".join(sorted(profiles.keys() - set(ancestors)))
            raise BadInput(
                f"{_locate(path, 'inherits', ancestors[-1])}: inherits cannot be {parent!r}. Values: {others}."
            )
        settings = {**profiles[parent], **settings}
        ancestors.append(parent)
    return settings


def _fill_settings(path: Path, profile: str, settings: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Every setting of a recipe, of the type that it must have, with names in place of {names}."""
    default = Recipe(language=path.stem)
    filled = {field.name: getattr(default, field.name) for field in fields(Recipe)}
    del filled["language"], filled["rules"]
    filled["stop"] = default.stop.name
    for key, value in settings.items():
        if key not in filled:
            raise BadInput(f"{_locate(path, key, profile)}: unknown key {key!r}. Keys: inherits, {', '.join(filled)}.")
        typed = tuple(value) if isinstance(value, list) else value
        words = typed if isinstance(typed, tuple) else ()
        if type(typed) is not type(filled[key]) or not all(isinstance(word, str) for word in words):
            raise BadInput(
                f"{_locate(path, key, profile)}: {key} cannot be {value!r}. An example: {key} = {filled[key]!r}."
            )
        if isinstance(typed, str):
            for name in NAMES:
                typed = typed.replace(f"{{{name}}}", names[name])
            typed = typed.replace(f"{stemmers.SNOWBALL}{NOTHING}", NOTHING)
        filled[key] = typed
    return filled


def _check_values(path: Path, profile: str, settings: Mapping[str, Any]) -> None:
    """Raise BadInput for a value that a setting cannot have; files and functions are looked at later."""
    allowed: dict[str, Collection[str]] = {
        "tokens": tokenisers.TOKENISERS,
        "normalise": folding.NORMALISATIONS,
        "case": folding.CASES,
        "fold": folding.FOLDS,
        "apostrophe": APOSTROPHES,
        "numbers": NUMBERS,
        "lemmas": (NOTHING, *lemmas.LEXICONS),
        "stop": (NO_STOP_WORDS.name, *_stop_files(path)),
        "stop_match": STOP_MATCHES,
        "compounds": (NOTHING, "simplemma"),
        "stemmer": (NOTHING, *stemmers.STEMMERS),
        "stem": STEM_INPUTS,
        "term_fold": folding.FOLDS,
        "terms": TERMS,
        "synonyms": (NOTHING,),
    }
    own = {"lemmas": (FILE, PYTHON), "stop": (FILE,), "stemmer": (SUFFIXES, PYTHON), "synonyms": (FILE,)}
    for key, values in allowed.items():
        prefixes = own.get(key, ())
        listed = settings[key] if isinstance(settings[key], tuple) else (settings[key],)
        if key in ("lemmas", "synonyms"):
            listed = split_names(settings[key])
        for value in listed:
            if value not in values and not value.startswith(prefixes or ("\0",)):
                forms = [f"{prefix}{'module.function' if prefix == PYTHON else 'PATH'}" for prefix in prefixes]
                listing = ", ".join([*sorted(values), *forms])
                raise BadInput(f"{_locate(path, key, profile)}: {key} cannot be {value!r}. Values: {listing}.")
    for name in split_names(settings["lemmas"])[:-1]:
        if name in allowed["lemmas"]:
            raise BadInput(
                f"{_locate(path, 'lemmas', profile)}: {name} answers for every word, so what follows it is "
                "never asked. Put it last."
            )
    if settings["gram_chars"] < 1:
        raise BadInput(
            f"{_locate(path, 'gram_chars', profile)}: gram_chars cannot be {settings['gram_chars']}. "
            "Write a number of characters, from 1."
        )


def _stop_files(path: Path) -> dict[str, Path]:
    """Name -> file of each stop list that the language file can name; those next to it come first."""
    folders = (data_folder("analyzers"), path.parent)
    return {file.stem: file for folder in folders for file in sorted(folder.glob("stopwords/*.txt"))}


def _read_stop_list(path: Path, profile: str, name: str) -> StopList:
    if name == NO_STOP_WORDS.name:
        return NO_STOP_WORDS
    file = _find_file(path, profile, "stop", name) if name.startswith(FILE) else _stop_files(path)[name]
    return StopList(file.stem, read_stop_words(file))


def _read_rules(path: Path, profile: str, settings: Mapping[str, Any]) -> Iterator[Rules]:
    """What the files and functions say that the settings name."""
    readers: dict[str, Callable[[str, Path], Rules]] = {
        "lemmas": read_lemmas, "stemmer": read_suffixes, "synonyms": read_synonyms
    }  # fmt: skip
    for key, read in readers.items():
        for name in split_names(settings[key]):
            if name.startswith(PYTHON):
                try:
                    yield read_function(name, path.parent)
                except BadInput as error:
                    raise BadInput(f"{_locate(path, key, profile)}: {error}") from error
            elif name.startswith((FILE, SUFFIXES)):
                yield read(name, _find_file(path, profile, key, name))


def _find_file(path: Path, profile: str, key: str, name: str) -> Path:
    """The file that a language file names; a relative path is relative to the language file."""
    file = path.parent / Path(name.partition(":")[2]).expanduser()
    if not file.is_file():
        raise BadInput(
            f"{_locate(path, key, profile)}: {name} names no file: there is no {file}. Write the path relative to the "
            "language file."
        )
    return file

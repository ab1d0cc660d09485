"""Languages, read from language files (<code>.toml, stop lists in stopwords/) on use."""

from __future__ import annotations

import logging
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rusbeir.analysis import stemmers
from rusbeir.analysis.recipes import Recipe
from rusbeir.analysis.settings import NAMES, NOTHING, locate, make_recipe
from rusbeir.analysis.subwords import HF, load_subwords, resolve_subwords
from rusbeir.errors import BadInput, UnknownName, option, unknown, warn_once
from rusbeir.languages import MACROLANGUAGES, english_name, parse_language, read_language_tag, scripts_of
from rusbeir.storage import data_folder
from rusbeir.user_sources import find_entry_points

logger = logging.getLogger(__name__)

FOLDERS_VARIABLE = "RUSBEIR_ANALYZERS"
"""The environment variable that names folders of language files; a path list."""

ENTRY_POINTS = "rusbeir.analyzers"
"""The group of entry points by which an installed package names a package of its own that holds language files."""

BASE = "base"
"""analyzers/base.toml: the profiles that every language starts from, those of other folders included."""

FILELESS = ("raw", "unicode")
"""The profiles that take nothing from a language file, so that every language has them."""
FALLBACKS = {"default": "both", "blend": "both", "grams": "grams"}
"""What the profiles index where a language has no file: the words of the profile unicode, their runs of characters, or
both, the scores of which are added as those of the profile blend are."""
SCRIPT_PROFILES = ("default", "unicode")
"""The profiles that begin with what base.toml says about the scripts of a language."""

LANGUAGE_KEYS = ("name", "why", "extends", *NAMES)
"""The keys of a language file in addition to its profiles; their values are texts."""


@dataclass(frozen=True, kw_only=True)
class Language:
    """A language that texts can be analysed in, as its language file has it."""

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


def language_files(*, installed: bool = True) -> Mapping[str, Path]:
    """List the language files by code, in the order of the codes, without opening them.

    Of two files for one language the first counts: folders of RUSBEIR_ANALYZERS in their order, then rusbeir's own,
    then those of installed packages (entry points rusbeir.analyzers). So what a user names replaces a shipped
    language, and an installed package only adds languages.

    Args:
        installed: Whether installed packages are looked at.

    Returns:
        Code -> path of the language file.

    Raises:
        BadInput: A folder that RUSBEIR_ANALYZERS names does not exist.

    Examples:
        >>> language_files()["ru"].name
        'ru.toml'
    """
    names = os.environ.get(FOLDERS_VARIABLE, "").split(os.pathsep)
    folders = [Path(name).expanduser() for name in names if name]
    for folder in folders:
        if not folder.is_dir():
            raise BadInput(f"No folder {str(folder)!r}, which {option('analyzers', python=FOLDERS_VARIABLE)} names.")
    folders.append(data_folder("analyzers"))
    entries = sorted(find_entry_points(ENTRY_POINTS), key=lambda entry: entry.name) if installed else []
    for entry in entries:
        try:
            spec = find_spec(entry.value)
            if spec is None or not spec.submodule_search_locations:
                raise ModuleNotFoundError(f"{entry.value} is not a package")
            folders += map(Path, spec.submodule_search_locations)
        except (Exception, SystemExit) as error:  # whatever somebody's package raises when it is imported
            logger.warning("The entry point %s = %s in %s is ignored: %s", entry.name, entry.value, ENTRY_POINTS, error)
    paths = (path for folder in reversed(folders) for path in folder.glob("*.toml"))
    files = {path.stem: path for path in paths if path.stem != BASE}
    return dict(sorted(files.items()))


def find_language(text: str) -> str:
    """Find the tag of the language file that serves a language.

    Args:
        text: A BCP 47 tag or an English name, spelled as people do.

    Returns:
        The tag as read_language_tag reads it, without a region that has no language file. Bokmål (nb), without a file
        of its own, is Norwegian, and Chinese in Taiwan, Hong Kong and Macau is zh-Hant.

    Examples:
        >>> [find_language(text) for text in ("RU", "Russian", "ru-RU", "zh-Hans", "zh-TW", "nb-NO")]
        ['ru', 'ru', 'ru', 'zh-Hans', 'zh-Hant', 'no']
    """
    tag, files = read_language_tag(text), language_files()
    primary, _, region = tag.partition("-")
    if tag in files or len(region) not in (0, 2):
        return tag
    broader = (MACROLANGUAGES.get(tag, tag), primary, MACROLANGUAGES.get(primary, tag))
    return next((code for code in broader if code in files), tag)


def read_language(code: str) -> Language:
    """Read the language of that code from its file, and from rusbeir's file that it extends.

    Args:
        code: BCP 47.

    Returns:
        The language with all its profiles.

    Raises:
        UnknownName: The language has no file.
        BadInput: The file is wrong; the message names file and line or key.

    Examples:
        >>> sorted(read_language("ru").profiles)[:6]
        ['blend', 'default', 'grams', 'lemmas', 'lucene-ru', 'lucene-words']
    """
    path = language_files(installed=False).get(code) or language_files().get(code)
    if path is None and (meant := find_language(code)) != code:
        return read_language(meant)
    if path is None:
        raise _no_file(code)
    if not re.fullmatch("[a-z]{2,3}(-[A-Za-z0-9]{1,8})*", code):
        raise BadInput(f"{path}: a language file is named after the BCP 47 code of its language, as kk.toml.")
    for other in sorted(path.parent.glob("*.toml")):
        if other != path and other.stem.lower().replace("_", "-") == code.lower():
            raise BadInput(f"{path} and {other.name} are both for the language {code!r}. Remove one of them.")
    table = read_language_file(path)
    # A user's file for one of rusbeir's languages changes rusbeir's own file, unless it says otherwise.
    packaged = data_folder("analyzers") / path.name
    shipped = packaged if packaged != path and packaged.is_file() else None
    extended = _find_extended(path, table) if "extends" in table else shipped
    language = _make_language(path, table, extended, code)
    if shipped:
        _warn_of_missing_steps(language, _make_language(shipped, read_language_file(shipped), None, code))
    return language


def read_recipe(language: str, profile: str) -> Recipe:
    """The recipe of that profile; a language of BCP 47 without a file has those of FILELESS and FALLBACKS.

    Raises UnknownName where the language has no such profile, and as read_language.

    Examples:
        >>> read_recipe("xx", "unicode").language, read_recipe("ti", "default").terms
        ('xx', 'both')
    """
    if profile in (*FILELESS, *FALLBACKS) and language not in language_files(installed=False):
        language = find_language(language)
        if language not in language_files():
            return _make_fileless(language, profile)
    profiles = read_language(language).profiles
    if profile not in profiles:
        raise unknown("profile", profile, profiles, owner=f"language {language!r}", listing="rusbeir languages")
    return profiles[profile]


def read_subword_recipe(language: str, tokens: str) -> Recipe:
    """The recipe of the profile unicode whose words are cut by a model's tokenizer: hf:NAME, or hf:FILE.

    Raises BadInput for another name, and as load_subwords.
    """
    if not tokens.startswith(HF):
        raise BadInput(f"tokens cannot be {tokens!r}. Values: {HF}NAME of a model, or {HF}FILE, a tokenizer.json.")
    tokens = resolve_subwords(tokens, Path())
    load_subwords(tokens)
    return replace(read_recipe(language, "unicode"), tokens=tokens, apostrophe="split")


def read_language_file(path: Path) -> dict[str, Any]:
    """The content of a language file or base.toml, whose keys are known and whose profiles are tables."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, RecursionError, ValueError) as error:
        raise BadInput(f"{path}: {error}. A language file is TOML in UTF-8.") from error
    profiles = table.setdefault("profiles", {})
    tables = ("profiles", "scripts") if path.stem == BASE else ("profiles",)
    for key, value in table.items():
        if key not in (*LANGUAGE_KEYS, *tables):
            raise BadInput(
                f"{locate(path, key)}: unknown key {key!r}. Keys: {', '.join(LANGUAGE_KEYS)}, profiles. Rules of your "
                'own are files: lemmas = "file:LEMMAS.tsv", stemmer = "suffixes:FILE"; or python:module.function.'
            )
        if key not in tables and not isinstance(value, str):
            raise BadInput(f'{locate(path, key)}: {key} cannot be {value!r}. An example: {key} = "…".')
    if not (isinstance(profiles, dict) and all(isinstance(settings, dict) for settings in profiles.values())):
        raise BadInput(f"{path}: profiles are tables, such as [profiles.default].")
    return table


def _find_extended(path: Path, table: Mapping[str, Any]) -> Path | None:
    """rusbeir's file that the table names as the one that it changes; None if it names none."""
    if table["extends"] == NOTHING:
        return None
    extended = data_folder("analyzers") / f"{table['extends']}.toml"
    codes = sorted(file.stem for file in extended.parent.glob("*.toml") if file.stem != BASE)
    if extended == path or extended.stem not in codes:
        raise BadInput(
            f"{locate(path, 'extends')}: extends cannot be {table['extends']!r}. "
            f"Values: {NOTHING}, or a language of rusbeir: {', '.join(codes)}."
        )
    return extended


def _make_language(path: Path, table: Mapping[str, Any], extended: Path | None, code: str) -> Language:
    """The language of a file's content, laid over that of the extended file and over base.toml."""
    base = read_language_file(data_folder("analyzers") / f"{BASE}.toml")
    for script in scripts_of(code):
        for profile in SCRIPT_PROFILES:
            base["profiles"][profile] |= base.get("scripts", {}).get(script, {})
    inherited = read_language_file(extended) if extended else {"profiles": {}}
    names = {**dict.fromkeys(NAMES, ""), **inherited, **table}
    if not names.get("name"):
        raise BadInput(f'{path}: name is missing. Add a line such as: name = "…".')
    layers = (base["profiles"], inherited["profiles"], table["profiles"])
    settings: dict[str, dict[str, Any]] = {}
    for profiles in layers:
        for profile, values in profiles.items():
            settings[profile] = {**settings.get(profile, {}), **values}
    names["snowball"] = names["snowball"] or NOTHING
    names["stemmer"] = names["stemmer"] or f"{stemmers.SNOWBALL}{names['snowball']}"
    for key in NAMES:
        names[key] = names[key] or NOTHING
    return Language(
        code=code,
        name=names["name"],
        why=names.get("why", ""),
        path=path,
        profiles={profile: make_recipe(path, profile, settings, names) for profile in settings},
        extends=extended.stem if extended else "",
    )


def _make_fileless(language: str, profile: str) -> Recipe:
    """The recipe of FILELESS or FALLBACKS for a language without a file, with a warning where it is a fallback.

    Raises UnknownName where BCP 47 does not have its tag.
    """
    name = profile
    if profile in FALLBACKS:
        name = "unicode"
        try:
            parse_language(language)
        except UnknownName:
            raise _no_file(language) from None
        warn_once(
            logger,
            f"No analyzer knows {english_name(language)} ({language}): its texts are cut into words as Unicode says, "
            f"and into runs of four characters. `rusbeir languages new {language}` starts a language file.",
        )
    path = data_folder("analyzers") / f"{BASE}.toml"
    recipe = _make_language(path, {"name": language, "profiles": {}}, None, language).profiles[name]
    return replace(recipe, language=language, terms=FALLBACKS.get(profile, recipe.terms))


def _no_file(code: str) -> UnknownName:
    known = unknown("language", code, language_files(), listing="rusbeir languages")
    return UnknownName(
        f"{known} Any language of BCP 47 can be searched by bm25 without a profile's name, and by dense systems, such "
        "as dense(multilingual-e5-small). A language file of your own is found in the folder that "
        f"{option('analyzers', python=FOLDERS_VARIABLE)} names; `rusbeir languages new {code}` starts one: "
        "docs/add-a-language.md."
    )


def _warn_of_missing_steps(language: Language, shipped: Language) -> None:
    """Warn once where a user's file takes fewer steps than rusbeir's for the same language."""
    steps = language.profiles["default"].steps
    missing = {step: value for step, value in shipped.profiles["default"].steps.items() if step not in steps}
    if missing:
        listed = "; ".join(step if value in step else f"{step} ({value})" for step, value in missing.items())
        warn_once(
            logger,
            f"{language.path} analyses {shipped.name} without steps that rusbeir's own file takes: {listed}. To keep "
            f'them, remove extends = "{NOTHING}" or what switches them off.',
        )

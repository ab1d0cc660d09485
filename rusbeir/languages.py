"""Languages by their BCP 47 tags: which exist, how people spell them, and their names."""

from __future__ import annotations

import copy
import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from rusbeir.errors import UnknownName
from rusbeir.storage import data_folder

_TAG = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")


MACROLANGUAGES: Mapping[str, str] = {"nb": "no", "zh-HK": "zh-Hant", "zh-MO": "zh-Hant", "zh-TW": "zh-Hant"}
"""Languages whose analysis is that of another tag: Bokmål is Norwegian; Chinese is written so in these regions."""

MACROLANGUAGE_MEMBERS: Mapping[str, str] = {
    "als": "sq", "arb": "ar", "azj": "az", "cmn": "zh", "ekk": "et", "gaz": "om", "khk": "mn", "lvs": "lv",
    "nno": "nn", "npi": "ne", "ory": "or", "pbt": "ps", "pes": "fa", "plt": "mg", "swh": "sw", "uzn": "uz", "zsm": "ms",
    "acm": "ar", "apc": "ar", "ars": "ar", "ary": "ar", "arz": "ar",
}  # fmt: skip
"""ISO 639-3 codes of languages that the standard groups under another, by the tag of that one; last Arabic dialects."""


def read_language_tag(text: str) -> str:
    """Read the tag that is meant: RU, Russian and ru are ru; a tag that cannot be understood stays as it is.

    >>> [read_language_tag(text) for text in ("RU", "russian", "ru_RU", "zh-Hans", "kk", "??")]
    ['ru', 'ru', 'ru-RU', 'zh-Hans', 'kk', '??']
    """
    if _TAG.fullmatch(text):
        return text
    names = {english_name(code).lower(): code for code in iso639_1()}
    primary, *rest = names.get(text.strip().lower(), text.strip()).replace("_", "-").split("-")
    tag = "-".join([primary.lower(), *rest])
    return tag if _TAG.fullmatch(tag) else text


def parse_language(text: str) -> str:
    """Parse the tag that is meant, as read_language_tag reads it; rus is ru, too.

    Raises UnknownName, with what was probably meant, for a tag that BCP 47 does not have.

    >>> [parse_language(text) for text in ("Russian", "rus", "pt_BR", "tlh")]
    ['ru', 'ru', 'pt-BR', 'tlh']
    """
    tag = read_language_tag(text)
    primary, *rest = tag.split("-")
    if _TAG.fullmatch(tag) and (len(primary) == 3 or primary in _iso639()):
        shortest = next((code for code, longer in _iso639().items() if longer == primary), primary)
        return "-".join([shortest, *rest])
    names = {**_own_names(), **{name.lower(): code for code, name in _names().items()}}
    near = difflib.get_close_matches(text.strip().lower(), names, n=1, cutoff=0.8)
    hint = f" Did you mean {names[near[0]]!r}?" if near else ""
    raise UnknownName(
        f"No language {text!r}.{hint} Languages are named by BCP 47, such as pt-BR or zh-Hans. Two-letter tags: "
        f"{', '.join(sorted(_iso639()))}."
    )


# Scripts that say nothing new: what a language is written in when its tag names none.
_OWN_SCRIPT = {
    "be": "cyrl", "bg": "cyrl", "el": "grek", "en": "latn", "es": "latn", "de": "latn", "fr": "latn", "he": "hebr",
    "hi": "deva", "hy": "armn", "it": "latn", "ja": "jpan", "ka": "geor", "kk": "cyrl", "ko": "kore", "ky": "cyrl",
    "mk": "cyrl", "mn": "cyrl", "pl": "latn", "pt": "latn", "ru": "cyrl", "sr": "cyrl", "tg": "cyrl", "tr": "latn",
    "tt": "cyrl", "uk": "cyrl", "uz": "latn",
}  # fmt: skip


def list_broader_tags(tag: str, *, any_script: bool) -> Iterator[str]:
    """List the tag in lower case, then without its last part, and so on; a script that matters is not dropped.

    >>> list(list_broader_tags("pt-BR", any_script=False)), list(list_broader_tags("sr-Latn", any_script=False))
    (['pt-br', 'pt'], ['sr-latn'])
    """
    parts = tag.lower().replace("_", "-").split("-")
    while parts:
        yield "-".join(parts)
        dropped = parts.pop()
        if (
            not any_script
            and len(dropped) == 4
            and dropped.isalpha()
            and _OWN_SCRIPT.get(parts[0] if parts else "") != dropped
        ):
            return


def english_name(tag: str) -> str:
    """Name a language in English, for prompts; the tag itself where it has no name.

    >>> english_name("ru-RU"), english_name("tlh")
    ('Russian', 'tlh')
    """
    return next(
        (_names()[candidate] for candidate in list_broader_tags(tag, any_script=False) if candidate in _names()), tag
    )


@cache
def _names() -> Mapping[str, str]:
    with (data_folder("translation") / "prompts" / "languages.toml").open("rb") as file:
        return tomllib.load(file)


@cache
def _own_names() -> Mapping[str, str]:
    with (data_folder("translation") / "own-names.toml").open("rb") as file:
        return tomllib.load(file)


SPACELESS_SCRIPTS = frozenset({"Han", "Hiragana", "Katakana", "Thai", "Lao", "Khmer", "Myanmar"})
"""Scripts that are written without spaces between words, as Unicode names them."""


@cache
def scripts_of(language: str) -> tuple[str, ...]:
    """The scripts of a language, of "sr-Latn" the one it names; () where translation/scripts.toml does not list it."""
    code, _, rest = language.replace("_", "-").partition("-")
    if "latn" in rest.lower().split("-"):
        return ("Latin",)
    with (data_folder("translation") / "scripts.toml").open("rb") as file:
        return tuple(tomllib.load(file).get(code.lower(), ()))


def iso639_3(tag: str) -> str:
    """Return the three-letter code of a language; the tag itself where it has no two-letter one.

    >>> iso639_3("ru"), iso639_3("ace")
    ('rus', 'ace')
    """
    return str(_iso639().get(tag, tag))


def iso639_1() -> tuple[str, ...]:
    """Return the two-letter codes of languages."""
    return tuple(_iso639())


DETECTOR_CODES: Mapping[str, str] = {"nb": "no", "iw": "he", "in": "id", "fil": "tl"}
"""The codes of py3langid, where they differ from BCP 47."""


def load_detector() -> Any:
    """Return a LanguageIdentifier of py3langid, whose set_languages restricts it without changing others."""
    return copy.copy(_detector())


@cache
def _detector() -> Any:
    # Imported here, as loading takes 2 seconds.
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


@cache
def _iso639() -> dict[str, str]:
    return tomllib.loads((data_folder("translation") / "iso639.toml").read_text(encoding="utf-8"))

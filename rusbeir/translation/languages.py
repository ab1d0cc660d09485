"""Languages by their BCP 47 tags: which exist, their names, and the codes of translators."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property

from rusbeir.errors import BadInput, UnknownName
from rusbeir.storage import data_folder

_TAG = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")


def parse_target_language(tag: str, source: str) -> str:
    """The tag. Raises UnknownName for a tag that BCP 47 does not have, BadInput for the source's own.

    >>> parse_target_language("pt-BR", "en")
    'pt-BR'
    """
    primary = tag.partition("-")[0]
    if not _TAG.fullmatch(tag) or (len(primary) == 2 and primary not in _iso639()):
        names = {english_name(code).lower(): code for code in _iso639()}
        near = difflib.get_close_matches(tag.lower(), names, n=1, cutoff=0.8)
        hint = f" Did you mean {names[near[0]]!r}?" if near else ""
        raise UnknownName(
            f"No language {tag!r}.{hint} Languages are named by BCP 47, such as pt-BR or zh-Hans. Two-letter tags: "
            f"{', '.join(sorted(_iso639()))}."
        )
    if tag == source:
        raise BadInput(f"The dataset is already in {source!r}. Name another language with --to.")
    return tag


# Scripts that say nothing new: what a language is written in when its tag names none.
_OWN_SCRIPT = {
    "be": "cyrl", "bg": "cyrl", "el": "grek", "en": "latn", "es": "latn", "de": "latn", "fr": "latn", "he": "hebr",
    "hi": "deva", "hy": "armn", "it": "latn", "ja": "jpan", "ka": "geor", "kk": "cyrl", "ko": "kore", "ky": "cyrl",
    "mk": "cyrl", "mn": "cyrl", "pl": "latn", "pt": "latn", "ru": "cyrl", "sr": "cyrl", "tg": "cyrl", "tr": "latn",
    "tt": "cyrl", "uk": "cyrl", "uz": "latn",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Codes:
    """The languages of one translator, by its own codes."""

    translator: str
    codes: tuple[str, ...]
    aliases: Mapping[str, str]
    """BCP 47 in lower case -> the code, where they differ."""

    def among(self, codes: tuple[str, ...]) -> Codes:
        """The same for a model that says itself which codes it knows."""
        return replace(self, codes=codes)

    def source(self, tag: str) -> str:
        """The code of a language to translate from. Raises BadInput, which lists the codes, where there is none."""
        return self._find(tag, "from", any_script=True)

    def target(self, tag: str) -> str:
        """The code of a language to translate into; never one in another script. BadInput as source."""
        return self._find(tag, "into", any_script=False)

    def pair(self, source: str, target: str) -> tuple[str, str]:
        """The codes of the languages to translate from and into. Raises BadInput as source and target do."""
        return self.source(source), self.target(target)

    @cached_property
    def _by_tag(self) -> dict[str, str]:
        return {code.lower().replace("_", "-"): code for code in self.codes}

    def _find(self, tag: str, direction: str, *, any_script: bool) -> str:
        for candidate in _broader(tag, any_script=any_script):
            if (alias := self.aliases.get(candidate)) in self.codes and alias is not None:
                return alias
            if candidate in self._by_tag:
                return self._by_tag[candidate]
        near = difflib.get_close_matches(tag.lower(), self._by_tag, n=1)
        raise BadInput(
            f"The translator {self.translator} does not translate {direction} {tag!r}."
            f"{f' Did you mean {self._by_tag[near[0]]!r}?' if near else ''} It has: {', '.join(sorted(self.codes))}."
        )


def _broader(tag: str, *, any_script: bool) -> Iterator[str]:
    """The tag in lower case, then without its last part, and so on; a script that matters is not dropped.

    >>> list(_broader("pt-BR", any_script=False)), list(_broader("sr-Latn", any_script=False))
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
    """What a prompt calls a language; the tag itself where it has no name there.

    >>> english_name("ru-RU"), english_name("tlh")
    ('Russian', 'tlh')
    """
    return next((_names()[candidate] for candidate in _broader(tag, any_script=False) if candidate in _names()), tag)


@cache
def _names() -> Mapping[str, str]:
    with (data_folder("translation") / "prompts" / "languages.toml").open("rb") as file:
        return tomllib.load(file)


def iso639_3(tag: str) -> str:
    """The three-letter code of a language; the tag itself where it has no two-letter one.

    >>> iso639_3("ru"), iso639_3("ace")
    ('rus', 'ace')
    """
    return str(_iso639().get(tag, tag))


def iso639_1() -> tuple[str, ...]:
    """The two-letter codes of languages."""
    return tuple(_iso639())


@cache
def _iso639() -> dict[str, str]:
    return tomllib.loads((data_folder("translation") / "iso639.toml").read_text(encoding="utf-8"))

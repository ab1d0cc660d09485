"""Read and write TMX 1.4 as a stream, without entities, external files or an element tree.

Characters that XML 1.0 cannot contain are written as <ph type="x-char">U+0001</ph>, which is valid TMX, and read back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO
from xml.parsers import expat

from rusbeir import __version__
from rusbeir.errors import BadInput

_BLOCK_BYTES = 1 << 16
_CHAR_TYPE = "x-char"
_CODE_POINT = re.compile(r"U\+([0-9A-F]{4,6})")
_SPECIAL = re.compile("[&<>\r\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"}


def tmx_head(source: str) -> str:
    """Return the beginning of a file whose sources are in that language."""
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4">\n'
        f'<header creationtool="rusbeir" creationtoolversion="{__version__}" segtype="block" o-tmf="rusbeir" '
        f'adminlang="en" srclang="{_escaped(source)}" datatype="plaintext"/>\n<body>\n'
    )


TMX_TAIL = "</body>\n</tmx>\n"


def tmx_unit(source: str, target: str, text: str, translation: str) -> str:
    """Return one pair of a text and its translation, in those languages."""
    variants = "".join(
        f'<tuv xml:lang="{_escaped(language)}"><seg>{_escaped(content)}</seg></tuv>'
        for language, content in ((source, text), (target, translation))
    )
    return f"<tu>{variants}</tu>\n"


def read_tmx(file: IO[bytes], name: str, source: str, target: str) -> Iterator[tuple[str, str]]:
    """Read (source, target) of each unit that has both languages; markup within a segment counts as its text.

    Raises BadInput, with file and line, for broken XML and for declared entities, and where no unit has both.
    """
    reader = _Reader(name, source, target)
    while block := file.read(_BLOCK_BYTES):
        reader.feed(block, final=False)
        yield from reader.taken()
    reader.feed(b"", final=True)
    yield from reader.taken()
    if not reader.n_pairs:
        languages = ", ".join(sorted(reader.languages)) or "none"
        raise BadInput(f"{name}: no unit has both {source!r} and {target!r}. Its languages: {languages}.")


class _Reader:
    """The units that the parser has read and nobody has taken yet."""

    def __init__(self, name: str, source: str, target: str) -> None:
        self.languages: set[str] = set()
        self.n_pairs = 0
        self._name = name
        self._pair = source.lower(), target.lower()
        self._pairs: list[tuple[str, str]] = []
        self._variants: list[tuple[str, str]] = []
        self._language = ""
        self._seg: list[str] | None = None
        self._char: list[str] | None = None
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._parser.EntityDeclHandler = self._entity
        self._parser.SkippedEntityHandler = self._skipped

    def feed(self, block: bytes, *, final: bool) -> None:
        try:
            self._parser.Parse(block, final)
        except expat.ExpatError as error:
            reason = expat.ErrorString(error.code)
            raise BadInput(f"{self._name}:{error.lineno}: not well-formed XML ({reason}).") from error
        except BadInput:
            raise
        except (LookupError, ValueError) as error:
            # Python's codecs are asked for an encoding that expat does not know.
            line = self._parser.CurrentLineNumber
            raise BadInput(f"{self._name}:{line}: cannot be read ({error}). Save it as UTF-8.") from error

    def taken(self) -> list[tuple[str, str]]:
        pairs, self._pairs = self._pairs, []
        self.n_pairs += len(pairs)
        return pairs

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "tu":
            self._variants = []
        elif tag == "tuv":
            self._language = (attributes.get("xml:lang") or attributes.get("lang") or "").lower().replace("_", "-")
            self.languages.add(self._language)
        elif tag == "seg":
            self._seg = []
        elif tag == "ph" and attributes.get("type") == _CHAR_TYPE:
            self._char = []

    def _end(self, tag: str) -> None:
        if tag == "ph" and self._char is not None:
            written = "".join(self._char)
            self._char = None
            match = _CODE_POINT.fullmatch(written)
            code = int(match[1], 16) if match else -1
            # A surrogate is not a character, and stays as it is written.
            is_char = 0 <= code < 0xD800 or 0xDFFF < code < 0x110000
            if self._seg is not None:
                self._seg.append(chr(code) if is_char else written)
        elif tag == "seg" and self._seg is not None:
            self._variants.append((self._language, "".join(self._seg)))
            self._seg = None
        elif tag == "tu":
            texts = [_variant(self._variants, language) for language in self._pair]
            if texts[0] is not None and texts[1] is not None:
                self._pairs.append((texts[0], texts[1]))

    def _text(self, data: str) -> None:
        if self._char is not None:
            self._char.append(data)
        elif self._seg is not None:
            self._seg.append(data)

    def _doctype(self, name: str, system_id: str | None, public_id: str | None, has_internal_subset: int) -> None:
        # <!DOCTYPE tmx SYSTEM "tmx14.dtd"> is common and names a file that is never opened.
        if has_internal_subset:
            raise self._refused("its DOCTYPE has declarations")

    def _entity(self, name: str, *declaration: object) -> None:
        raise self._refused(f"it declares the entity {name!r}")

    def _skipped(self, name: str, is_parameter_entity: bool) -> None:
        raise self._refused(f"it uses the entity {name!r}")

    def _refused(self, reason: str) -> BadInput:
        line = self._parser.CurrentLineNumber
        return BadInput(f"{self._name}:{line}: refused, as {reason}, which a translation memory does not need.")


def _variant(variants: list[tuple[str, str]], language: str) -> str | None:
    """Return the text with that language code, else with another code of the same language."""
    same = [text for code, text in variants if code == language]
    near = [text for code, text in variants if code.partition("-")[0] == language.partition("-")[0]]
    return next(iter(same or near), None)


def _escaped(text: str) -> str:
    return _SPECIAL.sub(lambda match: _escape(match[0]), text)


def _escape(char: str) -> str:
    return _ESCAPES.get(char) or f'<ph type="{_CHAR_TYPE}">U+{ord(char):04X}</ph>'

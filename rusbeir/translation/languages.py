"""Whether a language can be ported to."""

from __future__ import annotations

import re

from rusbeir.errors import BadInput, unknown
from rusbeir.translation.backends.presets import iso639_1

_TAG = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")


def checked_language(tag: str, source: str) -> str:
    """The tag. Raises UnknownName for what is no language of BCP 47, BadInput for the source's own.

    >>> checked_language("pt-BR", "en")
    'pt-BR'
    """
    primary = tag.partition("-")[0]
    if not _TAG.fullmatch(tag) or (len(primary) == 2 and primary not in iso639_1()):
        raise unknown("language", tag, iso639_1(), listing="rusbeir port --help")
    if tag == source:
        raise BadInput(f"The dataset is in {source!r} already: give another language with --to.")
    return tag

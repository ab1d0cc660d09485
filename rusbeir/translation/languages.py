"""Whether a language can be ported to."""

from __future__ import annotations

import difflib
import re

from rusbeir.errors import BadInput, UnknownName
from rusbeir.translation.backends.languages import english_name
from rusbeir.translation.backends.presets import iso639_1

_TAG = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")


def checked_language(tag: str, source: str) -> str:
    """The tag. Raises UnknownName for what is no language of BCP 47, BadInput for the source's own.

    >>> checked_language("pt-BR", "en")
    'pt-BR'
    """
    primary = tag.partition("-")[0]
    if not _TAG.fullmatch(tag) or (len(primary) == 2 and primary not in iso639_1()):
        names = {english_name(code).lower(): code for code in iso639_1()}
        near = difflib.get_close_matches(tag.lower(), names, n=1, cutoff=0.8)
        hint = f" Did you mean {names[near[0]]!r}?" if near else ""
        raise UnknownName(
            f"No language {tag!r}.{hint} Languages are named by BCP 47, as pt-BR or zh-Hans; of two letters there are: "
            f"{', '.join(sorted(iso639_1()))}."
        )
    if tag == source:
        raise BadInput(f"The dataset is in {source!r} already: give another language with --to.")
    return tag

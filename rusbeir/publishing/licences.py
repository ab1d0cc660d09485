"""Which licences let a dataset be published, and how the hub names them."""

from __future__ import annotations

import re

from rusbeir.errors import BadInput, option

_OPEN = (
    "apache-2.0", "bsd-3-clause", "cc-by-3.0", "cc-by-4.0", "cc-by-nc-3.0", "cc-by-nc-4.0", "cc-by-nc-sa-3.0",
    "cc-by-nc-sa-4.0", "cc-by-sa-3.0", "cc-by-sa-4.0", "cc0-1.0", "mit", "odbl", "odc-by",
)  # fmt: skip
"""Licences under which copies and works made of them may be published, by their names on the Hugging Face hub."""
_NO_DERIVATIVES = ("cc-by-nc-nd-3.0", "cc-by-nc-nd-4.0", "cc-by-nd-4.0")
"""The same for copies alone: a translation is a derivative work."""


def find_hub_licence(licence: str) -> str | None:
    """The hub's name of a licence such as "CC BY-SA 4.0 (see each source)"; None for one that it does not know.

    >>> find_hub_licence("CC-BY-SA-4.0 (BEIR's card; see each source)"), find_hub_licence("academic use only")
    ('cc-by-sa-4.0', None)
    """
    words = re.sub(r"[\s_]+", "-", licence.partition("(")[0].strip().lower())
    return words if words in _OPEN or words in _NO_DERIVATIVES else None


def refuse_licence(name: str, licence: str, *, derived: bool) -> None:
    """Raise BadInput where the licence does not let the dataset be published, or does not say so.

    derived: whether it was made of another dataset, as a translation is.
    """
    known = find_hub_licence(licence)
    if known in _OPEN or (known in _NO_DERIVATIVES and not derived):
        return
    if known:
        why = f"The licence of {name}, {licence}, allows no derivative works, which translations are"
    elif licence in ("", "unknown", "not stated"):
        why = f"The licence of {name} is not known"
    else:
        why = f"rusbeir cannot tell whether the licence of {name}, {licence!r}, allows publishing"
    raise BadInput(
        f"{why}. With the permission of its owners, give {option('i_have_permission', True)}, which the card repeats."
    )

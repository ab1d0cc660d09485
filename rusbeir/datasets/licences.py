"""The licences that let a dataset be published, and the names that the hub has for them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from rusbeir.datasets.registry import read_registry

_OPEN = (
    "apache-2.0", "bsd-3-clause", "cc-by-3.0", "cc-by-4.0", "cc-by-nc-3.0", "cc-by-nc-4.0", "cc-by-nc-sa-3.0",
    "cc-by-nc-sa-4.0", "cc-by-sa-3.0", "cc-by-sa-4.0", "cc0-1.0", "mit", "odbl", "odc-by",
)  # fmt: skip
"""Licences under which copies and works made of them may be published, by their names on the Hugging Face hub."""
_NO_DERIVATIVES = ("cc-by-nc-nd-3.0", "cc-by-nc-nd-4.0", "cc-by-nd-4.0")
"""Licences under which copies alone may be published: a translation is a derivative work."""
_KEPT = re.compile(r"-(?:nc|sa)-|^odbl$")
"""Licences whose conditions also bind works that are made of theirs."""
UNKNOWN = ("", "unknown", "not stated")


def find_hub_licence(licence: str) -> str | None:
    """Find the hub's name of a licence such as "CC BY-SA 4.0"; None for one that it does not know.

    Remarks in brackets may change what a licence allows, so that only those of the registry are accepted.

    >>> find_hub_licence("CC-BY-SA-4.0 (BEIR's card; see each source)"), find_hub_licence("MIT (never redistribute)")
    ('cc-by-sa-4.0', None)
    """
    name, bracket, remark = licence.partition("(")
    if bracket and bracket + remark not in _read_remarks():
        return None
    words = re.sub(r"[\s_]+", "-", name.strip().lower())
    return words if words in _OPEN or words in _NO_DERIVATIVES else None


@cache
def _read_remarks() -> frozenset[str]:
    """Read the remarks in brackets that licences of the registry have."""
    parts = (entry.licence.partition("(") for entry in read_registry().values())
    return frozenset(bracket + remark for _, bracket, remark in parts if bracket)


def find_obstacle(name: str, licence: str, provenance: Mapping[str, Any], *, copied: bool = False) -> str | None:
    """Why a dataset of that name and licence may not be published, as a clause; None where it may.

    The provenance of its card names the licence of the dataset that it was made of, and of those that this was made
    of. One that is not known does not count, as somebody has stated that of the dataset. copied: whether it is known to
    be an unchanged copy.
    """
    sources = [provenance.get("source"), *provenance.get("sources", ())]
    for source in sources:
        if not isinstance(source, Mapping):
            continue
        if isinstance(its_own := source.get("provenance"), Mapping):
            # The loop also reads what is added here: of what this one was made.
            sources += [its_own.get("source"), *its_own.get("sources", ())]
        its_name, its_licence = str(source.get("name", "")), str(source.get("licence", ""))
        if its_licence not in UNKNOWN:
            if reason := find_obstacle(its_name, its_licence, {}):
                return reason
            known = find_hub_licence(its_licence)
            if known and _KEPT.search(known) and find_hub_licence(licence) != known:
                return f"{name} was made of {its_name}, whose licence {its_licence} also binds it, but has {licence!r}"
    known = find_hub_licence(licence)
    if known in _OPEN or (known and copied):
        return None
    if known:
        return (
            f"the licence of {name}, {licence}, allows no derivative works, which translations are, and nothing shows "
            "an unchanged copy"
        )
    if licence in UNKNOWN:
        return f"the licence of {name} is not known"
    return f"the licence of {name}, {licence!r}, is not one that rusbeir can judge"

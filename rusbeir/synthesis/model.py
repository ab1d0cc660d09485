"""A language model that is asked: its options, as a user gives them, and the Asker that they make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypedDict, Unpack

from rusbeir.errors import BadInput, option
from rusbeir.jobs import (
    PRICES,
    Asker,
    Budget,
    Journal,
    Limits,
    Llm,
    Price,
    Throttle,
    ask_for_prices,
    list_missing_prices,
    refuse_unpriced,
)
from rusbeir.translation import preset
from rusbeir.types import Progress, silent


class LlmOptions(TypedDict, total=False):
    """Prices per million tokens, and the fields of jobs.Limits, whose defaults are those of the translator llm."""

    input_price: float
    output_price: float
    requests_per_second: float
    concurrency: int
    retries: int
    timeout_seconds: float
    first_wait_seconds: float
    max_wait_seconds: float
    breaker: int


def read_options(given: Mapping[str, Any]) -> tuple[Price, Limits]:
    """The prices and the limits of these options. Raises BadInput for one that is not known or not a number."""
    for name, value in given.items():
        if name not in LlmOptions.__annotations__:
            known = ", ".join(sorted(LlmOptions.__annotations__))
            raise BadInput(f"A model that is asked does not take the option {name!r}. Its options are: {known}.")
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise BadInput(f"The option {name!r} is {value!r}: it must be a number from 0.")
        if isinstance(value, float) and name in ("concurrency", "retries", "breaker"):
            raise BadInput(f"The option {name!r} is {value!r}: it must be a whole number.")
    price = Price(given.get("input_price", 0.0), given.get("output_price", 0.0))
    limits = {name: value for name, value in given.items() if name not in PRICES}
    return price, replace(preset("llm").limits, **limits)


def refuse_unpriced_model(budget_cost: float | None, llm: str, options: Mapping[str, Any]) -> None:
    """Raise BadInput for a budget of money without the model's prices."""
    refuse_unpriced(budget_cost, llm, ask_for_prices(list_missing_prices(options)))


def make_asker(
    journal: Journal,
    llm: str,
    *,
    signature: str,
    seed: int,
    budget_chars: int | None,
    budget_cost: float | None,
    progress: Progress = silent,
    **options: Unpack[LlmOptions],
) -> Asker:
    """What asks the model at OPENAI_BASE_URL. Raises BadInput without a model, an endpoint or a key."""
    if not llm.strip():
        raise BadInput(f"Name the model with {option('llm', 'MODEL')}, as the endpoint names it.")
    price, limits = read_options(options)
    return Asker(
        journal=journal,
        client=Llm.from_environment(llm, timeout_seconds=limits.timeout_seconds, price=price),
        signature=signature,
        seed=seed,
        throttle=Throttle(limits),
        budget=Budget(journal, chars=budget_chars, cost=budget_cost),
        progress=progress,
    )

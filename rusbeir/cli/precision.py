"""The cost of a lower precision: a system with it and in float32, and their difference with its interval."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from rusbeir.errors import BadInput, option
from rusbeir.retrieval import Spec, Stage, parse

FULL = "float32"


def pair_precisions(systems: Sequence[str]) -> Mapping[str, str]:
    """Map each system with a precision to the same system in float32. Raises BadInput where none has one.

    >>> pair_precisions(["bm25", "rrf(bm25,dense(bge-m3,precision=bfloat16))"])
    {'rrf(bm25,dense(bge-m3,precision=bfloat16))': 'rrf(bm25,dense(bge-m3))'}
    """
    specs = [replace(parse(system), label="") for system in systems]
    pairs = {str(spec): str(full) for spec in specs if (full := _in_full(spec)) != spec}
    if not pairs:
        raise BadInput(
            f"{option('check_precision')} compares precisions with {FULL}, but no system has one: write "
            "dense(MODEL,precision=int8)."
        )
    return pairs


def _in_full(spec: Spec) -> Spec:
    """Leave out the precisions of all models in a system."""
    return replace(
        spec,
        stages=tuple(
            Stage(
                stage.name,
                tuple(_in_full(arg) if isinstance(arg, Spec) else arg for arg in stage.args),
                tuple(
                    (name, _in_full(value) if isinstance(value, Spec) else value)
                    for name, value in stage.options
                    if name != "precision"
                ),
            )
            for stage in spec.stages
        ),
    )


def describe_losses(pairs: Mapping[str, str], out: Path, measure: str) -> Iterator[str]:
    """Write a line about each system on each dataset of the folder of results."""
    from rusbeir.comparison import compare

    for system, full in pairs.items():
        for dataset in compare(out, measure=measure, baseline=full).datasets:
            specs = {score.system: score.spec for score in dataset.systems}
            for pair in dataset.pairs:
                if {specs[pair.first], specs[pair.second]} != {system, full}:
                    continue
                # Differences are the system's score minus that of the baseline.
                low, high = (100 * end for end in pair.interval)
                yield (
                    f"{system} on {dataset.dataset}: {measure} {100 * pair.difference:+.2f} against {FULL} "
                    f"(95 % interval {low:+.2f} to {high:+.2f}; {dataset.sample})."
                )

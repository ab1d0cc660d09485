"""Short names of systems, for headings, tables and charts; the whole spec is shown on demand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rusbeir.errors import RusbeirError
from rusbeir.retrieval import Spec, Stage, Value, parse

_JOINED = ("rrf", "minmax")
"""Fusions, whose short names are those of their parts with + between them."""


def shorten_systems(systems: Iterable[str]) -> dict[str, str]:
    """Give each system a short name that none of the others has; one that is not a spec keeps its own.

    An option is shown only if another of the systems has the same stage without it, or with another value. That a model
    is multilingual goes without saying.

    >>> shorten_systems(["bm25", "dense(multilingual-e5)", "rrf(bm25,dense(multilingual-e5))"])
    {'bm25': 'bm25', 'dense(multilingual-e5)': 'e5', 'rrf(bm25,dense(multilingual-e5))': 'bm25 + e5'}
    """
    specs = {system: _parse(system) for system in systems}
    variants: dict[str, set[frozenset[Any]]] = {}
    for spec in specs.values():
        for stage in _list_leaves(spec) if spec else ():
            variants.setdefault(_name_leaf(stage), set()).add(frozenset(stage.options))
    names = {system: _name(spec, variants) if spec else system for system, spec in specs.items()}
    taken = list(names.values())
    return {system: name if taken.count(name) == 1 else system for system, name in names.items()}


def _parse(system: str) -> Spec | None:
    try:
        return parse(system)
    except RusbeirError:
        return None


def _list_leaves(spec: Spec) -> Iterator[Stage]:
    """The stages that are not fusions, those within fusions included."""
    for stage in spec.stages:
        if stage.name in _JOINED:
            for arg in stage.args:
                yield from _list_leaves(_to_spec(arg))
        else:
            yield stage


def _to_spec(value: Value) -> Spec:
    return value if isinstance(value, Spec) else Spec((Stage(str(value)),))


def _name_leaf(stage: Stage) -> str:
    """The model of a stage, or its own name."""
    return str(stage.args[0]).rpartition("/")[2].removeprefix("multilingual-") if stage.args else stage.name


def _name(spec: Spec, variants: Mapping[str, set[frozenset[Any]]]) -> str:
    return " > ".join(_name_stage(stage, variants) for stage in spec.stages)


def _name_stage(stage: Stage, variants: Mapping[str, set[frozenset[Any]]]) -> str:
    if stage.name in _JOINED:
        return " + ".join(_name(_to_spec(arg), variants) for arg in stage.args)
    name = _name_leaf(stage)
    if len(variants[name]) == 1:
        return name
    common = frozenset.intersection(*variants[name])
    options = ",".join(f"{key}={value}" for key, value in stage.options if (key, value) not in common)
    return f"{name}({options})" if options else name

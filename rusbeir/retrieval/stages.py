"""From the spec of a system to one that can be prepared on a corpus and searched."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from typing import TypeAlias

from rusbeir.analysis import find_language
from rusbeir.errors import BadInput, unknown
from rusbeir.retrieval.run_cache import CachedSystem
from rusbeir.retrieval.spec import Spec, Stage, as_spec
from rusbeir.retrieval.system import System

SEARCHERS = {
    "bm25": "rusbeir.retrieval.lexical.system:from_stage",
    "dense": "rusbeir.retrieval.dense.system:from_stage",
    "sparse": "rusbeir.retrieval.sparse.system:from_stage",
}
RERANKERS = {
    "rerank": "rusbeir.retrieval.rerank.system:from_stage",
}
FUSIONS = {
    "rrf": "rusbeir.retrieval.fusion:from_stage",
    "minmax": "rusbeir.retrieval.fusion:from_stage",
    "zscore": "rusbeir.retrieval.fusion:from_stage",
}
"""Stages that search a corpus, that sort the hits of a system again, and that join the hits of several.

Name of a stage -> "module:function" that makes it, imported on use.
"""

PYTHON = "python:"
"""Prefix of a stage of the user's own: `python:package.module.factory`."""
ENTRY_POINTS = "rusbeir.retrievers"
"""The group in which an installed package names factories, which specs then use without a prefix."""
_USER_SEARCHER = "rusbeir.retrieval.user_code:from_stage"
_USER_RERANKER = "rusbeir.retrieval.rerank.system:from_own_stage"

MakeSearcher: TypeAlias = Callable[[Stage, str, str], System]
"""Called with a stage, the language and the engine."""
MakeReranker: TypeAlias = Callable[[Stage, System], System]
"""Called with a stage and the system whose hits it sorts."""
MakeFusion: TypeAlias = Callable[[Stage, Sequence[System]], System]
"""Called with a stage and the systems whose hits it joins."""


def resolve(spec: Spec | str, *, language: str, engine: str = "auto", self_suffixes: Sequence[str] = ()) -> System:
    """Make the system that a spec names, for texts of a language.

    Args:
        spec: A system as written, or its parsed form.
        language: The language of the documents, as BCP 47 has it.
        engine: `auto`, `tantivy`, `bm25s` or `elasticsearch`, the last perhaps with `@` and an address.
        self_suffixes: The dataset's, by which stages of a composition drop hits that are the query itself.

    Raises:
        UnknownName: A name in the spec is not registered.
        BadInput: The engine cannot compute the system.

    Example:
        >>> resolve("bm25( k1=0.9 )", language="ru").name
        'bm25(k1=0.9)'
    """
    from rusbeir.retrieval.lexical import engines

    if engine != "auto":
        # A wrong name is a mistake even where the system needs no engine.
        engines.load(engine)
    if len(language) != 2 or not language.islower():
        language = find_language(language)
    spec = as_spec(spec)
    suffixes = tuple(self_suffixes)
    system: System | None = None
    for stage in spec.stages:
        table, path = _find_maker(stage.name, first=system is None)
        make = pkgutil.resolve_name(path)
        if table is SEARCHERS:
            if system is not None:
                raise BadInput(f"{stage.name} searches the corpus itself and cannot follow '{system.name} >>'.")
            system = make(stage, language, engine)
        elif table is RERANKERS:
            if system is None:
                raise BadInput(
                    f"{stage.name} sorts the hits of a system: write it behind one, as in 'bm25 >> {stage}'."
                )
            system = make(stage, CachedSystem(system=system, self_suffixes=suffixes))
        else:
            if system is not None:
                raise BadInput(f"{stage.name} joins the systems in its brackets and cannot follow '{system.name} >>'.")
            sources = [
                resolve(as_spec(arg), language=language, engine=engine, self_suffixes=suffixes) for arg in stage.args
            ]
            system = make(stage, [CachedSystem(system=source, self_suffixes=suffixes) for source in sources])
    if system is None:
        raise BadInput("A system has at least one stage, such as bm25.")
    return system


def check_names(spec: Spec | str) -> Spec:
    """Parse a spec and check the names of its stages, which needs no dataset. Raises what `resolve` raises for them."""
    spec = as_spec(spec)
    for number, stage in enumerate(spec.stages):
        table, _ = _find_maker(stage.name, first=number == 0)
        for arg in stage.args if table is FUSIONS else ():
            check_names(as_spec(arg))
    return spec


def _find_maker(name: str, *, first: bool) -> tuple[Mapping[str, str], str]:
    """Find the table that a stage belongs to, and the "module:function" that makes it."""
    for table in (SEARCHERS, RERANKERS, FUSIONS):
        if name in table:
            return table, table[name]
    installed = entry_points(group=ENTRY_POINTS).names
    if name.startswith(PYTHON) or name in installed:
        return (SEARCHERS, _USER_SEARCHER) if first else (RERANKERS, _USER_RERANKER)
    raise unknown("system", name, [*SEARCHERS, *RERANKERS, *FUSIONS, *installed])

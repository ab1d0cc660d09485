"""Systems made of their specs, which can be prepared on a corpus and searched."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias, cast

from rusbeir.analysis import find_language
from rusbeir.errors import BadInput, unknown
from rusbeir.retrieval.run_cache import CachedSystem
from rusbeir.retrieval.spec import NamedObject, Spec, Stage, Value, as_spec
from rusbeir.retrieval.system import System
from rusbeir.types import MULTILINGUAL
from rusbeir.user_sources import PYTHON, find_entry_points

SEARCHERS = {
    "bm25": "rusbeir.retrieval.lexical.bm25:from_stage",
    "dense": "rusbeir.retrieval.dense.system:from_stage",
    "late": "rusbeir.retrieval.late.system:from_stage",
    "run": "rusbeir.retrieval.run_file:from_stage",
    "server": "rusbeir.retrieval.elasticsearch.server_index:from_stage",
    "sparse": "rusbeir.retrieval.sparse.system:from_stage",
}
POOL_SEARCHERS = {
    "bm25": "rusbeir.retrieval.lexical.pool:from_stage",
}
RERANKERS = {
    "rerank": "rusbeir.retrieval.rerank.system:from_stage",
}
FUSIONS = {
    "rrf": "rusbeir.retrieval.fusion:from_stage",
    "minmax": "rusbeir.retrieval.fusion:from_stage",
    "zscore": "rusbeir.retrieval.fusion:from_stage",
}
"""Stages that search a corpus, that do so in another way where it is in several languages, that sort the hits of a
system again, and that join the hits of several.

Name of a stage -> "module:function" that makes it, imported on use.
"""

ENTRY_POINTS = "rusbeir.retrievers"
"""The group in which an installed package names factories, which specs then use without a prefix."""
_USER_SEARCHER = "rusbeir.retrieval.user_code:from_stage"
_USER_RERANKER = "rusbeir.retrieval.rerank.system:from_own_stage"

_PARTS = ("search", "encode_queries", "score", "analyze", "prepare")
"""A user's object has one of these, or can be called."""

MakeSearcher: TypeAlias = Callable[[Stage, str, str], System]
"""Called with a stage, the language and the engine."""
MakeReranker: TypeAlias = Callable[[Stage, System], System]
"""Called with a stage and the system whose hits it sorts."""
MakeFusion: TypeAlias = Callable[[Stage, Sequence[System]], System]
"""Called with a stage and the systems whose hits it joins."""


def resolve(
    spec: Spec | str,
    *,
    language: str,
    engine: str = "auto",
    self_suffixes: Sequence[str] = (),
    languages: Sequence[str] = (),
) -> System:
    """Make the system that a spec names, for texts of a language.

    Args:
        spec: A system as written, or its parsed form.
        language: The language of the documents, as BCP 47 has it; "mul" where they are in several.
        engine: `auto`, `tantivy`, `bm25s`, `elasticsearch` or `opensearch`; a server perhaps with `@` and an address.
        self_suffixes: The dataset's, by which stages of a composition drop hits that are the query itself.
        languages: The languages of documents that are in several.

    Raises:
        UnknownName: A name in the spec is not registered.
        BadInput: The engine cannot compute the system.

    Examples:
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
            pooled = POOL_SEARCHERS.get(stage.name) if language == MULTILINGUAL else None
            system = pkgutil.resolve_name(pooled)(stage, languages, engine) if pooled else make(stage, language, engine)
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
                resolve(as_spec(arg), language=language, engine=engine, self_suffixes=suffixes, languages=languages)
                for arg in stage.args
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


def compose(spec: Spec | str, /, **objects: object) -> Spec:
    """Put objects of your own into a system, also such as a notebook has just defined.

    Args:
        spec: A system in which words stand for the objects: `rrf(bm25,mine)`, `bm25 >> mine(depth=20)`, `dense(mine)`.
        **objects: Word -> object: a function (queries, k) -> {query_id: {doc_id: score}}, an object with
            `search(queries, k)`, a function that makes one from the corpus, an Encoder, a Reranker, or a TextAnalyzer
            for `bm25(analyzer=mine)`.

    Returns:
        The system, which prints each object as `python:` and its word. Its signature has a digest of the object's
        source, and the object's own `signature` where it has one.

    Raises:
        UnknownName: Another name in the spec is not registered.
        BadInput: A word is the name of a system, or is not in the spec.

    Examples:
        >>> str(compose("rrf(bm25,mine)", mine=lambda queries, k: {query: {} for query in queries}))
        'rrf(bm25,python:mine)'
    """
    words = {name: NamedObject(f"{PYTHON}{name}", _check_object(thing)) for name, thing in objects.items()}
    if taken := [name for name in words if name in {*SEARCHERS, *RERANKERS, *FUSIONS}]:
        raise BadInput(f"{taken[0]!r} is the name of a system: give the object another one.")
    used: set[str] = set()

    def bind(value: Value) -> Value:
        if isinstance(value, Spec):
            return replace(value, stages=tuple(map(bind_stage, value.stages)))
        if isinstance(value, str) and value in words:
            used.add(value)
            return words[value]
        return value

    def bind_stage(stage: Stage) -> Stage:
        options = tuple((key, bind(value)) for key, value in stage.options)
        return Stage(cast(str, bind(stage.name)), tuple(map(bind, stage.args)), options)

    system = check_names(cast(Spec, bind(as_spec(spec))))
    if unused := [name for name in words if name not in used]:
        raise BadInput(f"{unused[0]!r} is not in the system '{spec}': write the word where the object belongs.")
    return system


def read_system(value: object, label: str = "") -> Spec | System:
    """Read what stands for a system: a text, a spec, a system, or an object of the caller's, as `compose` takes it.

    The label is a short name for tables. Raises UnknownName as `resolve` does, and BadInput for anything else.

    Examples:
        >>> str(read_system(lambda queries, k: {}))
        'python:function'
    """
    if not isinstance(value, (str, Spec)):
        if is_system(value) and not label:
            return cast(System, value)
        value = _read_object(value)
    spec = check_names(value)
    return replace(spec, label=label) if label else spec


def is_system(value: object) -> bool:
    """Say whether it is a resolved system. Its signature, which may ask a server, is not read."""
    return hasattr(type(value), "prepare") and hasattr(value, "engine")


def _read_object(value: object) -> Spec:
    """Read an object as the system that it is alone: an encoder is searched, a reranker sorts the hits of BM25."""
    _check_object(value)
    named = value.name if hasattr(value, "name") and not isinstance(value, type) else None
    title = named or getattr(value, "__name__", type(value).__name__)
    name = re.sub(r"[^\w.-]+", "-", "function" if title == "<lambda>" else str(title)).strip("-") or "object"
    stage = Stage(NamedObject(PYTHON + name, value))
    if hasattr(value, "score") and not isinstance(value, type):
        return Spec((Stage("bm25"), stage))
    return Spec((stage,))


def _check_object(value: object) -> object:
    """Return the object if it can be part of a system. Raises BadInput where it cannot."""
    if callable(value) or any(hasattr(value, part) for part in _PARTS):
        return value
    raise BadInput(
        f"A system is a text such as 'bm25', a function (queries, k), or an object with search, encode_queries or "
        f"score, and {type(value).__name__!r} is none of these."
    )


def _find_maker(name: str, *, first: bool) -> tuple[Mapping[str, str], str]:
    """Find the table that a stage belongs to, and the "module:function" that makes it."""
    for table in (SEARCHERS, RERANKERS, FUSIONS):
        if name in table:
            return table, table[name]
    installed = find_entry_points(ENTRY_POINTS).names
    if name.startswith(PYTHON) or name in installed:
        return (SEARCHERS, _USER_SEARCHER) if first else (RERANKERS, _USER_RERANKER)
    raise unknown("system", name, [*SEARCHERS, *RERANKERS, *FUSIONS, *installed])

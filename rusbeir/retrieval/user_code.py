"""The user's own retrievers, encoders and rerankers, made by a function that a spec names.

`python:package.module.factory` is imported from where Python looks and from the current folder; a name without a
prefix is an entry point of an installed package; an object that Python code hands over is called by the name that it
has in the spec. The source is part of the signature, so that nothing computed by an earlier version is taken for this
one's.
"""

from __future__ import annotations

import inspect
import math
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from rusbeir.errors import BackendError, BadInput, RusbeirError
from rusbeir.retrieval.encoding.encoder import Encoder
from rusbeir.retrieval.rerank.reranker import Reranker
from rusbeir.retrieval.spec import NamedObject, Spec, Stage, Value
from rusbeir.retrieval.stages import ENTRY_POINTS, SEARCHERS, is_system
from rusbeir.retrieval.system import DEFAULTS, Prepared, RunSettings, System
from rusbeir.types import Corpus, Queries, Retriever, Run, TextAnalyzer
from rusbeir.user_sources import (
    digest_object,
    digest_sources,
    find_entry_point,
    import_function,
    load_entry_point,
    report_failure,
)

_READ: Mapping[str, Callable[[Any], Any]] = {
    "truncation": str,
    "count_truncated": int,
    "are_truncated": list,
    "pointwise": bool,
}
"""How an attribute, or the answer of a method, is read; those that are not here are left as they are."""


def load_encoder(name: str, options: Mapping[str, Value]) -> Encoder:
    """Make the encoder: the factory is called with the options by name."""
    factory = _Factory.find(name, options)
    made = factory.make("an encoder", ("signature", "encode_queries", "encode_documents"))
    optional = ("truncation", "count_truncated")
    again = partial(load_encoder, name, options)
    encoder: Encoder = _guard_all(made, factory, ("encode_queries", "encode_documents", *optional), again)
    return encoder


def load_reranker(name: str, options: Mapping[str, Value]) -> Reranker:
    """Make the reranker: the factory is called with the options by name."""
    factory = _Factory.find(name, options)
    made = factory.make("a reranker", ("signature", "score"))
    again = partial(load_reranker, name, options)
    reranker: Reranker = _guard_all(made, factory, ("score", "pointwise", "truncation", "are_truncated"), again)
    return reranker


def from_stage(stage: Stage, language: str, engine: str) -> System:
    """Make the system of a first stage: of a search function, or of a factory that is called with the corpus."""
    if stage.args:
        raise BadInput(f"{stage.name} takes options only, such as depth=50, not {stage.args[0]!s}.")
    thing = stage.name.thing if isinstance(stage.name, NamedObject) else None
    if is_system(thing):
        return cast(System, thing)
    if hasattr(thing, "encode_queries") and not isinstance(thing, type):
        make_dense: Callable[[Stage, str, str], System] = pkgutil.resolve_name(SEARCHERS["dense"])
        return make_dense(Stage("dense", (stage.name,), stage.options), language, engine)
    factory = _Factory.find(stage.name, dict(stage.options))
    return UserSystem(name=str(stage), factory=factory, searches=factory.is_search())


@dataclass(frozen=True, kw_only=True)
class UserAnalyzer:
    """A user's TextAnalyzer, or a function from a text to its terms, that also streams."""

    name: str
    signature: str
    analyze: Callable[[str], list[str]]

    def analyze_lines(self, texts: Iterable[str], *, processes: int | None = None) -> Iterator[str]:
        """Join the terms of each text by spaces, in this process. Raises BackendError for a term with white space."""
        for text in texts:
            terms = _guard(self.name, "analyses a text", list, self.analyze, text)
            if wrong := [term for term in terms if not isinstance(term, str) or term.split() != [term]]:
                raise BackendError(f"{self.name} made the term {wrong[0]!r}: terms are strings without white space.")
            yield " ".join(terms)


def load_analyzer(name: str) -> UserAnalyzer:
    """Make the analyzer: an object, or what a factory without arguments makes; a function of a text is one itself."""
    factory = _Factory.find(name, {})
    call = factory.call
    if factory.takes("text") and not factory.takes():
        return UserAnalyzer(name=name, signature=factory.signature, analyze=call)
    made: TextAnalyzer = factory.make("an analyzer", ("signature", "analyze"))
    return UserAnalyzer(name=name, signature=factory.sign(made), analyze=made.analyze)


@dataclass(frozen=True, kw_only=True)
class _Factory:
    """A user's function and the options that it is called with."""

    name: str
    call: Callable[..., Any]
    options: Mapping[str, Value]
    signature: str
    """The name, a digest of the sources, and the options."""
    is_object: bool = False
    """Whether the caller handed it over, and it is not named by a module."""

    @classmethod
    def find(cls, name: str, options: Mapping[str, Value]) -> _Factory:
        """Find a factory by its name. Raises BadInput where there is none, and BackendError where importing fails."""
        settings = [f"{key}:{value}" for key, value in options.items()]
        if isinstance(name, NamedObject):
            thing: Any = name.thing
            parts = ("search", "score", "encode_queries", "analyze")
            is_made = not isinstance(thing, type) and (
                not callable(thing) or any(hasattr(thing, part) for part in parts)
            )
            signature = "|".join([name, f"source:{digest_object(thing)}", *settings])
            call = (lambda *_: thing) if is_made else thing
            return cls(name=str(name), call=call, options=options, signature=signature, is_object=True)
        if entry := find_entry_point(ENTRY_POINTS, name):
            call, module = load_entry_point("retriever", entry)
        else:
            call, module = import_function(name)
        signature = "|".join([name, f"source:{digest_sources(module)}", *settings])
        return cls(name=name, call=call, options=options, signature=signature)

    def bind(self, *args: Any) -> Callable[[], Any]:
        """Bind these arguments and the options. Raises BadInput where the function does not take them."""
        options = {name: str(value) if isinstance(value, Spec) else value for name, value in self.options.items()}
        try:
            inspect.signature(self.call).bind(*args, **options)
        except (TypeError, ValueError) as error:
            raise BadInput(
                f"{self.name} cannot be called: {error}. A retriever is a function (queries, k), or one of the corpus "
                "that makes an object with search(queries, k); other factories take options by name."
            ) from error
        return partial(self.call, *args, **options)

    def takes(self, *args: Any) -> bool:
        """Say whether the function can be called with these arguments and the options."""
        try:
            inspect.signature(self.call).bind(*args, **self.options)
        except (TypeError, ValueError):
            return False
        return True

    def is_search(self) -> bool:
        """Say whether the function itself searches, called with queries and k, or makes a retriever from the corpus.

        Raises BadInput where it can do neither.
        """
        two = self.takes("queries", "k")
        if two and list(inspect.signature(self.call).parameters)[1:2] == ["k"]:
            return True
        if self.takes("corpus"):
            return False
        if two:
            return True
        self.bind("corpus")
        raise BadInput(f"{self.name} cannot be called with (queries, k), nor with the corpus.")

    def sign(self, made: Any) -> str:
        """Sign what the function made: the signature of the function, and that of the object where it has one."""
        return f"{self.signature}|{made.signature}" if hasattr(made, "signature") else self.signature

    def make(self, role: str, needed: tuple[str, ...], *args: Any) -> Any:
        """Make the user's object. Raises BadInput where it lacks an attribute that its role needs."""
        call = self.bind(*args)
        if self.is_object:
            needed = tuple(part for part in needed if part != "signature")

        def read(made: Any) -> tuple[Any, list[str]]:
            # A property is the user's code, too.
            return made, [name for name in needed if not hasattr(made, name)]

        made, missing = _guard(self.name, "is called", read, call)
        if missing:
            raise BadInput(f"{self.name} made a {type(made).__name__}, not {role}: it lacks {', '.join(missing)}.")
        return made


@dataclass(frozen=True, kw_only=True)
class UserSystem:
    """A retriever that a factory makes from the corpus, or a function that searches itself."""

    name: str
    factory: _Factory
    searches: bool = False
    """Whether the function is called with queries and k."""
    engine: str = "python"

    @property
    def signature(self) -> str:
        return self.factory.signature

    def prepare(self, corpus: Corpus, fingerprint: str, settings: RunSettings = DEFAULTS) -> Prepared:
        """Make the retriever of that corpus; the factory decides where an index of it is kept."""
        made: Any
        if self.searches:
            made = SimpleNamespace(search=partial(self.factory.call, **self.factory.options))
        else:
            made = self.factory.make("a retriever", ("search",), corpus)
        retriever = UserRetriever(made=made, name=self.name, signature=self.signature, corpus=corpus)
        return Prepared(retriever=retriever, path=Path.cwd())


@dataclass(frozen=True, kw_only=True)
class UserRetriever:
    """A user's retriever, whose answers are checked."""

    made: Retriever
    name: str
    signature: str
    corpus: Corpus

    def search(self, queries: Queries, k: int) -> Run:
        """Find at most k hits per query by falling score, every query present.

        Raises BackendError for scores that are not numbers and for hits that the corpus does not have.
        """
        run = self._check_mapping(_guard(self.name, "runs search", None, self.made.search, queries, k), "the queries")
        checked: dict[str, dict[str, float]] = {}
        known: set[Any] = set()
        for query_id in queries:
            answer = self._check_mapping(run.get(query_id, {}), f"the query {query_id!r}")
            scores = {doc_id: _read_score(score) for doc_id, score in answer.items()}
            if not all(map(math.isfinite, scores.values())):
                raise BackendError(f"{self.name} answered a score that is not a number for the query {query_id!r}.")
            hits = sorted(scores.items(), key=lambda hit: -hit[1])[:k]
            for doc_id, _ in hits:
                # A look-up reads the document.
                if doc_id not in known:
                    self._check_document(doc_id, query_id)
                    known.add(doc_id)
            checked[query_id] = {str(doc_id): score for doc_id, score in hits}
        return checked

    def _check_mapping(self, answer: Any, subject: str) -> Mapping[Any, Any]:
        if not isinstance(answer, Mapping):
            raise BackendError(
                f"{self.name} answered a {type(answer).__name__} for {subject}: a dict is needed, "
                "{query_id: {doc_id: score}}."
            )
        return answer

    def _check_document(self, doc_id: Any, query_id: str) -> None:
        try:
            if isinstance(doc_id, str):
                self.corpus[doc_id]
                return
        except KeyError:
            pass
        raise BackendError(
            f"{self.name} answered the document {doc_id!r} for the query {query_id!r}, which the corpus does not have: "
            f"answer the doc_id of its documents as it is, such as {next(iter(self.corpus)).doc_id!r}."
        )


def _read_score(score: Any) -> float:
    try:
        return float(score)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        return math.nan


class _StandIn(SimpleNamespace):
    """The stand-in through which a user's object is called. In another process `again` makes it."""

    def __reduce__(self) -> Any:
        return self.again, ()


def _guard_all(made: Any, factory: _Factory, names: tuple[str, ...], again: Callable[[], Any]) -> Any:
    """Make a stand-in with the signature, and with those of these attributes that the user's object has.

    A failure in one of its methods is a BackendError of one line.
    """
    stand_in = _StandIn(signature=factory.sign(made), again=again)
    for name in names:
        if hasattr(made, name):
            value, read = getattr(made, name), _READ.get(name)
            if callable(value):
                value = partial(_guard, factory.name, f"runs {getattr(value, '__name__', value)}", read, value)
            elif read:
                value = read(value)
            setattr(stand_in, name, value)
    return stand_in


def _guard(name: str, when: str, read: Callable[[Any], Any] | None, call: Callable[..., Any], *args: Any) -> Any:
    """Call a user's function and read its answer. Raises BackendError where it fails."""
    try:
        answer = call(*args)
        return read(answer) if read else answer
    except RusbeirError:
        raise
    except Exception as error:
        raise report_failure(name, when, error) from error

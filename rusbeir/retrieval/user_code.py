"""`python:package.module.factory`: a retriever, encoder or reranker of the user's own, imported when it is named.

The module is looked for where Python looks, and in the current folder. Its source is part of the signature, so that
nothing computed by an earlier version is taken for this one's.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import math
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from rusbeir.errors import BackendError, BadInput, RusbeirError
from rusbeir.retrieval.dense import encoder as encoding
from rusbeir.retrieval.dense.encoder import Encoder, Vectors
from rusbeir.retrieval.rerank import reranker as reranking
from rusbeir.retrieval.rerank.reranker import Reranker
from rusbeir.retrieval.resolve import OWN
from rusbeir.retrieval.spec import Spec, Stage, Value
from rusbeir.retrieval.system import DEFAULTS, Prepared, RunSettings, System
from rusbeir.types import Corpus, Queries, Retriever, Run


def encoder(name: str, options: Mapping[str, Value]) -> Encoder:
    """What the factory makes when it is called with the options by name."""
    factory = _Factory.of(name, options)
    made = factory.make("encoder", ("signature", "encode_queries", "encode_documents"))
    kind = _TruncatingEncoder if isinstance(made, encoding.ReportsTruncation) else _OwnEncoder
    return kind(made=made, signature=f"{factory.signature}|{made.signature}")


def reranker(name: str, options: Mapping[str, Value]) -> Reranker:
    """What the factory makes when it is called with the options by name."""
    factory = _Factory.of(name, options)
    made = factory.make("reranker", ("signature", "score"))
    pointwise = bool(getattr(made, "pointwise", False))
    kind = _TruncatingReranker if isinstance(made, reranking.ReportsTruncation) else _OwnReranker
    return kind(made=made, signature=f"{factory.signature}|{made.signature}", pointwise=pointwise)


def searcher(stage: Stage, language: str, engine: str, source: System | None) -> System:
    """`python:package.module.factory(option=value)` as a first stage: the factory is called with the corpus.

    language and engine do not concern it.
    """
    if stage.args:
        raise BadInput(f"{stage.name} takes options only, such as depth=50, not {stage.args[0]!s}.")
    factory = _Factory.of(stage.name, dict(stage.options))
    factory.check("the corpus")
    return _OwnSystem(name=str(Spec((stage,))), factory=factory)


def folder_name(slug: str, recipe: str) -> str:
    """A readable start and a hash of the whole recipe."""
    readable = re.sub(r"[^a-z0-9._]+", "-", slug.lower()).strip("-.")[-60:]
    return f"{readable}-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"


@dataclass(frozen=True, kw_only=True)
class _Factory:
    """A function of the user's, and where it stands."""

    name: str
    call: Callable[..., Any]
    options: Mapping[str, Value]
    signature: str
    """Its name, a digest of the sources, and the options."""

    @classmethod
    def of(cls, name: str, options: Mapping[str, Value]) -> _Factory:
        module_name, _, attribute = name.removeprefix(OWN).rpartition(".")
        if not module_name:
            raise BadInput(f"{name} names no function: write {OWN}package.module.factory.")
        folder = str(Path.cwd())
        if folder not in sys.path:
            sys.path.insert(0, folder)
        try:
            module = importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            raise BadInput(f"{name} cannot be imported: {error}, neither in {folder} nor installed.") from error
        except Exception as error:
            raise _failed(name, "is imported", error) from error
        call = getattr(module, attribute, None)
        if not callable(call):
            raise BadInput(f"{name}: {module_name} has no function {attribute!r}.")
        signature = "|".join([name, f"source:{digest(module)}", *(f"{key}:{value}" for key, value in options.items())])
        return cls(name=name, call=call, options=options, signature=signature)

    def check(self, *args: Any) -> dict[str, Any]:
        """The options as the factory gets them. BadInput where it cannot be called with these arguments and them."""
        values = {name: str(value) if isinstance(value, Spec) else value for name, value in self.options.items()}
        try:
            inspect.signature(self.call).bind(*args, **values)
        except TypeError as error:
            raise BadInput(f"{self.name} cannot be called so: {error}.") from error
        return values

    def make(self, role: str, needed: tuple[str, ...], *args: Any) -> Any:
        """What the factory answers, once it has all that is needed of that role."""
        values = self.check(*args)
        try:
            made = self.call(*args, **values)
            # A property is code of the user's as well.
            lacking = [name for name in needed if not hasattr(made, name)]
        except RusbeirError:
            raise
        except Exception as error:
            raise _failed(self.name, "is called", error) from error
        if lacking:
            raise BadInput(
                f"{self.name} made a {type(made).__name__}, which is no {role}: it lacks {', '.join(lacking)}."
            )
        return made


@dataclass(frozen=True, kw_only=True)
class _OwnEncoder:
    made: Any
    signature: str

    def encode_queries(self, texts: Any) -> Vectors:
        vectors: Vectors = _guarded(self.signature, self.made.encode_queries, texts)
        return vectors

    def encode_documents(self, texts: Any) -> Vectors:
        vectors: Vectors = _guarded(self.signature, self.made.encode_documents, texts)
        return vectors


class _TruncatingEncoder(_OwnEncoder):
    """One that says what it does not read whole. A class of its own, as an ability is told by its methods."""

    @property
    def truncation(self) -> str:
        return str(self.made.truncation)

    def count_truncated(self, texts: Any) -> int:
        count: int = _guarded(self.signature, self.made.count_truncated, texts, read=int)
        return count


@dataclass(frozen=True, kw_only=True)
class _OwnReranker:
    made: Any
    signature: str
    pointwise: bool

    def score(self, query: str, documents: Any) -> Any:
        return _guarded(self.signature, self.made.score, query, documents)


class _TruncatingReranker(_OwnReranker):
    """One that says what it does not read whole."""

    @property
    def truncation(self) -> str:
        return str(self.made.truncation)

    def are_truncated(self, query: str, documents: Any) -> Any:
        return _guarded(self.signature, self.made.are_truncated, query, documents, read=list)


@dataclass(frozen=True, kw_only=True)
class _OwnSystem:
    """A retriever that the factory makes from the corpus."""

    name: str
    factory: _Factory

    @property
    def engine(self) -> str:
        return "python"

    @property
    def signature(self) -> str:
        return self.factory.signature

    def prepare(self, corpus: Corpus, fingerprint: str, settings: RunSettings = DEFAULTS) -> Prepared:
        """What the factory makes of the corpus; where it keeps its index is its own affair."""
        made = self.factory.make("retriever", ("search",), corpus)
        return Prepared(
            retriever=_OwnRetriever(made=made, name=self.name, signature=self.signature, corpus=corpus),
            path=Path.cwd(),
            analyse_seconds=0.0,
            index_seconds=0.0,
            index_bytes=0,
            reused=False,
        )


@dataclass(frozen=True, kw_only=True)
class _OwnRetriever:
    made: Retriever
    name: str
    signature: str
    corpus: Corpus

    def search(self, queries: Queries, k: int) -> Run:
        """The user's run: at most k hits by falling score, every query present.

        Raises BackendError for scores that are no numbers and for hits that the corpus does not have.
        """
        run = self._mapping(_guarded(self.name, self.made.search, queries, k), "the queries")
        found: dict[str, dict[str, float]] = {}
        known: set[Any] = set()
        for query_id in queries:
            answer = self._mapping(run.get(query_id, {}), f"the query {query_id!r}")
            scores = {doc_id: _number(score) for doc_id, score in answer.items()}
            if not all(map(math.isfinite, scores.values())):
                raise BackendError(f"{self.name} answered a score that is no number for the query {query_id!r}.")
            hits = sorted(scores.items(), key=lambda hit: -hit[1])[:k]
            for doc_id, _ in hits:
                # A look-up reads the document.
                if doc_id not in known:
                    self._check(doc_id, query_id)
                    known.add(doc_id)
            found[query_id] = {str(doc_id): score for doc_id, score in hits}
        return found

    def _mapping(self, answer: Any, asked: str) -> Mapping[Any, Any]:
        if not isinstance(answer, Mapping):
            raise BackendError(
                f"{self.name} answered a {type(answer).__name__} for {asked}: a dict is needed, "
                "{query_id: {doc_id: score}}."
            )
        return answer

    def _check(self, doc_id: Any, query_id: str) -> None:
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


def _number(score: Any) -> float:
    try:
        return float(score)
    except (TypeError, ValueError, RuntimeError):
        return math.nan


def _guarded(
    name: str, call: Callable[..., Any], *args: Any, read: Callable[[Any], Any] = lambda answer: answer
) -> Any:
    """What the user's function answers, as it is read."""
    try:
        return read(call(*args))
    except RusbeirError:
        raise
    except Exception as error:
        raise _failed(name, f"runs {getattr(call, '__name__', call)}", error) from error


def _failed(name: str, when: str, error: Exception) -> BackendError:
    frames = inspect.getinnerframes(error.__traceback__) if error.__traceback__ else []
    # Where it was called, or read, is no place of the user's.
    theirs = frames and frames[-1].filename != __file__
    where = f" in {Path(frames[-1].filename).name}:{frames[-1].lineno}" if theirs else ""
    said = " ".join(str(error).split())
    return BackendError(f"{name.split('|')[0]} fails when it {when}: {type(error).__name__}: {said}{where}.")


_INSTALLED = "site-packages"


def digest(module: ModuleType) -> str:
    """Of the module's source and of those that it names things from, in its folder or its package."""
    top = _file(sys.modules[module.__name__.partition(".")[0]]) or _file(module)
    if top is None:
        return "unknown"
    # What is installed beside it is not the user's.
    home = None if top.name != "__init__.py" and top.parent.name == _INSTALLED else top.parent
    sources: dict[Path, bytes] = {}
    waiting = [module]
    while waiting:
        one = waiting.pop()
        path = _file(one)
        if path is None or path in sources:
            continue
        sources[path] = path.read_bytes()
        named = [value if inspect.ismodule(value) else inspect.getmodule(value) for value in vars(one).values()]
        waiting += [other for other in named if other is not None and home is not None and _lies_in(home, other)]
    return hashlib.sha256(b"\0".join(sources[path] for path in sorted(sources))).hexdigest()[:12]


def _lies_in(home: Path, module: ModuleType) -> bool:
    """Whether it is the user's: below home, but in no environment there, and none of ours."""
    path = _file(module)
    if path is None or home not in path.parents or module.__name__.partition(".")[0] == "rusbeir":
        return False
    return _INSTALLED not in path.relative_to(home).parts


def _file(module: ModuleType) -> Path | None:
    try:
        file = inspect.getsourcefile(module)
    except TypeError:
        return None
    return Path(file) if file else None

"""Systems as models of MTEB: `mteb.evaluate(rusbeir.mteb.model("bm25"), tasks)`. Needs the extra mteb."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rusbeir import __version__
from rusbeir.analysis import find_language, language_files
from rusbeir.errors import BadInput, RusbeirError, require
from rusbeir.experiment import search
from rusbeir.languages import read_language_tag
from rusbeir.mteb.task_languages import find_task_language
from rusbeir.retrieval import FUSIONS, Candidates, Spec, System, parse, resolve, restrict
from rusbeir.storage import data_folder
from rusbeir.text import digest, slug
from rusbeir.types import Card, Dataset, MemoryCorpus, Run

_TYPES = {"bm25": "sparse", "sparse": "sparse", **dict.fromkeys(FUSIONS, "hybrid")}
"""mteb's model_type of a system with this first stage and no second one; others are dense."""


def model(system: str | Spec = "bm25", *, engine: str = "auto", language: str | None = None) -> MtebModel:
    """Make a model that `mteb.evaluate` takes (mteb's SearchProtocol) of a system.

    Args:
        system: The system that searches.
        engine: As in `rusbeir.bench`.
        language: The language in which BM25 analyses texts, as BCP 47 has it; None takes that of each task.

    Returns:
        The model. It indexes the documents of each task and holds them in memory.

    Raises:
        MissingExtra: The package mteb is not installed.
        UnknownName: A name in the system is not registered.
        BadInput: The engine cannot compute the system.

    Examples:
        >>> mteb.evaluate(model("bm25"), tasks, cache=None)  # doctest: +SKIP
    """
    require("mteb", "rusbeir.mteb", "mteb")
    tag = read_language_tag(language) if language else None
    made = MtebModel(system=str(system), engine=engine, language=tag)
    resolve(made.system, language=tag or "en", engine=engine)
    return made


@dataclass(kw_only=True)
class MtebModel:
    """A system with the corpus of one task; each task indexes its own. The documents are held in memory."""

    system: str
    engine: str = "auto"
    language: str | None = None
    """The language of all texts; None takes that of each task."""
    submission: tuple[str, ...] | None = None
    """The languages that the metadata name, as MTEB writes them (rus-Cyrl), if results are to be submitted: then they
    are those of a model rather than of an experiment. None otherwise."""
    _dataset: Dataset | None = field(default=None, init=False)

    def index(
        self,
        corpus: Iterable[Mapping[str, Any]],
        *,
        task_metadata: Any,
        hf_split: str,
        hf_subset: str,
        encode_kwargs: Mapping[str, Any],
        num_proc: int | None = None,
        **kwargs: Any,
    ) -> None:
        """Take the documents of a task: rows with id, text and perhaps title. They are indexed by the first search."""
        records = ({"_id": row["id"], "title": row.get("title") or "", "text": row["text"]} for row in corpus)
        card = Card(name=f"{task_metadata.name}/{hf_subset}", language=self.language or "und", split=hf_split)
        self._dataset = Dataset(card=card, corpus=MemoryCorpus(records), queries={}, qrels={})

    def search(
        self,
        queries: Iterable[Mapping[str, Any]],
        *,
        task_metadata: Any,
        hf_split: str,
        hf_subset: str,
        top_k: int,
        encode_kwargs: Mapping[str, Any],
        top_ranked: Mapping[str, Sequence[str]] | None = None,
        num_proc: int | None = None,
        **kwargs: Any,
    ) -> Run:
        """Find the top_k hits of each query; in a reranking task, all candidates that the last stage scores.

        Queries are read as mteb reads them: text and instruction joined, conversations as one text. Raises BadInput
        for queries that are none of these.
        """
        if self._dataset is None:
            raise BadInput("The model has no corpus: call index first.")
        dataset = replace(self._dataset, queries=_read_queries(queries))
        system = self._resolve(self.language or "en", top_ranked)
        if not self.language and system.signature != self._resolve("ru", top_ranked).signature:
            # Only what analyses the texts has to know their language.
            language = find_task_language(task_metadata, hf_subset, dataset.corpus)
            dataset = replace(dataset, card=replace(dataset.card, language=language))
            system = self._resolve(language, top_ranked)
        k = len(dataset.corpus) if top_ranked else top_k
        return search(dataset, system, dataset.queries, k=k)

    def _resolve(self, language: str, candidates: Candidates | None) -> System:
        system = resolve(self.system, language=language, engine=self.engine)
        return restrict(system, candidates) if candidates else system

    @property
    def signature(self) -> str:
        """The system's signature; where the language is that of each task, what decides it for any language.

        That is the system, the engine, the user's own language files and rusbeir's version.
        """
        if not self.language:
            return "|".join((self.system, "lang:task", *self._list_settings(), f"v:{__version__}"))
        return resolve(self.system, language=self.language, engine=self.engine).signature

    def _list_settings(self) -> list[str]:
        """What else than the system and the version changes scores, in the order of their parts; empty by default."""
        settings = [f"engine:{self.engine}"] if self.engine != "auto" else []
        if self.language:
            settings.append(f"lang:{self.language}")
        shipped = data_folder("analyzers")
        codes = [code for code, path in language_files().items() if path.parent != shipped]
        if self.language:
            codes = [code for code in codes if code == find_language(self.language)]
        if codes:
            settings.append(f"analyzers:{digest(*map(self._describe, codes), chars=6)}")
        return settings

    def _describe(self, language: str) -> str:
        """The system's signature in a language; the error where a language that no task may need cannot be read."""
        try:
            return self._resolve(language, None).signature
        except RusbeirError as error:
            return str(error)

    @property
    def mteb_model_meta(self) -> Any:
        """Describe the model as mteb does, with the signature among its experiment_kwargs if it is an experiment.

        Results that are to be submitted have no signature in their path, so that the name tells settings apart.
        """
        parts = [] if self.submission is None else self._list_settings()
        return require("mteb.models", "rusbeir.mteb", "mteb").ModelMeta(
            loader=None,
            name=f"rusbeir/{slug(self.system, 60)}-{digest(self.system, *parts, chars=6)}",
            model_type=[_find_type(self.system)],
            revision=__version__,
            release_date=None,
            languages=None if self.submission is None else [*self.submission],
            n_parameters=None,
            memory_usage_mb=None,
            max_tokens=None,
            embed_dim=None,
            license="apache-2.0",
            # BM25 has no weights that could be closed.
            open_weights=[stage.name for stage in parse(self.system).stages] == ["bm25"] or None,
            public_training_code=None,
            public_training_data=None,
            framework=[],
            similarity_fn_name=None,
            use_instructions=None,
            training_datasets=None,
            experiment_kwargs=None if self.submission is not None else {"signature": self.signature},
        )


def _read_queries(rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Read the texts of queries as mteb's own models do."""
    queries: Any = (
        rows
        if hasattr(rows, "column_names")
        else require("datasets", "rusbeir.mteb", "mteb").Dataset.from_list([*rows])
    )
    if not len(queries):
        return {}
    loaders = require("mteb._create_dataloaders", "rusbeir.mteb", "mteb")
    try:
        with warnings.catch_warnings():
            # mteb warns that it takes a conversation of strings for that of one user.
            warnings.simplefilter("ignore", UserWarning)
            texts = loaders._retrieval_texts(queries, require("mteb.types", "rusbeir.mteb", "mteb").PromptType.query)
    except (ValueError, TypeError, IndexError, KeyError) as error:
        raise BadInput(f"mteb cannot read these queries: {error}") from error
    if wrong := [query_id for query_id, text in zip(queries["id"], texts, strict=True) if not isinstance(text, str)]:
        raise BadInput(f"The query {wrong[0]!r} has no text.")
    return dict(zip(queries["id"], texts, strict=True))


def _find_type(system: str) -> str:
    stages = parse(system).stages
    return "cross-encoder" if len(stages) > 1 else _TYPES.get(stages[0].name, "dense")

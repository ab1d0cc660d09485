"""rusbeir's systems inside MTEB: `mteb.evaluate(rusbeir.mteb.model("bm25"), tasks)`. Needs the extra mteb."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rusbeir import __version__
from rusbeir.errors import BadInput, UnknownName, option, require
from rusbeir.experiment import search
from rusbeir.languages import iso639_1, iso639_3, read_language_tag
from rusbeir.retrieval import Spec, resolve
from rusbeir.types import Card, Dataset, MemoryCorpus, Run

_MEMBERS = {"arb": "ar", "cmn": "zh", "ekk": "et", "lvs": "lv", "nno": "nn", "npi": "ne", "pes": "fa", "swh": "sw"}
"""ISO 639-3 codes that MTEB uses for the usual member of a macrolanguage, by the tag that rusbeir knows it by."""


def model(system: str | Spec = "bm25", *, engine: str = "auto", language: str | None = None) -> MtebModel:
    """A system as a model that `mteb.evaluate` takes (mteb's SearchProtocol).

    BM25 analyses the texts in the language of each task, or in the one that is given (BCP 47). Raises UnknownName or
    BadInput for a system that cannot be resolved, MissingExtra without the package mteb.

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
    """None takes that of each task."""
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
        card = Card(
            name=f"{task_metadata.name}/{hf_subset}",
            language=self.language or find_task_language(task_metadata, hf_subset),
            split=hf_split,
        )
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
        """The top_k hits of each query; of a reranking task, those among its candidates."""
        if self._dataset is None:
            raise BadInput("The model has no corpus: call index first.")
        asked = {row["id"]: row["text"] for row in queries}
        k = len(self._dataset.corpus) if top_ranked else top_k
        run = search(replace(self._dataset, queries=asked), self.system, asked, engine=self.engine, k=k)
        if not top_ranked:
            return run
        candidates = {query_id: frozenset(top_ranked.get(query_id, ())) for query_id in run}
        return {
            query_id: {doc_id: score for doc_id, score in hits.items() if doc_id in candidates[query_id]}
            for query_id, hits in run.items()
        }

    @property
    def mteb_model_meta(self) -> Any:
        """mteb's description of the model, with the system's signature among its experiment_kwargs.

        Where the language is that of each task, the system and rusbeir's version stand for the signature, as they
        decide the analyzers.
        """
        signature = (
            resolve(self.system, language=self.language, engine=self.engine).signature
            if self.language
            else f"{self.system}|lang:task|v:{__version__}"
        )
        return require("mteb.models", "rusbeir.mteb", "mteb").ModelMeta(
            loader=None,
            name=f"rusbeir/{self.system.partition('(')[0]}",
            revision=__version__,
            release_date=None,
            languages=None,
            n_parameters=None,
            memory_usage_mb=None,
            max_tokens=None,
            embed_dim=None,
            license="apache-2.0",
            open_weights=None,
            public_training_code=None,
            public_training_data=None,
            framework=[],
            similarity_fn_name=None,
            use_instructions=None,
            training_datasets=None,
            experiment_kwargs={"signature": signature},
        )


def find_task_language(task_metadata: Any, hf_subset: str) -> str:
    """The BCP 47 tag of the language of a task's subset, from MTEB's eval_langs such as ["rus-Cyrl"].

    Raises BadInput where it has several languages, UnknownName for a code that has no tag.
    """
    named = task_metadata.eval_langs
    codes = sorted({one.partition("-")[0] for one in (named.get(hf_subset, []) if isinstance(named, dict) else named)})
    if len(codes) != 1:
        several = ", ".join(codes) or "none"
        raise BadInput(
            f"{task_metadata.name}/{hf_subset} has not one language but {several}. Name it with {option('language')}."
        )
    tags = {iso639_3(tag): tag for tag in iso639_1()} | _MEMBERS
    if codes[0] not in tags:
        raise UnknownName(
            f"rusbeir knows no language with the code {codes[0]!r}, that of {task_metadata.name}/{hf_subset}. "
            f"Name it with {option('language')}."
        )
    return tags[codes[0]]

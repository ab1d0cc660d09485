"""Parallel datasets: documents in one language, asked with the queries that have the same ids in another."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping, Sequence

from rusbeir.datasets.formats.records import collect, refuse
from rusbeir.datasets.opening import find_splits, open_reader, split_view
from rusbeir.datasets.registry import find_entry, read_registry
from rusbeir.errors import BadInput, option, unknown
from rusbeir.languages import read_language_tag
from rusbeir.types import Card, Dataset, Progress, silent

logger = logging.getLogger(__name__)

ALL_LANGUAGES = "all"
"""The query language that stands for those of all datasets of a call."""


def expand_languages(languages: Sequence[str], cards: Sequence[Card]) -> list[str]:
    """Return the query languages that are wanted, each once, with those of the cards for "all"."""
    if ALL_LANGUAGES not in languages:
        return list(dict.fromkeys(languages))
    spoken = list(dict.fromkeys(card.asked_in for card in cards))
    if len(spoken) < 2:
        raise BadInput(
            f"{option('query_language', ALL_LANGUAGES)} means the languages of all datasets of the call, which have "
            f"only {spoken[0]!r}: name datasets in other languages, or name a language."
        )
    return spoken


def find_parallel(card: Card, language_or_place: str, known: Mapping[str, str] | None = None) -> str | None:
    """Find the name or path of the dataset that has this one's queries in a wanted language; None for its own language.

    It is looked for among the registered datasets of this one's family, and among the known ones: language -> name or
    path. A name or a path may be wanted as well. Raises UnknownName or BadInput where there is none.

    >>> from rusbeir.datasets import load
    >>> find_parallel(load("mini/ru").card, "en")
    'mini/en'
    """
    language = read_language_tag(language_or_place)
    if language == card.asked_in:
        return None
    family = name_family(card.name, card.language)
    entries = read_registry().values()
    names = {**(known or {}), **{e.language: e.name for e in entries if name_family(e.name, e.language) == family}}
    if language in names:
        return names[language]
    if "/" in language_or_place or split_view(language_or_place)[0]:
        return language_or_place
    if others := sorted(names.keys() - {card.language}):
        raise unknown("language", language_or_place, others, owner=f"datasets parallel to {card.name}")
    raise BadInput(
        f"No registered dataset has the queries of {card.name} in another language: name one that has, or its folder, "
        f"as in {option('query_language', 'mini/en')}."
    )


def name_family(name: str, language: str) -> str:
    """Put * for the language into a dataset's name: a port and its source have the same, and differ in nothing else.

    >>> name_family("xquad/ru/sentences", "ru"), name_family("mini/en@kk", "kk"), name_family("beir/scifact/test", "en")
    ('xquad/*/sentences', 'mini/*', 'beir/scifact/test')
    """
    source, _, target = name.rpartition("@")
    if target == language and (entry := find_entry(source)):
        name, language = entry.name, entry.language
    return "/".join("*" if part == language else part for part in name.split("/"))


def label_dataset(name: str, language: str, query_language: str) -> str:
    """Name a dataset in a table: its name, with the language of the queries where it is another.

    >>> label_dataset("xquad/ru", "ru", "en"), label_dataset("xquad/ru", "ru", "ru")
    ('xquad/ru asked in en', 'xquad/ru')
    """
    return name if query_language == language else f"{name} asked in {query_language}"


def take_queries(
    dataset: Dataset, name_or_path: str, *, download: bool = True, progress: Progress = silent
) -> tuple[Dataset, str]:
    """Take the dataset with the texts that a parallel one has for its queries, and the language of these texts.

    The documents of the other dataset are not read. Raises BadInput where ids or judgements show that it is not
    parallel: fewer than half of the common queries have a judged document in common.
    """
    card = dataset.card
    sources = [] if find_entry(name_or_path) else find_splits(name_or_path, card.split, ())
    name, split = sources[0] if sources else (name_or_path, None)
    reader, other, _ = open_reader(name, language=None, split=split, download=download, progress=progress)
    if other.asked_in == card.asked_in:
        raise BadInput(f"{other.name} is in {card.asked_in!r}, as {card.name}: omit {option('query_language')}.")
    judged = collect(reader.judgements(refuse))
    texts = {query.query_id: query.text for _, query, _ in reader.queries(refuse) if query.query_id in dataset.queries}
    alike = sum(not dataset.qrels[query_id].keys().isdisjoint(judged.get(query_id, ())) for query_id in texts)
    if not texts or 2 * alike < len(texts):
        # Ids that are numbers are equal by chance.
        raise BadInput(
            f"{other.name} is not parallel to {card.name}: of {len(dataset.queries):,} query ids {len(texts):,} are "
            f"common, and for {alike:,} of these the same document is judged."
        )
    if len(texts) < len(dataset.queries):
        logger.warning(
            "%s has %s of the %s queries of %s; only these are measured.",
            other.name, f"{len(texts):,}", f"{len(dataset.queries):,}", card.name,
        )  # fmt: skip
    queries = {query_id: texts[query_id] for query_id in dataset.queries if query_id in texts}
    qrels = {query_id: grades for query_id, grades in dataset.qrels.items() if query_id in texts}
    return dataclasses.replace(dataset, queries=queries, qrels=qrels), other.asked_in

"""The language of every document and query of a dataset in several: the one that it names, or the one detected.

py3langid decides among the languages that the dataset is said to have. What it decides is counted, with how often it is
not sure; a text that says too little, such as one of digits, counts as one in the first of these languages.
"""

from __future__ import annotations

import dataclasses
import logging
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Any, NamedTuple

import orjson

from rusbeir.datasets.corpus import JsonlCorpus, open_corpus
from rusbeir.datasets.formats.records import record_line
from rusbeir.errors import BadInput, option
from rusbeir.languages import DETECTOR_CODES, load_detector, parse_language
from rusbeir.storage import atomic_file, cache_folder
from rusbeir.text import digest
from rusbeir.types import (
    MULTILINGUAL,
    Card,
    Corpus,
    Dataset,
    Doc,
    MemoryCorpus,
    MultilingualQueries,
    Queries,
    count_languages,
    query_language,
)

logger = logging.getLogger(__name__)

SURE = 0.9
"""The probability from which on a detected language counts as sure."""
_GUESS = 0.6
"""The probability below which a text shows no language: of two, each has 0.5 where nothing is known."""
_MAX_CHARS = 400
"""The part of a text that is read; py3langid goes through every byte in Python."""
_LETTER = re.compile(r"[^\W\d_]")
_KEY = "lang_detected"
"""The key of a copied record that has how probable its detected language is; 0 where none was."""


class Detection(NamedTuple):
    """The language of a text, and how probable it is; 0 where the text does not show one."""

    language: str
    probability: float


def make_detector(languages: Sequence[str]) -> Callable[[str], Detection]:
    """Make what detects the language of a text among these; the first is that of a text that shows none.

    Raises BadInput for a language that py3langid does not know, and for two that it does not tell apart.

    >>> detect = make_detector(["ru", "en"])
    >>> detect("The kettle is red."), detect("12-34")
    (Detection(language='en', probability=0.98), Detection(language='ru', probability=0.0))
    """
    tags: dict[str, str] = {}
    detector = load_detector()
    for language in languages:
        primary = language.partition("-")[0]
        code = DETECTOR_CODES.get(primary, primary)
        if code not in detector.labels:
            raise BadInput(
                f"py3langid cannot detect {language!r}: let every record name its language (lang), or leave it out."
            )
        if other := tags.get(code):
            raise BadInput(
                f"py3langid cannot tell {other!r} from {language!r}: let every record name its language (lang)."
            )
        tags[code] = language
    detector.set_languages(sorted(tags))

    def detect(text: str) -> Detection:
        if _LETTER.search(text):
            code, probability = detector.classify(text[:_MAX_CHARS])
            if probability >= _GUESS:
                return Detection(tags[code], round(float(probability), 2))
        return Detection(languages[0], 0.0)

    return detect


def name_languages(dataset: Dataset) -> Dataset:
    """Return the dataset with a language for each document and each query, and with the list of them in its card.

    Raises BadInput where documents name no language and nothing says among which to choose, and where some name one
    that the dataset does not have.
    """
    card, counts = dataset.card, count_languages(dataset.corpus)
    if card.language != MULTILINGUAL:
        _refuse_foreign(card, counts)
        return dataset
    unnamed = counts.get("", 0)
    if unnamed and not card.languages:
        raise BadInput(
            f"{card.name}: {unnamed:,} of {sum(counts.values()):,} documents name no language. Say which there are, "
            f'with {option("language", "ru,en")} or as "languages" in card.json; they are then detected.'
        )
    languages = tuple(map(parse_language, card.languages)) or tuple(counts)
    if foreign := [language for language in counts if language and language not in languages]:
        raise BadInput(
            f"{card.name}: {counts[foreign[0]]:,} documents are in {foreign[0]!r}, which is not one of "
            f"{', '.join(languages)}. Add it to these."
        )
    corpus, of_documents = _detect_documents(dataset.corpus, languages) if unnamed else (dataset.corpus, {})
    if of_documents:
        _report(card, "documents", of_documents, languages[0])
    counts = count_languages(corpus)
    for language in languages:
        if not counts.get(language):
            logger.warning("%s: no document is in %r.", card.name, language)
    queries, of_queries = detect_queries(dataset.queries, card, languages)
    detected = {kind: figures for kind, figures in (("documents", of_documents), ("queries", of_queries)) if figures}
    _warn_of_foreign_queries(card, queries, languages)
    if detected:
        by = {"detector": f"py3langid {version('py3langid')}", "fallback": languages[0]}
        card = dataclasses.replace(card, provenance={**card.provenance, "detected": {**by, **detected}})
    return dataclasses.replace(
        dataset, corpus=corpus, queries=queries, card=dataclasses.replace(card, languages=languages)
    )


def _refuse_foreign(card: Card, counts: Mapping[str, int]) -> None:
    """Raise BadInput where documents of a dataset in one language say that they are in another."""
    primary = card.language.partition("-")[0]
    for language, n in counts.items():
        if language and language.partition("-")[0] != primary:
            raise BadInput(
                f"{card.name} is in {card.language!r}, but {n:,} of its documents say that they are in {language!r}: "
                f"name all its languages, with {option('language', f'{card.language},{language}')} or, in card.json, "
                f'as "languages" and "language": "{MULTILINGUAL}".'
            )


def _detect_documents(corpus: Corpus, languages: Sequence[str]) -> tuple[Corpus, dict[str, Any]]:
    """Detect the languages that documents do not name; return the corpus with them, and what was counted.

    The documents of a file are copied, with the probabilities, to a file in the cache.
    """
    detect, tally = make_detector(languages), _Tally()
    if not isinstance(corpus, JsonlCorpus):
        return MemoryCorpus(tally.name(doc, detect)[0] for doc in corpus), tally.counts()
    key = digest("languages", corpus.sha256, *languages, version("py3langid"))
    path = cache_folder() / "copies" / f"{key}.jsonl"
    if not path.is_file():
        with atomic_file(path) as file:
            for doc, extra in corpus.whole():
                named, about = tally.name(doc, detect)
                file.write(record_line(named, {**extra, **about}))
            # The counts are there before the copy, so that no copy lacks them.
            with atomic_file(path.with_suffix(".json")) as note:
                note.write(orjson.dumps(tally.counts()))
    return open_corpus(path), orjson.loads(path.with_suffix(".json").read_bytes())


def detect_queries(queries: Queries, card: Card, languages: Sequence[str]) -> tuple[Queries, dict[str, Any]]:
    """Give queries that name no language the one that the card says, or else the one that is detected.

    Returns the queries with them, and what was counted, {} where nothing was detected. A warning has these counts.
    """
    unnamed = [key for key in queries if not query_language(queries, key, "")]
    if not unnamed:
        return queries, {}
    named = queries.languages if isinstance(queries, MultilingualQueries) else {}
    if card.query_language:
        return MultilingualQueries(queries, {**named, **dict.fromkeys(unnamed, card.query_language)}), {}
    detect, tally = make_detector(languages), _Tally()
    detected = {key: tally.add(detect(queries[key])).language for key in unnamed}
    _report(card, "queries", tally.counts(), languages[0])
    return MultilingualQueries(queries, {**named, **detected}), tally.counts()


class _Tally:
    """The languages that have been detected so far."""

    def __init__(self) -> None:
        self._languages: Counter[str] = Counter()
        self._n_unsure = self._n_undetected = 0

    def add(self, detection: Detection) -> Detection:
        self._n_undetected += not detection.probability
        self._n_unsure += 0 < detection.probability < SURE
        if detection.probability:
            self._languages[detection.language] += 1
        return detection

    def name(self, doc: Doc, detect: Callable[[str], Detection]) -> tuple[Doc, dict[str, float]]:
        """Return the document with its language, and what its record says of how that was found."""
        if doc.language:
            return doc, {}
        language, probability = self.add(detect(doc.full_text))
        return doc._replace(language=language), {_KEY: probability}

    def counts(self) -> dict[str, Any]:
        return {"languages": dict(self._languages), "unsure": self._n_unsure, "undetected": self._n_undetected}


def _report(card: Card, kind: str, counts: Mapping[str, Any], fallback: str) -> None:
    by_language = ", ".join(f"{language} {n:,}" for language, n in counts["languages"].items()) or "none"
    logger.warning(
        "%s: languages of %s were detected: %s; %s of these with a probability below %g. %s show no language and count "
        "as %s.",
        card.name, kind, by_language, f"{counts['unsure']:,}", SURE, f"{counts['undetected']:,}", fallback,
    )  # fmt: skip


def _warn_of_foreign_queries(card: Card, queries: Queries, languages: Sequence[str]) -> None:
    spoken = Counter(query_language(queries, key, card.asked_in) for key in queries)
    for language, n in spoken.items():
        if language not in languages:
            logger.warning("%s: %s queries are in %r, and no document is.", card.name, f"{n:,}", language)

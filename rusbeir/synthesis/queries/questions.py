"""What a model is asked on the way from a document to a query, and which answers are valid."""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from rusbeir.jobs import Question, Unfit, find_prompt_language, read_prompts
from rusbeir.languages import SPACELESS_SCRIPTS, english_name, scripts_of
from rusbeir.synthesis.likeness import count_words
from rusbeir.synthesis.queries.attributes import read_length
from rusbeir.synthesis.queries.passages import find_third, locate, take_third
from rusbeir.translation import Segment, control, wrong_language, wrong_script
from rusbeir.types import Corpus, Doc, join_title

PROMPTS = "queries"
TEMPERATURE = 0.7
"""The temperature of all answers: at 0, the queries of a document would be much the same."""
NEGATIVE_WORDS = 150
"""The most words of a hard negative; that of a shorter document is as long as the document."""
MAX_TOKENS: Mapping[str, int] = {
    "characters": 512,
    "scenarios": 1024,
    "query": 512,
    "rewrites": 1024,
    "negatives": 4096,
    "question": 1024,
    "span": 1024,
}
"""step -> tokens of an answer at most; every step that there is."""
_COPIED_WORDS = 6
"""A query of so many words that all follow each other in the document is a copy of it."""
_EDGES = string.punctuation + "«»“”„‘’…–—。？！ \n\t"

BROKEN = "\ufffd"
"""What is written for half a character."""

Payload = dict[str, Any]


def normalise(text: str) -> str:
    """The text in lower case, with single spaces and without punctuation at its ends.

    >>> normalise("What  is Water?")
    'what is water'
    """
    return " ".join(text.casefold().split()).strip(_EDGES)


@dataclass(frozen=True, kw_only=True)
class Writer:
    """Asks about the documents of one corpus in one language."""

    corpus: Corpus
    language: str

    def question(self, step: str) -> Question:
        """The Question of a step, whose payloads are JSON objects with at least "doc"."""
        write, properties, read = _STEPS[step]
        keep: Callable[[Writer, Payload, dict[str, Any]], Any] = read
        return Question(
            kind=step,
            write=lambda payload: self._write(step, orjson.loads(payload), write),
            read=lambda payload, found: self._read(orjson.loads(payload), found, keep),
            schema={
                "type": "object",
                "properties": properties,
                "required": [*properties],
                "additionalProperties": False,
            },
            max_tokens=MAX_TOKENS[step],
            temperature=TEMPERATURE,
        )

    def document_of(self, payload: Payload) -> Doc:
        """The document that a payload is about."""
        return self.corpus[payload["doc"]]

    def describe(self, attribute: str, value: str) -> str:
        """An attribute in the words of the prompts; its name where they have none."""
        table = self._prompts()
        if attribute == "length":
            low, high = read_length(value)
            words: str = table["length"]["open" if high is None else "range"].format(low=low, high=high)
            return words
        described: str = table[attribute].get(value, value)
        return described

    def refuse_misfit(self, query: str, doc: Doc) -> None:
        """Raise Unfit for a query that is empty, a copy from the document, or in another language."""
        plain = normalise(query)
        if not plain:
            raise Unfit("empty")
        words = plain.split()
        # Where words are not separated, characters stand for them.
        n_words = len(words) if len(words) > 1 else count_words(plain)
        if n_words >= _COPIED_WORDS and plain in normalise(doc.full_text):
            raise Unfit("copy")
        self.refuse_language(query, doc.text)

    def refuse_language(self, written: str, text: str) -> None:
        """Raise Unfit for what is written in another language than the document's text."""
        segment = Segment(text, written, "en", self.language)
        if wrong_script(segment) or wrong_language(segment):
            raise Unfit("language")

    def refuse_length(self, query: str, length: str) -> None:
        """Raise Unfit for a query of less than half or more than twice as many words as asked for."""
        low, high = read_length(length)
        n = count_words(query)
        if SPACELESS_SCRIPTS.intersection(scripts_of(self.language)):
            # Their words are counted as overlapping runs of characters.
            high = high and 3 * high
        if 2 * n < low or (high is not None and n > 2 * high + 2):
            raise Unfit("length")

    def _read(
        self, payload: Payload, found: dict[str, Any], keep: Callable[[Writer, Payload, dict[str, Any]], Any]
    ) -> Any:
        """What is kept of an answer. Raises Unfit for control characters that its document lacks."""
        kept = keep(self, payload, found)
        values = kept.values() if isinstance(kept, dict) else kept if isinstance(kept, list) else [kept]
        written = "\n".join(value for value in values if isinstance(value, str))
        text = self.document_of(payload).full_text
        if control(Segment(text, written, "en", self.language)) or (BROKEN in written and BROKEN not in text):
            raise Unfit("control")
        return kept

    def _prompts(self) -> Mapping[str, Any]:
        prompts: Mapping[str, Any] = read_prompts(PROMPTS)[find_prompt_language(PROMPTS, self.language)]
        return prompts

    def _write(
        self, step: str, payload: Payload, fill: Callable[[Writer, Payload, Doc], dict[str, Any]]
    ) -> Sequence[Mapping[str, str]]:
        table = self._prompts()
        doc = self.document_of(payload)
        document = join_title(doc.title, doc.text, "\n\n")
        filled = {"document": document, **fill(self, payload, doc)}
        return [
            {"role": "system", "content": table["system"].strip().format(language=english_name(self.language))},
            {"role": "user", "content": table[step].strip().format(**filled)},
        ]


def _read_strings(found: dict[str, Any], name: str) -> list[str]:
    values = found.get(name)
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise Unfit("form")
    return list(dict.fromkeys(value for text in values if (value := " ".join(text.split()))))


def _read_string(found: dict[str, Any], name: str) -> str:
    value = found.get(name)
    if not isinstance(value, str):
        raise Unfit("form")
    return " ".join(value.split())


def _read_people(name: str) -> Callable[[Writer, Payload, dict[str, Any]], list[str]]:
    """What reads a list of characters or scenarios, of at least one."""

    def read(writer: Writer, payload: Payload, found: dict[str, Any]) -> list[str]:
        if not (values := _read_strings(found, name)):
            raise Unfit("empty")
        return values

    return read


def _read_query(writer: Writer, payload: Payload, found: dict[str, Any]) -> str:
    query = _read_string(found, "query")
    writer.refuse_misfit(query, writer.document_of(payload))
    writer.refuse_length(query, payload["length"])
    return query


def _read_rewrites(writer: Writer, payload: Payload, found: dict[str, Any]) -> list[str]:
    doc = writer.document_of(payload)
    fit = []
    fault = Unfit("empty")
    for rewrite in _read_strings(found, "rewrites"):
        try:
            writer.refuse_misfit(rewrite, doc)
        except Unfit as unfit:
            fault = unfit
        else:
            fit.append(rewrite)
    if not fit:
        raise fault
    return fit


def _read_negatives(writer: Writer, payload: Payload, found: dict[str, Any]) -> list[str]:
    text = writer.document_of(payload).text
    negatives = _read_strings(found, "negatives")
    plain = {normalise(negative) for negative in negatives}
    if len(plain) < len(found["negatives"]) or normalise(text) in plain or "" in plain:
        raise Unfit("repeated")
    if len(negatives) < payload["count"]:
        raise Unfit("few")
    kept = negatives[: payload["count"]]
    for negative in kept:
        writer.refuse_language(negative, text)
    return kept


def _read_question(writer: Writer, payload: Payload, found: dict[str, Any]) -> dict[str, str] | bool:
    """The question and its answer; False where the document does not suffice."""
    if found.get("sufficient") is False:
        return False
    question, answer = _read_string(found, "question"), _read_string(found, "answer")
    writer.refuse_misfit(question, writer.document_of(payload))
    if not answer:
        raise Unfit("empty")
    return {"question": question, "answer": answer}


def _read_span(writer: Writer, payload: Payload, found: dict[str, Any]) -> list[int]:
    """[start, end] of the one passage, which occurs once and lies where the question was aimed at."""
    spans = found.get("spans")
    if not isinstance(spans, list) or not all(isinstance(span, str) for span in spans):
        raise Unfit("form")
    if len(spans) != 1:
        raise Unfit("several" if spans else "empty")
    text = writer.document_of(payload).text
    place = locate(text, spans[0].strip())
    if place is None:
        raise Unfit("repeated" if spans[0].strip() and spans[0].strip() in text else "absent")
    if find_third(*place, len(text)) != payload["third"]:
        raise Unfit("elsewhere")
    return list(place)


def _fill_query(writer: Writer, payload: Payload, doc: Doc) -> dict[str, Any]:
    attributes = {name: writer.describe(name, payload[name]) for name in ("length", "type", "information")}
    return {**attributes, "character": payload["character"], "scenario": payload["scenario"]}


def _fill_negatives(writer: Writer, payload: Payload, doc: Doc) -> dict[str, Any]:
    words = max(min(count_words(doc.text), NEGATIVE_WORDS), 10)
    return {"query": payload["query"], "count": payload["count"], "words": words}


def _fill_question(writer: Writer, payload: Payload, doc: Doc) -> dict[str, Any]:
    part = take_third(doc.text, payload["third"])
    return {"part": part, **{name: writer.describe(name, payload[name]) for name in ("third", "type", "style")}}


_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}
_STEPS: Mapping[str, tuple[Any, Mapping[str, Any], Any]] = {
    "characters": (lambda writer, payload, doc: {}, {"characters": _TEXTS}, _read_people("characters")),
    "scenarios": (
        lambda writer, payload, doc: {"character": payload["character"]},
        {"scenarios": _TEXTS},
        _read_people("scenarios"),
    ),
    "query": (_fill_query, {"query": _TEXT}, _read_query),
    "rewrites": (
        lambda writer, payload, doc: {
            "query": payload["query"],
            "style": writer.describe("style", payload["style"]),
        },
        {"rewrites": _TEXTS},
        _read_rewrites,
    ),
    "negatives": (_fill_negatives, {"negatives": _TEXTS}, _read_negatives),
    "question": (
        _fill_question,
        {"sufficient": {"type": "boolean"}, "question": _TEXT, "answer": _TEXT},
        _read_question,
    ),
    "span": (
        lambda writer, payload, doc: {"question": payload["question"], "answer": payload["answer"]},
        {"spans": _TEXTS},
        _read_span,
    ),
}
"""step -> what fills its prompt, the properties of its answer, and what reads the answer."""

"""The questions to a model on the way from a document to a query, and which answers are valid."""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

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
_COPIED_WORDS = 6
"""A query of so many words that all follow each other in the document is a copy of it."""
_EDGES = string.punctuation + "«»“”„‘’…–—。？！ \n\t"

BROKEN = "\ufffd"
"""What is written for half a character."""

Payload: TypeAlias = dict[str, Any]


def normalise(text: str) -> str:
    """Return the text in lower case, with single spaces and without punctuation at its ends.

    >>> normalise("What  is Water?")
    'what is water'
    """
    return " ".join(text.casefold().split()).strip(_EDGES)


Fill: TypeAlias = Callable[["Writer", Payload, Doc], dict[str, Any]]
Read: TypeAlias = Callable[["Writer", Payload, dict[str, Any]], Any]


@dataclass(frozen=True, kw_only=True)
class Step:
    """One question on the way to a query."""

    fill: Fill
    """Gives what the prompt names, in addition to the document."""
    properties: Mapping[str, Any]
    """The answer's properties as a JSON schema has them; all are required."""
    read: Read
    """Gives what is valid of the answer. Raises Unfit where nothing is."""
    max_tokens: int
    """The most tokens of an answer."""


@dataclass(frozen=True, kw_only=True)
class Writer:
    """Asks about the documents of one corpus in one language."""

    corpus: Corpus
    language: str

    def question(self, step: str) -> Question:
        """Return the Question of a step, whose payloads are JSON objects with at least "doc"."""
        described = STEPS[step]
        return Question(
            kind=step,
            write=lambda payload: self._write(step, orjson.loads(payload)),
            read=lambda payload, answer: self._read(step, orjson.loads(payload), answer),
            schema={
                "type": "object",
                "properties": described.properties,
                "required": [*described.properties],
                "additionalProperties": False,
            },
            max_tokens=described.max_tokens,
            temperature=TEMPERATURE,
        )

    def document_of(self, payload: Payload) -> Doc:
        """Return the document that a payload is about."""
        return self.corpus[payload["doc"]]

    def describe(self, attribute: str, value: str) -> str:
        """Describe an attribute in the words of the prompts; its name where they have none."""
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

    def _read(self, step: str, payload: Payload, answer: dict[str, Any]) -> Any:
        """Read what is valid of an answer. Raises Unfit for control characters that its document lacks."""
        value = STEPS[step].read(self, payload, answer)
        parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else [value]
        written = "\n".join(part for part in parts if isinstance(part, str))
        text = self.document_of(payload).full_text
        if control(Segment(text, written, "en", self.language)) or (BROKEN in written and BROKEN not in text):
            raise Unfit("control")
        return value

    def _prompts(self) -> Mapping[str, Any]:
        prompts: Mapping[str, Any] = read_prompts(PROMPTS)[find_prompt_language(PROMPTS, self.language)]
        return prompts

    def _write(self, step: str, payload: Payload) -> Sequence[Mapping[str, str]]:
        table = self._prompts()
        doc = self.document_of(payload)
        filled = {"document": join_title(doc.title, doc.text, "\n\n"), **STEPS[step].fill(self, payload, doc)}
        return [
            {"role": "system", "content": table["system"].strip().format(language=english_name(self.language))},
            {"role": "user", "content": table[step].strip().format(**filled)},
        ]


def _read_strings(answer: dict[str, Any], name: str) -> list[str]:
    values = answer.get(name)
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise Unfit("form")
    return list(dict.fromkeys(value for text in values if (value := " ".join(text.split()))))


def _read_string(answer: dict[str, Any], name: str) -> str:
    value = answer.get(name)
    if not isinstance(value, str):
        raise Unfit("form")
    return " ".join(value.split())


def _read_people(name: str) -> Read:
    """Make a reader of lists of characters or scenarios, of at least one."""

    def read(writer: Writer, payload: Payload, answer: dict[str, Any]) -> list[str]:
        if not (values := _read_strings(answer, name)):
            raise Unfit("empty")
        return values

    return read


def _read_query(writer: Writer, payload: Payload, answer: dict[str, Any]) -> str:
    query = _read_string(answer, "query")
    writer.refuse_misfit(query, writer.document_of(payload))
    writer.refuse_length(query, payload["length"])
    return query


def _read_rewrites(writer: Writer, payload: Payload, answer: dict[str, Any]) -> list[str]:
    doc = writer.document_of(payload)
    fit = []
    fault = Unfit("empty")
    for rewrite in _read_strings(answer, "rewrites"):
        try:
            writer.refuse_misfit(rewrite, doc)
        except Unfit as unfit:
            fault = unfit
        else:
            fit.append(rewrite)
    if not fit:
        raise fault
    return fit


def _read_negatives(writer: Writer, payload: Payload, answer: dict[str, Any]) -> list[str]:
    text = writer.document_of(payload).text
    negatives = _read_strings(answer, "negatives")
    plain = {normalise(negative) for negative in negatives}
    if len(plain) < len(answer["negatives"]) or normalise(text) in plain or "" in plain:
        raise Unfit("repeated")
    if len(negatives) < payload["count"]:
        raise Unfit("few")
    negatives = negatives[: payload["count"]]
    for negative in negatives:
        writer.refuse_language(negative, text)
    return negatives


def _read_question(writer: Writer, payload: Payload, answer: dict[str, Any]) -> dict[str, str] | bool:
    """Read the question and its answer; False where the document does not suffice."""
    if answer.get("sufficient") is False:
        return False
    question, solution = _read_string(answer, "question"), _read_string(answer, "answer")
    writer.refuse_misfit(question, writer.document_of(payload))
    if not solution:
        raise Unfit("empty")
    return {"question": question, "answer": solution}


def _read_span(writer: Writer, payload: Payload, answer: dict[str, Any]) -> list[int]:
    """[start, end] of the one passage, which occurs once and lies where the question was aimed at."""
    spans = answer.get("spans")
    if not isinstance(spans, list) or not all(isinstance(span, str) for span in spans):
        raise Unfit("form")
    if len(spans) != 1:
        raise Unfit("several" if spans else "empty")
    text = writer.document_of(payload).text
    span = locate(text, spans[0].strip())
    if span is None:
        raise Unfit("repeated" if spans[0].strip() and spans[0].strip() in text else "absent")
    if find_third(*span, len(text)) != payload["third"]:
        raise Unfit("elsewhere")
    return list(span)


def _fill_query(writer: Writer, payload: Payload, doc: Doc) -> dict[str, Any]:
    attributes = {name: writer.describe(name, payload[name]) for name in ("length", "type", "information")}
    return {**attributes, "character": payload["character"], "scenario": payload["scenario"]}


def _fill_negatives(writer: Writer, payload: Payload, doc: Doc) -> dict[str, Any]:
    words = max(min(count_words(doc.text), NEGATIVE_WORDS), 10)
    return {"query": payload["query"], "count": payload["count"], "words": words}


def _fill_question(writer: Writer, payload: Payload, doc: Doc) -> dict[str, Any]:
    part = take_third(doc.text, payload["third"])
    return {"part": part, **{name: writer.describe(name, payload[name]) for name in ("third", "type", "style")}}


def _fill_rewrites(writer: Writer, payload: Payload, doc: Doc) -> dict[str, Any]:
    return {"query": payload["query"], "style": writer.describe("style", payload["style"])}


def _fill_from(*names: str) -> Fill:
    """Make a function that fills a prompt with these keys of the payload."""
    return lambda writer, payload, doc: {name: payload[name] for name in names}


_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}
STEPS: Mapping[str, Step] = {
    "characters": Step(
        fill=_fill_from(),
        properties={"characters": _TEXTS},
        read=_read_people("characters"),
        max_tokens=512,
    ),
    "scenarios": Step(
        fill=_fill_from("character"),
        properties={"scenarios": _TEXTS},
        read=_read_people("scenarios"),
        max_tokens=1024,
    ),
    "query": Step(fill=_fill_query, properties={"query": _TEXT}, read=_read_query, max_tokens=512),
    "rewrites": Step(fill=_fill_rewrites, properties={"rewrites": _TEXTS}, read=_read_rewrites, max_tokens=1024),
    "negatives": Step(fill=_fill_negatives, properties={"negatives": _TEXTS}, read=_read_negatives, max_tokens=4096),
    "question": Step(
        fill=_fill_question,
        properties={"sufficient": {"type": "boolean"}, "question": _TEXT, "answer": _TEXT},
        read=_read_question,
        max_tokens=1024,
    ),
    "span": Step(
        fill=_fill_from("question", "answer"),
        properties={"spans": _TEXTS},
        read=_read_span,
        max_tokens=1024,
    ),
}

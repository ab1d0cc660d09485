"""Records of BEIR-like JSONL files, read line by line, with one parser for loading and for validating.

A reader is given a Complain. Loading passes `refuse`, which raises at the first problem; validation passes one that
notes the problem and continues. Files that rusbeir itself writes are read with a Shape, which they fit unless they are
damaged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import orjson

from rusbeir.datasets.formats.files import open_file
from rusbeir.errors import BadInput, UnknownName
from rusbeir.languages import parse_language
from rusbeir.text import has_control, replace_surrogates, shorten
from rusbeir.types import Doc

ID_RULE = "not empty and has no control character"
"""What is asked of every id: trec_eval's strings end at a NUL, and TREC's files are lines of words."""


class Place(NamedTuple):
    """The position of a record: a file and a line, or a file and words if the format has no lines."""

    file: str
    line: int | None = None
    within: str = ""

    def __str__(self) -> str:
        if self.line is not None:
            return f"{self.file}:{self.line}"
        return f"{self.file}, {self.within}" if self.within else self.file


class Query(NamedTuple):
    """One query of a file of queries."""

    query_id: str
    text: str
    language: str = ""
    """Its BCP 47 tag; "" where it is that of the dataset's card."""


class Judgement(NamedTuple):
    """One line of qrels."""

    query_id: str
    doc_id: str
    grade: int


class Span(NamedTuple):
    """The part of a document that answers a query, in characters of a text that has that many."""

    query_id: str
    start: float
    end: float
    chars: int
    tokens: int
    """How long the text is in tokens of the dataset's own count, or else as `count_tokens` counts."""
    doc_id: str = ""
    """Empty where the dataset says only that it is the relevant document."""


Extra: TypeAlias = Mapping[str, Any]
"""The keys of a record in addition to those that every dataset has, such as metadata."""

Complain: TypeAlias = Callable[[str, Place, str], None]
"""Called as complain(kind, place, message) for a record that cannot be used; the reader then skips it."""


LANGUAGE_KEY = "lang"
"""The key of a record's language, where the dataset is in several."""

_TOKEN = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]|[^\\s\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]+")
TOKENS = "words between white space; of Chinese, Japanese, Thai and Lao, characters"


def count_tokens(text: str) -> int:
    """Count the tokens of a text: words between white space, and characters of languages that put none between words.

    >>> count_tokens("On the bridge."), count_tokens("在桥上")
    (3, 3)
    """
    return sum(1 for _ in _TOKEN.finditer(text))


def refuse(kind: str, location: Place, message: str) -> None:
    """Raise the problem as BadInput: the Complain of loading."""
    raise BadInput(f"{location}: {message}.")


_KEYS = ("_id", "title", "text", LANGUAGE_KEY)


def read_documents(lines: Iterable[bytes], file: str, complain: Complain) -> Iterator[tuple[Place, Doc, Extra]]:
    """Read the documents of a corpus.jsonl (_id, text, title, lang), with the other keys of their records, in order."""
    for location, record in read_objects(lines, file, _KEYS, complain):
        doc_id = _take_id(record, location, complain)
        text = record.pop("text", None)
        title = record.pop("title", None)
        if doc_id is None:
            continue
        if not isinstance(text, str) or not isinstance(title, str | None):
            key = "text" if not isinstance(text, str) else "title"
            complain("field", location, f'document {doc_id!r} has no "{key}" that is a string')
            continue
        tag = record.pop(LANGUAGE_KEY, None)
        if (language := read_language(tag) if tag else "") is None:
            complain("field", location, f"document {doc_id!r} has {NO_LANGUAGE}")
            continue
        yield location, Doc(doc_id, text, title or "", language), record


def read_queries(lines: Iterable[bytes], file: str, complain: Complain) -> Iterator[tuple[Place, Query, Extra]]:
    """Read the queries of a queries.jsonl (_id, text, lang), each with the other keys of its record, in file order."""
    for location, record in read_objects(lines, file, _KEYS, complain):
        query_id = _take_id(record, location, complain)
        text = record.pop("text", None)
        if query_id is None:
            continue
        if not isinstance(text, str):
            complain("field", location, f'query {query_id!r} has no "text" that is a string')
            continue
        tag = record.pop(LANGUAGE_KEY, None)
        if (language := read_language(tag) if tag else "") is None:
            complain("field", location, f"query {query_id!r} has {NO_LANGUAGE}")
            continue
        yield location, Query(query_id, text, language), record


def read_objects(
    lines: Iterable[bytes], file: str, keys: Collection[str], complain: Complain
) -> Iterator[tuple[Place, dict[str, Any]]]:
    """Read the JSON objects of a JSONL file, each with its place; blank lines are skipped. keys are those in use."""
    for number, line in enumerate(lines, 1):
        if line.isspace():
            continue
        location = Place(file, number)
        try:
            record = parse_record(line, keys)
        except orjson.JSONDecodeError as error:
            complain(*_not_json(location, line, error))
            continue
        except UnicodeError as error:
            complain("surrogate", location, str(error))
            continue
        if isinstance(record, dict):
            yield location, record
        else:
            complain("json", location, 'the line is JSON but not an object; expected {"_id": …, "text": …}')


def collect(judgements: Iterable[tuple[Place, Judgement]]) -> dict[str, dict[str, int]]:
    """Collect the qrels of a stream of judgements, in their order. Raises BadInput for a repeated pair."""
    qrels: dict[str, dict[str, int]] = {}
    for location, (query_id, doc_id, grade) in judgements:
        docs = qrels.setdefault(query_id, {})
        if doc_id in docs:
            raise repeated(location, query_id, doc_id)
        docs[doc_id] = grade
    return qrels


def repeated(location: Place, query_id: str, doc_id: str) -> BadInput:
    """Say that a judgement is there already."""
    return BadInput(f"{location}: query {query_id!r} and document {doc_id!r} are paired a second time.")


def parse_record(data: bytes, keys: Collection[str] = ()) -> Any:
    """Parse the value of JSON as Python's json reads it, in a form that can be written as JSON.

    orjson, which is much faster, refuses NaN and the infinities (here None), control characters in strings, and
    escapes of unpaired surrogates (here U+FFFD). Raises UnicodeError for such a surrogate under one of the keys, and
    orjson.JSONDecodeError for what is not JSON.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        try:
            value = json.loads(data.decode(), strict=False, parse_int=_parse_int, parse_constant=lambda _: None)
            mended = replace_surrogates(value)
        except (ValueError, RecursionError):
            value = mended = None
        if mended is None:
            raise
    if isinstance(value, dict):
        for key in keys:
            if value.get(key) != mended.get(key):
                raise UnicodeError(f'"{key}" has an unpaired surrogate, which UTF-8 cannot encode; remove it')
    return mended


def parse_json(data: bytes, file: str, *, strict: bool = False) -> Any:
    """Parse the value of a file that is one JSON document, as parse_record reads it, or only what the standard allows.

    Raises BadInput with file and line.
    """
    try:
        return orjson.loads(data) if strict else parse_record(data)
    except orjson.JSONDecodeError as error:
        raise BadInput(f"{file}:{error.lineno}: not JSON ({error.msg}).") from error


def record_line(record: Doc | Query, extra: Extra = MappingProxyType({})) -> bytes:
    """Write a document or a query as one line of corpus.jsonl or queries.jsonl, with the extra keys."""
    language = {LANGUAGE_KEY: record.language} if record.language else {}
    if isinstance(record, Query):
        return orjson.dumps({"_id": record.query_id, "text": record.text, **language, **extra}) + b"\n"
    about = {"_id": record.doc_id, "title": record.title, "text": record.text}
    return orjson.dumps({**about, **language, **extra}) + b"\n"


NO_LANGUAGE = 'a language that is not a tag of BCP 47, such as "ru"'


def read_language(value: object) -> str | None:
    """Read the language that a record names; "" where it names none, and None where what it says is not a language.

    >>> read_language("rus"), read_language(None), read_language("?")
    ('ru', '', None)
    """
    if not value:
        return ""
    return _parse_tag(value) if isinstance(value, str) else None


@cache
def _parse_tag(text: str) -> str | None:
    try:
        return parse_language(text)
    except UnknownName:
        return None


def _take_id(record: dict[str, Any], location: Place, complain: Complain) -> str | None:
    if "_id" not in record:
        complain("id", location, 'the line has no "_id"; every record needs one')
        return None
    value = record.pop("_id")
    if isinstance(value, str) and value.strip() and not has_control(value):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    complain("id", location, f'"_id" is {shorten(repr(value))}; it must be a string that is {ID_RULE}')
    return None


def _parse_int(digits: str) -> int | float:
    """Parse an integer beyond 64 bits as a float, as orjson reads it."""
    return int(digits) if len(digits) <= 20 and -(2**63) <= int(digits) < 2**64 else float(digits)


def _not_json(location: Place, line: bytes, error: orjson.JSONDecodeError) -> tuple[str, Place, str]:
    if problem := not_utf8(location, line):
        return problem
    if not line.endswith(b"\n"):
        return "json", location, "the file ends in the middle of this line; copy or download it again"
    reason = str(error).split(": line ")[0]
    return "json", location, f"not JSON ({reason}); every line must be one complete JSON object"


def read_tsv(path: Path) -> Iterator[tuple[Place, list[str]]]:
    """Read the cells of each line of a tab-separated file, with its place. Raises BadInput for what is not UTF-8."""
    with open_file(path) as file:
        for number, line in enumerate(file, 1):
            location = Place(str(path), number)
            if problem := not_utf8(location, line):
                raise BadInput(f"{location}: {problem[2]}.")
            yield location, line.decode().rstrip("\r\n").split("\t")


def not_utf8(location: Place, line: bytes) -> tuple[str, Place, str] | None:
    """Return the complaint about a line in another encoding; None if it is UTF-8."""
    try:
        line.decode()
    except UnicodeDecodeError as error:
        byte = f"byte 0x{line[error.start]:02x} at {error.start + 1}"
        return "utf-8", location, f"the line is not UTF-8 ({byte}); convert the file to UTF-8"
    return None


Shape: TypeAlias = Any
"""What a value must be: a type (float also stands for integers), a set of the possible values, [shape] for a list,
{key: shape} for an object, {str: shape} for an object with any keys, or a tuple of shapes, of which one must fit.

A key that ends in "?" may be missing. Other keys than those of the shape are ignored.
"""

_KINDS = {
    str: "a string", int: "an integer", float: "a number", bool: "true or false", list: "a list", dict: "an object",
    type(None): "null",
}  # fmt: skip


def find_misfit(value: Any, shape: Shape, name: str = "the value") -> str:
    """Find what does not fit the shape, and say it in words; "" if all of the value fits.

    >>> find_misfit({"flags": ["length", 5]}, {"flags": [str], "chrF?": float})
    'flags.1 is 5, not a string'
    """
    inside = "" if name == "the value" else f"{name}."
    if isinstance(shape, tuple):
        misfits = [find_misfit(value, alternative, name) for alternative in shape]
        return "" if "" in misfits else misfits[0]
    if isinstance(shape, list) and isinstance(value, list):
        return _find_first(find_misfit(item, shape[0], f"{inside}{index}") for index, item in enumerate(value))
    if isinstance(shape, dict) and isinstance(value, dict):
        if str in shape:
            return _find_first(find_misfit(item, shape[str], f"{inside}{key}") for key, item in value.items())
        for key, shape_inside in shape.items():
            known = key.removesuffix("?")
            if known in value:
                if misfit := find_misfit(value[known], shape_inside, f"{inside}{known}"):
                    return misfit
            elif known == key:
                return f"{inside}{known} is missing"
        return ""
    if isinstance(shape, set):
        fits = isinstance(value, (str, int)) and not isinstance(value, bool) and value in shape
        expected = f"one of {', '.join(sorted(map(str, shape)))}"
    else:
        kind = shape if isinstance(shape, type) else type(shape)
        fits = isinstance(value, (int, float) if kind is float else kind)
        # In Python, true is an integer.
        fits = fits and (kind is bool or not isinstance(value, bool))
        expected = _KINDS[kind]
    return "" if fits else f"{name} is {shorten(repr(value), 60)}, not {expected}"


def _find_first(misfits: Iterable[str]) -> str:
    return next(filter(None, misfits), "")


def read_json(path: Path, shape: Shape, remedy: str) -> Any:
    """Read the value of a JSON file. Raises BadInput, ending in the remedy, where the file or its shape is damaged."""
    with open_file(path) as file:
        return _parse(file.read(), shape, str(path), remedy)


def read_jsonl(path: Path, shape: Shape, remedy: str) -> Iterator[Any]:
    """Read the values of the lines of a JSONL file. Raises as read_json, with the line."""
    with open_file(path) as file:
        for number, line in enumerate(file, 1):
            yield _parse(line, shape, str(Place(str(path), number)), remedy)


def _parse(data: bytes, shape: Shape, where: str, remedy: str) -> Any:
    try:
        value = orjson.loads(data)
        misfit = find_misfit(value, shape)
    except orjson.JSONDecodeError as error:
        misfit = f"not JSON, {error.msg}"
    if misfit:
        raise BadInput(f"{where}: this is not what rusbeir writes ({misfit}). {remedy}")
    return value

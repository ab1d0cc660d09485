"""Datasets of ir_datasets, read by its ids: `irds:neuclir/1/ru/trec-2022?query=mt_title`.

ir_datasets finds, fetches and parses the files, below IR_DATASETS_HOME (~/.ir_datasets). A document's text is what it
calls the default text, of which a title at the start is taken apart. The fields that make up a query can be chosen;
several are joined by +.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from rusbeir.datasets.fetching.download import NotAtHand
from rusbeir.datasets.formats.reader import ReadRequest
from rusbeir.datasets.formats.records import Complain, Extra, Judgement, Place, Query
from rusbeir.datasets.formats.trec import GRADE_BOUNDS, GRADES
from rusbeir.datasets.registry import IRDS
from rusbeir.errors import BackendError, BadInput, RusbeirError, option, require, unknown
from rusbeir.languages import parse_language
from rusbeir.text import digest, one_line
from rusbeir.types import Card, Doc

_SITE = "https://ir-datasets.com"
_SHORT_FIELDS = {"desc": "description", "narr": "narrative"}
"""TREC's tags, for the names that ir_datasets has."""
_TRANSLATED = re.compile(r"(?:([a-z]{2})_)?[hm]t_")
"""The start of a field in the language of the documents, or of the named one: a translation by people or machines."""
_IN_LANGUAGE = re.compile(r"_([a-z]{2})\d?$")
"""The end of a field in a language, such as `title_zh` and `description_en1`."""
_TAGS = {"dt": "nl"}
"""Languages under codes that are no tags, as Dutch in mMARCO."""
_LICENCE = re.compile(r"creativecommons\.org/licenses/([a-z-]+)/(\d\.\d)")
_MAX_WORDS = 600
"""The length of what is quoted of ir_datasets in a message."""


class IrdsName(NamedTuple):
    """A dataset of ir_datasets, and the fields of its queries that are asked; () for the default ones."""

    dataset_id: str
    fields: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{IRDS}{self.dataset_id}" + (f"?query={'+'.join(self.fields)}" if self.fields else "")


def parse_name(text: str) -> IrdsName:
    """Read `irds:ID` or `irds:ID?query=FIELD+FIELD`.

    >>> parse_name("irds:hc4/fa/test?query=mt_title+desc")
    IrdsName(dataset_id='hc4/fa/test', fields=('mt_title', 'description'))
    """
    dataset_id, mark, query = text.removeprefix(IRDS).partition("?")
    # A plus is a separator here, not the space of web forms.
    options = parse_qsl(query.replace("+", "%2B"), keep_blank_values=True)
    fields = tuple(field for _, value in options for field in value.split("+"))
    if (mark and [key for key, _ in options] != ["query"]) or "" in fields:
        raise BadInput(f"{text!r} is not a dataset of ir_datasets: write {IRDS}ID, or {IRDS}ID?query=FIELD.")
    return IrdsName(dataset_id, tuple(_SHORT_FIELDS.get(field, field) for field in fields))


def fetch_documents(dataset_id: str, *, allow_download: bool) -> tuple[Path, ...]:
    """Let ir_datasets find or fetch the documents; return their files or folders as far as it says where they are.

    Raises NotAtHand where they would have to be fetched and may not be, BadInput where they must be obtained from their
    owners, and BackendError where a download fails.
    """
    source = _find(dataset_id)
    name = f"{IRDS}{dataset_id}"
    find_path = getattr(source, "docs_path", None)
    with _reporting(name):
        if not allow_download:
            paths = _as_paths(find_path(force=False)) if find_path else []
            if find_path and not any(path.exists() for path in paths):
                raise NotAtHand(f"{name} is not on this machine: ir_datasets keeps it in {_home()}.")
            return tuple(path for path in paths if path.exists())
        if find_path:
            return tuple(path for path in _as_paths(find_path()) if path.exists())
        next(iter(source.docs_iter()), None)  # What says no path is fetched when it is read.
    return ()


def open_irds(request: ReadRequest) -> IrdsReader:
    """Open a dataset by the options `id` and `query`; its files have been fetched."""
    name = IrdsName(request.options["id"], tuple(filter(None, request.options.get("query", "").split("+"))))
    source = _find(name.dataset_id)
    paths = (request.path, *request.also)
    reader = IrdsReader(
        name=name,
        source=source,
        split=request.split or name_split(name.dataset_id),
        corpus_files=tuple(path for path in paths if path.is_file()),
        corpus_folders=tuple(path for path in paths if path != Path() and path.is_dir()),
    )
    if request.judged and not source.has_qrels():
        raise BadInput(
            f"{name} has no judgements, so nothing can be measured on it. {_list_within(name.dataset_id, 'qrels')}"
        )
    if source.has_queries():
        for field in name.fields:
            if field not in reader.query_fields:
                raise unknown("field", field, reader.query_fields, owner=f"the queries of {IRDS}{name.dataset_id}")
    return reader


def describe(name: IrdsName, language: str) -> Card:
    """Describe a dataset as ir_datasets does: language, licence as far as it states one, citation.

    Raises BadInput where its documents are in several languages and none is named.
    """
    source = _find(name.dataset_id)
    documentation = source.documentation() if hasattr(source, "documentation") else {}
    known = source.docs_lang()
    known = _TAGS.get(known, known)
    if not (language or known):
        raise BadInput(
            f"{name}: ir_datasets names no single language of these documents. Name it with "
            f"{option('language', 'TAG')}, such as en or ru."
        )
    documents = language or parse_language(known)
    texts = " ".join(str(text) for text in documentation.values())
    licence = _LICENCE.search(texts)
    return Card(
        name=str(name),
        language=documents,
        split=name_split(name.dataset_id),
        licence=f"CC-{licence[1].upper()}-{licence[2]}" if licence else "",
        source=f"{_SITE}/{name.dataset_id.split('/')[0]}.html",
        revision=f"ir_datasets {_library().__version__}",
        query_language=_decide_query_language(name, source, documents),
    )


def name_split(dataset_id: str) -> str:
    """Name the split by the last word of the id, where the id is longer than that of its documents; else `test`.

    >>> name_split("miracl/ru/dev")
    'dev'
    """
    with _reporting(f"{IRDS}{dataset_id}"):
        documents = _library().docs_parent_id(dataset_id)
    return "test" if documents == dataset_id else dataset_id.rpartition("/")[2]


@dataclass(frozen=True, kw_only=True)
class IrdsReader:
    """Streams what ir_datasets iterates."""

    name: IrdsName
    source: Any
    split: str
    corpus_files: tuple[Path, ...]
    corpus_folders: tuple[Path, ...] = ()
    id_suffixes: tuple[str, ...] = ("",)
    plain_corpus: None = None

    @cached_property
    def recipe(self) -> str:
        """The documents' id and the library, as two files of the same bytes may be parsed in different ways.

        Of folders it has names, sizes and times: their files are too many and too large to be read for a checksum.
        """
        library = _library()
        recipe = f"irds:{library.docs_parent_id(self.name.dataset_id)}|{library.__version__}"
        stamps = sorted(stamp for folder in self.corpus_folders for stamp in _stamp_files(folder))
        return f"{recipe}|{digest(*stamps)}" if stamps else recipe

    @cached_property
    def query_fields(self) -> tuple[str, ...]:
        return tuple(field for field in self.source.queries_cls()._fields if field != "query_id")

    def documents(self, complain: Complain) -> Iterator[tuple[Place, Doc, Extra]]:
        for location, record in self._iterate("documents", self.source.docs_iter):
            yield location, _make_document(record), {}

    def queries(self, complain: Complain) -> Iterator[tuple[Place, Query, Extra]]:
        if not self.source.has_queries():
            return
        for location, record in self._iterate("queries", self.source.queries_iter):
            yield location, Query(record.query_id, self._join_fields(location, record)), {}

    def judgements(self, complain: Complain) -> Iterator[tuple[Place, Judgement]]:
        if not self.source.has_qrels():
            return
        for location, record in self._iterate("judgements", self.source.qrels_iter):
            if record.relevance in GRADES:
                yield location, Judgement(record.query_id, record.doc_id, int(record.relevance))
            else:
                complain("grade", location, f"the grade {record.relevance!r} is not {GRADE_BOUNDS}")

    def _iterate(self, part: str, make: Any) -> Iterator[tuple[Place, Any]]:
        with _reporting(str(self.name)):
            for number, record in enumerate(make(), 1):
                yield Place(str(self.name), within=f"{part}, number {number:,}"), record

    def _join_fields(self, location: Place, record: Any) -> str:
        if not self.name.fields:
            return str(_without_none(record).default_text()).strip()
        texts = [getattr(record, field) or "" for field in self.name.fields]
        for field, text in zip(self.name.fields, texts, strict=True):
            if not isinstance(text, str):
                raise BadInput(
                    f"{location}: {field!r} is not a text but a {type(text).__name__}. Choose another field."
                )
        return " ".join(filter(None, (text.strip() for text in texts)))


def _make_document(record: Any) -> Doc:
    """Make a document of a record: its default text, and apart from it the title with which that begins."""
    record = _without_none(record)
    text, title = str(record.default_text()), getattr(record, "title", "")
    if isinstance(title, str) and text.startswith(title):
        return Doc(record.doc_id, text[len(title) :].strip(), title.strip())
    return Doc(record.doc_id, text.strip())


def _without_none(record: Any) -> Any:
    """Replace fields that are None, which a default text would spell out."""
    missing = {field: "" for field in record._fields if getattr(record, field) is None}
    return record._replace(**missing) if missing else record


def _decide_query_language(name: IrdsName, source: Any, documents: str) -> str:
    """Decide in which language the chosen fields are; "" for that of the documents. Raises BadInput for two of them."""
    if not source.has_queries():
        return ""
    names = source.queries_cls()._fields
    # Topics that come with translations are written in English.
    stated = source.queries_lang()
    original = _TAGS.get(stated, stated) or ("en" if any(map(_TRANSLATED.match, names)) else documents)
    languages = {_find_field_language(field, documents) or original for field in name.fields or ("",)}
    if len(languages) > 1:
        raise BadInput(f"{name}: these fields are in different languages ({', '.join(sorted(languages))}). Choose one.")
    language = parse_language(languages.pop())
    return "" if language == documents else language


def _find_field_language(field: str, documents: str) -> str:
    """Find the language that the name of a field says; "" where it says none."""
    if translated := _TRANSLATED.match(field):
        return translated[1] or documents
    ending = _IN_LANGUAGE.search(field)
    return ending[1] if ending and ending[1] in ("en", documents) else ""


@cache
def _library() -> Any:
    library = require("ir_datasets", f"Datasets with {IRDS}", "ir-datasets")
    # It writes what to do about a missing file on several lines, which the message here repeats in one.
    library.log.easy().logger().setLevel(logging.WARNING)
    return library


def _find(dataset_id: str) -> Any:
    """Find a dataset that has documents. Raises UnknownName or BadInput where there is none."""
    library = _library()
    # Ids of CLIRMatrix are patterns, whose list of files is fetched when one is asked for.
    with _reporting(f"{IRDS}{dataset_id}"):
        try:
            source = library.load(dataset_id)
        except KeyError:
            raise unknown("dataset of ir_datasets", dataset_id, library.registry, listing="ir_datasets list") from None
    if not source.has_docs():
        raise BadInput(f"{IRDS}{dataset_id} has no documents. {_list_within(dataset_id, 'docs')}")
    return source


def _list_within(dataset_id: str, part: str) -> str:
    """Say which ids at or below the same documents have the part."""
    library = _library()
    family = dataset_id.split("/")[0] if part == "docs" else library.docs_parent_id(dataset_id)
    names = [
        f"{IRDS}{name}" for name in library.registry
        if name.startswith(f"{family}/") and library.registry[name].has(part)
    ]  # fmt: skip
    return f"These have them: {one_line(', '.join(names), _MAX_WORDS)}." if names else "Nor has any of the same family."


def _as_paths(value: Any) -> list[Path]:
    return [Path(path) for path in (value if isinstance(value, (list, tuple)) else [value])]


def _stamp_files(folder: Path) -> Iterator[str]:
    """Yield the path, size and time of change of each file below a folder."""
    for parent, _, names in os.walk(folder, followlinks=True):
        for path in (Path(parent) / name for name in names):
            if path.is_file():
                status = path.stat()
                yield f"{path.relative_to(folder)}|{status.st_size}|{status.st_mtime_ns}"


def _home() -> Path:
    home: Path = _library().util.home_path()
    return home


@contextlib.contextmanager
def _reporting(name: str) -> Iterator[None]:
    """Turn what ir_datasets raises into one line."""
    try:
        yield
    except RusbeirError:
        raise
    except FileNotFoundError as error:
        raise BadInput(f"{name}: {_explain_missing(Path(str(error.filename or error)))}") from error
    except EOFError as error:
        raise BadInput(
            f"{name} is only for those with credentials, which ir_datasets reads from {_home() / 'auth'}: see "
            f"{_SITE}/{name.removeprefix(IRDS).split('/')[0]}.html."
        ) from error
    except Exception as error:
        # Whatever a parser of a file that is not as it should be raises, or the network.
        reason = one_line(f"{type(error).__name__}: {error}", _MAX_WORDS)
        raise BackendError(f"{name}: ir_datasets cannot read it ({reason}). It keeps files in {_home()}.") from error


def _explain_missing(path: Path) -> str:
    """Say how a file is obtained, in the words of ir_datasets where it has any."""
    sources: Iterable[Any] = _library().util.DownloadConfig.contents().values()
    for source in (entry for family in sources for entry in family.values() if "instructions" in entry):
        if path.match(source.get("cache_path") or source.get("expected_md5", "")):
            return one_line(source["instructions"].format(path=path), _MAX_WORDS)
    return f"there is no {path}."

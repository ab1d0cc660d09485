"""Datasets: what there is, where it lies, and one way to read it."""

from rusbeir.datasets.corpus import JsonlCorpus, open_corpus
from rusbeir.datasets.fetching.fetch import fetch
from rusbeir.datasets.formats.trec import read_qrels, read_run
from rusbeir.datasets.loading import load, query_metadata
from rusbeir.datasets.registry import Row, read_registry, row_of
from rusbeir.datasets.validation import Finding, validate
from rusbeir.datasets.writing import write_beir, write_qrels, write_run

__all__ = [
    "Finding",
    "JsonlCorpus",
    "Row",
    "fetch",
    "load",
    "open_corpus",
    "query_metadata",
    "read_qrels",
    "read_registry",
    "read_run",
    "row_of",
    "validate",
    "write_beir",
    "write_qrels",
    "write_run",
]

"""Datasets: the registry, and one way to read every format."""

from rusbeir.datasets.corpus import JsonlCorpus, open_corpus
from rusbeir.datasets.fetching.fetch import fetch
from rusbeir.datasets.formats.trec import read_qrels, read_run
from rusbeir.datasets.loading import load, load_qrels
from rusbeir.datasets.registry import RegistryEntry, get_entry, read_registry
from rusbeir.datasets.validation import Finding, validate
from rusbeir.datasets.writing import write_beir, write_qrels, write_run

__all__ = [
    "Finding",
    "JsonlCorpus",
    "RegistryEntry",
    "fetch",
    "get_entry",
    "load",
    "load_qrels",
    "open_corpus",
    "read_qrels",
    "read_registry",
    "read_run",
    "validate",
    "write_beir",
    "write_qrels",
    "write_run",
]

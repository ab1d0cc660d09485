"""Mutated inputs end in success or in one readable line: a few for every reader; benchmarks/fuzz.py gives more."""

from __future__ import annotations

import gc
import logging
import warnings
import zlib
from pathlib import Path

import pytest

from tests.support.fuzzing import draw_inputs, find_message_fault, fuzz, mutate_value
from tests.support.parsers import PARSERS, Parser, own_cache

INPUTS = 500
"""For a reader with a share of 1; a slow one gets its share."""


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
def test_a_mutated_input_is_read_or_refused_in_one_line(parser: Parser, tmp_path: Path, caplog):
    caplog.set_level(logging.CRITICAL, "rusbeir")
    (tmp_path / "work").mkdir()
    with own_cache(tmp_path), warnings.catch_warnings():
        # Files that openpyxl could not read are closed when they are forgotten.
        warnings.simplefilter("ignore", ResourceWarning)
        seeds, mutate, read = parser.prepare(tmp_path / "work")
        for seed in seeds:
            read(seed)
        n = round(INPUTS * parser.share)
        outcome = fuzz(read, draw_inputs(seeds, mutate, n, zlib.crc32(parser.name.encode())))
        gc.collect()
    assert outcome.wrong == {}, {fault: data[:300] for fault, data in outcome.examples.items()}
    assert outcome.inputs == n


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        ("f.json:1: not JSON.", ""),
        ("x" * 1001, "a message of over 1000 characters"),
        ("a\nb", "a message with characters that cannot be printed"),
        ("a\x1b[2J", "a message with characters that cannot be printed"),
        ("\udc80", "a message with characters that cannot be printed"),
        (" ", "an empty message"),
    ],
)
def test_what_is_asked_of_a_message(message: str, fault: str):
    assert find_message_fault(message) == fault


def test_what_a_reader_does_wrong_is_found():
    def read(data: bytes) -> None:
        {b"a": lambda: None, b"b": lambda: int("x")}[data]()

    outcome = fuzz(read, iter([b"a", b"b", b"c"]))
    assert outcome.inputs == 3
    assert outcome.examples.keys() == outcome.wrong.keys()
    assert [fault.partition(" ")[0] for fault in outcome.wrong] == ["ValueError", "KeyError"]


def test_a_value_is_changed_in_a_copy():
    import random

    value = {"a": [1, {"b": "c"}]}
    draw = random.Random(1)
    assert len({str(mutate_value(draw, value)) for _ in range(200)}) > 50
    assert value == {"a": [1, {"b": "c"}]}

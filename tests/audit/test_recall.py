"""What a share of flags says of the errors that people find, measured where it is printed."""

from __future__ import annotations

import re

import pytest

from benchmarks import audit
from rusbeir.audit import FLAGS_MEANING


def test_the_sentence_beside_a_share_of_flags_is_measured(shared_data):
    """WMT23, English to German, as published: 5,520 rated paragraphs of 12 systems."""
    if not (audit.DATA.parent / "golden" / "wmt23-en-de").is_dir():
        pytest.skip("WMT23's English-German ratings are not here")
    measured = audit.recall()
    assert (measured["rated"], measured["flagged"]) == (5520, 139)
    shares = [*measured["recall"].values(), measured["precision"]]
    stated = [float(number) for number in re.findall(r"([\d.]+) %", FLAGS_MEANING)]
    assert stated == [round(100 * shares[0], 1), *(round(100 * share) for share in shares[1:])]

"""Which queries are made: shares that are drawn as a file says, by seed and document alone."""

from __future__ import annotations

from collections import Counter

import pytest

from rusbeir.errors import BackendError, BadInput, UnknownName
from rusbeir.synthesis.queries.attributes import KINDS, draw_one, read_attributes, read_length

DRAWS = 8_000
# AIR-Bench (2024), section 3, as parts of the whole; PosIR (2026) has thirds, types and styles as often as each other.
PUBLISHED = [
    ("qa", "length", {"1-4": 1 / 8, "1-9": 4 / 8, "10-20": 2 / 8, "20-": 1 / 8}),
    ("qa", "type", {"question": 3 / 5, "problem": 1 / 5, "claim": 1 / 5}),
    ("qa", "information", {"overall": 1 / 2, "partial": 1 / 2}),
    ("qa", "style", {"concise": 5 / 15, "casual": 3 / 15, "informal": 3 / 15, "formal": 1 / 15,
                     "professional": 1 / 15, "complicated": 1 / 15, "academic": 1 / 15}),
    ("qa", "negatives", {str(n): 1 / 5 for n in range(3, 8)}),
    ("long-doc", "length", {"10-20": 2 / 3, "20-": 1 / 3}),
    ("long-doc", "type", {"question": 3 / 4, "claim": 1 / 4}),
    ("position", "third", {"first": 1 / 3, "middle": 1 / 3, "last": 1 / 3}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "name", "published"), PUBLISHED, ids=[f"{row[0]} {row[1]}" for row in PUBLISHED])
def test_shares_are_those_published(kind, name, published):
    attributes = read_attributes(kind)
    drawn = Counter(attributes.draw(7, f"d{n}", n % 3)[name] for n in range(DRAWS))
    assert drawn.keys() == published.keys()
    for value, share in published.items():
        # Four standard errors: one of these numbers in about 16,000 would be further away by chance.
        assert abs(drawn[value] / DRAWS - share) < 4 * (share * (1 - share) / DRAWS) ** 0.5, value


def test_twenty_types_and_seven_styles_as_in_posir():
    shares = read_attributes("position").shares
    assert (len(shares["type"]), len(shares["style"])) == (20, 7)
    assert {share for name in ("type", "style") for share in shares[name].values()} == {1.0}


def test_a_draw_depends_on_seed_document_and_number_alone():
    attributes = read_attributes("qa")
    draws = {(seed, doc_id, n): attributes.draw(seed, doc_id, n) for seed in (0, 1) for doc_id in "ab" for n in (0, 1)}
    assert {key: read_attributes("qa").draw(*key) for key in reversed(draws)} == draws
    assert len({str(drawn) for drawn in draws.values()}) > 5


def test_a_share_of_0_is_never_drawn():
    assert {draw_one(["a", "b"], [0.0, 1e-300], n) for n in range(50)} == {"b"}


def test_a_file_replaces_single_tables(tmp_path):
    own = tmp_path / "own.toml"
    own.write_text("[qa.type]\nriddle = 1\nclaim = 0\n[position.third]\nlast = 2\n", encoding="utf-8")
    attributes = read_attributes("qa", own)
    assert attributes.shares["type"] == {"riddle": 1.0}
    assert attributes.shares["style"] == read_attributes("qa").shares["style"]
    assert attributes.signature != read_attributes("qa").signature
    assert read_attributes("position", own).shares["third"] == {"last": 2.0}


WRONG = [
    # what the file says, what the message says
    ("[qa.type", "own.toml is not TOML"),
    # 20,000 tables, each in the one before.
    (f"{'a.' * 20_000}a = 1", r"own.toml is not a file of shares: .* a line of more than 1,000"),
    ("[qa.type]\n" + "#\n" * 50_000, r"own.toml is not a file of shares: it has more than 100,000 characters"),
    ("[answers.type]\na = 1", "own.toml: 'answers' is not a kind of test set; expected one of qa, long-doc, position"),
    ("qa = 1", r"own.toml: qa is not a table; write \[qa.length\]"),
    ("[qa.colour]\nred = 1", r"own.toml: \[qa.colour\] is not an attribute of this kind; expected length, type"),
    ("[long-doc.negatives]\n3 = 1", r"\[long-doc.negatives\] is not an attribute of this kind"),
    ("[qa]\ntype = 3", r"own.toml: \[qa.type\] is not a table of shares"),
    ("[qa.type]\nclaim = -1", r"own.toml: \[qa.type\] claim = -1: a share is a number from 0"),
    ("[qa.type]\nclaim = nan", "a share is a number from 0"),
    ("[qa.type]\nclaim = true", "a share is a number from 0"),
    ('[qa.type]\nclaim = "1"', "a share is a number from 0"),
    ("[qa.type]\nclaim = 0", r"own.toml: \[qa.type\] has no share above 0"),
    ("[qa.type]", r"own.toml: \[qa.type\] has no share above 0"),
    ('[qa.length]\n"<5" = 1', r"own.toml: \[qa.length\] '<5': a length is a range of words, such as \"5-9\""),
    ('[qa.length]\n"9-5" = 1', "a length is a range of words"),
    ("[qa.negatives]\n11 = 1", r"\[qa.negatives\] '11': a query has 1 to 10 hard negatives"),
    ("[position.third]\nfourth = 1", "a third is one of first, middle, last"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_wrong_files(text, message, tmp_path):
    own = tmp_path / "own.toml"
    own.write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match=message):
        read_attributes("qa", own)


def test_no_such_file_or_kind(tmp_path):
    with pytest.raises(BackendError, match=r"Cannot read .*none.toml: No such file"):
        read_attributes("qa", tmp_path / "none.toml")
    with pytest.raises(UnknownName, match=r"No kind 'qas' of kind=. Did you mean 'qa'"):
        read_attributes("qas")


def test_every_length_of_our_own_is_one():
    names = {name for kind in KINDS if "length" in KINDS[kind] for name in read_attributes(kind).shares["length"]}
    assert sorted(map(read_length, names)) == [(1, 4), (1, 9), (10, 20), (20, None)]

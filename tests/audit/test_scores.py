"""chrF, chrF++, BLEU and TER, compared with sacrebleu."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.chrf import CHRF

from rusbeir.audit.port_checks import ngrams, scores
from rusbeir.audit.port_checks.score_files import score_lines
from rusbeir.errors import BadInput

MANY_LETTERS = "".join(chr(0x4E00 + i) for i in range(2500))

PAIRS = [
    ("", "", "nothing"),
    ("a", "", "no reference"),
    ("", "a", "no hypothesis"),
    ("a", "a", "shorter than six"),
    ("The cat sat.", "The cat sat.", "the same"),
    ("The cat sat.", "A dog ran!", "hardly anything in common"),
    ("Кошка  сидела", "Кошка сидела.", "white space does not count"),
    ("привет\x1cмир", "привет, мир", "U+001C is white space to Python"),
    ("aaaaaaaaaa", "aaaa", "the same n-gram many times"),
    ("(hi) «a», b.", "(hi «a» b", "punctuation of words"),
    ("😀😀 a", "😀 ab", "beyond the first plane"),
    (MANY_LETTERS, MANY_LETTERS[5:] + "a", "more letters than fit into a key"),
    ("b a\u2028c", "b a c", "line separators"),
]


@pytest.mark.parametrize(("hypothesis", "reference"), [pair[:2] for pair in PAIRS], ids=[pair[2] for pair in PAIRS])
def test_pairs(hypothesis, reference):
    same(hypothesis, reference)


@settings(max_examples=200)
@given(st.text(max_size=40), st.text(max_size=40))
def test_any_texts(hypothesis, reference):
    same(hypothesis, reference)


def same(hypothesis: str, reference: str) -> None:
    counts = scores.count_chrf([hypothesis], [reference], words=True)
    for order, part in ((0, counts[:, :18]), (2, counts)):
        metric = CHRF(word_order=order)
        assert part[0].tolist() == metric._extract_corpus_statistics([hypothesis], [[reference]])[0]
        assert scores.chrf(part)[0] == metric.sentence_score(hypothesis, [reference]).score


def test_many_pairs_are_as_each_alone(monkeypatch):
    hypotheses, references = [pair[0] for pair in PAIRS], [pair[1] for pair in PAIRS]
    together = scores.count_chrf(hypotheses, references, words=True)
    alone = [
        scores.count_chrf([hypothesis], [reference], words=True)[0]
        for hypothesis, reference in zip(hypotheses, references, strict=True)
    ]
    assert (together == np.array(alone)).all()
    monkeypatch.setattr(scores, "_BATCH_CHARS", 10)
    assert (scores.count_chrf(hypotheses, references, words=True) == together).all()
    assert scores.count_chrf([], [], words=True).shape == (0, 24)


def test_shared_ngrams():
    assert ngrams.count_shared([[7, 9, 7, 9, 7], [1]], [[9, 7, 9], [2]], 3).tolist() == [[3, 2, 1], [0, 0, 0]]


# `sacrebleu ref.A.ru -i hyp.<system>.ru -l en-ru -m bleu|chrf [--chrf-word-order 2] -b -w 12`, sacrebleu 2.6.0
WMT22 = {
    "Online-W": ("32.402866571109", "58.336508086559", "56.018624604522"),
    "Online-G": ("32.796297419813", "59.458133078287", "57.135346564102"),
    "Lan-Bridge": ("32.602111076029", "58.993676471723", "56.858400845926"),
    "PROMT": ("30.577871183395", "56.094495176053", "53.863640598952"),
    "eTranslation": ("29.832355879739", "55.847712983148", "53.606724688844"),
}


@pytest.mark.parametrize("system", WMT22)
def test_wmt22(shared_data, system):
    folder = shared_data / "wmt22-en-ru"
    hypotheses, references = ((folder / name).read_text().splitlines() for name in (f"hyp.{system}.ru", "ref.A.ru"))
    bleu = scores.score_metric("BLEU", scores.count_metric("BLEU", hypotheses, references, "ru"), "ru")
    chrf = scores.score_corpus(scores.count_chrf(hypotheses, references, words=True).sum(axis=0))
    assert tuple(f"{value:.12f}" for value in (bleu, chrf["chrF"], chrf["chrF++"])) == WMT22[system]


def test_files(shared_data, tmp_path):
    """All scores of files, compared with the command line of sacrebleu."""
    folder = shared_data / "wmt22-en-ru"
    paths = {}
    for name in ("src.en", "hyp.eTranslation.ru", "ref.A.ru"):
        paths[name] = tmp_path / name
        paths[name].write_text("".join((folder / name).read_text().splitlines(keepends=True)[:300]))
    report = score_lines(
        paths["hyp.eTranslation.ru"], source=paths["src.en"], reference=paths["ref.A.ru"], language="ru", processes=1
    )
    command = [Path(sys.executable).with_name("sacrebleu"), paths["ref.A.ru"], "-i", paths["hyp.eTranslation.ru"]]
    for name, options in {
        "BLEU": "-m bleu", "chrF": "-m chrf", "chrF++": "-m chrf --chrf-word-order 2", "TER": "-m ter",
    }.items():  # fmt: skip
        printed = subprocess.run(
            [*command, *options.split(), "-l", "en-ru", "-b", "-w", "12"], capture_output=True, text=True, check=True
        ).stdout
        assert f"{report['scores'][name]:.12f}" == printed.strip(), name
    # The system kept none of the source's placeholders, as `grep -c PRS_ORG` counts them.
    assert report["flags"]["lost-spans"]["segments"] == 12
    assert report["examples"]["lost-spans"][0] == {"line": 72, "detail": "'PRS_ORG'"}
    assert report["signatures"]["chrF++"].startswith("nrefs:1|case:mixed|eff:yes|nc:6|nw:2|space:no|version:2.")


def test_processes_change_nothing(shared_data, tmp_path):
    hypothesis, reference = (shared_data / "wmt22-en-ru" / name for name in ("hyp.PROMT.ru", "ref.A.ru"))
    for path, name in ((hypothesis, "h"), (reference, "r")):
        (tmp_path / name).write_text("".join(path.read_text().splitlines(keepends=True)[:450]))
    first, second = (
        score_lines(tmp_path / "h", reference=tmp_path / "r", language="ru", processes=processes)
        for processes in (1, 2)
    )
    assert first == second


@pytest.mark.parametrize(
    ("hypothesis", "reference", "message"),
    [
        ("a\nb\n", "a\n", "r has 1 lines and"),
        ("", "", "h has 0 lines"),
        ("a\n", "\udcff\n", "r:1: the line is not UTF-8"),
    ],
)
def test_bad_files(tmp_path, hypothesis, reference, message):
    (tmp_path / "h").write_text(hypothesis)
    (tmp_path / "r").write_bytes(reference.encode("utf-8", "surrogateescape"))
    with pytest.raises(BadInput, match=message):
        score_lines(tmp_path / "h", reference=tmp_path / "r", language="ru")

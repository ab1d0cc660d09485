"""Sentences that a report begins with."""

from __future__ import annotations

import pytest

from rusbeir.site.headlines import Headline, summarise

FUSION = "minmax(bm25,e5-small,weights=0.3:0.7)"
SUMMARIES = [
    # (language, sentence behind it), ...; what is said of all
    ([("Russian", "use bm25: it is better than everything else here.")],
     "For Russian, use bm25: it is better than everything else here."),
    ([("Russian", "use bm25: they cannot be told apart."), ("German", "use bm25: they cannot be told apart.")],
     "For Russian and German, use bm25: they cannot be told apart."),
    ([("Russian", f"use {FUSION}: it is better than everything else here."),
      ("German", "use bm25 or raw: they cannot be told apart.")],
     f"For Russian, use {FUSION}; for German, use bm25 or raw."),
    ([(name, f"use {name}.") for name in ("Russian", "German", "Spanish", "Finnish")],
     "Which system is best depends on the language: it differs between these 4."),
]  # fmt: skip


@pytest.mark.parametrize(("sentences", "summary"), SUMMARIES)
def test_languages_in_one_sentence(sentences, summary):
    headlines = []
    for language, tail in sentences:
        claim, _, reason = tail.rstrip(".").partition(": ")
        headlines.append(Headline(language=language, claim=claim, reason=reason, systems=(), datasets=()))
        assert headlines[-1].sentence == f"For {language}, {tail}"
    assert summarise(headlines) == summary

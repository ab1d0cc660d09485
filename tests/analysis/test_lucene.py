"""The profiles lucene-LANG give the terms of Lucene's analyzers; files of pattern rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from rusbeir.analysis import Analyzer, language_files, read_language
from rusbeir.errors import BadInput
from rusbeir.retrieval import resolve

LINES = [
    line.split("\t")
    for line in (Path(__file__).parent / "lucene_terms.tsv").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
]
LANGUAGES = sorted({language for language, _, _ in LINES})


def profile_of(language: str) -> str:
    return "lucene-cjk" if language in ("ja", "ko") else f"lucene-{language}"


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_terms_are_those_of_lucene(language):
    texts = [(text, terms) for code, text, terms in LINES if code == language]
    assert list(Analyzer(language, profile_of(language)).analyze_lines([text for text, _ in texts])) == [
        terms for _, terms in texts
    ]


def test_every_language_that_has_a_profile_is_compared():
    names = {code: [name for name in read_language(code).profiles if name.startswith("lucene-")] for code in LANGUAGES}
    assert all(profile_of(code) in names[code] for code in LANGUAGES)
    files = [code for code, path in language_files().items() if "profiles.lucene-" in path.read_text(encoding="utf-8")]
    assert sorted(files) == LANGUAGES


@pytest.mark.parametrize(
    ("language", "word", "term", "reason"),
    [
        ("ne", "भयो", "∅", "Snowball leaves nothing, and Lucene keeps a term without characters"),
        ("fa", "ـ", "∅", "a tatweel alone"),
        ("ga", "nAthair", "athair", "the prefix is told by the capital that follows it"),
        ("nl", "kind", "kinder", "one of four words that DutchAnalyzer excepts"),
        ("el", "μια", "μια", "words of three letters are not stemmed"),
        ("gl", "casiñas", "cas", "an augmentative is removed as often as there is one"),
        ("de", "Straßen", "strass", "ß is ss"),
        ("te", "ABC", "ABC", "TeluguAnalyzer does not lower the case"),
        ("ja", "人々に", "人 々 に", "an iteration mark is a word, not an ideograph"),
    ],
)
def test_what_lucene_does_in_a_special_case(language, word, term, reason):
    assert " ".join(Analyzer(language, profile_of(language)).analyze(word)) == term, reason


def test_documents_have_lucene_s_lengths():
    system = resolve("bm25(profile=lucene-de,k1=0.9,b=0.4)", language="de", engine="bm25s")
    assert "len:lucene" in system.signature


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A folder with rules for Kazakh; called with their text, it writes them."""
    monkeypatch.setenv("RUSBEIR_ANALYZERS", str(tmp_path))
    (tmp_path / "kk.toml").write_text('stemmer = "patterns:kk.txt"\nstopwords = "none"\n', encoding="utf-8")

    def write(rules: str) -> Analyzer:
        (tmp_path / "kk.txt").write_text(rules, encoding="utf-8")
        return Analyzer("kk", "words")

    return write


@pytest.mark.parametrize(
    ("rules", "word", "term", "reason"),
    [
        ("a b\nb c\n", "aab", "bbb", "before a step has a name, the first rule that matches is applied"),
        ("--- letters every\na b\nb c\n", "aab", "ccc", "all are applied, one after the other"),
        ("--- first\nc$ - last\nx$ y\n--- skipped\nz -\n--- last\nd+$ -\n", "zadc", "za", "a rule leads to a step"),
        ("--- first\nc$ - last\nx$ y\n--- next\nz -\n--- last\nd+$ -\n", "zadx", "ady", "the others to the next"),
        ("--- again\n(?<=..)a$ - again\n", "baaaa", "ba", "a step begins again while words become shorter"),
        ("--- again\na$ b again\nb$ a\n", "xa", "xb", "but not where they do not"),
        (
            "--- words\n^dogs$ \\g<0> end\n--- stem snowball:english\n",
            "dogs cats",
            "dogs cat",
            "Snowball, but for a word",
        ),
    ],
)
def test_rules_are_taken_step_by_step(mine, rules, word, term, reason):
    assert " ".join(mine(rules).analyze(word)) == term, reason


def test_rules_are_part_of_the_signature(mine):
    assert mine("a b\n").signature != mine("a c\n").signature
    assert "patterns-" in mine("a b\n").signature


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ("# none\n", "kk.txt: there is no rule in it"),
        ("(a b\n", "kk.txt:1: (a b is not a pattern of Python's re: missing )"),
        ("a \\1\n", "kk.txt:1: a \\1 is not a pattern of Python's re: invalid group reference 1"),
        ("a b c d\n", "kk.txt:1: 4 columns instead of at most 3"),
        ("--- x\na b nowhere\n", "kk.txt:2: no step 'nowhere' here or later. Steps: x, end."),
        ("--- x\na b\n--- y\na b x\n", "kk.txt:4: no step 'x' here or later."),
        ("--- x evry\na b\n", "kk.txt:1: write ---, the name of a step, and nothing or one of: every, snowball:"),
        ("---\na b\n", "kk.txt:1: write ---, the name of a step"),
        ("--- x\na b\n--- x every\nb c\n", "kk.txt:3: 'x' is the name of an earlier step"),
        ("--- end\na b\n", "kk.txt:1: 'end' ends all steps"),
        ("a{99999999999} b\n", "kk.txt:1: a{99999999999} b is not a pattern of Python's re"),
    ],
)
def test_what_is_wrong_is_said_with_file_and_line(mine, rules, message):
    with pytest.raises(BadInput) as error:
        mine(rules)
    assert message in str(error.value)


def test_a_file_that_extends_a_language_has_its_rules(tmp_path, monkeypatch):
    (tmp_path / "de.toml").write_text('stopwords = "none"\n', encoding="utf-8")
    monkeypatch.setenv("RUSBEIR_ANALYZERS", str(tmp_path))
    assert Analyzer("de", "lucene-de").analyze("Häuser") == ["haus"]

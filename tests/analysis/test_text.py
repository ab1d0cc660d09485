"""Characters: normal forms, marks, scripts, and whatever else a text may hold."""

from __future__ import annotations

import re
import threading
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rusbeir.analysis import Analyzer, Token, empty_warning, language_files, pieces, read_language
from rusbeir.analysis.chain import Chain, load_chain
from rusbeir.analysis.folding import FOLDS
from rusbeir.analysis.lemmas import split_compound
from rusbeir.analysis.recipes import Recipe

PROFILES = [("default", code) for code in language_files() if code not in ("en", "ru")]
PROFILES += [(profile, code) for code in ("en", "ru") for profile in read_language(code).profiles]
"""The other profiles differ between languages by data alone: Russian and English stand for all."""


@pytest.mark.parametrize(
    ("text", "tokens", "reason"),
    [
        ("हिन्दी में", ["हिन्दी", "में"], "vowel signs and virama are marks, not borders"),
        ("தமிழ் বাংলা", ["தமிழ்", "বাংলা"], "other scripts with marks"),
        ("и\u0306од е\u0308лка", ["йод", "елка"], "decomposed й is composed, ё composed and folded"),
        ("за\u0301мок замо\u0301к", ["замок", "замок"], "stress marks go"),
        ("е\u0301\u0308лка", ["елка"], "a stress mark between е and its dots"),
        ("ѐлка всѝ", ["елка", "вси"], "precomposed grave stress"),
        ("co\u00adop\u200dt \ufeffword", ["coopt", "word"], "soft hyphen, joiner, byte order mark"),
        ("a\u200bb", ["a", "b"], "a zero-width space separates words"),
        ("ﬁn ２０ м² Ⅳ ½", ["fin", "20", "м2", "iv", "1", "2"], "compatibility characters"),
        ("STRASSE Straße", ["strasse", "strasse"], "casefold"),
        ("3,14 1.000.000 1,2, 12.05.2020 v2.0 5.", ["3,14", "1.000.000", "1,2", "12.05.2020", "v2.0", "5"], "numbers"),
        ("a.b a,b 5.глава .5", ["a", "b", "a", "b", "5", "глава", "5"], "points that are not decimal"),
        ("d'água l’homme", ["d", "água", "l", "homme"], "apostrophes separate words"),
        ("snake_case a-b a/b", ["snake", "case", "a", "b", "a", "b"], "joiners separate words"),
        ("\u0301 \u0301а", ["а"], "a mark without a letter is not a word"),
        ("ż" * 300, ["ż" * 255, "ż" * 45], "long tokens are cut"),
        ("a\x00b\x01c", ["a", "b", "c"], "control characters separate words"),
    ],
)
def test_words(text, tokens, reason):
    recipe = Recipe(language="ru", normalise="nfkc", case="fold", fold=("invisible", "stress", "yo"))
    assert [token.folded for token in Chain(recipe).explain(text)] == tokens, reason
    assert Chain(recipe).lines([text]) == [" ".join(tokens)]


@pytest.mark.parametrize(
    ("changed", "token"),
    [
        ({"numbers": "drop"}, Token("12,5", "12,5", "12,5", "", "number")),
        ({"min_chars": 5}, Token("12,5", "12,5", "12,5", "", "shorter than 5")),
        ({"stop_extra": ("12,5",)}, Token("12,5", "12,5", "12,5", "", "stop word")),
        ({"stop_extra": ("12,5",), "stop_match": "lemma"}, Token("12,5", "12,5", "12,5", "", "lemma is a stop word")),
        ({}, Token("12,5", "12,5", "12,5", "12,5", None)),
    ],
)
def test_why_a_token_is_dropped(changed, token):
    assert Chain(Recipe(language="ru", **changed)).explain("12,5") == [token]


def test_explain_shows_the_way():
    assert Analyzer("ru").explain("Водя\u0301ные ёлки") == [
        Token("Водя\u0301ные", "водяные", "водяной", "водян", None),
        Token("ёлки", "елки", "елка", "елка", None),
    ]
    assert Analyzer("en", "lucene-english").explain("Dog's") == [Token("Dog's", "dog", "dog", "dog", None)]


@pytest.mark.parametrize(
    ("code", "text", "surfaces", "reason"),
    [
        ("tr", "İstanbul'da kaldı", ["İstanbul'da", "kaldı"], "an ending that is cut belongs to what was typed"),
        ("uk", "м’ясо мʼясо м'ясо", ["м’ясо", "мʼясо", "м'ясо"], "the apostrophe that was typed"),
        ("fr", "l’homme aujourd’hui", ["homme", "aujourd’hui"], "an elided article is another word"),
    ],
)
def test_surfaces_are_as_typed(code, text, surfaces, reason):
    assert [token.surface for token in Analyzer(code).explain(text)] == surfaces, reason


def test_stemmer_on_the_surface():
    recipe = Recipe(language="ru", lemmas="pymorphy3", stemmer="snowball:russian", stem="surface")
    assert Chain(recipe).explain("стали")[0] == Token("стали", "стали", "стать", "стал", None)


@pytest.mark.parametrize(("profile", "code"), PROFILES)
@settings(max_examples=30)
@example(texts=["\x1b0A"])
@example(texts=["0\x1bµ", "0\u3000µ"])
@example(texts=["\U00010d40"])  # a digit of Unicode 16, which older Pythons lack
@given(texts=st.lists(st.text(), max_size=4))
def test_any_text(profile, code, texts):
    analyzer = Analyzer(code, profile)
    many = list(analyzer.analyze_many(texts, processes=1))
    for text, terms in zip(texts, many, strict=True):
        assert terms == " ".join(token.term for token in analyzer.explain(text)).split()
        assert all(term and len(term.split()) == 1 for term in terms)


@given(
    text=st.text(st.characters(min_codepoint=0x400, max_codepoint=0x460) | st.sampled_from(" \u0301\u0308-'.,\u00ad"))
)
def test_analysis_of_a_text_is_that_of_its_words(text):
    chain = load_chain(replace(Analyzer("ru").recipe, keep_only_stop_words=False))
    assert chain.terms(text) == [term for word in text.split() for term in chain.terms(word)]


def test_lone_surrogates_do_no_harm():
    assert Analyzer("ru").analyze("кот \ud800 пёс") == ["кот", "пес"]


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr("rusbeir.analysis.pieces.MAX_PIECES", 100)
    monkeypatch.setattr("rusbeir.analysis.chain.MAX_KNOWN_PIECES", 100)
    chain = Chain(Recipe(language="en"))
    texts = [f"word{number} again" for number in range(1000)]
    assert [chain.lines(texts[start : start + 50]) for start in range(0, 1000, 50)] == [
        texts[start : start + 50] for start in range(0, 1000, 50)
    ]
    assert [" ".join(chain.terms(text)) for text in texts] == texts
    assert chain._pieces.memory.count <= 100
    assert len(chain._known) <= 102


@pytest.mark.parametrize("window", [1 << 7, pieces.MAX_WINDOW_CHARS])
@pytest.mark.parametrize(
    "texts",
    [
        [],
        [""],
        ["", "", "a"],
        ["a b\nc", "\n", " d ", "e\u2028f\x85g\u00a0h\u3000i"],
        ["a\x1eb", "\x1e", "", "c\n"],
        ["word " * 40_000, "x", "y" * 70_000 + " end", "z" * 140_000],
        ["", "кот" * 50_000, "\U0001f600 пёс"],
        [f"piece{number}" for number in range(70_000)],
    ],
    ids=range(8),
)
def test_blocks_of_any_shape(texts, window, monkeypatch):
    monkeypatch.setattr("rusbeir.analysis.pieces.MAX_WINDOW_CHARS", window)
    monkeypatch.setattr("rusbeir.analysis.pieces.MAX_SPANS", window)
    chain = Chain(Recipe(language="en", tokens="python-word"))
    assert chain.lines(texts) == [" ".join(re.findall(r"\w+", text)) for text in texts]


@given(texts=st.lists(st.text(st.sampled_from("ab \n\x00\x1e\x1f\u00a0\u2029.")), min_size=1, max_size=6))
def test_both_ways_of_looking_up_agree(texts):
    chain = load_chain(Recipe(language="en"))
    assert chain.lines(texts) == [" ".join(chain.terms(text)) for text in texts]


def test_pieces_that_want_the_same_slot(monkeypatch):
    """With as good as no room each hash meets others on its way."""
    monkeypatch.setattr("rusbeir.analysis.pieces.SLOTS", 256)
    monkeypatch.setattr("rusbeir.analysis.pieces._SHIFT", np.uint64(64 - 8))
    monkeypatch.setattr("rusbeir.analysis.pieces.MAX_PIECES", 250)
    chain = Chain(Recipe(language="en"))
    texts = [" ".join(f"w{number % 240}" for number in range(start, start + 97)) for start in range(0, 900, 31)]
    assert chain.lines(texts) == texts
    assert [chain.lines([text]) for text in texts] == [[text] for text in texts]


def test_threads_share_an_analyzer():
    analyzer = Analyzer("ru")
    texts = [f"слово{number} городами столами {number % 7}" for number in range(300)]
    expected = list(analyzer.analyze_many(texts))
    load_chain.cache_clear()
    results: list[list[list[str]]] = []
    threads = [threading.Thread(target=lambda: results.append([analyzer.analyze(t) for t in texts])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 4


def test_threads_share_what_is_remembered(monkeypatch):
    """Each forgets what the others have just learned, many times."""
    monkeypatch.setattr("rusbeir.analysis.pieces.MAX_PIECES", 60)
    chain = Chain(Recipe(language="en"))
    batches = [[f"word{number} again word{number + 9}" for number in range(n, n + 20)] for n in range(0, 600, 11)]
    expected = [text for batch in batches for text in batch]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: list(chain.stream(batches, 1)), range(8))) == [expected] * 8


def test_what_was_found_stays_right_when_others_learn_and_forget(monkeypatch):
    monkeypatch.setattr("rusbeir.analysis.pieces.MAX_PIECES", 5)
    shared = pieces.Pieces()

    def lines(look_up):
        return shared.lines(look_up, [f" <{piece}>" for piece in look_up.new])

    assert lines(shared.find(["a b"])) == ["<a> <b>"]
    waiting = [shared.find(["b a", "", "c b"]), shared.find(["d c e f"]), shared.find(["c g", "a c"])]
    assert [sorted(look_up.new) for look_up in waiting] == [["c"], ["c", "d", "e", "f"], ["c", "g"]]
    first = shared.memory
    assert [lines(look_up) for look_up in reversed(waiting)] == [
        ["<c> <g>", "<a> <c>"],
        ["<d> <c> <e> <f>"],
        ["<b> <a>", "", "<c> <b>"],
    ]
    assert shared.memory is not first, "nothing was forgotten"


@pytest.mark.parametrize(
    ("kind", "n_empty", "n_total", "warns"),
    [
        ("documents", 0, 0, False),
        ("documents", 1, 100, False),
        ("documents", 2, 100, True),
        ("queries", 0, 5, False),
        ("queries", 1, 5000, True),
    ],
)
def test_alarm(kind, n_empty, n_total, warns):
    warning = empty_warning(kind, n_empty, n_total)
    assert (warning is not None) == warns
    assert warning is None or (kind in warning and "\n" not in warning)


@pytest.mark.parametrize(
    ("fold", "text", "folded"),
    [
        ("accents", "cœur façade Łódź ή йё", "coeur facade Lodz η йё"),
        ("digits", "١٢٣ ४५ 6", "123 45 6"),
        ("arabic", "أَحْمَد آل مدرســة", "احمد ال مدرسة"),
        ("arabic-endings", "مدرسة مصطفى", "مدرسه مصطفي"),
        ("persian", "كتابي", "کتابی"),
        ("romanian", "Ştiinţă", "Știință"),
        ("serbian", "Љубав Њујорк џак", "Ljubav Njujork džak"),
        ("indic", "हिन्दी पाँच क़लम", "हिंदी पांच कलम"),
        ("armenian", "ի՞նչ և", "ինչ եվ"),
        ("catalan", "col·legi", "collegi"),
        ("vietnamese", "hoà khoẻ thuý quý hoàn", "hòa khỏe thúy quý hoàn"),
        ("non-joiner", "హైదరాబాద్\u200cలో", "హైదరాబాద్ లో"),
        ("hebrew", "שָׁלוֹם־עֲלֵיכֶם", "שלום־עליכם"),
        ("chillu", "അവന\u0d4d\u200d പൂച്ചകള\u0d4d\u200d", "അവൻ പൂച്ചകൾ"),
        ("amharic", "ሠላም ዓመት ፀሐይ ኃይል", "ሰላም አመት ጸሀይ ሀይል"),
    ],
)
def test_folds(fold, text, folded):
    assert FOLDS[fold](unicodedata.normalize("NFC", text)) == folded


def test_traditional_characters_become_simplified_ones():
    pytest.importorskip("opencc")
    assert FOLDS["simplified"]("頭髮 發展\n乾淨") == "头发 发展\n干净"
    assert "|simplify:opencc-" in Analyzer("zh-TW").signature == Analyzer("zh-HK").signature


@pytest.mark.parametrize(
    ("settings_", "text", "terms"),
    [
        ({"case": "turkish"}, "IŞIK İstanbul", ["ışık", "istanbul"]),
        ({"apostrophe": "cut"}, "Ankara’da İzmir'in O'nun", ["Ankara", "İzmir", "O", "nun"]),
        ({"apostrophe": "keep"}, "м’ясо 'слово' п'ять", ["м'ясо", "слово", "п'ять"]),
        ({"elision": ("l", "dell"), "case": "lower"}, "L'eau dell’anno l", ["eau", "anno", "l"]),
        ({"elision": ("(a+)+", "[")}, "(a+)+'b [’c aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'd", ["b", "c", "a" * 32, "d"]),
        ({"tokens": "unicode"}, "机器学习 and ภาษา", ["机器", "器学", "学习", "and", "ภาษ", "าษา"]),
        ({"tokens": "unicode"}, "書 カタカナ 한국어", ["書", "カタ", "タカ", "カナ", "한국어"]),
        ({"terms": "grams"}, "дом и", ["~_дом", "~дом_", "~_и_"]),
        ({"terms": "both", "gram_chars": 3, "stop_extra": ("и",)}, "и он", ["он", "~_он", "~он_"]),
        ({"term_fold": ("accents",), "stop_extra": ("même",)}, "même meme né", ["ne"]),
        ({"stemmer": "snowball:russian", "stem_min_chars": 4}, "море морями", ["море", "морями"]),
        ({"stop_extra": ("the", "who"), "keep_only_stop_words": True}, "the who", ["the", "who"]),
        ({"stop_extra": ("the", "who"), "keep_only_stop_words": True}, "the band", ["band"]),
    ],
)
def test_settings(settings_, text, terms):
    chain = Chain(Recipe(language="xx", **settings_))
    assert chain.terms(text) == terms
    assert chain.lines(["", text, "..."]) == ["", " ".join(terms), ""]
    assert " ".join(token.term for token in chain.explain(text)).split() == terms


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ("bundesregierungschef", ["bund", "regierung", "chef"]),
        ("regierungschef", ["regierung", "chef"]),
        ("gesellschaft", []),
        ("universität", []),
        ("computer", []),
        ("haus", []),
    ],
)
def test_german_compounds(word, parts):
    assert split_compound("de", word) == parts
    if parts:
        assert set(Analyzer("de").analyze(parts[-1])) <= set(Analyzer("de").analyze(word))

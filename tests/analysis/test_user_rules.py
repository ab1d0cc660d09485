"""A user's own rules, in language files and from Python: lemmas, suffix rules, functions, synonyms, stop words."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

import rusbeir
from rusbeir.analysis import Analyzer, extend_recipe, read_language
from rusbeir.errors import BackendError, BadInput

KAZAKH = {
    "kk.toml": 'stemmer = "suffixes:kk.suffixes"\nlemmas = "file:kk.lemmas"\nsynonyms = "file:kk.synonyms"\n',
    "kk.suffixes": "# plural, then case\nның,нің,да - 3\n---\nлар,лер - 2 # after the case\nылар ы\n",
    "kk.lemmas": "# irregular\nбалалар\tбала\n",
    "kk.synonyms": "көлік, машина\nтв => теледидар экран\n",
}


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A folder of language files; called with names and contents, it writes them."""
    folder = tmp_path / "mine"
    folder.mkdir()
    monkeypatch.setenv("RUSBEIR_ANALYZERS", str(folder))

    def write(files: dict[str, str]) -> Path:
        for name, content in files.items():
            (folder / name).write_text(content, encoding="utf-8")
        return folder

    return write


@pytest.mark.parametrize(
    ("text", "terms", "reason"),
    [
        ("қалаларда", ["қала"], "the case is removed first, then the plural"),
        ("қалалар", ["қала"], "a step without a suffix that applies changes nothing"),
        ("жолдарының", ["жолдары"], "the plural suffix is not at the end"),
        ("онылар", ["оны"], "the longest suffix is taken, and replaced"),
        ("ада", ["ада"], "the stem would have fewer than three characters"),
        ("Балалар", ["бала"], "the list of lemmas comes before the stemmer"),
        ("машина көлік", ["көлік", "көлік"], "synonyms are one term"),
        ("машиналарда", ["көлік"], "synonyms are compared after stemming"),
        ("тв", ["теледидар", "экран"], "a word may be replaced by several"),
        ("және қала", ["қала"], "the stop list of rusbeir's Kazakh is inherited"),
    ],
)
def test_own_rules(mine, text, terms, reason):
    mine(KAZAKH)
    analyzer = Analyzer("kk", "words")
    assert analyzer.analyze(text) == terms, reason
    assert [term for token in analyzer.explain(text) for term in token.term.split()] == terms


def test_worker_processes_have_the_rules(mine):
    mine({**KAZAKH, "mykk.py": "def stem(word):\n    return word[:4]\n"})
    texts = ["машина қалаларда"] * 5000
    assert set(Analyzer("kk", "words").analyze_lines(texts, processes=2)) == {"көлік қала"}
    mine({"kk.toml": 'stemmer = "python:mykk.stem"\n'})
    assert set(Analyzer("kk", "words").analyze_lines(texts, processes=2)) == {"маши қала"}


@pytest.mark.parametrize(
    ("name", "content", "changes"),
    [
        ("kk.suffixes", KAZAKH["kk.suffixes"].replace("- 3", "- 2"), True),
        ("kk.suffixes", KAZAKH["kk.suffixes"].replace("# plural", "# Plural"), False),
        ("kk.lemmas", "балалар\tбал\n", True),
        ("kk.synonyms", "көлік, машина, авто\n", True),
        ("kk.synonyms", KAZAKH["kk.synonyms"] + "\n# nothing more\n", False),
    ],
)
def test_the_signature_has_a_digest_of_what_the_files_say(mine, name, content, changes):
    mine(KAZAKH)
    before = Analyzer("kk", "words").signature
    mine({name: content})
    assert (Analyzer("kk", "words").signature != before) is changes
    assert not any(character.isspace() for character in before)


def test_functions_are_signed_by_their_source(mine):
    """A function is found next to the language file; one that does not know a word leaves it to the next source."""
    folder = mine({"own_lemmas.py": "def lemma(word):\n    return 'үй' if word.startswith('үй') else None\n"})
    mine({"kk.toml": 'lemmas = "file:kk.tsv+python:own_lemmas.lemma"\n', "kk.tsv": "үйлер\tүйлер\n"})
    analyzer = Analyzer("kk", "words")
    assert analyzer.analyze("үйлер үйде қала") == ["үйлер", "үй", "қала"]
    assert "+python-own_lemmas.lemma-" in analyzer.signature
    (folder / "own_lemmas.py").write_text("def lemma(word):\n    return word\n", encoding="utf-8")
    assert Analyzer("kk", "words").signature != analyzer.signature


@pytest.mark.parametrize(
    ("module", "body", "message"),
    [
        ("raising", "return 1 / 0", "python:raising.stem fails for 'қала': ZeroDivisionError: division by zero."),
        ("counting", "return 1", "python:counting.stem returned 1 for 'қала'. It must return text, or None."),
    ],
)
def test_a_function_that_fails_is_one_line(mine, module, body, message):
    mine({f"{module}.py": f"def stem(word):\n    {body}\n", "kk.toml": f'stemmer = "python:{module}.stem"\n'})
    with pytest.raises(BackendError) as error:
        Analyzer("kk").analyze("қала")
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"kk.toml": 'lemmas = "file:no.tsv"\n'}, "kk.toml:1: file:no.tsv names no file: there is no "),
        ({"kk.toml": 'why = "x"\nstemmer = "suffixes:no.txt"\n'}, "kk.toml:2: suffixes:no.txt names no file"),
        ({"kk.toml": 'synonyms = "no.txt"\n'}, "kk.toml:1: synonyms cannot be 'no.txt'. Values: none, file:PATH."),
        ({"kk.toml": 'stopwords = "file:no.txt"\n'}, "kk.toml:1: file:no.txt names no file"),
        ({"kk.toml": 'lemmas = "simplemma+file:kk.lemmas"\n'}, "simplemma answers for every word"),
        ({"kk.toml": 'stemmer = "python:nowhere.stem"\n'}, "kk.toml:1: python:nowhere.stem cannot be imported"),
        ({"kk.toml": 'stemmer = "python:stem"\n'}, "python:stem does not name a function. Write python:module."),
        ({"kk.toml": 'stemmer = "python:os.nothing"\n'}, "os has no function 'nothing'"),
        ({"kk.toml": 'extends = "xx"\n'}, "kk.toml:1: extends cannot be 'xx'. Values: none, or a language of rusbeir"),
        ({"kk.lemmas": "бала бала\n"}, "kk.lemmas:1: 'бала бала' is not a word, a tab and its lemma."),
        ({"kk.lemmas": "a\tb\na\tc\n"}, "kk.lemmas:2: 'a' is in line 1 already. Remove one of them."),
        ({"kk.lemmas": "A\tb\n"}, "kk.lemmas:1: 'A' has capitals and would match nothing. Write it in lower case."),
        ({"kk.lemmas": "a\tb c\n"}, "kk.lemmas:1: 'b c' is more than one word."),
        ({"kk.suffixes": "# none\n"}, "kk.suffixes: there is no rule in it. Write one a line"),
        ({"kk.suffixes": "лар - x\n"}, "kk.suffixes:1: the stem cannot have at least 'x' characters."),
        ({"kk.suffixes": "лар - 3 а б\n"}, "kk.suffixes:1: 5 columns instead of at most 4"),
        ({"kk.suffixes": "лар,,лер\n"}, "kk.suffixes:1: there is nothing between two commas."),
        ({"kk.suffixes": "- а\n"}, "kk.suffixes:1: the suffix is missing."),
        ({"kk.suffixes": "лар\nлер,лар\n"}, "kk.suffixes:2: the suffix 'лар' is in line 1 already, in the same step."),
        ({"kk.synonyms": "көлік\n"}, "kk.synonyms:1: 'көлік' needs two words."),
        ({"kk.synonyms": "көлік =>\n"}, "kk.synonyms:1: 'көлік =>' needs two words."),
        ({"kk.synonyms": "жеке көлік, машина\n"}, "kk.synonyms:1: 'жеке көлік' is more than one word."),
        ({"kk.synonyms": "а, б\nв, б\n"}, "kk.synonyms:2: the term 'б' is replaced by 'а' already."),
        ({"kk.synonyms": "қала, және\n"}, "kk.synonyms:1: 'және' has no term after analysis; it may be a stop word."),
    ],
)
def test_what_is_wrong_is_said_with_file_line_and_remedy(mine, files, message):
    mine({**KAZAKH, **files})
    with pytest.raises(BadInput) as error:
        Analyzer("kk").analyze("қала")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_small_change_keeps_what_rusbeir_has(mine):
    """Without extends, a file of three lines lost the lexicon and the stemmer, and 9 points of nDCG@10 on XQuAD."""
    shipped = Analyzer("ru").recipe
    mine({"ru.toml": 'stopwords = "file:shop.txt"\n[profiles.shop]\ninherits = "default"\n', "shop.txt": "купить\n"})
    recipe = Analyzer("ru", "shop").recipe
    assert (recipe.lemmas, recipe.stemmer, recipe.fold) == (shipped.lemmas, shipped.stemmer, shipped.fold)
    assert (recipe.stop.words, read_language("ru").name) == ({"купить"}, "Russian")
    assert read_language("ru").extends == "ru"


def test_a_small_change_keeps_the_score_of_russian(mine, shared_data, tmp_path):
    """The measured number is that of the shipped file; without its lexicon and stemmer it is 87."""
    mine({"ru.toml": '[profiles.shop]\ninherits = "default"\nstop_extra = ["куртёнка"]\n'})
    row = rusbeir.bench("xquad/ru", "bm25(profile=shop)", measures="nDCG@10", out=tmp_path / "results")
    assert row["measures"]["nDCG@10"] == pytest.approx(0.9614, abs=0.0001)


def test_a_wrong_lemma_is_one_line_in_a_file(mine):
    assert Analyzer("uk", "lemmas").analyze("кози") != ["кіт"]
    mine({"uk.toml": 'lemmas = "file:mine.tsv+simplemma"\n', "mine.tsv": "кози\tкіт\n"})
    assert Analyzer("uk", "lemmas").analyze("кози книги") == ["кіт", *Analyzer("uk", "lemmas").analyze("книги")]


@pytest.mark.parametrize(
    ("toml", "missing"),
    [
        ('name = "R"\nextends = "none"\nstopwords = "nltk-russian"\n', "fold stress; fold yo; lemmas (pymorphy3"),
        ('snowball = "none"\n', "without steps that rusbeir's own file takes: stemmer (snowball:russian)."),
        ('lemmas = "simplemma"\n', None),
    ],
)
def test_fewer_steps_than_rusbeirs_are_said_once(mine, toml, missing, caplog):
    mine({"ru.toml": toml})
    with caplog.at_level(logging.WARNING):
        Analyzer("ru")
        Analyzer("ru", "raw")
    assert [missing in record.getMessage() for record in caplog.records] == ([True] if missing else [])


def test_a_language_can_extend_another(mine):
    mine({"be.toml": 'name = "Belarusian"\nextends = "uk"\nstopwords = "none"\n'})
    recipe = Analyzer("be").recipe
    assert (recipe.language, recipe.apostrophe, recipe.lemmas) == ("be", "keep", "simplemma")


def test_a_recipe_is_extended_from_python(tmp_path):
    stop, synonyms = tmp_path / "stop.txt", tmp_path / "synonyms.txt"
    stop.write_text("# of a shop\nкупить\n", encoding="utf-8")
    synonyms.write_text("диван, софа\n", encoding="utf-8")
    analyzer = Analyzer("ru", stop=stop, synonyms=synonyms)
    assert analyzer.analyze("купить софу и диван") == ["дива", "дива"]
    assert analyzer.recipe == extend_recipe(Analyzer("ru").recipe, stop=stop, synonyms=str(synonyms))
    moved = tmp_path / "other.txt"
    moved.write_text("купить\n", encoding="utf-8")
    assert Analyzer("ru", stop=moved).signature == Analyzer("ru", stop=stop).signature != Analyzer("ru").signature
    assert extend_recipe(analyzer.recipe, synonyms=synonyms).signature.endswith("+" + analyzer.signature[-13:])
    with pytest.raises(BadInput, match=r"nowhere\.txt"):
        _ = Analyzer("ru", stop=tmp_path / "nowhere.txt")


@pytest.mark.parametrize(
    ("text", "terms", "reason"),
    [
        ('צה"ל', ["צה״ל"], "an abbreviation, typed with a quotation mark"),
        ("צה״ל צה”ל", ["צה״ל", "צה״ל"], "typed as gershayim, and typographic"),
        ("ג'ירפה ג׳ירפה ג’ירפה", ["ג׳ירפה"] * 3, "a geresh, typed in three ways"),
        ("\"שלום\" 'עולם'", ["שלום", "עולם"], "marks around a word are quotation marks"),
        ("פרופ' כהן", ["פרופ", "כהן"], "a geresh at the end is left out"),
    ],
)
def test_hebrew_signs_of_abbreviations_are_letters(mine, text, terms, reason):
    assert Analyzer("he", "unicode").analyze(text) == terms, "the language file is not asked"
    mine({"he.toml": 'name = "Hebrew"\nextends = "none"\n'})
    assert Analyzer("he").analyze(text) == terms, reason
    assert Analyzer("xx", "unicode").analyze('צה"ל') == ["צה", "ל"], "other languages are analysed as before"

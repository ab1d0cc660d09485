"""What the checks see in answers, and what they leave alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rusbeir.errors import BadInput
from rusbeir.translation.checks import content, language
from rusbeir.translation.checks.checks import FAILURES, SEGMENT_CHECKS, check, failure
from rusbeir.translation.translator import REASONS, Failure, Flag, Segment
from tests.support.texts import texts

LONG_EN = "The Panthers finished the regular season with a record that nobody had expected of them."
LONG_RU = "Пантеры закончили регулярный сезон с рекордом, которого от них никто не ожидал."
LONG_ES = "Los Panthers terminaron la temporada regular con un récord que nadie esperaba de ellos."


@pytest.mark.parametrize(
    ("name", "source", "answer", "target", "flagged", "reason"),
    [
        ("empty", "Yes.", " \n", "ru", True, "blank"),
        ("empty", "Yes.", "...", "ru", True, "signs alone"),
        ("empty", "---", "---", "ru", False, "the source has no letter either"),
        ("empty", "Ten", "10", "ru", False, "a digit is an answer"),
        ("untranslated", LONG_EN, LONG_EN, "ru", True, "a copy"),
        ("untranslated", LONG_EN, f" {LONG_EN}\n", "es", True, "white space aside"),
        ("untranslated", LONG_EN, LONG_EN.replace("record", "рекорд"), "ru", True, "all but one word"),
        ("untranslated", "New York Times", "New York Times", "es", False, "three words may be a name"),
        ("untranslated", "John Smith, Anna Lee, Bob Ray", "John Smith, Anna Lee, Bob Ray", "de", False, "names"),
        ("untranslated", "Ivan met Anna in Paris", "Иван встретил Анну в Париже", "ru", False, "translated"),
        ("untranslated", "COVID-19, SARS 2 and MERS", "COVID-19, SARS 2 y MERS", "es", False, "mostly names"),
        ("untranslated", "今天的天气非常好我们去公园", "今天的天气非常好我们去公园", "en", True, "no spaces"),
        ("untranslated", LONG_EN, LONG_EN, "en-GB", False, "the same language"),
        ("refusal", LONG_EN, "I'm sorry, but I can't assist with that request.", "ru", True, "English"),
        ("refusal", LONG_EN, "I’m unable to translate this text.", "ru", True, "a curly apostrophe"),
        ("refusal", LONG_EN, "**As an AI language model**, I do not", "ru", True, "after signs"),
        ("refusal", LONG_EN, "К сожалению, я не могу перевести этот текст.", "ru", True, "Russian"),
        ("refusal", LONG_EN, "Извините, но я не могу помочь вам с этим.", "ru", True, "Russian"),
        ("refusal", LONG_EN, "Lo siento, pero no puedo ayudarte con eso.", "es", True, "Spanish"),
        ("refusal", LONG_EN, "Es tut mir leid, aber ich kann diesen Text nicht übersetzen.", "de", True, "German"),
        ("refusal", LONG_EN, "Desculpe, mas não posso traduzir este texto.", "pt", True, "Portuguese"),
        ("refusal", LONG_EN, "Je suis désolé, mais je ne peux pas traduire ce texte.", "fr", True, "French"),
        ("refusal", LONG_EN, "很抱歉，我无法翻译这段内容。", "zh", True, "Chinese"),
        ("refusal", LONG_EN, "К сожалению, я не получал ответа.", "ru", False, "a translation of an apology"),
        ("refusal", "Sorry for the trouble.", "Извините за неудобства.", "ru", False, "of another"),
        ("refusal", "I'm sorry, I cannot help you with that.", "Извините, я не могу помочь вам с этим.", "ru", False,
         "the source refuses too"),
        ("refusal", "Weather", "I live here and I cannot complain", "de", False, "no refusal"),
        ("refusal", LONG_EN, "I'm sorry, but I can't rewrite this text.", "en", True, "of rewriting"),
        ("refusal", LONG_EN, "I cannot rewrite the passage you gave.", "en", True, "of rewriting, without excuse"),
        ("refusal", LONG_EN, "Nobody rewrites this history. I cannot rewrite it.", "en", False, "rewriting as a topic"),
        ("refusal", LONG_EN, "I cannot rewrite history, he said.", "en", False, "a quotation about rewriting"),
        ("refusal", LONG_EN, "К сожалению, я не могу переписать этот текст.", "ru", True, "of rewriting, in Russian"),
        ("refusal", LONG_EN, "Ich kann diesen Text leider nicht umschreiben.", "de", True, "of rewriting, in German"),
        ("refusal", LONG_EN, "Lo siento, no puedo reescribir este texto.", "es", True, "of rewriting, in Spanish"),
        ("refusal", LONG_EN, "Je ne peux pas réécrire ce texte.", "fr", True, "of rewriting, in French"),
        ("refusal", LONG_EN, "Desculpe, não posso reescrever este texto.", "pt", True, "of rewriting, in Portuguese"),
        ("refusal", LONG_EN, "抱歉，我无法改写这段文字。", "zh", True, "of rewriting, in Chinese"),
        ("chat-prefix", LONG_EN, "Here's a rewritten version: The Panthers", "en", True, "of a rewriting"),
        ("chat-prefix", LONG_EN, f"{LONG_EN}\n\nThis is a rewritten version of it.", "en", True, "a remark behind it"),
        ("chat-prefix", LONG_EN, "Вот переписанный текст: Пантеры", "ru", True, "of a rewriting, in Russian"),
        ("chat-prefix", LONG_EN, "Hier ist der umgeschriebene Text: Die", "de", True, "of a rewriting, in German"),
        ("chat-prefix", LONG_EN, "Aquí tienes el texto reescrito: Los", "es", True, "of a rewriting, in Spanish"),
        ("chat-prefix", LONG_EN, "Voici le texte réécrit : Les", "fr", True, "of a rewriting, in French"),
        ("chat-prefix", LONG_EN, "Aqui está o texto reescrito: Os", "pt", True, "of a rewriting, in Portuguese"),
        ("chat-prefix", LONG_EN, "以下是改写后的文本：黑豹队", "zh", True, "of a rewriting, in Chinese"),
        ("chat-prefix", LONG_EN, f"Sure! Here is the translation:\n\n{LONG_RU}", "ru", True, "English"),
        ("chat-prefix", LONG_EN, f"Here's the Russian translation of the text: {LONG_RU}", "ru", True, "English"),
        ("chat-prefix", LONG_EN, f"**Перевод:** {LONG_RU}", "ru", True, "Russian, in bold"),
        ("chat-prefix", LONG_EN, f"Конечно, вот перевод:\n{LONG_RU}", "ru", True, "Russian"),
        ("chat-prefix", LONG_EN, f"Traducción al español: {LONG_ES}", "es", True, "Spanish"),
        ("chat-prefix", LONG_EN, "Hier ist die Übersetzung: Die", "de", True, "German"),
        ("chat-prefix", LONG_EN, "Aqui está a tradução: Os", "pt", True, "Portuguese"),
        ("chat-prefix", LONG_EN, "Voici la traduction : Les", "fr", True, "French"),
        ("chat-prefix", LONG_EN, "以下是翻译：黑豹队", "zh", True, "Chinese"),
        ("chat-prefix", LONG_EN, f"```\n{LONG_RU}\n```", "ru", True, "a code fence"),
        ("chat-prefix", LONG_EN, f"{LONG_RU}\n\nNote: I kept the name.", "ru", True, "a note at the end"),
        ("chat-prefix", LONG_EN, f"{LONG_RU}\n\n(Примечание переводчика: имя)", "ru", True, "a Russian one"),
        ("chat-prefix", "Translation: a process in the cell", "Трансляция: процесс", "ru", False, "a word of the text"),
        ("chat-prefix", "Translation: from RNA", "Перевод: с РНК", "ru", False, "the source begins alike"),
        ("chat-prefix", LONG_EN, LONG_RU, "ru", False, "a plain translation"),
        ("wrong-script", LONG_EN, "Пантеры 的 закончили", "ru", True, "Chinese in Russian"),
        ("wrong-script", LONG_EN, "Los Panthers закончили", "es", True, "Russian in Spanish"),
        ("wrong-script", "The word 的 is common", "Слово 的 частое", "ru", False, "it stands in the source"),
        ("wrong-script", LONG_EN, LONG_ES, "ru", True, "Latin letters alone"),
        ("wrong-script", "John Smith and Anna Lee met", "John Smith и Anna Lee", "ru", False, "copied names"),
        ("wrong-script", "alpha decay", "распад α-частиц β", "ru", False, "Greek letters"),
        ("wrong-script", LONG_EN, LONG_RU, "sr-Latn", True, "a script named by the code"),
        ("wrong-script", LONG_EN, "今天", "tlh", False, "an unknown language"),
        ("wrong-language", LONG_EN, LONG_ES, "pt", True, "Spanish for Portuguese"),
        ("wrong-language", LONG_EN, LONG_ES, "es-MX", False, "Spanish"),
        ("wrong-language", LONG_EN, LONG_RU, "ru", False, "Russian"),
        ("wrong-language", LONG_EN, LONG_RU, "de", True, "Russian for German"),
        ("wrong-language", "Hi", "Buenos días", "pt", False, "too short to say"),
        ("wrong-language", LONG_EN, LONG_RU, "tlh", False, "an unknown language"),
        ("repetition", LONG_EN, "Это " + "очень " * 8 + "хорошо.", "ru", True, "a word"),
        ("repetition", LONG_EN, LONG_RU + " и так далее" * 5, "ru", True, "a phrase, after a good text"),
        ("repetition", LONG_EN, "非常好非常好非常好非常好非常好", "zh", True, "no spaces"),
        ("repetition", LONG_EN, "Нееееееееееееееееееет", "ru", True, "a letter"),
        ("repetition", "ha ha ha ha ha ha ha", "ха ха ха ха ха ха ха", "ru", False, "the source does it too"),
        ("repetition", LONG_EN, "да да да нет", "ru", False, "three times is no loop"),
        ("repetition", LONG_EN, "a ......................... b", "ru", False, "leaders"),
        ("truncated", LONG_EN, "Пантеры закончили регулярный сезон с рекордом, которого от", "ru", True, "no end"),
        ("truncated", LONG_EN, "Пантеры.", "ru", True, "far too short"),
        ("truncated", LONG_EN, LONG_RU[:-1] + "...", "ru", True, "elided"),
        ("truncated", LONG_EN, f"«{LONG_RU}»", "ru", False, "quotes behind the stop"),
        ("truncated", LONG_EN, "黑豹队以出人意料的战绩结束了常规赛。", "zh", False, "Chinese is shorter"),
        ("truncated", LONG_EN, "ทีมแพนเธอร์สจบฤดูกาลปกติด้วยสถิติที่ไม่มีใครคาดคิดมาก่อนเลย", "th", False, "no full stops"),
        ("truncated", "A title without end", "Заголовок", "ru", False, "the source has none either"),
        ("truncated", "She went on and on...", "Она всё шла и шла...", "ru", False, "the source is elided too"),
        ("lost-numbers", "It was in 1987 and 2005.", "Это было в 1987 году.", "ru", True, "a year"),
        ("lost-numbers", "1,000.5 and 25,300 of 3.5", "1 000,5 и 25 300 из 3,5", "ru", False, "other separators"),
        ("lost-numbers", "two of 5, 12 and 007", "два из пяти, двенадцати и 7", "ru", False, "small ones become words"),
        ("lost-numbers", "the 19th century", "XIX век", "ru", False, "Roman"),
        ("lost-numbers", "at 10:30 on 11/12/2020", "в 10.30 11-12-2020", "ru", False, "other signs"),
        ("lost-numbers", "the year 1987", "سنة ١٩٨٧", "ar", False, "other digits"),
        ("lost-numbers", "1,2,3 and 45,46", "1, 2, 3 и 45, 46", "ru", False, "lists"),
        ("lost-numbers", "in 1998–99 and 1620-21", "с 1998 по 1999 и с 1620 по 1621", "ru", False, "years in full"),
        ("lost-numbers", "in 1998–99", "с 1998 по 2001", "ru", True, "another year"),
        ("lost-numbers", "663,000 signatures", "663 тысячи подписей", "ru", False, "thousands in a word"),
        ("lost-numbers", "663,000 signatures", "тысячи подписей", "ru", True, "thousands of what"),
        ("lost-numbers", "by the 1700s", "к началу XVIII века", "ru", False, "a century"),
        ("lost-numbers", "by the 1700s", "к началу XVII века", "ru", True, "another century"),
        ("lost-numbers", "before 5.30pm on Friday", "в пятницу до 17:30", "ru", False, "the clock of 24 hours"),
        ("lost-numbers", "it costs 5.30", "это стоит 17:30", "ru", True, "no time of day"),
        ("lost-numbers", "1.1 × 1011 tonnes", "1,1 × 10 в 11-й степени", "ru", False, "a power"),
        ("lost-numbers", "1.1 × 1011 tonnes", "1,1 × 10", "ru", True, "without its exponent"),
        ("lost-numbers", "a 1990s song", "песня 1990-х", "ru", False, "within a word"),
        ("lost-numbers", "none", "нет 15", "ru", False, "the source has none"),
        ("control", LONG_EN, f"{LONG_RU}\x00", "ru", True, "NUL"),
        ("control", LONG_EN, f"\x1b[2J{LONG_RU}", "ru", True, "an escape sequence clears the screen"),
        ("control", LONG_EN, f"\u202e{LONG_RU}", "ru", True, "the text is shown backwards"),
        ("control", f"{LONG_EN}\x1b", f"{LONG_RU}\x1b", "ru", False, "the source has it, too"),
        ("control", LONG_EN, f"{LONG_RU}\r\n\tДа.", "ru", False, "white space"),
    ],
)  # fmt: skip
def test_checks(name: str, source: str, answer: str, target: str, flagged: bool, reason: str):
    source_language = "zh" if source[0] == "今" else "en"
    flag = SEGMENT_CHECKS[name](Segment(source, answer, source_language, target))
    assert (flag is not None) == flagged, flag
    if flag:
        assert flag.name == name
        assert flag.detail
        assert "\n" not in flag.detail


def test_all_at_once():
    assert check(Segment(LONG_EN, LONG_RU, "en", "ru")) == []
    assert [flag.name for flag in check(Segment(LONG_EN, "", "en", "ru"))] == ["empty"], "and nothing else"
    flags = check(Segment(f"{LONG_EN} In 1987.", f"Перевод: {LONG_ES}", "en", "ru"))
    assert [flag.name for flag in flags] == ["chat-prefix", "wrong-script", "wrong-language", "lost-numbers"]
    assert failure(flags) == Failure("wrong-language", flags[1].detail, retry=True)
    assert failure([Flag("lost-numbers", "1987")]) is None
    assert set(FAILURES) < set(SEGMENT_CHECKS)
    assert set(FAILURES.values()) < set(REASONS)


def test_the_lost_are_named():
    segment = Segment("In 1,000.5 of 1987, 1987 and 33", "33", "en", "ru")
    assert SEGMENT_CHECKS["lost-numbers"](segment) == Flag("lost-numbers", "1,000.5, 1987")
    assert content.find_loop("a b a b a b a b a b") == content.Loop("a b", 5)


@pytest.mark.parametrize("code", ["de", "es", "ru"])
def test_good_translations_are_left_alone(code: str, shared_data: Path):
    """XQuAD's professional translations: 1,430 texts."""
    texts = {tag: _texts(shared_data / "xquad" / f"xquad.{tag}.json") for tag in ("en", code)}
    segments = [Segment(a, b, "en", code) for a, b in zip(texts["en"], texts[code], strict=True)]
    flags = [flag.name for segment in segments for flag in check(segment)]
    assert set(flags) <= {"lost-numbers", "truncated"}
    assert len(flags) <= 16, "numbers that the translators changed"
    wrong = "es" if code == "de" else "de"
    other = _texts(shared_data / "xquad" / f"xquad.{wrong}.json")
    long = [Segment(a, b, "en", code) for a, b in zip(texts["en"], other, strict=True) if len(b) > 60]
    missed = [segment for segment in long if failure(check(segment)) is None]
    assert len(missed) <= 0.02 * len(long)


def _texts(path: Path) -> list[str]:
    paragraphs = [p for article in json.loads(path.read_bytes())["data"] for p in article["paragraphs"]]
    return [text for p in paragraphs for text in (p["context"], *(qa["question"] for qa in p["qas"]))]


@settings(max_examples=200)
@given(texts(), texts())
def test_checks_take_any_text(source: str, answer: str):
    for target in ("ru", "zh", "xx"):
        check(Segment(source, answer, "en", target))


@pytest.mark.parametrize(
    ("unit", "as_source", "as_answer"),
    [
        ("a", ["truncated"], ["wrong-script", "repetition"]),
        ("a ", ["truncated"], ["wrong-script", "repetition"]),
        ("1", ["truncated", "lost-numbers"], ["repetition"]),
        ("1 ", ["truncated"], ["repetition"]),
        ("1,", ["truncated", "lost-numbers"], ["repetition"]),
        ("I'm sorry ", ["truncated"], ["wrong-script", "repetition"]),
        ("Sure, here is ", ["truncated"], ["wrong-script", "repetition"]),
        ("да ", ["truncated"], ["repetition"]),
        ("日", ["truncated"], ["wrong-script", "repetition"]),
        (" ", [], ["empty", "repetition"]),
        ("\n", [], ["empty", "repetition"]),
        ("X", ["truncated"], ["wrong-script", "repetition"]),
    ],
)
def test_checks_finish_on_a_megabyte(unit: str, as_source: list[str], as_answer: list[str]):
    """A pattern that backtracks would not end within hours. wrong-language reads 400 characters alone."""
    text = (unit * 1_000_000)[:1_000_000]
    for source, answer, expected in ((text, "нет", as_source), ("No.", text, as_answer)):
        segment = Segment(source, answer, "en", "ru")
        assert [name for name, one in SEGMENT_CHECKS.items() if name != "wrong-language" and one(segment)] == expected


def test_every_file_of_phrases_is_complete():
    assert set(language.read_phrases()) >= {"de", "en", "es", "fr", "pt", "ru", "zh"}
    for code in language.read_phrases():
        assert all(language.phrases_of(code)), f"{code} lacks a list"
    assert language.phrases_of("tlh") == (None, None, None, None, ())


@pytest.mark.parametrize("code", language.read_phrases())
@given(st.data())
@settings(max_examples=50)
def test_every_refusal_anywhere_has_one_of_its_words(code: str, data: st.DataObject):
    phrases = language.phrases_of(code)
    assert phrases.refusal_anywhere is not None
    found = phrases.refusal_anywhere.search(data.draw(st.from_regex(phrases.refusal_anywhere)).lower())
    assert found is None or any(word in found[0] for word in phrases.refusal_words)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("refusal = [", "A file of patterns is TOML"),
        ('refusals = ["a"]', "unknown key 'refusals'. Keys: name, refusal"),
        ('refusal = "a"', "refusal must be a list"),
        ('prefix = ["("]', "prefix: '(' is not a regular expression"),
        ("refusal_words = 1", "refusal_words must be a list"),
        ("prefix = [1]", "prefix: 1 is not a regular expression"),
    ],
)
def test_broken_phrases_are_refused(content: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "llm_phrases").mkdir()
    (tmp_path / "llm_phrases" / "xx.toml").write_text(content)
    monkeypatch.setattr(language, "data_folder", lambda name: tmp_path)
    with pytest.raises(BadInput) as caught:
        language.read_phrases.__wrapped__()
    assert message in str(caught.value)


def test_languages_are_told_apart_by_their_own_codes():
    norwegian = "Laget avsluttet den vanlige sesongen med en rekord som ingen hadde ventet av dem i det hele tatt."
    assert SEGMENT_CHECKS["wrong-language"](Segment("", norwegian, "en", "nb")) is None

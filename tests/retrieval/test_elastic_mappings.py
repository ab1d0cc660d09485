"""es_mappings/ is what analyzers/ says, can be PUT as it is, and finds what its analyzer promises."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rusbeir.analysis import Analyzer, language_files
from rusbeir.errors import UnknownName
from rusbeir.language_trials.term_changes import ask_server
from rusbeir.retrieval.elasticsearch import connection, mappings

FOLDER = Path(__file__).parent.parent.parent / "es_mappings"
FILES = [(code, client) for code in language_files() for client in (False, True)]


def file_of(language: str, client: bool) -> Path:
    return FOLDER / f"{language}{'.client' if client else ''}.json"


def plugin_file(language: str) -> Path:
    return FOLDER / f"{language}.plugin.json"


def test_every_language_has_its_files():
    expected = [*(file_of(*row) for row in FILES), *map(plugin_file, mappings.PLUGINS)]
    assert sorted(FOLDER.iterdir()) == sorted(expected)


@pytest.mark.parametrize("language", mappings.PLUGINS)
def test_files_of_plugins_are_in_step(language):
    rendered = mappings.for_people(language, plugin=True)
    path = plugin_file(language)
    assert json.loads(path.read_text()) == rendered, f"rusbeir languages mapping {language} --plugin > {path.name}"


PROMISED = {
    # language, a text, a query that finds it through the plugin, one that the server's own analyzer finds it by
    "ja": ("東京大学の学生", "大学", "京大"),
    "ko": ("서울에서 살았다", "서울", "서울에"),
    "pl": ("ulica wielkich psów", "wielki", "wielkich"),
    "uk": ("двері старих будинків", "будинок", "будинків"),
    "yue": ("香港大學嘅學生", "大學", "港"),
    "zh": ("我们在北京大学学习", "北京大学", "京大"),
    "zh-Hant": ("香港大學的學生", "大學", "港"),
}


@pytest.mark.parametrize("language", mappings.PLUGINS)
@pytest.mark.parametrize("node", ["elasticsearch", "opensearch"])
def test_plugins_are_used_where_they_are_installed(request, node, language):
    """The node of Elasticsearch 8 has none, that of OpenSearch 3 has all."""
    server = connection.connect(request.getfixturevalue(node).url)
    name, _ = mappings.analyzer_of(language, server)
    installed = node == "opensearch"
    assert (name == mappings.PLUGINS[language].analyzer) == installed
    index, (text, by_plugin, by_server) = f"somebodys-plugin-{language}".lower(), PROMISED[language]
    server.ask("PUT", f"/{index}", mappings.for_people(language, plugin=installed))
    server.ask("PUT", f"/{index}/_doc/1?refresh=true", {"title": "", "text": text})
    hits = []
    for query in (by_plugin, by_server):
        match = {"query": {"match": {"text": {"query": query, "operator": "and"}}}}
        hits.append(server.ask("POST", f"/{index}/_search", match)["hits"]["total"]["value"])
    assert hits[0 if installed else 1] == 1
    assert server.ask("DELETE", f"/{index}")


@pytest.mark.parametrize(("language", "client"), FILES)
def test_files_are_in_step(language, client):
    option = " --client" if client else ""
    path = file_of(language, client)
    rendered = mappings.for_people(language, client=client)
    assert json.loads(path.read_text()) == rendered, f"rusbeir languages mapping {language}{option} > {path.name}"


TEXT = {
    # language, a text, and a query that finds it only through analysis; other languages: a word finds itself
    "ru": ("В старых замках водятся привидения", "старыми замками"),
    "en": ("The children's ponies were running", "run pony"),
    "de": ("Die Häuser der Bürger", "Haus"),
    "es": ("Las canciones populares", "canción"),
    "pt": ("As casas antigas", "casa"),
}


DIFFERENT = {file_of(*row).read_bytes(): row for row in FILES}.values()
"""The files without those of the same content: files for rusbeir's terms differ in whether there are grams alone."""


@pytest.mark.parametrize(("language", "client"), DIFFERENT)
@pytest.mark.usefixtures("elasticsearch")
def test_they_can_be_put(language, client):
    server = connection.connect()
    index = f"somebodys-{language}-{client}".lower()
    server.ask("PUT", f"/{index}", json.loads(file_of(language, client).read_text()))
    text, query = TEXT.get(language, ("abc", "abc"))
    if client:
        terms = Analyzer(language)
        text, query = " ".join(terms.analyze(text)), " ".join(terms.analyze(query))
    server.ask("PUT", f"/{index}/_doc/1?refresh=true", {"title": "", "text": text})
    body = {"query": {"multi_match": {"query": query, "fields": ["title", "text"], "operator": "and"}}}
    assert server.ask("POST", f"/{index}/_search", body)["hits"]["total"]["value"] == 1


def test_k1_and_b_of_a_profile():
    similarity = mappings.for_people("en", "anserini-flat")["settings"]["similarity"]["bm25"]
    assert similarity == {"type": "BM25", "k1": 0.9, "b": 0.4}


@pytest.mark.usefixtures("elasticsearch")
def test_a_language_that_the_server_does_not_know(monkeypatch):
    """Its own stop words and stemmer make a custom analyzer."""
    monkeypatch.delitem(mappings.STOCK, "ru")
    server = connection.connect()
    server.ask("PUT", "/somebodys-custom", mappings.for_people("ru"))
    answer = server.ask("POST", "/somebodys-custom/_analyze", {"field": "text", "text": "На старых ЗАМКАХ"})
    assert [token["token"] for token in answer["tokens"]] == ["стар", "замк"]
    alone = ask_server(server, "ru", ["На", "старых", "𝔸", "ЗАМКАХ"])
    assert [alone.of_word[word] for word in ("На", "старых", "ЗАМКАХ")] == ["", "стар", "замк"]
    monkeypatch.undo()
    assert ask_server(server, "ru", ["замками", "𝔸", "и", "замки"]).of_word["замки"] == "замк"


def test_nobody_knows_the_language():
    with pytest.raises(UnknownName, match="No language 'tlh'"):
        mappings.for_people("tlh")


@pytest.mark.usefixtures("elasticsearch")
def test_every_stock_analyzer_is_there():
    server = connection.connect()
    for name in {*mappings.STOCK.values()}:
        assert server.ask("POST", "/_analyze", {"analyzer": name, "text": "Ж a"})["tokens"], name


def test_opensearch_lacks_one_of_them(opensearch):
    """The server's stemmer stands for it there."""
    server = connection.connect(opensearch.url)
    lacking = {name for name in mappings.STOCK.values() if not mappings._has(server, name)}
    assert lacking == set(mappings.NOT_EVERYWHERE)
    name, definition = mappings.analyzer_of("sr", server)
    assert (name, definition["filter"]["stem"]) == ("language", {"type": "stemmer", "language": "serbian"})
    assert mappings.analyzer_of("sr") == ("serbian", {})


SERVER = [
    # dataset, nDCG@10 by Lucene 9.12's analyzer with exact lengths, measured beforehand
    ("xquad/ru", 95.37),
    ("xquad/en", 96.47),
    ("xquad/es", 95.65),
    ("xquad/de", 94.03),
]


@pytest.mark.parametrize(("dataset", "expected"), SERVER)
@pytest.mark.usefixtures("elasticsearch", "shared_data")
def test_server_analysis(dataset, expected, tmp_path):
    from rusbeir.experiment import bench

    row = bench(dataset, "bm25(profile=server)", engine="elasticsearch", out=tmp_path)
    assert 100 * row["measures"]["nDCG@10"] == pytest.approx(expected, abs=0.2)


@pytest.mark.usefixtures("elasticsearch", "shared_data")
def test_server_analysis_of_cocktail_is_ours(tmp_path):
    from rusbeir.experiment import bench

    row = bench(
        "cocktail/nfcorpus/mixed", "bm25(profile=server)", engine="elasticsearch", out=tmp_path, measures=["nDCG@1"]
    )
    assert 100 * row["measures_answered"]["nDCG@1"] == pytest.approx(45.4, abs=0.1)

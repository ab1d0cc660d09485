"""BM25 on documents of several languages in one corpus."""

from __future__ import annotations

from collections import Counter
from statistics import fmean, pstdev

import pytest

from rusbeir.analysis import Analyzer
from rusbeir.datasets import load, write_beir
from rusbeir.errors import BadInput
from rusbeir.experiment import bench, search
from rusbeir.retrieval import compose, resolve
from rusbeir.retrieval.lexical.engines import ENGINES
from rusbeir.retrieval.lexical.shared_words import MARK, cut_shared
from rusbeir.types import Dataset, Doc, MemoryCorpus, MultilingualQueries, Run
from tests.support import exact_bm25, mini_pool

K = 1000
every_engine = pytest.mark.parametrize("engine", sorted(ENGINES), indirect=True)


def search_pool(system: str, dataset: Dataset, engine: str = "auto") -> Run:
    resolved = resolve(system, language="mul", engine=engine, languages=dataset.languages)
    return resolved.prepare(dataset.corpus, dataset.fingerprint).retriever.search(dataset.queries, K)


def search_apart(language: str, asked: dict[str, str], engine: str = "auto") -> Run:
    """The run of an index of the documents of one language alone."""
    corpus = MemoryCorpus(mini_pool.documents(language))
    return resolve("bm25", language=language, engine=engine).prepare(corpus, corpus.sha256).retriever.search(asked, K)


def scores_in(run: Run, language: str, asked: dict[str, str]) -> dict[tuple[str, str], float]:
    return {
        (query_id, doc_id): score
        for query_id in asked
        for doc_id, score in run[query_id].items()
        if doc_id.startswith(language)
    }


@every_engine
def test_scores_in_the_own_language_are_those_of_separate_indexes(engine):
    run = search_pool("bm25(query=own,stats=language)", mini_pool.make_pool(), engine)
    for language in mini_pool.LANGUAGES:
        asked = mini_pool.queries(language)
        apart = search_apart(language, asked, engine)
        expected = scores_in(apart, language, asked)
        assert len(expected) > 100
        assert scores_in(run, language, asked) == pytest.approx(expected, abs=1e-6)


@every_engine
def test_queries_in_all_languages_merge_separate_indexes(engine):
    dataset = mini_pool.make_pool()
    run = search_pool("bm25(query=all)", dataset, engine)
    for language in mini_pool.LANGUAGES:
        apart = search_apart(language, dict(dataset.queries), engine)
        assert scores_in(run, language, dict(dataset.queries)) == pytest.approx(
            scores_in(apart, language, dict(dataset.queries)), abs=1e-6
        )
    assert all(list(hits.values()) == sorted(hits.values(), reverse=True) for hits in run.values())


@every_engine
def test_statistics_of_the_pool_are_of_all_documents(engine):
    """Scores as Lucene's formula gives them where one field has all documents, and terms are marked."""
    dataset = mini_pool.make_pool()
    run = search_pool("bm25(stats=pool)", dataset, engine)
    analyzers = {language: Analyzer(language) for language in mini_pool.LANGUAGES}

    def mark(text: str, language: str) -> list[str]:
        terms = analyzers[language].analyze(text)
        own = "абвгдеёжзийклмнопрстуфхцчшщъыьэюя" if language == "ru" else "abcdefghijklmnopqrstuvwxyz"
        shared = [any(char.isdigit() for char in term) or not set(term) & set(own) for term in terms]
        return [term if same else f"{term}{MARK}{language}" for term, same in zip(terms, shared, strict=True)]

    docs = list(dataset.corpus)
    field = exact_bm25.Field([mark(doc.full_text, doc.language) for doc in docs])
    exact = engine == "bm25s"
    for query_id in list(dataset.queries)[::9]:
        language, text = query_id[:2], dataset.queries[query_id]
        other = next(tag for tag in mini_pool.LANGUAGES if tag != language)
        terms = Counter(mark(text, language)) | Counter(mark(cut_shared(text, language), other))
        scores = field.scores(
            list(terms.elements()), k1=1.2, b=0.75,
            length=exact_bm25.exact_length if exact else exact_bm25.lucene_length, factor=1.0 if exact else 2.2,
        )  # fmt: skip
        expected = {doc.doc_id: score for doc, score in zip(docs, scores, strict=True) if score}
        assert run[query_id] == pytest.approx(expected, rel=1e-5)


def test_merging_by_ranks_and_by_normalised_scores():
    """What people do with separate indexes: the scores of each are put on one scale, and the lists are joined."""
    dataset = mini_pool.make_pool()
    asked = dict(list(dataset.queries.items())[::20])
    apart = [search_apart(language, asked) for language in mini_pool.LANGUAGES]
    ranked, deviations = (search_pool(f"bm25(query=all,merge={merge})", dataset) for merge in ("rank", "zscore"))
    for query_id in asked:
        lists = [run[query_id] for run in apart if run[query_id]]
        # Reciprocal ranks by the constant of Cormack et al., 60; hits of equal rank come in the order of languages.
        expected = [(1 / (60 + rank), doc) for hits in lists for rank, doc in enumerate(hits, start=1)]
        assert list(ranked[query_id]) == [doc for _, doc in sorted(expected, key=lambda hit: -hit[0])]
        scaled = {
            doc: (score - fmean(hits.values())) / (pstdev(hits.values()) or 1)
            for hits in lists
            for doc, score in hits.items()
        }
        assert deviations[query_id] == pytest.approx(scaled)


SHARED = [
    # text, language, words, why
    ("Какой экран у Samsung S24 за 500 долларов?", "ru", "Samsung S24 500", "another script, a code, a number"),
    ("Верно ли, что Иван Петров родился в Киеве?", "ru", "Иван Петров Киеве", "names in the language's script"),
    ("Иван родился здесь. Петров тоже", "ru", "", "the first word of a sentence may be any"),
    ("Where did Jean-Paul of l'Oréal go?", "en", "Jean-Paul l'Oréal", "names with marks in them"),
    ("a COVID-19 test for 3.5 dollars", "en", "COVID-19 3.5", "codes and numbers with marks in them"),
    ("Wer war Einstein in Ulm 1879?", "de", "1879", "German writes all nouns with a capital letter"),
    ("在2020年iPhone 12的价格", "zh", "2020 iPhone 12", "no spaces around other scripts"),
    ("ราคา iPhone 12 ในปี 2020", "th", "iPhone 12 2020", "no spaces between words"),
    ("متى فاز ليفربول بكأس UEFA عام ٢٠٠١؟", "ar", "UEFA ٢٠٠١", "a script without capital letters; its own digits"),
    ("слово word 7", "xx", "7", "the scripts of an unknown language are not known"),
]


@pytest.mark.parametrize(("text", "language", "words", "why"), SHARED)
def test_words_that_languages_share(text, language, words, why):
    assert cut_shared(text, language) == words, why


@pytest.mark.parametrize("stats", ["language", "pool"])
def test_numbers_names_and_codes_find_documents_of_other_languages(stats):
    docs = [
        Doc("ru1", "Телефон Samsung S24 в магазине", "", "ru"),
        Doc("en1", "The Samsung S24 phone", "", "en"),
        Doc("es1", "Cervantes escribió de noche", "", "es"),
        Doc("en2", "Cervantes wrote at night, and never of telephones", "", "en"),
    ]
    texts = MultilingualQueries(
        {"a": "телефон samsung", "b": "Сколько стоит s24?", "c": "¿Dónde nació Cervantes?"},
        {"a": "ru", "b": "ru", "c": "es"},
    )
    dataset = Dataset.of(docs, texts, language="mul")
    assert set(dataset.languages) == {"en", "es", "ru"}
    run = search(dataset, f"bm25(stats={stats})", texts)
    assert {query_id: set(hits) for query_id, hits in run.items()} == {
        "a": {"ru1", "en1"}, "b": {"ru1", "en1"}, "c": {"es1", "en2"},
    }  # fmt: skip


def test_what_a_pool_lacks_is_said_in_one_line_each(caplog):
    docs = [
        Doc("d1", "кошка спит", "", "ru"),
        Doc("d2", "2020", "", ""),
        Doc("d3", "gato", "", "es"),
        Doc("d4", "perro", "", "und"),
    ]
    system = resolve("bm25", language="mul", languages=("ru", "en"))
    texts = MultilingualQueries({"a": "кошка 2020", "b": "chat", "c": "gato"}, {"a": "ru", "b": "fr"})
    run = system.prepare(MemoryCorpus(docs), "lacking").retriever.search(texts, 10)
    assert run == {"a": {"d1": run["a"]["d1"], "d2": run["a"]["d2"]}, "b": {}, "c": {"d3": run["c"]["d3"]}}
    assert [record.getMessage() for record in caplog.records] == [
        "3 of 4 documents are in none of the languages of the pool (no language, es, und): they are cut into words as "
        "Unicode says.",
        "1 of 3 queries name no language: they are analysed in each language of the pool.",
        "1 of 3 queries are in languages that the pool lacks (fr): only words that languages share, such as numbers "
        "and names, can find documents.",
        "1 of 3 queries (33.33 %) have no terms after analysis and can find nothing; check language and profile.",
    ]


REFUSED = [
    # system, language, languages, part of the message
    ("bm25(query=own)", "ru", (), "bm25 has no option 'query' where all documents are in one language, ru"),
    ("bm25(query=mine)", "mul", ("ru", "en"), "query"),
    ("bm25(stats=pool,merge=rank)", "mul", ("ru", "en"), "with stats=pool, where all documents are searched at once"),
    ("bm25(profile=server,stats=pool)", "mul", ("ru", "en"), "leaves the analysis to the server"),
    ("bm25", "mul", (), "and not which languages"),
]


@pytest.mark.parametrize(("system", "language", "languages", "part"), REFUSED)
def test_refused(system, language, languages, part):
    with pytest.raises((BadInput, LookupError), match=part):
        resolve(system, language=language, languages=languages, engine="elasticsearch@http://127.0.0.1:9")


def test_the_signature_says_how_a_pool_is_searched():
    system = resolve("bm25", language="mul", languages=("ru", "en"))
    assert system.signature.startswith("bm25-pool|query:own|stats:language|merge:score|")
    assert all(Analyzer(language).signature in system.signature for language in ("ru", "en"))
    pooled = resolve("bm25(stats=pool,query=all)", language="mul", languages=("ru", "en"))
    assert pooled.signature.startswith("bm25-pool|query:all|stats:pool|v:")


class Encoder:
    """Vectors of letters, whatever their language."""

    signature = "letters-1"

    def encode_queries(self, texts):
        import numpy as np

        vectors = np.zeros((len(texts), 32), dtype=np.float32)
        for row, text in enumerate(texts):
            for char in text.lower():
                vectors[row, ord(char) % 32] += 1
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    encode_documents = encode_queries


class Reranker:
    signature = "shared-letters-1"
    pointwise = True

    def score(self, query, documents):
        return [len(set(query) & set(text)) / len(set(text)) for text in documents]


def test_lexicons_stay_loaded_between_searches_of_a_pool():
    """However many languages there are: loading them would take longer than the search."""
    languages = ("ar", "de", "en", "es", "ru", "tr")
    corpus = MemoryCorpus([Doc(f"d-{language}", "2020", "", language) for language in languages])
    system = resolve("bm25", language="mul", languages=languages)
    retriever = system.prepare(corpus, corpus.sha256).retriever
    texts = MultilingualQueries({"q": "2020"}, {"q": "en"})
    assert len(retriever.search(texts, 10)["q"]) == len(languages)
    chains = [Analyzer(language).load() for language in languages]
    assert len(retriever.search(texts, 10)["q"]) == len(languages)
    assert all(Analyzer(language).load() is chain for language, chain in zip(languages, chains, strict=True))
    numbers = list(map(id, chains))
    del chains
    assert [id(Analyzer(language).load()) for language in languages] == numbers


def test_other_stages_run_on_a_pool_unchanged(tmp_path):
    dataset = mini_pool.make_pool()
    systems = [
        "bm25",
        compose("dense(letters)", letters=Encoder()),
        compose("rrf(bm25,dense(letters),depth=20)", letters=Encoder()),
        compose("bm25(query=all) >> mine(depth=20)", mine=Reranker()),
    ]
    rows = bench(dataset, systems, out=tmp_path, measures="AP")
    assert [row["language"] for row in rows] == ["mul"] * 4
    assert all(row["n_queries"] == len(dataset.queries) and row["measures"]["AP"] > 0 for row in rows)
    assert rows[2]["signature"].count("bm25-pool|") == 1


def test_a_cached_run_is_of_the_languages_of_its_queries():
    """The same text asked as Spanish and as English is another search, also for a stage of a fusion."""
    corpus = MemoryCorpus([Doc("es1", "la casa grande", "", "es"), Doc("en1", "a house in the wood", "", "en")])
    system = resolve("rrf(bm25,bm25(merge=rank))", language="mul", languages=("es", "en"))
    retriever = system.prepare(corpus, corpus.sha256).retriever
    found = {
        language: list(retriever.search(MultilingualQueries({"q": "casa"}, {"q": language}), 5)["q"])
        for language in ("es", "en")
    }
    assert found == {"es": ["es1"], "en": []}


def test_a_pool_in_a_folder_is_a_dataset_like_others(tmp_path, fresh_cache):
    dataset = mini_pool.make_pool()
    write_beir(dataset, tmp_path / "pool")
    loaded = load(tmp_path / "pool")
    assert loaded.languages == mini_pool.LANGUAGES
    measured = [bench(source, out=tmp_path / "out", measures="AP") for source in (dataset, str(tmp_path / "pool"))]
    assert measured[0]["signature"] == measured[1]["signature"]
    assert measured[0]["measures"] == measured[1]["measures"]

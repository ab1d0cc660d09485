"""All languages on one task, NTREX-128: what each profile of a language brings, with intervals over documents."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rusbeir.analysis import find_language, language_files
from rusbeir.comparison import Comparison, DatasetComparison
from rusbeir.datasets import expand_group, get_entry
from rusbeir.evaluation import check_measures, deepest
from rusbeir.experiment import UNCUT_DEPTH
from rusbeir.language_trials.recipes import compare_recipes
from rusbeir.languages import english_name
from rusbeir.types import Progress, silent

GROUP = "ntrex/all"
PROFILES = ("raw", "snowball", "blend")
"""The profiles that are compared with the default one."""
FALLBACK_PROFILES = ("raw", "unicode")
"""Those of a language without a file, whose default profile is words blended with runs of characters."""


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
        Sentences of one document are drawn together.
    """
    # Deeper runs would take longer to write than to search.
    depth = deepest(check_measures([measure])) or UNCUT_DEPTH
    entries = [get_entry(name) for name in expand_group(GROUP)]
    known = [entry for entry in entries if find_language(entry.language) in language_files()]
    others = [entry for entry in entries if entry not in known]
    first, second = (
        compare_recipes(
            [entry.language for entry in part], [entry.name for entry in part], profiles,
            measure=measure, engine=engine, out=out, k=depth, progress=progress,
        )
        for part, profiles in ((known, PROFILES), (others, FALLBACK_PROFILES))
    )  # fmt: skip
    return first, second


def tabulate_languages(comparison: Comparison, profiles: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """The header and the cells of a comparison, a row for each language.

    Means are in percent; a change is that of the default profile against another one, or of blend against the default.
    """
    header = ["", "language", *(name for name in profiles if name != "blend"), "default"]
    changes = [f"default − {name}" for name in profiles if name != "blend"]
    if "blend" in profiles:
        header, changes = [*header, "blend"], [*changes, "blend − default"]
    return [*header, *changes], [_fill_row(dataset, profiles) for dataset in comparison.datasets]


def _fill_row(dataset: DatasetComparison, profiles: Sequence[str]) -> list[str]:
    tag = dataset.dataset.partition("/")[2]
    means = {score.system: f"{100 * score.mean:.1f}" for score in dataset.systems}
    pairs = {pair.first: pair for pair in dataset.pairs}
    plain = [name for name in profiles if name != "blend"]
    columns = [*(f"bm25(profile={name})" for name in plain), "bm25"]
    changes = []
    for name in plain:
        pair = pairs[f"bm25(profile={name})"]
        low, high = pair.interval
        changes.append(_write_change(-pair.difference, -high, -low))
    if "blend" in profiles:
        pair = pairs["bm25(profile=blend)"]
        columns, changes = [*columns, "bm25(profile=blend)"], [*changes, _write_change(pair.difference, *pair.interval)]
    return [tag, english_name(tag), *(means[column] for column in columns), *changes]


def _write_change(difference: float, low: float, high: float) -> str:
    return f"{100 * difference:+.1f} ({100 * low:+.1f} … {100 * high:+.1f})"

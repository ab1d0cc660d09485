"""The recipes that can be had for a language, measured on datasets and compared with its default profile."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rusbeir.analysis import Analyzer
from rusbeir.comparison import Comparison, DatasetComparison, Plan, Result, compare_results, read_result
from rusbeir.datasets import find_entry, load
from rusbeir.errors import BadInput
from rusbeir.evaluation import check_measures
from rusbeir.experiment import bench
from rusbeir.types import Dataset, Progress, silent

RECIPES = ("raw", "unicode", "snowball", "stems", "lemmas", "words", "default", "grams", "blend")
"""Profiles that every language has, from the plainest on."""
SUBWORDS = "subwords"
"""Named as a profile: the subwords of a language model, which need no knowledge of the language."""
SUBWORDS_TOKENS = "hf:multilingual-e5-small"
_SYSTEMS = {"default": "bm25", SUBWORDS: f"bm25(tokens={SUBWORDS_TOKENS})"}


def compare_recipes(
    languages: Sequence[str],
    datasets: Sequence[str],
    profiles: Sequence[str] = (),
    *,
    measure: str = "nDCG@10",
    engine: str = "auto",
    out: str | Path = "results",
    split: str | None = None,
    k: int = 100,
    progress: Progress = silent,
) -> Comparison:
    """Measure BM25 by each profile, and compare it with the default profile; rows are kept in out and used again.

    languages: those of the datasets; the first is that of a path that does not say. profiles: by default those of
    RECIPES that differ in the language. Queries with the same relevant documents, such as those about one paragraph,
    are drawn together. k is the depth of the runs. Raises BadInput for a dataset in another language.
    """
    (measure,) = check_measures([measure])
    results = []
    for name in datasets:
        dataset = _load(name, languages, split, progress)
        chosen = ["default", *(profiles or distinct_recipes(dataset.card.language))]
        results += measure_recipes(dataset, chosen, measure=measure, engine=engine, out=out, k=k, progress=progress)
    return compare_results(results, Plan(measure=measure, baseline=write_system("default")))


def measure_recipes(
    dataset: Dataset,
    profiles: Sequence[str],
    *,
    measure: str,
    engine: str,
    out: str | Path,
    k: int,
    progress: Progress,
) -> list[Result]:
    """Measure BM25 by each of the profiles, and return their results in this order."""
    systems = [write_system(profile) for profile in dict.fromkeys(profiles)]
    rows = (
        bench(dataset, system, engine=engine, k=k, measures=[measure], out=out, progress=progress) for system in systems
    )
    return [read_result(Path(out), row, measure) for row in rows]


def _load(name: str, languages: Sequence[str], split: str | None, progress: Progress) -> Dataset:
    entry = find_entry(name)
    if entry is None:
        only = languages[0] if len(languages) == 1 else None
        dataset = load(name, language=only, split=split, progress=progress)
    # A dataset of the registry is refused before it is fetched.
    if (language := entry.language if entry else dataset.card.language) not in languages:
        raise BadInput(f"{name} is in {language!r}, not in {' or '.join(map(repr, languages))}. Name its language.")
    return load(name, split=split, progress=progress) if entry else dataset


def write_system(profile: str) -> str:
    """The system that measures a profile."""
    return _SYSTEMS.get(profile, f"bm25(profile={profile})")


def distinct_recipes(language: str, profiles: Sequence[str] = RECIPES) -> list[str]:
    """The profiles without words or blend, whichever the default profile is, and without stems and lemmas where it does
    not join the two."""
    recipe = Analyzer(language).recipe
    same = {"blend" if recipe.terms == "both" else "words"}
    if "none" in (recipe.lemmas, recipe.stemmer):
        same |= {"stems", "lemmas"}
    return [profile for profile in profiles if profile not in same]


def recipe_table(comparison: DatasetComparison, measure: str) -> tuple[list[str], list[list[str]]]:
    """The header and cells of one dataset, in percent: the profiles in the order of RECIPES, and their changes."""
    profiles = {_profile(score.system): score for score in comparison.systems}
    pairs = {_profile(pair.first): pair for pair in comparison.pairs}
    rows = []
    for profile in sorted(profiles, key=[*RECIPES, *profiles].index):
        score, pair = profiles[profile], pairs.get(profile)
        cells = [profile, f"{100 * score.mean:.2f}", f"{100 * score.interval[0]:.2f}–{100 * score.interval[1]:.2f}"]
        if pair is not None:
            low, high = pair.interval
            cells += [f"{100 * pair.difference:+.2f}", f"{100 * low:+.2f} … {100 * high:+.2f}", f"{pair.p_maxt:.4f}"]
        rows.append([*cells, "", "", ""][:6])
    return ["profile", measure, "interval", "change", "interval", "p"], rows


def to_markdown(comparison: Comparison) -> str:
    """A Markdown table with a row for each dataset: the mean of each profile, and its difference to the default."""
    tables = {dataset.dataset: {row[0]: row for row in recipe_table(dataset, "")[1]} for dataset in comparison.datasets}
    profiles = list(dict.fromkeys(profile for table in tables.values() for profile in table))
    others = [profile for profile in profiles if profile != "default"]
    lines = [["", *(f"`{name}`" for name in profiles), *(f"`{name}` − `default`" for name in others)]]
    lines.append(["---"] * len(lines[0]))
    for dataset, table in tables.items():
        rows = {name: table.get(name, [""] * 6) for name in profiles}
        means = [f"{rows[name][1]} ({rows[name][2]})" if rows[name][1] else "" for name in profiles]
        differences = [f"{rows[name][3]} ({rows[name][4]})" if rows[name][3] else "" for name in others]
        lines.append([dataset, *means, *differences])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _profile(system: str) -> str:
    names = {system: profile for profile, system in _SYSTEMS.items()}
    return names.get(system, system[len("bm25(profile=") : -1])

"""The sentences that a report begins with: which system to use in a language, and what could not be told."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rusbeir.comparison import Comparison, DatasetComparison, SystemScore
from rusbeir.languages import english_name
from rusbeir.types import MULTILINGUAL

MAX_NAMED = 3
"""How many systems a headline names if they cannot be told apart."""


@dataclass(frozen=True, kw_only=True)
class Headline:
    """A sentence about the results of one language, and the scores that show it."""

    language: str
    claim: str
    """What follows "For Russian, "."""
    reason: str
    """Why that is so; empty where the claim says it."""
    systems: tuple[SystemScore, ...]
    datasets: tuple[DatasetComparison, ...]
    """The datasets of the language; the systems are those of the only one, or averages over several."""

    @property
    def sentence(self) -> str:
        return f"For {self.language}, {_explain(self.claim, self.reason)}"


def name_language(tag: str) -> str:
    """The English name of a language; "these queries" if nobody said which it is, or in a pool of several."""
    return "these queries" if tag in ("und", MULTILINGUAL) else english_name(tag)


def make_headlines(comparison: Comparison, names: Mapping[str, str]) -> list[Headline]:
    """Say for each language, asked in itself, which system to use; names are the short names of systems.

    A pool of several languages is asked in each of them.
    """
    headlines = []
    by_language: dict[str, list[DatasetComparison]] = {}
    for compared in comparison.datasets:
        if compared.language in (compared.query_language, MULTILINGUAL):
            by_language.setdefault(compared.query_language, []).append(compared)
    for language, datasets in by_language.items():
        systems = datasets[0].systems
        if len(datasets) > 1:
            spoken = {compared.language for compared in datasets}
            averages = (entry for entry in comparison.languages if entry.query_language == language)
            systems = next((average.systems for average in averages if {average.language} == spoken), ())
        claim, reason = _make_claim(systems, comparison.baseline, names)
        headlines.append(
            Headline(
                language=name_language(language), claim=claim, reason=reason, systems=systems, datasets=tuple(datasets)
            )
        )  # fmt: skip
    return headlines


def _make_claim(systems: Sequence[SystemScore], baseline: str | None, names: Mapping[str, str]) -> tuple[str, str]:
    """Make a headline's claim and its reason."""
    if not systems:
        return "no system was measured on every dataset", ""
    if len(systems) == 1:
        return f"only {names[systems[0].system]} was measured", ""
    if baseline is not None:
        better = [names[score.system] for score in systems if score.versus_baseline == "better"]
        if not better:
            return f"nothing was shown to be better than {names.get(baseline, baseline)}", ""
        return f"{_join(better)} {'is' if len(better) == 1 else 'are'} better than {names[baseline]}", ""
    group = [names[score.system] for score in systems if score.best_group]
    if len(group) == len(systems):
        return "no system was shown to be the best", ""
    if len(group) == 1:
        return f"use {group[0]}", "it is better than everything else here"
    if len(group) > MAX_NAMED:
        return f"use {group[0]} or one of {len(group) - 1} others that cannot be told apart from it", ""
    return f"use {_join(group, 'or')}", "they cannot be told apart"


def _explain(claim: str, reason: str) -> str:
    return f"{claim}: {reason}." if reason else f"{claim}."


def _join(names: Sequence[str], word: str = "and") -> str:
    return f" {word} ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def summarise(headlines: Sequence[Headline]) -> str:
    """Say in one sentence what the headlines of several languages say, where that is short enough to be quoted.

    Languages about which the same can be said are named together.
    """
    if not headlines:
        return "No systems are compared in one language here."
    if len(headlines) == 1:
        return headlines[0].sentence
    languages: dict[tuple[str, str], list[str]] = {}
    for headline in headlines:
        languages.setdefault((headline.claim, headline.reason), []).append(headline.language)
    if len(languages) == 1:
        return f"For {_join([headline.language for headline in headlines])}, {_explain(*next(iter(languages)))}"
    if len(languages) > MAX_NAMED:
        return f"Which system is best depends on the language: it differs between these {len(headlines)}."
    sentence = "; ".join(f"for {_join(names)}, {claim}" for (claim, _), names in languages.items())
    return f"{sentence[0].upper()}{sentence[1:]}."


def list_open_questions(comparison: Comparison, names: Mapping[str, str]) -> Iterator[str]:
    """Say for each dataset how many queries would tell the two best systems apart, where the tests could not."""
    for compared in comparison.datasets:
        leaders = [score.system for score in compared.systems if score.best_group][:2]
        for pair in compared.pairs:
            if len(leaders) < 2 or {pair.first, pair.second} != set(leaders):
                continue
            gap = abs(pair.difference)
            if gap > 1e-9 and math.isfinite(pair.minimum_detectable):
                # The detectable difference shrinks with the square root of the number of queries.
                needed = math.ceil(compared.n_clusters * (pair.minimum_detectable / gap) ** 2)
                independent = "independent " if compared.n_clusters < compared.n_queries else ""
                yield (
                    f"{compared.dataset}: {names[pair.first]} and {names[pair.second]} differ by {100 * gap:.2f} "
                    f"points; to tell them apart, about {needed:,} {independent}queries like these would be needed "
                    f"({compared.n_clusters:,} here)."
                )

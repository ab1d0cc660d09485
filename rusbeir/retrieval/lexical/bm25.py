"""What a BM25 system computes: parameters, fields and the analysis profile, read from a spec."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from rusbeir.errors import BadInput
from rusbeir.retrieval.spec import Options, Stage, Value

Fields = Literal["flat", "best_fields", "sum"]
Lengths = Literal["lucene", "exact"]

_CHOICES: dict[str, tuple[str, ...]] = {"fields": get_args(Fields), "lengths": get_args(Lengths)}
SERVER = "server"
"""The analysis of profiles that leave it to Elasticsearch."""
ANALYSIS_OPTIONS = ("analyzer", "stop", "synonyms")
"""Options that say how texts are analysed: an analyzer, and files of stop words and of synonyms."""
OPTIONS = ("profile", *ANALYSIS_OPTIONS, "k1", "b", "fields", "weights", "tie_breaker", "gram_weight", "lengths")
GRAM_FIELD = "_grams"
"""Ends the name of the field that holds the grams of another."""
DEFAULT_GRAM_WEIGHT = 0.2


@dataclass(frozen=True, kw_only=True)
class Bm25:
    """BM25 as Lucene computes it, over title and text as one field or as two.

    With best_fields a document scores as its better field does, plus tie_breaker times the score of the other; with sum
    both are added. Where an analysis makes grams as well as words, the grams have fields of their own, and their score
    is multiplied by gram_weight. The score of each field is multiplied by its weight before that.
    """

    k1: float = 1.2
    b: float = 0.75
    fields: Fields = "flat"
    weights: tuple[float, ...] = ()
    """The factors of title and text; () where both are 1."""
    tie_breaker: float = 0.5
    gram_weight: float = 0.0
    """0 where there are no grams."""
    analysis: str = "default"
    """A profile of the language's analyzer; `server:<language>` where the server analyses."""
    lengths: Lengths | None = None
    """How lengths are kept: `lucene` in one byte (SmallFloat.intToByte4), or `exact`; None leaves it to the engine."""

    @property
    def server_language(self) -> str | None:
        """The language in which Elasticsearch analyses by itself; None where it gets rusbeir's terms."""
        kind, _, language = self.analysis.partition(":")
        return language if kind == SERVER else None

    @property
    def parts(self) -> tuple[tuple[tuple[str, ...], float], ...]:
        """The fields that are scored together, and the weight of their score: those of words, then those of grams."""
        words: tuple[str, ...] = ("text",) if self.fields == "flat" else ("title", "text")
        grams = tuple(name + GRAM_FIELD for name in words)
        return ((words, 1.0), (grams, self.gram_weight)) if self.gram_weight else ((words, 1.0),)

    def weigh(self, name: str) -> float:
        """The factor of a field's score, without the weight of grams."""
        return self.weights[name.startswith("text")] if self.weights else 1.0

    @property
    def field_names(self) -> tuple[str, ...]:
        return tuple(name for names, _ in self.parts for name in names)

    @property
    def signature(self) -> str:
        fields: str = self.fields
        if fields == "best_fields":
            fields = f"best_fields:{self.tie_breaker}"
        weights = f"|weights:{':'.join(f'{weight:g}' for weight in self.weights)}" if self.weights else ""
        grams = f"|grams:{self.gram_weight}" if self.gram_weight else ""
        return f"bm25|k1:{self.k1}|b:{self.b}|fields:{fields}{weights}{grams}"


@cache
def profiles() -> Mapping[str, Mapping[str, Any]]:
    """Read profiles.toml: name -> settings."""
    return tomllib.loads((Path(__file__).parent / "profiles.toml").read_text(encoding="utf-8"))


def from_stage(stage: Stage, *, language: str) -> Bm25:
    """Read a stage as the BM25 of a language.

    A profile that profiles.toml lacks is assumed to be one of the language's analyzer, which checks it.

    >>> from_stage(Stage("bm25", options=(("k1", 0.9),)), language="ru").k1
    0.9
    """
    if stage.args:
        raise BadInput(f"{stage.name} takes options only, such as k1=0.9, not {stage.args[0]!s}.")
    known = Options(stage, OPTIONS)
    options = {name: value for name, value in stage.options if name not in ANALYSIS_OPTIONS}
    profile = str(options.pop("profile", "default"))
    options.pop("weights", None)
    settings = dict(profiles().get(profile, {}))
    analysis = settings.pop("analysis", profile)
    if isinstance(analysis, dict):
        analysis = analysis.get(language, analysis["other"])
    if analysis == SERVER:
        analysis = f"{SERVER}:{language}"
    values = {name: _read_option(stage.name, name, value) for name, value in options.items()}
    bm25 = Bm25(analysis=analysis, **{**settings, **values})
    if bm25.fields == "flat" and "weights" in known:
        raise BadInput(f"{stage.name} has one field with fields=flat: add fields=best_fields or fields=sum to weights.")
    weights = known.weights("weights", 2, "title and one for text") or ()
    if 0.0 in weights:
        raise BadInput(f"{stage.name} needs weights above 0: without title or text a field has nothing to search.")
    return replace(bm25, weights=() if set(weights) == {1.0} else weights)


def _read_option(stage: str, name: str, value: Value) -> float | str:
    if choices := _CHOICES.get(name):
        if not isinstance(value, str) or value not in choices:
            raise BadInput(f"{stage} has no {name}={value!s}. Available: {', '.join(choices)}.")
        return value
    most = float("inf") if name == "k1" else 1.0
    if not isinstance(value, (int, float)) or not 0 <= value <= most:
        limits = "a number from 0 up" if name == "k1" else "a number from 0 to 1"
        raise BadInput(f"{stage} needs {name} to be {limits}, not {value!s}.")
    return float(value)

"""A language file just written, on NTREX-128: what it gains over plainer analyses, and what would help next."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rusbeir.analysis import FOLDERS_VARIABLE, language_files, read_language
from rusbeir.comparison import Comparison, Plan, compare_results, read_result
from rusbeir.datasets import NotAtHand, find_entry, load
from rusbeir.errors import BackendError
from rusbeir.experiment import bench
from rusbeir.language_trials.recipes import measure_recipes
from rusbeir.types import Progress

MEASURE = "nDCG@10"
WITHOUT_FILE = "bm25(profile=blend)"
"""The system that stands for the language without a file."""
_DEPTH = 10
_NO_FILE = 'name = "{}"\nextends = "none"\n[profiles.blend]\ninherits = "unicode"\nterms = "both"\n'
"""A language file whose profile blend makes the terms of a language that has none."""


def measure_file(code: str, folder: Path, progress: Progress) -> Comparison | None:
    """Measure the language file in that folder on NTREX-128: its default profile (bm25), raw, and, for a language that
    rusbeir does not have, WITHOUT_FILE.

    None where NTREX-128 lacks the language, or its file is not on this machine and cannot be fetched.
    """
    entry = find_entry(f"ntrex/{code}")
    if entry is None:
        return None
    try:
        dataset = load(entry.name, progress=progress)
    except (BackendError, NotAtHand):
        return None
    with tempfile.TemporaryDirectory() as out:
        results = []
        if code not in language_files():
            (Path(out) / f"{code}.toml").write_text(_NO_FILE.format(code), encoding="utf-8")
            with _first_of_folders(Path(out)):
                row = bench(dataset, WITHOUT_FILE, k=_DEPTH, measures=[MEASURE], out=out, progress=progress)
                results.append(read_result(Path(out), row, MEASURE))
        with _first_of_folders(folder):
            results += measure_recipes(
                dataset, ["default", "raw"], measure=MEASURE, engine="auto", out=out, k=_DEPTH, progress=progress
            )
    return compare_results(results, Plan(measure=MEASURE, baseline="bm25"))


def advise(code: str, folder: Path) -> list[str]:
    """Say what the language file in that folder lacks that raised scores in other languages; the weightiest first."""
    with _first_of_folders(folder):
        recipe = read_language(code).profiles["default"]
    advice = []
    if recipe.tokens == "unicode":
        advice.append("a segmenter, since words are written without spaces: another value of tokens")
    if recipe.stemmer == recipe.lemmas == "none":
        advice.append('suffix rules, stemmer = "suffixes:FILE": ten lines brought 8.7 points in Kazakh')
    if recipe.lemmas == "none":
        advice.append('a list of irregular words and their lemmas, lemmas = "file:FILE"')
    if not recipe.stop.words:
        advice.append('a stop list, stopwords = "file:FILE"; the commonest words of a text are candidates')
    return advice


@contextmanager
def _first_of_folders(folder: Path) -> Iterator[None]:
    """Let language files of that folder come first."""
    before = os.environ.get(FOLDERS_VARIABLE)
    os.environ[FOLDERS_VARIABLE] = os.pathsep.join([str(folder), before or ""])
    try:
        yield
    finally:
        os.environ.pop(FOLDERS_VARIABLE)
        if before is not None:
            os.environ[FOLDERS_VARIABLE] = before

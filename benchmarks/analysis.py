"""Speed of Russian analysis on a stream of Zipf-distributed forms, against the RusBEIR paper's recipe.

python -m benchmarks.analysis [--docs 1000000]
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from rusbeir.analysis import Analyzer
from rusbeir.analysis.language_registry import read_recipe

FORMS = 600_000
DOC_WORDS = 50
RECIPE_WORDS = 200_000
SEED = 7
LETTERS = "абвгдежзийклмнопрстуфхцчшщъыьэюя"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--docs", type=int, default=1_000_000)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("--stream", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(_measured(options.measure, options.stream)))
        return
    print(f"{options.docs:,} documents of {DOC_WORDS} words, forms of pymorphy3's dictionary by Zipf's law")
    for row in measure(options.docs):
        print(
            f"{row['what']:<44} {row['words_per_second']:>12,.0f} words/s {row['ratio']:>7.1f}x"
            f" {row['peak_bytes'] / 2**20:>5.0f} MB"
        )


def measure(n_docs: int = 1_000_000) -> list[dict[str, Any]]:
    """One row a measurement: what, words_per_second, seconds, ratio (to the recipe), peak_bytes, n_docs.

    Each runs in a process of its own over the same file; warm runs use the lemmas that the cold one has left.
    peak_bytes is the largest resident size of any one process.
    """
    with tempfile.TemporaryDirectory() as folder:
        stream = Path(folder) / "stream.txt"
        with stream.open("w", encoding="utf-8") as file:
            file.writelines(text + "\n" for text in zipf_stream(n_docs))
        environment = {**os.environ, "RUSBEIR_CACHE": folder}
        rows: list[dict[str, Any]] = []
        for name in MEASURES:
            command = [sys.executable, "-m", "benchmarks.analysis", "--measure", name, "--stream", str(stream)]
            answer = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
            rows.append(json.loads(answer.stdout))
    return [{**row, "ratio": row["words_per_second"] / rows[0]["words_per_second"]} for row in rows]


@cache
def vocabulary() -> np.ndarray[Any, Any]:
    """Distinct forms of pymorphy3's dictionary in the order of their Zipf rank; always the same.

    All forms that begin with one of some random three letters: going through all five million takes minutes.
    """
    random = np.random.default_rng(SEED)
    import pymorphy3

    keys = pymorphy3.MorphAnalyzer().dictionary.words.iterkeys
    forms: dict[str, None] = {}
    for prefix in random.permutation(["".join(letters) for letters in itertools.product(LETTERS, repeat=3)]):
        forms.update(dict.fromkeys(filter(str.isalpha, keys(str(prefix)))))
        if len(forms) >= FORMS:
            break
    chosen = np.array(list(forms)[:FORMS], dtype=object)
    random.shuffle(chosen)
    return chosen


def zipf_stream(n_docs: int, seed: int = SEED, forms: np.ndarray[Any, Any] | None = None) -> Iterator[str]:
    """Documents of 50 words, rank r drawn with a probability proportional to 1/r; one seed, one stream.

    forms: words of another language, in the order of their ranks.
    """
    forms = vocabulary() if forms is None else forms
    cumulative = np.cumsum(1 / np.arange(1, len(forms) + 1))
    cumulative /= cumulative[-1]
    random = np.random.default_rng(seed)
    for start in range(0, n_docs, 10_000):
        n = min(10_000, n_docs - start)
        for ranks in np.searchsorted(cumulative, random.random((n, DOC_WORDS)), side="right"):
            yield " ".join(forms[ranks])


def _recipe(texts: Iterable[str]) -> Iterator[str]:
    # As `pip install pymorphy3` gives it: without DAWG2, which rusbeir depends on.
    sys.modules["dawg"] = None  # type: ignore[assignment]
    import pymorphy3

    stop = read_recipe("ru", "rusbeir-paper").stop.words | {"который", "такой"}
    morph = pymorphy3.MorphAnalyzer()
    for text in itertools.islice(texts, RECIPE_WORDS // DOC_WORDS):
        words = re.sub(r"[^\w\s]", " ", text.lower()).split()
        lemmas = [morph.parse(word)[0].normal_form for word in words]
        yield " ".join(lemma for lemma in lemmas if lemma not in stop)


def _analysis(texts: Iterable[str]) -> Iterator[str]:
    return Analyzer("ru").analyze_lines(texts)


def _one_process(texts: Iterable[str]) -> Iterator[str]:
    return Analyzer("ru").analyze_lines(texts, processes=1)


def _lower_split(texts: Iterable[str]) -> Iterator[str]:
    return (" ".join(text.lower().split()) for text in texts)


MEASURES = {
    "the paper's recipe, first 200,000 words": _recipe,
    "rusbeir, cold": _analysis,
    "rusbeir, warm": _analysis,
    "rusbeir, warm, one process": _one_process,
    "lower and split only, one process (a bound)": _lower_split,
}


def _measured(name: str, stream: Path) -> dict[str, Any]:
    started = time.perf_counter()
    with stream.open(encoding="utf-8") as file:
        n_docs = sum(1 for _ in MEASURES[name](file))
    seconds = time.perf_counter() - started
    return {
        "what": name,
        "words_per_second": n_docs * DOC_WORDS / seconds,
        "seconds": seconds,
        "n_docs": n_docs,
        "peak_bytes": max(_peaks()),
    }


def _peaks() -> list[int]:
    """The largest resident size of this process and of each of its children that still runs, in bytes."""
    this_process = Path("/proc/self")
    children = [pid for task in (this_process / "task").iterdir() for pid in (task / "children").read_text().split()]
    statuses = [(process / "status").read_text() for process in [this_process, *map(Path("/proc").joinpath, children)]]
    return [1024 * int(kilobytes) for status in statuses for kilobytes in re.findall(r"VmHWM:\s+(\d+)", status)]


if __name__ == "__main__":
    main()

"""What languages and blend cost: words/s of analysis of every shipped language; terms, bytes and queries/s of blend;
seconds of the table of all languages.

python -m benchmarks.languages speed [--docs 200000] [--language CODE]...
python -m benchmarks.languages blend [--docs 100000]
python -m benchmarks.languages table

The first two print a Markdown table; docs/languages.md has a place for each.

speed: passages of 50 words by Zipf's law, two worker processes, lemmas known (warm). A language's words are those of
its test lines, and of XQuAD where RUSBEIR_DATA has it, and made ones: the first half of one word and the second half
of another. Where words have no spaces between them, ten come in a row.

blend: the profile blend against default on XQuAD, Cocktail's NFCorpus and a stream of Russian words by Zipf's law, on
tantivy.

table: the seconds of `rusbeir languages compare --all` with an empty cache, and how many languages it measured.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.analysis import DOC_WORDS, SEED, vocabulary, zipf_stream
from benchmarks.run import find_data
from rusbeir.analysis import Analyzer, language_files, read_language
from rusbeir.analysis.lines import read_lines
from rusbeir.analysis.tokenisers import SEGMENTERS
from rusbeir.datasets import load
from rusbeir.errors import RusbeirError
from rusbeir.retrieval import resolve
from rusbeir.types import Dataset

LINES = Path(__file__).parent.parent / "tests" / "languages"
SPACELESS = {"ja": "。", "th": " ", "zh": "。"}
"""Languages without spaces between words, and what ends ten words."""
FORMS = 100_000
PROCESSES = 2
WANTED = 1_000_000
DATASETS = (
    *(f"xquad/{code}{view}" for code in ("en", "es", "de", "ru") for view in ("", "/sentences")),
    "cocktail/nfcorpus/human",
)
DEPTH = 100
QUERY_WORDS = 6
TABLE_SECONDS = 180


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["speed", "blend", "table"])
    parser.add_argument("--docs", type=int)
    parser.add_argument("--language", action="append")
    parser.add_argument("--stream", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    find_data()
    if options.stream:
        print(json.dumps(_analyse(options.language[0], options.stream)))
    elif options.what == "speed":
        _print_speed(speed(options.docs or 200_000, options.language or list(language_files())))
    elif options.what == "table":
        seconds, n_languages = time_table()
        print(f"{n_languages} languages: {seconds:.0f} s, to be at most {TABLE_SECONDS}")
    else:
        with tempfile.TemporaryDirectory() as cache:
            os.environ["RUSBEIR_CACHE"] = cache
            _print_blend(blend(options.docs or 100_000))


def speed(n_docs: int, codes: Sequence[str]) -> Iterator[dict[str, Any]]:
    """A row a language: code, tokens, n_forms, words_per_second; or error, where its extra is missing."""
    for code in codes:
        try:
            row: dict[str, Any] = {"code": code, "tokens": Analyzer(code).recipe.tokens}
            words = forms(code)
        except RusbeirError as error:
            yield {"code": code, "error": str(error)}
            continue
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "RUSBEIR_CACHE": folder}
            # All words once leave their lemmas to the second run, the one that counts.
            for name, texts in (("words", iter(words)), ("stream", _stream(code, words, n_docs))):
                path = Path(folder) / f"{name}.txt"
                with path.open("w", encoding="utf-8") as file:
                    file.writelines(f"{text}\n" for text in texts)
                command = [sys.executable, "-m", "benchmarks.languages", "speed"]
                command += ["--language", code, "--stream", str(path)]
                answer = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
            yield {**row, "n_forms": len(words), **json.loads(answer.stdout)}


def forms(code: str) -> np.ndarray[Any, Any]:
    """Distinct words of the language in the order of their Zipf rank, some of them made; always the same."""
    texts = [text for line in read_lines(LINES / f"{code}.tsv") for text in (line.text, line.expected)]
    try:
        dataset = load(f"xquad/{code}", download=False)
        texts += [*(doc.text for doc in dataset.corpus), *dataset.queries.values()]
    except RusbeirError:
        pass
    analyzer = Analyzer(code, "default" if code in SPACELESS else "unicode")
    surfaces = {token.surface: None for text in texts for token in analyzer.explain(text)}
    words, random = [word for word in surfaces if any(map(str.isalpha, word))], np.random.default_rng(SEED)
    for _ in range(0 if code in SPACELESS else 3 * FORMS):  # short words have few halves
        if len(words) >= FORMS:
            break
        first, second = (words[index] for index in random.integers(len(words), size=2))
        if (made := first[: (len(first) + 1) // 2] + second[len(second) // 2 :]) not in surfaces:
            surfaces[made] = None
            words.append(made)
    chosen = np.array(words, dtype=object)
    random.shuffle(chosen)
    return chosen


def _stream(code: str, words: np.ndarray[Any, Any], n_docs: int) -> Iterator[str]:
    for text in zipf_stream(n_docs, forms=words):
        if code not in SPACELESS:
            yield text
            continue
        parts = text.split(" ")
        yield SPACELESS[code].join("".join(parts[start : start + 10]) for start in range(0, DOC_WORDS, 10))


def _analyse(code: str, path: Path) -> dict[str, Any]:
    analyzer = Analyzer(code)
    started = time.perf_counter()
    with path.open(encoding="utf-8") as file:
        n_docs = sum(1 for _ in analyzer.analyze_lines(file, processes=PROCESSES))
    return {"words_per_second": n_docs * DOC_WORDS / (time.perf_counter() - started)}


def blend(n_docs: int) -> Iterator[dict[str, Any]]:
    """A row a dataset: its name, and for default and blend the terms a document, index_bytes and queries_per_second."""
    for name in DATASETS:
        try:
            dataset = load(name, download=False)
        except RusbeirError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
            continue
        yield {"dataset": name, "n_docs": len(dataset.corpus), **_costs(dataset)}
    weights = 1 / np.arange(1, len(vocabulary()) + 1)
    drawn = np.random.default_rng(SEED).choice(len(weights), (1_000, QUERY_WORDS), p=weights / weights.sum())
    queries = {f"q{number}": " ".join(vocabulary()[row]) for number, row in enumerate(drawn)}
    docs = ({"_id": f"d{row}", "text": text} for row, text in enumerate(zipf_stream(n_docs)))
    qrels = {query_id: {"d0": 1} for query_id in queries}
    dataset = Dataset.of(docs, queries, qrels, language="ru", name="Russian words by Zipf's law")
    yield {"dataset": dataset.card.name, "n_docs": n_docs, **_costs(dataset)}


def _costs(dataset: Dataset) -> dict[str, dict[str, float]]:
    costs = {}
    language = dataset.card.language
    for profile, system in (("default", "bm25"), ("blend", "bm25(profile=blend)")):
        texts = (f"{doc.title} {doc.text}" for doc in dataset.corpus)
        n_terms = sum(line.count(" ") + 1 for line in Analyzer(language, profile).analyze_lines(texts) if line)
        ready = resolve(system, language=language).prepare(dataset.corpus, dataset.fingerprint)
        seconds = []
        for _ in range(4):  # the first reads the index from disk
            started = time.perf_counter()
            ready.retriever.search(dataset.queries, DEPTH)
            seconds.append(time.perf_counter() - started)
        costs[profile] = {
            "terms": n_terms / len(dataset.corpus),
            "index_bytes": ready.index_bytes,
            "queries_per_second": len(dataset.queries) / min(seconds),
        }
    return costs


def time_table() -> tuple[float, int]:
    """The seconds that the table of all languages takes with an empty cache, and how many languages are in it."""
    command = [sys.executable, "-m", "rusbeir.cli", "languages", "compare", "--all", "--json"]
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "RUSBEIR_CACHE": folder}
        started = time.perf_counter()
        done = subprocess.run(command, env=environment, cwd=folder, check=True, stdout=subprocess.PIPE)
        seconds = time.perf_counter() - started
    return seconds, len(json.loads(done.stdout)["languages"])


def _print_speed(rows: Iterator[dict[str, Any]]) -> None:
    print("| | language | words | lemmas | stemmer | words/s | |\n| --- | --- | --- | --- | --- | --: | --- |")
    for row in rows:
        language = read_language(row["code"])
        recipe = language.profiles["default"]
        words, remark = "", row.get("error", "")
        if "words_per_second" in row:
            words = f"{row['words_per_second']:,.0f}"
            slow = row["words_per_second"] < WANTED
            remark = "a segmenter" if slow and row["tokens"] in SEGMENTERS else "slow" if slow else ""
        cells = (f"`{row['code']}`", language.name, recipe.tokens, recipe.lemmas, recipe.stemmer, words, remark)
        print(f"| {' | '.join(cells)} |", flush=True)


def _print_blend(rows: Iterator[dict[str, Any]]) -> None:
    print("| | documents | terms a document | | index MB | | queries/s | |")
    print(f"| ---{' | --:' * 7} |\n| | | `default` | `blend` | `default` | `blend` | `default` | `blend` |")
    for row in rows:
        ours, theirs = row["default"], row["blend"]
        cells = [row["dataset"], f"{row['n_docs']:,}"]
        cells += [f"{cost['terms']:.0f}" for cost in (ours, theirs)]
        cells += [f"{cost['index_bytes'] / 1e6:.1f}" for cost in (ours, theirs)]
        cells += [f"{cost['queries_per_second']:,.0f}" for cost in (ours, theirs)]
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()

"""Speed of indexing and searching against bm25s with numba and PISA on the same terms; memory of a whole build.

python -m benchmarks.search [--docs 1000000] [--queries 1000] [--skip-memory]

Every engine goes from one file of analysed terms to an index on disk, and from analysed queries on every core to
a run as an evaluation takes it (query -> document id -> score), each in a process of its own. PISA runs through the
bindings of pyterrier-pisa alone (no Java); its tokeniser knows ASCII only, so its terms are numbered (w17), which
changes no score.

Queries are six words of the stream, of two kinds: "content" leaves out its 150 commonest words, which stand
where a language has its stop words; "any" takes them as they come, most queries with words of every other document.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import memory
from benchmarks.analysis import SEED, vocabulary, zipf_stream

QUERY_WORDS = 6
STOP_WORDS = 150
KINDS = ("content", "any")
DEPTHS = (100, 1000)
MEMORY_DOCS = (100_000, 1_000_000)
CORES = len(os.sched_getaffinity(0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=1_000)
    parser.add_argument("--skip-memory", action="store_true")
    parser.add_argument("--measure", choices=sorted([*ENGINES, "build"]), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure == "build":
        _whole_build(options.docs)
    elif options.measure:
        print(json.dumps(ENGINES[options.measure](options.folder)))
    else:
        _print(measure(options.docs, options.queries, memory=not options.skip_memory))


def measure(n_docs: int = 1_000_000, n_queries: int = 1_000, *, memory: bool = True) -> list[dict[str, Any]]:
    """A row an engine, then a row a whole build.

    Of an engine: index_seconds, index_bytes, and queries_per_second by case, such as content@100; with ratios to ours.
    """
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write_terms(folder, n_docs, n_queries)
        for engine in ENGINES:
            answer = subprocess.run([*_me(), "--measure", engine, "--folder", name], check=True, stdout=subprocess.PIPE)
            rows.append({"what": engine, "n_docs": n_docs, **json.loads(answer.stdout.splitlines()[-1])})
    ours = rows[0]
    for row in rows:
        row["index_ratio"] = row["index_seconds"] / ours["index_seconds"]
        row["search_ratio"] = {
            case: ours["queries_per_second"][case] / speed for case, speed in row["queries_per_second"].items()
        }
    return rows + [_build_memory(docs) for docs in MEMORY_DOCS if memory]


def _tantivy(folder: Path) -> dict[str, Any]:
    from rusbeir.retrieval.lexical import index
    from rusbeir.retrieval.lexical.bm25 import Bm25
    from rusbeir.retrieval.lexical.tantivy_engine import TantivyEngine
    from rusbeir.types import silent

    engine, bm25, path = TantivyEngine(), Bm25(), folder / "tantivy"
    recipe = index.IndexKey(signature="benchmark", fingerprint="")
    started = time.perf_counter()
    index.build(path, recipe, _TermCorpus(folder / "terms.txt"), _AsTheyAre(), engine, bm25, silent)
    seconds = time.perf_counter() - started
    retriever, _ = index.open_index(path, recipe, _AsTheyAre(), engine, bm25)
    queries = {
        kind: {str(number): " ".join(terms) for number, terms in enumerate(_queries(folder, kind))} for kind in KINDS
    }
    return _row(seconds, path, len(queries["any"]), lambda kind, k: retriever.search(queries[kind], k))


def _bm25s(folder: Path) -> dict[str, Any]:
    import bm25s

    path = folder / "bm25s"
    started = time.perf_counter()
    with (folder / "terms.txt").open(encoding="utf-8") as lines:
        documents = [line.split() for line in lines]
    retriever = bm25s.BM25(method="lucene", k1=1.2, b=0.75, backend="numba")
    retriever.index(documents, show_progress=False)
    retriever.save(path, show_progress=False)
    seconds = time.perf_counter() - started
    ids = np.array([f"d{row}" for row in range(len(documents))], dtype=object)
    queries = {kind: _queries(folder, kind) for kind in KINDS}

    def search(kind: str, k: int) -> Any:
        hits, scores = retriever.retrieve(queries[kind], corpus=ids, k=k, n_threads=CORES, show_progress=False)
        rows = zip(hits.tolist(), scores.tolist(), strict=True)
        return {str(query_row): dict(zip(*row, strict=True)) for query_row, row in enumerate(rows)}

    return _row(seconds, path, len(queries["any"]), search)


def _pisa(folder: Path) -> dict[str, Any]:
    pisa = _pisa_bindings()
    numbers: dict[str, str] = {}
    plain = folder / "terms.pisa"
    with (folder / "terms.txt").open(encoding="utf-8") as lines, plain.open("w") as file:
        for row, line in enumerate(lines):
            terms = [numbers.setdefault(term, f"w{len(numbers)}") for term in line.split()]
            file.write(f"d{row} {' '.join(terms)}\n")
    queries = {
        kind: [
            (query_number, dict.fromkeys((numbers[term] for term in terms if term in numbers), 1.0))
            for query_number, terms in enumerate(_queries(folder, kind))
        ]
        for kind in KINDS
    }
    path = folder / "pisa"
    path.mkdir()
    context = pisa.RetrievalContext()
    started = time.perf_counter()
    pisa.index(str(plain), str(path), "", 100_000, CORES)
    pisa.prepare_index(context, str(path), "block_simdbp", "bm25", "", bm25_k1=1.2, bm25_b=0.75)
    seconds = time.perf_counter() - started

    def search(kind: str, k: int) -> Any:
        size = len(queries[kind]) * k
        row_numbers, ids = np.empty(size, dtype=np.int32), np.empty(size, dtype=object)
        scores = np.empty(size, dtype=np.float32)
        count = pisa.retrieve(
            context,
            "block_max_wand",
            queries[kind],
            k=k,
            threads=CORES,
            query_weighted=0,
            pretokenised=True,
            result_qidxs=row_numbers,
            result_docnos=ids,
            result_ranks=np.empty(size, dtype=np.int32),
            result_scores=scores,
        )
        starts = np.flatnonzero(np.diff(row_numbers[:count], prepend=-1)).tolist()
        return {
            str(row_numbers[start]): dict(zip(ids[start:end].tolist(), scores[start:end].tolist(), strict=True))
            for start, end in zip(starts, [*starts[1:], count], strict=True)
        }

    return _row(seconds, path, len(queries["any"]), search)


ENGINES: dict[str, Callable[[Path], dict[str, Any]]] = {
    "rusbeir on tantivy": _tantivy,
    "bm25s with numba": _bm25s,
    "PISA": _pisa,
}


def _row(seconds: float, path: Path, n_queries: int, search: Callable[[str, int], Any]) -> dict[str, Any]:
    speeds = {}
    for kind in KINDS:
        for depth in DEPTHS:
            search(kind, depth)  # the first call compiles (numba) and reads the index from disk
            started = time.perf_counter()
            search(kind, depth)
            speeds[f"{kind}@{depth}"] = n_queries / (time.perf_counter() - started)
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return {"index_seconds": seconds, "queries_per_second": speeds, "index_bytes": size}


def _pisa_bindings() -> Any:
    """The compiled module alone: its package imports PyTerrier, and that Java. It needs oneTBB's libtbb.so.2."""
    import ctypes
    import importlib.util

    tbb = Path(sys.prefix) / "lib" / "libtbb.so.2"
    if tbb.exists():
        ctypes.CDLL(str(tbb), mode=ctypes.RTLD_GLOBAL)
    package = importlib.util.find_spec("pyterrier_pisa")
    if package is None or package.origin is None:
        raise SystemExit("PISA is missing: pip install 'rusbeir[bench]'.")
    sys.path.insert(0, str(Path(package.origin).parent))
    import _pisathon  # type: ignore[import-not-found]

    return _pisathon


class _TermCorpus:
    """A file of terms as a corpus."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with path.open("rb") as lines:
            self._count = sum(1 for _ in lines)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Any]:
        from rusbeir.types import Doc

        with self._path.open(encoding="utf-8") as lines:
            for row, line in enumerate(lines):
                yield Doc(f"d{row}", line.rstrip("\n"))

    def __getitem__(self, doc_id: str) -> Any:
        raise KeyError(doc_id)


class _AsTheyAre:
    """An analyzer for texts that are terms already."""

    signature = "terms"

    def analyze(self, text: str) -> list[str]:
        return text.split()

    def analyze_lines(self, texts: Iterable[str], *, processes: int | None = None) -> Iterator[str]:
        return iter(texts)


class _Stream:
    """The Zipf stream as a corpus."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Any]:
        from rusbeir.types import Doc

        return (Doc(f"d{row}", text) for row, text in enumerate(zipf_stream(self._count)))

    def __getitem__(self, doc_id: str) -> Any:
        raise KeyError(doc_id)


def _whole_build(n_docs: int) -> None:
    """Analyse and index, and nothing else; the parent watches the memory from the line that this prints."""
    from rusbeir.retrieval import resolve

    vocabulary()
    print("ready", flush=True)
    prepared = resolve("bm25", language="ru").prepare(_Stream(n_docs), f"zipf-{n_docs}")
    print(json.dumps({"analyse_seconds": prepared.analyse_seconds, "index_seconds": prepared.index_seconds}))


def _build_memory(n_docs: int) -> dict[str, Any]:
    """Peak of the memory of all processes of a build together, shared pages counted once.

    The stream's own vocabulary is taken off: it stands for a corpus on disk.
    """
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "RUSBEIR_CACHE": cache}
        process = subprocess.Popen(
            [*_me(), "--measure", "build", "--docs", str(n_docs)],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        process.stdout.readline()
        before = peak = memory.tree_bytes(process.pid)
        while process.poll() is None:
            peak = max(peak, memory.tree_bytes(process.pid))
            time.sleep(0.1)
        answer = process.stdout.read()
        if process.returncode:
            raise SystemExit(f"The build of {n_docs:,} documents failed with code {process.returncode}.")
        report = json.loads(answer)
    return {
        "what": "whole build",
        "n_docs": n_docs,
        "peak_bytes": peak,
        "stream_bytes": before,
        **report,
    }


def _write_terms(folder: Path, n_docs: int, n_queries: int) -> None:
    from rusbeir.analysis import Analyzer

    analyzer = Analyzer("ru")
    with (folder / "terms.txt").open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in analyzer.analyze_lines(zipf_stream(n_docs)))
    words = vocabulary()
    for kind in KINDS:
        weights = 1 / np.arange(1, len(words) + 1)
        weights[: STOP_WORDS if kind == "content" else 0] = 0
        random = np.random.default_rng(SEED + 1)
        ranks = random.choice(len(words), (n_queries, QUERY_WORDS), p=weights / weights.sum())
        lines = analyzer.analyze_lines(" ".join(words[row]) for row in ranks)
        queries = [line.split() for line in lines]
        (folder / f"queries.{kind}.json").write_text(json.dumps(queries, ensure_ascii=False), "utf-8")


def _queries(folder: Path, kind: str) -> list[list[str]]:
    return list(json.loads((folder / f"queries.{kind}.json").read_text("utf-8")))


def _me() -> list[str]:
    return [sys.executable, "-m", "benchmarks.search"]


def _print(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        if "peak_bytes" in row:
            print(
                f"{row['what']:<20} {row['n_docs']:>9,} documents: peak {row['peak_bytes'] / 2**20:,.0f} MB,"
                f" of which the stream {row['stream_bytes'] / 2**20:,.0f};"
                f" analyse {row['analyse_seconds']:.1f} s, index {row['index_seconds']:.1f} s"
            )
            continue
        speeds = ", ".join(
            f"{case} {speed:,.0f} queries/s (ours {row['search_ratio'][case]:.2f}×)"
            for case, speed in row["queries_per_second"].items()
        )
        print(
            f"{row['what']:<20} {row['n_docs']:>9,} documents: index {row['index_seconds']:.1f} s"
            f" ({row['index_ratio']:.1f}× ours), {speeds}"
        )


if __name__ == "__main__":
    main()

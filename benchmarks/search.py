"""Speed of indexing and searching against bm25s with numba and PISA on the same terms; memory of a whole build.

python -m benchmarks.search [--docs 1000000] [--queries 1000] [--skip-memory]

Every engine goes from one file of analysed terms to an index on disk, and from analysed queries on every core to
a run as an evaluation takes it (query -> document id -> score), each in a process of its own. PISA runs through the
bindings of pyterrier-pisa alone (no Java); its tokeniser knows ASCII only, so its terms are numbered (w17), which
changes no score.

Queries are six words of the stream, of two kinds: "content" leaves out its 150 commonest words, which stand
where a language has its stop words; "any" takes them as they come, most queries with words of every other document.

Indexes are built one after the other. Then the engines take turns on blocks of queries, so that a slow moment of the
machine meets all of them, and ratios are medians over blocks.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np

from benchmarks import memory
from benchmarks.analysis import SEED, vocabulary, zipf_stream

QUERY_WORDS = 6
STOP_WORDS = 150
KINDS = ("content", "any")
DEPTHS = (100, 1000)
MEMORY_DOCS = (100_000, 1_000_000)
CORES = len(os.sched_getaffinity(0))
BLOCK = 200
ROUNDS = 3

Index: TypeAlias = tuple[float, Path, Callable[[str, int, slice], Any]]
"""The seconds that an index took, where it is, and a search: called with the kind of queries, k, and which of them."""


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
        _serve(*ENGINES[options.measure](options.folder))
    else:
        _print(measure(options.docs, options.queries, memory=not options.skip_memory))


def measure(n_docs: int = 1_000_000, n_queries: int = 1_000, *, memory: bool = True) -> list[dict[str, Any]]:
    """A row an engine, then a row a whole build.

    Of an engine: index_seconds, index_bytes, and queries_per_second by case, such as content@100; with ratios to ours,
    the median over blocks of queries, and their spread (least, most).
    """
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        _write_terms(Path(name), n_docs, n_queries)
        servers = {engine: stack.enter_context(_Server(engine, name)) for engine in ENGINES}
        cases = [(kind, depth) for kind in KINDS for depth in DEPTHS]
        seconds = {f"{kind}@{depth}": _take_turns(servers, kind, depth, n_queries) for kind, depth in cases}
    rows = []
    ours = next(iter(ENGINES))
    for engine, server in servers.items():
        ratios = {
            case: sorted(theirs / own for theirs, own in zip(by_engine[engine], by_engine[ours], strict=True))
            for case, by_engine in seconds.items()
        }
        rows.append(
            {
                "what": engine,
                "n_docs": n_docs,
                **server.index,
                "index_ratio": server.index["index_seconds"] / servers[ours].index["index_seconds"],
                "queries_per_second": {
                    case: ROUNDS * n_queries / sum(by_engine[engine]) for case, by_engine in seconds.items()
                },
                "search_ratio": {case: statistics.median(values) for case, values in ratios.items()},
                "search_spread": {case: (values[0], values[-1]) for case, values in ratios.items()},
            }
        )
    return rows + [_build_memory(docs) for docs in MEMORY_DOCS if memory]


def _take_turns(servers: Mapping[str, _Server], kind: str, depth: int, n_queries: int) -> dict[str, list[float]]:
    """Engine -> the seconds of each block of queries, in all rounds."""
    for server in servers.values():
        server.search(kind, depth, 0, n_queries)  # the first call compiles (numba) and reads the index from disk
    seconds: dict[str, list[float]] = {engine: [] for engine in servers}
    for start in [*range(0, n_queries, BLOCK)] * ROUNDS:
        for engine, server in servers.items():
            seconds[engine].append(server.search(kind, depth, start, start + BLOCK))
    return seconds


class _Server:
    """An engine in a process of its own, which builds its index and then searches blocks of queries when asked."""

    def __init__(self, engine: str, folder: str) -> None:
        command = [*_me(), "--measure", engine, "--folder", folder]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.index: dict[str, Any] = self._answer("index_seconds")

    def search(self, kind: str, depth: int, start: int, end: int) -> float:
        """The seconds that it takes to find the first `depth` documents of the queries from start to end."""
        assert self._process.stdin is not None
        print(json.dumps([kind, depth, start, end]), file=self._process.stdin, flush=True)
        return float(self._answer("seconds")["seconds"])

    def _answer(self, key: str) -> dict[str, Any]:
        assert self._process.stdout is not None
        # PISA prints here, too.
        for line in self._process.stdout:
            if line.startswith(f'{{"{key}"'):
                return dict(json.loads(line))
        raise SystemExit(f"An engine ended with code {self._process.wait()}.")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()


def _serve(seconds: float, path: Path, search: Callable[[str, int, slice], Any]) -> None:
    """Print what an index took, then the seconds of each search that standard input asks for."""
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    # PISA may not have ended its line.
    print("\n" + json.dumps({"index_seconds": seconds, "index_bytes": size}), flush=True)
    for line in sys.stdin:
        kind, depth, start, end = json.loads(line)
        started = time.perf_counter()
        search(kind, depth, slice(start, end))
        print("\n" + json.dumps({"seconds": time.perf_counter() - started}), flush=True)


def _tantivy(folder: Path) -> Index:
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
    queries = {kind: [" ".join(terms) for terms in _queries(folder, kind)] for kind in KINDS}

    def search(kind: str, k: int, block: slice) -> Any:
        return retriever.search({str(number): text for number, text in enumerate(queries[kind][block])}, k)

    return seconds, path, search


def _bm25s(folder: Path) -> Index:
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

    def search(kind: str, k: int, block: slice) -> Any:
        hits, scores = retriever.retrieve(queries[kind][block], corpus=ids, k=k, n_threads=CORES, show_progress=False)
        rows = zip(hits.tolist(), scores.tolist(), strict=True)
        return {str(query_row): dict(zip(*row, strict=True)) for query_row, row in enumerate(rows)}

    return seconds, path, search


def _pisa(folder: Path) -> Index:
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

    def search(kind: str, k: int, block: slice) -> Any:
        asked = queries[kind][block]
        size = len(asked) * k
        row_numbers, ids = np.empty(size, dtype=np.int32), np.empty(size, dtype=object)
        scores = np.empty(size, dtype=np.float32)
        count = pisa.retrieve(
            context,
            "block_max_wand",
            asked,
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

    return seconds, path, search


ENGINES: dict[str, Callable[[Path], Index]] = {
    "rusbeir on tantivy": _tantivy,
    "bm25s with numba": _bm25s,
    "PISA": _pisa,
}


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
            f"{case} {speed:,.0f} queries/s (ours {row['search_ratio'][case]:.2f}×, "
            f"{' to '.join(f'{ratio:.2f}' for ratio in row['search_spread'][case])})"
            for case, speed in row["queries_per_second"].items()
        )
        print(
            f"{row['what']:<20} {row['n_docs']:>9,} documents: index {row['index_seconds']:.1f} s"
            f" ({row['index_ratio']:.1f}× ours), {speeds}"
        )


if __name__ == "__main__":
    main()

"""AIR-Bench's result files: written by running systems, read back, and zipped for submission.

Paths, keys and the zip are those of air_benchmark 0.1.0 (evaluation_utils/evaluator.py, scripts/zip_results.py). One
key is added: the signature of the system, which says whether a file can be reused.
"""

from __future__ import annotations

import logging
import re
import shutil
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import orjson

from rusbeir.datasets import finite_scores, read_json, registry
from rusbeir.errors import BadInput, option, unknown
from rusbeir.experiment import SystemLike, resolve_on, search
from rusbeir.retrieval import Spec, check_available, parse, read_system
from rusbeir.storage import atomic_file
from rusbeir.text import slug
from rusbeir.types import Progress, Run, silent

NO_RERANKER = "NoReranker"
DEPTH = 1000
"""The hits per query that AIR-Bench takes from a retriever; from a reranker it takes 100."""

_VERSION = "AIR-Bench_"
_NAME = re.compile(r"[A-Za-z0-9][\w.+-]{0,99}", re.ASCII)
_RESULT = {
    **dict.fromkeys(("model_name", "reranker_name", "benchmark_version", "task_type", "domain", "language"), str),
    # Files of version 24.04 may call the dataset task_name and leave the split out.
    "dataset_name?": str, "task_name?": str, "split?": str, "signature?": str, "search_results": {str: {str: float}},
}  # fmt: skip
_EPOCH = (1980, 1, 1, 0, 0, 0)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class AirTask:
    """One split of one dataset of AIR-Bench, by AIR-Bench's own names."""

    name: str
    """The registered name, such as air-bench/24.05/qa/wiki/ru/dev."""
    version: str
    task_type: str
    """qa or long-doc."""
    domain: str
    language: str
    dataset_name: str
    split: str
    judged: bool

    @property
    def file(self) -> str:
        """The path of its results below the folder of a retriever and a reranker."""
        return f"{self.task_type}/{self.domain}/{self.language}_{self.dataset_name}_{self.split}.json"

    @property
    def column(self) -> str:
        """Its name on AIR-Bench's leaderboards: wiki_ru, law_en_lex_files_300K-400K."""
        return f"{self.domain}_{self.language}" + ("" if self.task_type == "qa" else f"_{self.dataset_name}")


class ResultFile(NamedTuple):
    """The hits of one system for the queries of one task."""

    task: AirTask
    retriever: str
    reranker: str
    """NO_RERANKER if there is none."""
    signature: str
    """The signature of the system with the depth; "" in files of other programs."""
    run: Run


class Written(NamedTuple):
    """A result file that was written or reused."""

    dataset: str
    system: str
    path: Path
    n_queries: int
    n_zero_hit: int
    reused: bool


class Packed(NamedTuple):
    """A zip to submit, and which datasets of its version it holds."""

    path: Path
    version: str
    datasets: tuple[str, ...]
    missing: tuple[str, ...]
    """AIR-Bench averages only over complete sets: where one is missing, the leaderboard has no average."""


def list_tasks() -> dict[str, AirTask]:
    """List the tasks of all versions by their registered names."""
    tasks = {}
    for name, entry in registry.read_registry().items():
        if name.startswith("air-bench/"):
            _, version, task_type, domain, *_ = name.split("/")
            tasks[name] = AirTask(
                name=name, version=version, task_type=task_type, domain=domain, language=entry.language,
                dataset_name=str(entry.options["view"]), split=entry.split, judged=entry.judged,
            )  # fmt: skip
    return tasks


def find_tasks(names: Iterable[str]) -> list[AirTask]:
    """Find the tasks of these names; a prefix stands for all names that it begins: air-bench/24.05/qa/wiki."""
    tasks = list_tasks()
    chosen: dict[str, AirTask] = {}
    for prefix in names:
        matching = {name: task for name, task in tasks.items() if f"{name}/".startswith(f"{prefix.rstrip('/')}/")}
        if not matching:
            raise unknown("dataset of AIR-Bench", prefix, tasks, listing="rusbeir datasets")
        chosen |= matching
    return list(chosen.values())


def name_parts(system: str) -> tuple[str, str]:
    """Name a system's retriever and reranker as AIR-Bench's files do: its first stage, and the others.

    >>> name_parts("bm25 >> rerank(bge-reranker-v2-m3,depth=100)")
    ('bm25', 'rerank-bge-reranker-v2-m3-depth-100')
    """
    first, *later = parse(system).stages
    return slug(str(first)), slug(str(Spec(tuple(later)))) or NO_RERANKER


def write_results(
    datasets: Sequence[str],
    systems: Sequence[SystemLike],
    *,
    out: str | Path,
    engine: str = "auto",
    k: int = DEPTH,
    retriever: str | None = None,
    reranker: str | None = None,
    force: bool = False,
    budget_chars: int | None = None,
    progress: Progress = silent,
) -> Iterator[Written]:
    """Run systems on datasets of AIR-Bench, and write a result file for each: out/<retriever>/<reranker>/<task>.

    Args:
        datasets: Registered names, or prefixes of them, as `find_tasks` takes them.
        systems: The systems to run.
        out: The folder of the result files.
        engine: The engine of BM25.
        k: The hits per query.
        retriever: The name of the first stage in the files; only for a single system.
        reranker: The name of the other stages in the files; only for a single system.
        force: Replace files that are there; else a file of the same recipe is reused.
        budget_chars: The characters that all runs into out may send to endpoints.
        progress: Is told what is being done.

    Yields:
        Each file as it is written or reused.

    Raises:
        BadInput: A file of another recipe is there, a name cannot be one of a folder, or as `search`.
        UnknownName: AIR-Bench has no such dataset.

    Examples:
        >>> list(write_results(["air-bench/24.05/qa/wiki/ru"], ["bm25"], out="search_results"))  # doctest: +SKIP
    """
    tasks = find_tasks(datasets)
    specs = [read_system(system) for system in systems]
    if (retriever or reranker) and len(specs) != 1:
        raise BadInput(f"{option('retriever')} and {option('reranker')} name the parts of one system; give one.")
    for name in filter(None, (retriever, reranker)):
        if not _NAME.fullmatch(name):
            raise BadInput(f"{name!r} cannot name a folder of result files; use letters, digits and . + - _")
    for task in tasks:
        dataset, resolved = resolve_on(task.name, specs, k, engine, None, None, progress, judged=False)
        for system in resolved:
            first, second = name_parts(system.name)
            if reranker and second == NO_RERANKER:
                raise BadInput(f"{system.name} does not rerank, so {option('reranker')} names nothing. Leave it out.")
            names = retriever or first, reranker or second
            path = Path(out).joinpath(*names, task.file)
            signature = f"{system.signature}|k:{k}"
            run = None if force else _read_reusable(path, task, signature)
            reused = run is not None
            if run is None:
                check_available(system)
                run = search(dataset, system, k=k, out=out, budget_chars=budget_chars, progress=progress)
                _write(path, ResultFile(task, *names, signature, run))
            n_zero_hit = sum(not hits for hits in run.values())
            if n_zero_hit:
                logger.warning(
                    "%s: %d of %d queries of %s have no results; they score 0.",
                    system.name, n_zero_hit, len(run), task.name,
                )  # fmt: skip
            yield Written(task.name, system.name, path, len(run), n_zero_hit, reused)


def _read_reusable(path: Path, task: AirTask, signature: str) -> Run | None:
    """The run of a file of the same recipe; None if there is no file."""
    if not path.is_file():
        return None
    result = read_result(path)
    if (result.task, result.signature) != (task, signature):
        raise BadInput(
            f"{path} holds results of another recipe or version. Choose another folder with {option('out')}, another "
            f"name with {option('retriever')}, or replace it with {option('force', True)}."
        )
    return result.run


def _write(path: Path, result: ResultFile) -> None:
    task = result.task
    document = {
        "model_name": result.retriever,
        "reranker_name": result.reranker,
        "benchmark_version": _VERSION + task.version,
        "task_type": task.task_type,
        "domain": task.domain,
        "language": task.language,
        "dataset_name": task.dataset_name,
        "split": task.split,
        "signature": result.signature,
        "search_results": {query_id: finite_scores(query_id, hits) for query_id, hits in result.run.items()},
    }
    with atomic_file(path) as file:
        file.write(orjson.dumps(document))


def read_result(path: Path) -> ResultFile:
    """Read a result file. Raises BadInput for other files, and for datasets that AIR-Bench does not have."""
    document = read_json(path, _RESULT, "Name a result file of AIR-Bench, or write it again.")
    version = document["benchmark_version"].removeprefix(_VERSION)
    dataset_name = document.get("dataset_name", document.get("task_name"))
    split = document.get("split", "test")
    names = (version, document["task_type"], document["domain"], document["language"], dataset_name, split)
    for task in list_tasks().values():
        if names == (task.version, task.task_type, task.domain, task.language, task.dataset_name, task.split):
            parts = document["model_name"], document["reranker_name"]
            return ResultFile(task, *parts, document.get("signature", ""), document["search_results"])
    raise BadInput(f"{path}: AIR-Bench has no dataset {' '.join(map(str, names))}.")


def list_results(folder: Path) -> list[Path]:
    """List the result files below a folder in the order of their names. Raises BadInput if there are none."""
    files = sorted(path for path in folder.rglob("*.json") if not path.name.startswith("."))
    if not files:
        raise BadInput(f"{folder} has no result files. `rusbeir airbench run --out` writes them.")
    return files


def pack_results(folder: str | Path, out: str | Path | None = None, *, progress: Progress = silent) -> Packed:
    """Zip the result files of one retriever and one reranker, without those of dev, as <retriever>_<reranker>.zip.

    Args:
        folder: <out>/<retriever>/<reranker>, as `write_results` made it.
        out: The folder of the zip; by default that of the retriever's folder.
        progress: Is told how many files were read.

    Returns:
        The zip, and which datasets it holds. The same files give the same bytes.

    Raises:
        BadInput: A file is not where its content belongs, files are of two versions, or none is of test.

    Examples:
        >>> pack_results("search_results/bm25/NoReranker").missing  # doctest: +SKIP
    """
    folder = Path(folder).resolve()
    files = list_results(folder)
    packed: dict[str, Path] = {}
    versions: set[str] = set()
    for n, path in enumerate(files):
        progress("reading result files", n, len(files))
        result = read_result(path)
        expected = Path(result.retriever, result.reranker, result.task.file)
        if path != folder.parent.parent / expected:
            raise BadInput(
                f"{path}: its content belongs to {expected} below the folder of all results. Write it again."
            )
        if result.task.split != "dev":
            packed[result.task.name] = path
            versions.add(result.task.version)
    if len(versions) != 1:
        content = f"files of the versions {' and '.join(sorted(versions))}" if versions else "only files of dev"
        raise BadInput(f"{folder} has {content}. A submission has the files of test of one version.")
    (version,) = versions
    target = Path(out or folder.parent.parent) / f"{folder.parent.name}_{folder.name}.zip"
    with atomic_file(target) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in packed.values():
            member = zipfile.ZipInfo(path.relative_to(folder).as_posix(), _EPOCH)
            member.compress_type, member.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            with path.open("rb") as source, archive.open(member, "w") as packing:
                shutil.copyfileobj(source, packing)
    complete = [name for name, task in list_tasks().items() if (task.version, task.split) == (version, "test")]
    return Packed(target, version, tuple(packed), tuple(name for name in complete if name not in packed))

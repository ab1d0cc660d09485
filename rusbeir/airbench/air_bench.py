"""AIR-Bench's result files: written by running systems, read back, and zipped for submission.

Places, keys and the zip are those of air_benchmark 0.1.0 (evaluation_utils/evaluator.py, scripts/zip_results.py). One
key is added: the signature of the system, which tells whether a file can be kept.
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
from rusbeir.retrieval import Spec, check_available, check_names, parse
from rusbeir.storage import atomic_file
from rusbeir.text import slug
from rusbeir.types import Progress, Run, silent

NO_RERANKER = "NoReranker"
DEPTH = 1000
"""The hits per query that AIR-Bench takes of a retriever; of a reranker it takes 100."""

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
        """The place of its results below the folder of a retriever and a reranker."""
        return f"{self.task_type}/{self.domain}/{self.language}_{self.dataset_name}_{self.split}.json"

    @property
    def column(self) -> str:
        """What AIR-Bench's leaderboards call it: wiki_ru, law_en_lex_files_300K-400K."""
        return f"{self.domain}_{self.language}" + ("" if self.task_type == "qa" else f"_{self.dataset_name}")


class ResultFile(NamedTuple):
    """What one system found for the queries of one task."""

    task: AirTask
    retriever: str
    reranker: str
    """NO_RERANKER if there is none."""
    signature: str
    """The signature of the system with the depth; "" in files of other programs."""
    run: Run


class Written(NamedTuple):
    """A result file that was written, or was there already."""

    dataset: str
    system: str
    path: Path
    n_queries: int
    n_zero_hit: int
    kept: bool


class Packed(NamedTuple):
    """A zip to submit, and which datasets of its version are in it."""

    path: Path
    version: str
    datasets: tuple[str, ...]
    missing: tuple[str, ...]
    """AIR-Bench averages only over complete sets: where one is missing, the leaderboard has no average."""


def list_tasks() -> dict[str, AirTask]:
    """Registered name -> task, of all versions."""
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
    """The tasks of these names; the beginning of names stands for all of them: air-bench/24.05/qa/wiki."""
    tasks = list_tasks()
    found: dict[str, AirTask] = {}
    for name in names:
        beginning = name.rstrip("/") + "/"
        matching = {one: task for one, task in tasks.items() if f"{one}/".startswith(beginning)}
        if not matching:
            raise unknown("dataset of AIR-Bench", name, tasks, listing="rusbeir datasets")
        found |= matching
    return list(found.values())


def name_parts(system: str) -> tuple[str, str]:
    """The names of a system's retriever and reranker in AIR-Bench's files: those of its first stage and of the others.

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

    datasets are as find_tasks takes them. retriever and reranker replace the names that name_parts gives to the parts
    of a single system. A file of the same recipe is kept, unless force is set; raises BadInput for one of another
    recipe, and as `search`.
    """
    tasks = find_tasks(datasets)
    specs = [check_names(one) if isinstance(one, (str, Spec)) else one for one in systems]
    if (retriever or reranker) and len(specs) != 1:
        raise BadInput(f"{option('retriever')} and {option('reranker')} name the parts of one system; give one.")
    for given in filter(None, (retriever, reranker)):
        if not _NAME.fullmatch(given):
            raise BadInput(f"{given!r} cannot name a folder of result files; use letters, digits and . + - _")
    for task in tasks:
        dataset, resolved = resolve_on(task.name, specs, k, engine, None, None, progress, judged=False)
        for system in resolved:
            first, second = name_parts(system.name)
            if reranker and second == NO_RERANKER:
                raise BadInput(f"{system.name} does not rerank, so {option('reranker')} names nothing. Leave it out.")
            names = retriever or first, reranker or second
            path = Path(out).joinpath(*names, task.file)
            signature = f"{system.signature}|k:{k}"
            run = None if force else _read_kept(path, task, signature)
            kept = run is not None
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
            yield Written(task.name, system.name, path, len(run), n_zero_hit, kept)


def _read_kept(path: Path, task: AirTask, signature: str) -> Run | None:
    if not path.is_file():
        return None
    there = read_result(path)
    if (there.task, there.signature) != (task, signature):
        raise BadInput(
            f"{path} holds results of another recipe or version. Choose another folder with {option('out')}, another "
            f"name with {option('retriever')}, or replace it with {option('force', True)}."
        )
    return there.run


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
    """The result file at that path. Raises BadInput for other files, and for datasets that AIR-Bench does not have."""
    found = read_json(path, _RESULT, "Name a result file of AIR-Bench, or write it again.")
    version = found["benchmark_version"].removeprefix(_VERSION)
    dataset_name = found.get("dataset_name", found.get("task_name"))
    split = found.get("split", "test")
    wanted = (version, found["task_type"], found["domain"], found["language"], dataset_name, split)
    for task in list_tasks().values():
        if wanted == (task.version, task.task_type, task.domain, task.language, task.dataset_name, task.split):
            names = found["model_name"], found["reranker_name"]
            return ResultFile(task, *names, found.get("signature", ""), found["search_results"])
    raise BadInput(f"{path}: AIR-Bench has no dataset {' '.join(map(str, wanted))}.")


def list_results(folder: Path) -> list[Path]:
    """The result files below a folder, in the order of their names. Raises BadInput if there are none."""
    found = sorted(path for path in folder.rglob("*.json") if not path.name.startswith("."))
    if not found:
        raise BadInput(f"{folder} has no result files. `rusbeir airbench run --out` writes them.")
    return found


def pack_results(folder: str | Path, out: str | Path | None = None, *, progress: Progress = silent) -> Packed:
    """Zip the result files of one retriever and one reranker, without those of dev, as <retriever>_<reranker>.zip.

    folder is <out>/<retriever>/<reranker>; the zip is put into the folder out, or next to the retriever's. The same
    files give the same bytes. Raises BadInput for a file that is not where its content belongs, for files of two
    versions, and if there is none of test.
    """
    folder = Path(folder).resolve()
    files = list_results(folder)
    packed: dict[str, Path] = {}
    versions: set[str] = set()
    for n, path in enumerate(files):
        progress("reading result files", n, len(files))
        result = read_result(path)
        place = Path(result.retriever, result.reranker, result.task.file)
        if path != folder.parent.parent / place:
            raise BadInput(f"{path}: its content belongs to {place} below the folder of all results. Write it again.")
        if result.task.split != "dev":
            packed[result.task.name] = path
            versions.add(result.task.version)
    if len(versions) != 1:
        found = f"files of the versions {' and '.join(sorted(versions))}" if versions else "only files of dev"
        raise BadInput(f"{folder} has {found}. A submission has the files of test of one version.")
    (version,) = versions
    target = Path(out or folder.parent.parent) / f"{folder.parent.name}_{folder.name}.zip"
    with atomic_file(target) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in packed.values():
            member = zipfile.ZipInfo(path.relative_to(folder).as_posix(), _EPOCH)
            member.compress_type, member.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            with path.open("rb") as source, archive.open(member, "w") as packing:
                shutil.copyfileobj(source, packing)
    wanted = [name for name, task in list_tasks().items() if (task.version, task.split) == (version, "test")]
    return Packed(target, version, tuple(packed), tuple(name for name in wanted if name not in packed))

"""Repositories of the Hugging Face hub: the files that a dataset needs, and no others, by the hub's own library.

That library resumes, keeps one copy of a file in its cache (HF_HOME), and knows HF_ENDPOINT, HF_TOKEN and
HF_HUB_OFFLINE. Nothing of a repository is ever run.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from rusbeir.datasets.checksums import check, key_of
from rusbeir.datasets.extras import optional
from rusbeir.datasets.formats.hub_layout import Configs, Layout, complain_of_missing_shards, layout_of, read_configs
from rusbeir.datasets.registry import Row, md5sums
from rusbeir.errors import BackendError, BadInput, RusbeirError
from rusbeir.storage import atomic_file, cache_folder
from rusbeir.types import Progress

_README = "README.md"


class Repository(NamedTuple):
    """owner/name, and the revision (a commit, best) that is meant; None for the newest."""

    name: str
    revision: str | None

    def __str__(self) -> str:
        return f"{self.name}@{self.revision or 'main'}"


def fetch_repositories(row: Row, folders: Sequence[Path], progress: Progress) -> tuple[Path, ...]:
    """The folders of the row's repositories, with every file that the row needs in them, checked.

    A repository is taken from hub/<owner>/<name> in one of the folders where it lies there; else from the hub's
    cache or the hub. Raises BadInput where a part is in none of them.
    """
    needed = ["pairs"] if row.format == "pairs" else ["corpus", "queries", "qrels"]
    roots = []
    for entry in row.hub:
        name, _, revision = entry.partition("@")
        repository = Repository(name, revision or None)
        given = next((folder / "hub" / name for folder in folders if (folder / "hub" / name).is_dir()), None)
        root, files = _given(given, row, needed) if given else _from_hub(repository, row, needed, progress)
        for file in sorted({file for part in files.values() for file in part}):
            md5 = md5sums().get(f"{name}/{file}", "")
            check(root / file, row.name, f"{repository}/{file}", md5=md5)
        needed = [role for role in needed if role not in files]
        roots.append(root)
    if needed:
        raise BadInput(f"{row.name}: no {' and no '.join(needed)} of {row.split!r} in {', '.join(row.hub)}.")
    return tuple(roots)


def parts_of(layout: Layout, row: Row, roles: Iterable[str]) -> dict[str, list[str]]:
    """role -> its files in that layout, without the roles that are not in it."""
    return find_parts(layout, roles, row.split, row.options)


def find_parts(layout: Layout, roles: Iterable[str], split: str | None, options: Any) -> dict[str, list[str]]:
    """role -> its files: by the pattern that the options have for it, else by what the layout says of itself."""
    parts = {
        role: layout.matching([options[role]]) if role in options else layout.files(role, split, options.get("view"))
        for role in roles
    }
    return {role: files for role, files in parts.items() if files}


def _given(folder: Path, row: Row, roles: Sequence[str]) -> tuple[Path, dict[str, list[str]]]:
    files = parts_of(layout_of(folder), row, roles)
    complain_of_missing_shards(folder, (file for part in files.values() for file in part))
    return folder, files


def _from_hub(
    repository: Repository, row: Row, roles: Sequence[str], progress: Progress
) -> tuple[Path, dict[str, list[str]]]:
    """The snapshot and its files; without asking the hub where a fetch of this row was completed before."""
    done = cache_folder() / "hub" / key_of(row.name, repository, row.options)
    if done.is_file():
        known = orjson.loads(done.read_bytes())
        root = Path(known["root"])
        if all((root / file).is_file() for part in known["files"].values() for file in part):
            return root, known["files"]
    errors = optional("huggingface_hub.errors", "Data on the Hugging Face hub")
    try:
        root, files = _fetch(repository, row, roles, progress)
    except RusbeirError:
        raise
    except (errors.HfHubHTTPError, errors.HTTPError, errors.OfflineModeIsEnabled, OSError, ValueError) as error:
        raise _cannot(repository, error) from error
    with atomic_file(done) as out:
        out.write(orjson.dumps({"root": str(root), "files": files}))
    return root, files


def _fetch(
    repository: Repository, row: Row, roles: Sequence[str], progress: Progress
) -> tuple[Path, dict[str, list[str]]]:
    hub = optional("huggingface_hub", "Data on the Hugging Face hub")
    # Its retries would be told on stderr, several lines each; what comes of them is told by us.
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    progress(f"asking the hub for {repository.name}", 0, None)
    where = {"repo_type": "dataset", "revision": repository.revision}
    if optional("huggingface_hub.constants", "The Hugging Face hub").HF_HUB_OFFLINE:
        folder = Path(hub.snapshot_download(repository.name, local_files_only=True, **where))
        return _given(folder, row, roles)
    names = frozenset(hub.HfApi().list_repo_files(repository.name, **where))
    configs: Configs = {}
    root = None
    if _README in names:
        readme = Path(hub.hf_hub_download(repository.name, _README, **where))
        root, configs = readme.parent, read_configs(readme.read_text(encoding="utf-8"))
    files = parts_of(Layout(names=names, configs=configs), row, roles)
    wanted = sorted({file for part in files.values() for file in part})
    bar = _bar(f"downloading {repository.name}", progress)
    for file in wanted:
        path = Path(hub.hf_hub_download(repository.name, file, tqdm_class=bar, **where))
        root = path.parents[file.count("/")]
    if root is None:
        raise ValueError("it has no file that is a part of a dataset")
    return root, files


def _cannot(repository: Repository, error: Exception) -> BackendError:
    first = next(iter(str(error).splitlines()), "").split(" (Request ID")[0].rstrip(". ")
    return BackendError(
        f"Cannot fetch {repository} from the Hugging Face hub ({type(error).__name__}: {first}). Try again, set "
        f"HF_TOKEN where it asks for one, or put its files into hub/{repository.name} "
        "in a folder named in RUSBEIR_DATA."
    )


def _bar(stage: str, progress: Progress) -> Any:
    """A tqdm class, as the hub's library wants one, that tells a Progress and prints nothing."""

    class Told(optional("tqdm", "The Hugging Face hub").tqdm):  # type: ignore[misc]
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **{k: v for k, v in options.items() if k != "name"} | {"disable": True})
            self._done, self._all = int(options.get("initial") or 0), options.get("total")

        def update(self, n: float | None = 1) -> None:
            self._done += int(n or 0)
            progress(stage, self._done, self._all)

    return Told

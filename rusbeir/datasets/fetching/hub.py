"""Repositories of the Hugging Face hub: only the files that a dataset needs, fetched by the hub's own library.

That library resumes downloads, keeps one copy of a file in its cache (HF_HOME), and reads HF_ENDPOINT, HF_TOKEN and
HF_HUB_OFFLINE. No code of a repository is ever run.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import orjson

from rusbeir.datasets.fetching.download import NotAtHand
from rusbeir.datasets.formats.files import verify_file
from rusbeir.datasets.formats.hub_layout import Configs, Layout, read_configs, read_layout, refuse_missing_shards
from rusbeir.datasets.formats.reader import FORMATS
from rusbeir.datasets.registry import RegistryEntry, md5sums
from rusbeir.errors import BackendError, BadInput, RusbeirError, require
from rusbeir.storage import atomic_file, cache_folder
from rusbeir.text import digest, hide_passwords
from rusbeir.types import Progress

_README = "README.md"
_CONNECT_SECONDS = 5.0
_PURPOSE = "Data on the Hugging Face hub"

Files: TypeAlias = dict[str, list[str]]
"""role -> files of a repository."""


class Repository(NamedTuple):
    """owner/name, and its revision, best a commit; None for the newest."""

    name: str
    revision: str | None

    def __str__(self) -> str:
        return f"{self.name}@{self.revision or 'main'}"


def fetch_repositories(
    entry: RegistryEntry, folders: Sequence[Path], progress: Progress, *, allow_download: bool
) -> tuple[Path, ...]:
    """Fetch the folders of the entry's repositories, with every file that the entry needs, verified.

    A repository is taken from hub/<owner>/<name> in one of the folders if it is there; else from the hub's cache or
    the hub. Raises BadInput if a part is in none of them, NotAtHand if it would have to be downloaded and may not.
    """
    needed = [role for role in FORMATS[entry.format].parts if entry.judged or role != "qrels"]
    roots = []
    for text in entry.hub:
        name, _, revision = text.partition("@")
        repository = Repository(name, revision or None)
        local = next((folder / "hub" / name for folder in folders if (folder / "hub" / name).is_dir()), None)
        if local:
            root, files = _find_files(local, entry, needed)
        else:
            root, files = _from_hub(repository, entry, needed, progress, allow_download)
        for file in sorted({file for part in files.values() for file in part}):
            md5 = md5sums().get(f"{name}/{file}", "")
            verify_file(root / file, entry.name, f"{repository}/{file}", md5=md5)
        needed = [role for role in needed if role not in files]
        roots.append(root)
    if needed:
        raise BadInput(f"{entry.name}: no {' and no '.join(needed)} of {entry.split!r} in {', '.join(entry.hub)}.")
    return tuple(roots)


def _find_files(folder: Path, entry: RegistryEntry, roles: Sequence[str]) -> tuple[Path, Files]:
    files = read_layout(folder).parts(roles, entry.split, entry.options)
    refuse_missing_shards(folder, (file for part in files.values() for file in part))
    return folder, files


def _from_hub(
    repository: Repository, entry: RegistryEntry, roles: Sequence[str], progress: Progress, allow_download: bool
) -> tuple[Path, Files]:
    """Return the snapshot and its files, without asking the hub if a fetch of this entry was completed before."""
    done = cache_folder() / "hub" / digest(entry.name, str(repository), str(entry.options))
    if done.is_file():
        known = orjson.loads(done.read_bytes())
        root = Path(known["root"])
        if all((root / file).is_file() for part in known["files"].values() for file in part):
            return root, known["files"]
    if not allow_download:
        raise NotAtHand(
            f"{entry.name} needs {repository} of the Hugging Face hub, which is not on this machine: `rusbeir datasets "
            f"fetch {entry.name}`, or {_remedy(repository)}."
        )
    errors = require("huggingface_hub.errors", _PURPOSE, "hf")
    try:
        root, files = _fetch(repository, entry, roles, progress)
    except RusbeirError:
        raise
    except (errors.HfHubHTTPError, errors.HTTPError, errors.OfflineModeIsEnabled, OSError, ValueError) as error:
        raise _cannot(repository, error) from error
    with atomic_file(done) as out:
        out.write(orjson.dumps({"root": str(root), "files": files}))
    return root, files


def _fetch(
    repository: Repository, entry: RegistryEntry, roles: Sequence[str], progress: Progress
) -> tuple[Path, Files]:
    hub = require("huggingface_hub", _PURPOSE, "hf")
    # The library sets its level when it is first used, and prints lines for each retry; rusbeir reports the outcome.
    require("huggingface_hub.utils.logging", _PURPOSE, "hf").set_verbosity_error()
    progress(f"asking the hub for {repository.name}", 0, None)
    where = {"repo_type": "dataset", "revision": repository.revision}
    constants = require("huggingface_hub.constants", _PURPOSE, "hf")
    if constants.HF_HUB_OFFLINE:
        folder = Path(hub.snapshot_download(repository.name, local_files_only=True, **where))
        return _find_files(folder, entry, roles)
    require_connection(constants.ENDPOINT)
    names = frozenset(hub.HfApi().list_repo_files(repository.name, **where))
    configs: Configs = {}
    root = None
    if _README in names:
        readme = Path(hub.hf_hub_download(repository.name, _README, **where))
        root, configs = readme.parent, read_configs(readme.read_bytes())
    files = Layout(names=names, configs=configs).parts(roles, entry.split, entry.options)
    needed_files = sorted({file for part in files.values() for file in part})
    bar = _make_bar(f"downloading {repository.name}", progress)
    for file in needed_files:
        path = Path(hub.hf_hub_download(repository.name, file, tqdm_class=bar, **where))
        root = path.parents[file.count("/")]
    if root is None:
        raise ValueError("it has no file that is a part of a dataset")
    return root, files


def _cannot(repository: Repository, error: Exception) -> BackendError:
    first = next(iter(hide_passwords(str(error)).splitlines()), "").split(" (Request ID")[0].rstrip(". ")
    return BackendError(
        f"Cannot fetch {repository} from the Hugging Face hub ({type(error).__name__}: {first}). Try again, set "
        f"HF_TOKEN if it asks for one, or {_remedy(repository)}."
    )


def _remedy(repository: Repository) -> str:
    return f"put its files into hub/{repository.name} in a folder named in RUSBEIR_DATA"


def require_connection(endpoint: str) -> None:
    """Raise OSError within seconds if the hub cannot be reached; its library would retry for 23 s."""
    import requests

    try:
        requests.head(endpoint, timeout=_CONNECT_SECONDS)
    except (requests.ConnectionError, requests.Timeout) as error:
        raise ConnectionError(f"no connection to {endpoint}") from error


def _make_bar(stage: str, progress: Progress) -> Any:
    """Make a tqdm class for the hub's library that reports to a Progress and prints nothing."""

    class Reporting(require("tqdm", _PURPOSE, "hf").tqdm):  # type: ignore[misc]
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **{k: v for k, v in options.items() if k != "name"} | {"disable": True})
            self._done, self._all = int(options.get("initial") or 0), options.get("total")

        def update(self, n: float | None = 1) -> None:
            self._done += int(n or 0)
            progress(stage, self._done, self._all)

    return Reporting

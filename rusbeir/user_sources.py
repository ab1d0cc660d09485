"""The user's own functions: where they are found, loaded, and their source code as a part of signatures."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

from rusbeir.errors import BackendError, BadInput

_INSTALLED = "site-packages"


def find_in_current_folder() -> Path:
    """Return the current folder, from which modules can be imported from now on, as in `python` itself."""
    folder = Path.cwd()
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    return folder


def load_entry_point(role: str, entry: EntryPoint, kind: type | None = None) -> Any:
    """Load what an installed package adds under an entry point: a function or a class where no kind is given.

    Raises BadInput where it is missing or of another kind, and BackendError where its module fails.
    """
    where = f"The {role} {entry.name} ({entry.value})"
    try:
        thing = entry.load()
    except (ImportError, AttributeError) as error:
        raise BadInput(f"{where} cannot be loaded: {error}. Mend or remove the package that names it.") from error
    except (Exception, SystemExit) as error:
        raise BackendError(
            f"{where} cannot be loaded: {type(error).__name__}: {error}. Mend or remove the package that names it."
        ) from error
    if not (callable(thing) if kind is None else isinstance(thing, kind)):
        expected = "a function or a class" if kind is None else f"a {kind.__name__}"
        raise BadInput(
            f"{where} is a {type(thing).__name__}, not {expected}. Mend or remove the package that names it."
        )
    return thing


def digest_sources(module: ModuleType) -> str:
    """Digest the source of a module, and of the modules in its folder or package that it imports from."""
    top = _find_source(sys.modules[module.__name__.partition(".")[0]]) or _find_source(module)
    if top is None:
        return "unknown"
    # A single module in site-packages has neighbours that are not the user's.
    home = None if top.name != "__init__.py" and top.parent.name == _INSTALLED else top.parent
    sources: dict[Path, bytes] = {}
    waiting = [module]
    while waiting:
        current = waiting.pop()
        path = _find_source(current)
        if path is None or path in sources:
            continue
        sources[path] = path.read_bytes()
        named = [value if inspect.ismodule(value) else inspect.getmodule(value) for value in vars(current).values()]
        waiting += [other for other in named if other is not None and home is not None and _is_users(home, other)]
    return hashlib.sha256(b"\0".join(sources[path] for path in sorted(sources))).hexdigest()[:12]


def _is_users(home: Path, module: ModuleType) -> bool:
    """Whether the module is below home, but neither in an environment there nor part of rusbeir."""
    path = _find_source(module)
    if path is None or home not in path.parents or module.__name__.partition(".")[0] == "rusbeir":
        return False
    return _INSTALLED not in path.relative_to(home).parts


def _find_source(module: ModuleType) -> Path | None:
    try:
        file = inspect.getsourcefile(module)
    except TypeError:
        return None
    return Path(file) if file else None


def import_function(name: str, prefix: str, folder: Path) -> tuple[Callable[..., Any], ModuleType]:
    """Import a function that is written prefix + module.function, such as python:mykk.stem, and its module.

    It is looked for where Python looks, in the current folder and in the folder. Raises BadInput where it is not
    there, and BackendError where its module fails.
    """
    module_name, _, attribute = name.removeprefix(prefix).rpartition(".")
    if not module_name or not all(part.isidentifier() for part in (*module_name.split("."), attribute)):
        raise BadInput(f"{name} does not name a function. Write {prefix}module.function.")
    current = find_in_current_folder()
    if str(folder.resolve()) not in sys.path:
        sys.path.append(str(folder.resolve()))
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise BadInput(f"{name} cannot be imported: {error}. It is neither in {current}, nor in {folder}.") from error
    except (Exception, SystemExit) as error:
        raise BackendError(f"{name} fails when it is imported: {type(error).__name__}: {error}.") from error
    function = getattr(module, attribute, None)
    if not callable(function):
        raise BadInput(f"{name}: {module_name} has no function {attribute!r}.")
    return function, module

"""The user's own functions: how they are imported, and their source code as a part of signatures."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import os
import pickle
import sys
from collections.abc import Callable
from functools import cache, partial, reduce
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from rusbeir.errors import BackendError, BadInput, RusbeirError

PYTHON = "python:"
"""Begins the name of an importable function or class: python:module.function."""
_INSTALLED = "site-packages"
_PACKAGE = Path(__file__).parent
_MOST_ITEMS = 1_000
"""Longer lists and dicts are digested whole, also where they hold functions."""


def find_in_current_folder() -> Path:
    """Return the current folder, from which modules can be imported from now on, as in `python` itself."""
    folder = Path.cwd()
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    return folder


def find_entry_points(group: str) -> EntryPoints:
    """Return what installed packages add under a group.

    The metadata of all packages are read once for each state of sys.path: that takes 20 ms, as long as all other steps
    by which an analyzer is made.
    """
    return _read_entry_points(group, tuple(sys.path))


def find_entry_point(group: str, name: str) -> EntryPoint | None:
    """Return the first entry point of that name in a group; None where no installed package adds it."""
    return next(iter(find_entry_points(group).select(name=name)), None)


@cache
def _read_entry_points(group: str, path: tuple[str, ...]) -> EntryPoints:
    return entry_points(group=group)


def load_entry_point(role: str, entry: EntryPoint, kind: type | None = None) -> tuple[Any, ModuleType]:
    """Load what an installed package adds under an entry point, and its module; a function where no kind is given.

    Raises BadInput where it is missing or of another kind, and BackendError where its module fails.
    """
    where, remedy = f"The {role} {entry.name} ({entry.value})", "Mend or remove the package that names it."
    thing, module = _import(where, entry, remedy)
    if not (callable(thing) if kind is None else isinstance(thing, kind)):
        expected = "a function or a class" if kind is None else f"a {kind.__name__}"
        raise BadInput(f"{where} is a {type(thing).__name__}, not {expected}. {remedy}")
    return thing, module


def import_function(name: str, folder: Path | None = None) -> tuple[Callable[..., Any], ModuleType]:
    """Import the function or class that is named python:module.function, and its module.

    It is looked for where Python looks, in the current folder and in the folder. Raises BadInput where it is not
    there, and BackendError where its module fails.
    """
    module_name, _, attribute = name.removeprefix(PYTHON).rpartition(".")
    if not module_name or not all(part.isidentifier() for part in (*module_name.split("."), attribute)):
        raise BadInput(f"{name} does not name a function. Write {PYTHON}module.function.")
    current = find_in_current_folder()
    if folder is not None and str(folder.resolve()) not in sys.path:
        sys.path.append(str(folder.resolve()))
    missing = f"It is not in {current}{f', nor in {folder}' if folder else ''}, and not installed."
    function, module = _import(name, EntryPoint(name, f"{module_name}:{attribute}", ""), missing)
    if not callable(function):
        raise BadInput(f"{name}: {module_name} has no function {attribute!r}.")
    return function, module


def _import(name: str, entry: EntryPoint, missing: str) -> tuple[Any, ModuleType]:
    """Import what an entry point points to, and its module; missing is said where a module is not there."""
    try:
        module = importlib.import_module(entry.module)
    except ModuleNotFoundError as error:
        raise BadInput(f"{name} cannot be imported: {error}. {missing}") from error
    except RusbeirError as error:
        raise BadInput(f"{name} cannot be imported: {error}") from error
    except (Exception, SystemExit) as error:
        raise report_failure(name, "is imported", error) from error
    try:
        return reduce(getattr, entry.attr.split("."), module), module
    except AttributeError as error:
        raise BadInput(f"{name}: {entry.module} has no function {entry.attr!r}.") from error


def report_failure(name: str, when: str, error: BaseException) -> BackendError:
    """Make the error, in one line, of a user's code that fails: what, when, why, and in which line of which file."""
    frames = inspect.getinnerframes(error.__traceback__) if error.__traceback__ else []
    # A line of rusbeir, where the user's code is called or read, would not help; nor one of the import itself.
    is_theirs = frames and not frames[-1].filename.startswith((str(_PACKAGE), "<frozen"))
    where = f" in {Path(frames[-1].filename).name}:{frames[-1].lineno}" if is_theirs else ""
    reason = " ".join(str(error).split())
    return BackendError(f"{name} fails when it {when}: {type(error).__name__}: {reason}{where}.")


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


def digest_object(thing: object) -> str:
    """Digest what an object of the user's does: its source, that of what it uses, and its state.

    Code without a file, such as a notebook's, is read as compiled: comments change nothing. An object's own `signature`
    stands for its state. A state that cannot be pickled has a digest that never comes again.
    """
    digest = hashlib.sha256()
    waiting: list[object] = [thing]
    # As long as they are here, no other object has their id.
    seen: dict[int, object] = {}
    while waiting:
        current = waiting.pop()
        if id(current) in seen:
            continue
        seen[id(current)] = current
        if isinstance(current, partial):
            waiting += [current.func, current.args, current.keywords]
        elif inspect.ismethod(current):
            waiting += [current.__func__, current.__self__]
        elif inspect.isfunction(current) or inspect.isclass(current):
            waiting += _digest_code(current, digest, is_root=current is thing)
        elif isinstance(current, (tuple, list)) and len(current) <= _MOST_ITEMS:
            digest.update(f"{type(current).__name__}{len(current)}".encode())
            waiting += current
        elif isinstance(current, dict) and len(current) <= _MOST_ITEMS:
            digest.update(repr(list(current)).encode())
            waiting += current.values()
        elif inspect.ismodule(current) or inspect.isbuiltin(current):
            digest.update(current.__name__.encode())
        else:
            if type(current).__module__ != "builtins":
                waiting.append(type(current))
            digest.update(_digest_state(current))
    return digest.hexdigest()[:12]


def _digest_code(thing: Any, digest: Any, *, is_root: bool) -> list[object]:
    """Add a function or a class to the digest, and list what its code uses, where that has no file."""
    digest.update(f"{thing.__module__}.{thing.__qualname__}".encode())
    module = sys.modules.get(thing.__module__)
    path = _find_source(module) if module else None
    if thing.__module__.partition(".")[0] in {*sys.stdlib_module_names} - {"__main__"}:
        return []
    closure = [] if inspect.isclass(thing) else [cell.cell_contents for cell in thing.__closure__ or ()]
    if module and path:
        if is_root or _INSTALLED not in path.parts:
            digest.update(digest_sources(module).encode())
        return closure
    if inspect.isclass(thing):
        members = [getattr(value, "__func__", value) for value in vars(thing).values()]
        return [*filter(inspect.isfunction, members), *thing.__bases__]
    used = [thing.__defaults__, thing.__kwdefaults__, *closure]
    codes = [thing.__code__]
    for code in codes:
        codes += filter(inspect.iscode, code.co_consts)
        constants = [constant for constant in code.co_consts if not inspect.iscode(constant)]
        digest.update(repr((code.co_code, constants, code.co_names, code.co_varnames)).encode())
        used += [thing.__globals__[name] for name in code.co_names if name in thing.__globals__]
    return used


def _digest_state(thing: Any) -> bytes:
    if isinstance(signature := getattr(thing, "signature", None), str):
        return signature.encode()
    try:
        return hashlib.sha256(pickle.dumps(vars(thing) if hasattr(thing, "__dict__") else thing)).digest()
    except Exception:
        # Such as a connection. Whatever was computed with it must not be taken for the result of another one.
        return os.urandom(16)


def _is_users(home: Path, module: ModuleType) -> bool:
    """Return whether the module is below home, but neither in an environment there nor part of rusbeir."""
    path = _find_source(module)
    if path is None or home not in path.parents or module.__name__.partition(".")[0] == "rusbeir":
        return False
    return _INSTALLED not in path.relative_to(home).parts


def _find_source(module: ModuleType) -> Path | None:
    try:
        file = inspect.getsourcefile(module)
    except TypeError:
        return None
    # The file of a program on standard input is called <stdin>.
    return Path(file) if file and Path(file).is_file() else None

"""The user's own functions: where they are found, loaded, and their source code as a part of signatures."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import os
import pickle
import sys
from collections.abc import Callable
from functools import partial
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

from rusbeir.errors import BackendError, BadInput

_INSTALLED = "site-packages"
_MOST_ITEMS = 1_000
"""Longer lists and dicts are digested whole, also where they hold functions."""


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
    # The file of a program on standard input is called <stdin>.
    return Path(file) if file and Path(file).is_file() else None


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

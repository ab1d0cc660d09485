"""The source of a module of the user's own, as a part of signatures."""

from __future__ import annotations

import hashlib
import inspect
import sys
from pathlib import Path
from types import ModuleType

_INSTALLED = "site-packages"


def digest(module: ModuleType) -> str:
    """Of the module's source and of those that it names things from, in its folder or its package."""
    top = _file(sys.modules[module.__name__.partition(".")[0]]) or _file(module)
    if top is None:
        return "unknown"
    # What is installed beside it is not the user's.
    home = None if top.name != "__init__.py" and top.parent.name == _INSTALLED else top.parent
    sources: dict[Path, bytes] = {}
    waiting = [module]
    while waiting:
        one = waiting.pop()
        path = _file(one)
        if path is None or path in sources:
            continue
        sources[path] = path.read_bytes()
        named = [value if inspect.ismodule(value) else inspect.getmodule(value) for value in vars(one).values()]
        waiting += [other for other in named if other is not None and home is not None and _lies_in(home, other)]
    return hashlib.sha256(b"\0".join(sources[path] for path in sorted(sources))).hexdigest()[:12]


def _lies_in(home: Path, module: ModuleType) -> bool:
    """Whether it is the user's: below home, but in no environment there, and none of ours."""
    path = _file(module)
    if path is None or home not in path.parents or module.__name__.partition(".")[0] == "rusbeir":
        return False
    return _INSTALLED not in path.relative_to(home).parts


def _file(module: ModuleType) -> Path | None:
    try:
        file = inspect.getsourcefile(module)
    except TypeError:
        return None
    return Path(file) if file else None

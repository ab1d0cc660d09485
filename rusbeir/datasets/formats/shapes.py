"""The Shape of what a dataclass becomes as JSON, so that whoever reads a file checks it by what wrote it."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from rusbeir.datasets.formats.records import Shape


def derive_shape(cls: type[Any]) -> dict[str, Shape]:
    """Derive the Shape of the JSON object of a dataclass or a NamedTuple; fields with repr=False are not part of it.

    >>> from rusbeir.datasets import Place
    >>> derive_shape(Place)
    {'file': <class 'str'>, 'line': (<class 'int'>, None), 'within': <class 'str'>}
    """
    hints = get_type_hints(cls)
    names = [field.name for field in fields(cls) if field.repr] if is_dataclass(cls) else cls._fields
    return {name: _derive(hints[name]) for name in names}


def _derive(hint: Any) -> Shape:
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return tuple(None if part is type(None) else _derive(part) for part in parts)
    if origin is Literal:
        return set(parts)
    if origin in (list, tuple, Sequence):
        return [_derive(parts[0])]
    if origin in (dict, Mapping):
        return {str: _derive(parts[1])}
    return derive_shape(hint) if is_dataclass(hint) or hasattr(hint, "_fields") else hint

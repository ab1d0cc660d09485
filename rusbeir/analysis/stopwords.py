"""Stop lists: analyzers/stopwords/<name>.txt, one word a line below a header of # lines."""

from __future__ import annotations

import hashlib

from rusbeir.storage import data_folder


def names() -> list[str]:
    """The names of the lists there are."""
    return sorted(path.stem for path in data_folder("analyzers").glob("stopwords/*.txt"))


def words(name: str) -> frozenset[str]:
    """The words of that list as the file has them; empty for none."""
    if name == "none":
        return frozenset()
    lines = (data_folder("analyzers") / "stopwords" / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(line.strip() for line in lines if line.strip() and not line.startswith("#"))


def summary(name: str, extra: tuple[str, ...]) -> str:
    """A short name of list and extra words together that changes with any of the words.

    >>> summary("nltk-russian", ("который",)).startswith("nltk151+1.")
    True
    """
    listed = words(name)
    if not listed and not extra:
        return "none"
    digest = hashlib.sha256("\n".join(sorted(listed | set(extra))).encode()).hexdigest()[:6]
    return f"{name.split('-')[0]}{len(listed)}" + (f"+{len(extra)}" if extra else "") + f".{digest}"

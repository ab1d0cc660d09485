"""What the shell offers on a tab."""

from __future__ import annotations


def datasets(incomplete: str) -> list[str]:
    """Registered names with this beginning."""
    from rusbeir.datasets import read_registry

    return [name for name in read_registry() if name.startswith(incomplete)]


def languages(incomplete: str) -> list[str]:
    """Languages with a language file."""
    from rusbeir.analysis import language_files

    return [code for code in language_files() if code.startswith(incomplete)]


def engines(incomplete: str) -> list[str]:
    """Names of engines, and auto."""
    from rusbeir.retrieval.lexical.engines import ENGINES

    return [name for name in ("auto", *ENGINES) if name.startswith(incomplete)]


def systems(incomplete: str) -> list[str]:
    """BM25 systems, one per profile."""
    from rusbeir.retrieval.lexical.bm25 import profiles

    names = ["bm25", *(f"bm25(profile={profile})" for profile in (*profiles(), "raw", "snowball"))]
    return [name for name in names if name.startswith(incomplete)]

"""Analysis: from text to terms, by the recipes of analyzers/*.toml."""

from rusbeir.analysis.analyzer import Analyzer, empty_warning
from rusbeir.analysis.chain import Token
from rusbeir.analysis.recipes import Language, Recipe, find_language, language_files, read_language

__all__ = [
    "Analyzer",
    "Language",
    "Recipe",
    "Token",
    "empty_warning",
    "find_language",
    "language_files",
    "read_language",
]

"""Translators: those that rusbeir knows by name, and those that packages and users add."""

from rusbeir.translation.backends.registry import TRANSLATORS, Preset, TranslatorOptions, make, names, preset

__all__ = ["TRANSLATORS", "Preset", "TranslatorOptions", "make", "names", "preset"]

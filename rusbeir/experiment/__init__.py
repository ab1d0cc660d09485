"""Measure systems on datasets; the one room that joins datasets, retrieval and evaluation."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

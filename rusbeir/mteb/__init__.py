"""MTEB: systems as its models, and runs of its tasks for its public results."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

"""The audit: how good a port is, according to checks, a judge and people."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

"""Jobs: what long, paid work needs: a journal, limits, a budget and a client for language models."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

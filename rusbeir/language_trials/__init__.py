"""Language trials: the recipes of a language measured on datasets, and the terms that a change of recipe changes."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

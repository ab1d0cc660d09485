"""Translation: texts cut, protected, translated, checked and put together again."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

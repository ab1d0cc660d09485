"""People: sheets for them to score, a judge of the same texts, and how far they agree."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

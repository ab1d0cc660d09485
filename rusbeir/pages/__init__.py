"""What all pages share: one stylesheet, macros of charts and tables, the scripts of tables, and filters of numbers."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

"""Publishing: one folder of a dataset that every tool loads, with a card that says where it is from."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

"""The site: pages of results, diagnoses and audits that work from a file."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

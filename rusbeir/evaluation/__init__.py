"""Scores of a run against judgements: every judged query counts, ties as trec_eval breaks them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

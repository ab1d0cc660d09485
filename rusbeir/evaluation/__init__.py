"""Scores of a run against judgements: every judged query counts, ties as trec_eval breaks them."""

import lazy_loader

# Here, so that the command line may know them without importing what draws.
PERMUTATIONS = 10_000
SAMPLES = 10_000
FEW_SAMPLES, FEW_PERMUTATIONS = 2_000, 2_000
"""The numbers of resamples and permutations if each takes long, such as the test of a whole curve."""

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

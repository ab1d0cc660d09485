"""How many resamples and permutations are drawn; this module imports nothing, so that the command line may know it."""

PERMUTATIONS = 10_000
SAMPLES = 10_000
FEW_SAMPLES, FEW_PERMUTATIONS = 2_000, 2_000
"""The numbers of resamples and permutations if each takes long, such as the test of a whole curve."""

"""Models: which are known, their files, and their batches."""

"""Quality control of a test set, by a language model and several rankers."""

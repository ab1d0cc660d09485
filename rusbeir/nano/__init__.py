"""A small version of a dataset, and how well it agrees with the whole."""

from rusbeir.nano.make import make_nano

__all__ = ["make_nano"]

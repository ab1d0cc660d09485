"""Publishing: one folder of a dataset that every tool loads, with a card that says where it is from."""

from rusbeir.publishing.publish import publish

__all__ = ["publish"]

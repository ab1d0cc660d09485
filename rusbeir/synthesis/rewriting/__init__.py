"""Rewriting: documents in a language model's words."""

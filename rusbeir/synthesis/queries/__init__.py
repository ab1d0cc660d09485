"""Queries that a language model makes about documents."""

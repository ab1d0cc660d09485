"""Learned sparse retrieval: an encoder's term weights, kept by content and searched in blocks."""

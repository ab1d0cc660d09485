"""Learned sparse retrieval: weights of terms from an encoder, kept by content, searched in blocks."""

"""Encoders as the retrieval of vectors and of term weights needs them: their Protocols, batches, and what is kept."""

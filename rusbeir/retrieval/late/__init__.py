"""Late interaction: an encoder's vectors of tokens, kept by content, and exact search by MaxSim from disk."""

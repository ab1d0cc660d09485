"""Dense retrieval: encoders behind one Protocol, embeddings kept by content, exact and approximate search."""

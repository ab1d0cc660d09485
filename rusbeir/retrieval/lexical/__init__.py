"""BM25 over analysed text: one index format, several engines."""

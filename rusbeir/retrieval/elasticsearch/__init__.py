"""BM25 on an Elasticsearch server: the same terms, the same scores, an index that other machines can use."""

"""BM25 on a server of Elasticsearch or OpenSearch: the same terms and scores, an index that other machines can use."""

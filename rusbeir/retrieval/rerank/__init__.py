"""Reranking: the hits of a first stage, scored again by a model that reads query and document together."""

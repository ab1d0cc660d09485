"""The independent units of a sample of queries: clusters of them, which intervals and tests draw whole."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rusbeir.evaluation import SAMPLES
from rusbeir.evaluation.significance import Floats, cluster_scores, resample_means


@dataclass(frozen=True, kw_only=True)
class Units:
    """The clusters of some queries, in the order of the queries.

    Examples:
        >>> str(Units.from_clusters(["q1", "q2", "q3"], {"q1": 0, "q2": 1, "q3": 0}))
        '3 queries, 2 independent'
    """

    clusters: tuple[int, ...]
    """The number of each query's cluster; clusters are numbered from 0 as they first occur."""

    @classmethod
    def from_clusters(cls, query_ids: Sequence[str], clusters: Mapping[str, Hashable] | None) -> Units:
        """Number the clusters of these queries (cluster_queries finds them); None if each query is its own."""
        numbers: dict[Hashable, int] = {}
        return cls(
            clusters=tuple(
                numbers.setdefault(query_id if clusters is None else clusters[query_id], len(numbers))
                for query_id in query_ids
            )
        )

    @property
    def n_queries(self) -> int:
        return len(self.clusters)

    @property
    def n_clusters(self) -> int:
        return max(self.clusters, default=-1) + 1

    @property
    def is_dependent(self) -> bool:
        """True if some queries share a cluster."""
        return self.n_clusters < self.n_queries

    def __str__(self) -> str:
        return describe_queries(self.n_queries, self.n_clusters)

    def resample(self, values: Floats, *, samples: int = SAMPLES, seed: int = 0) -> Floats:
        """Resample the mean of each row, float64 [rows, queries], drawing clusters whole: float64 [samples, rows]."""
        if not self.is_dependent:
            return resample_means(values, samples=samples, seed=seed)
        # A resample has as many queries as its clusters happen to hold.
        drawn = resample_means(self.sum(np.vstack([values, np.ones(self.n_queries)])), samples=samples, seed=seed)
        return drawn[:, :-1] / drawn[:, -1:]

    def sum(self, values: Floats) -> Floats:
        """Add the values of queries, float64 [rows, queries], over each cluster: float64 [rows, clusters]."""
        return np.array([np.bincount(self.clusters, weights=row, minlength=self.n_clusters) for row in values])

    def merge(self, values: Floats) -> Floats:
        """Turn values of queries into values of clusters, float64 [rows, clusters], whose spread is that of units."""
        return cluster_scores(values, self.clusters) if self.is_dependent else values

    def join(self, other: Units) -> Units:
        """Join the clusters of two partitions of the same queries: queries that share one on either side share one."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        if not (self.is_dependent and other.is_dependent):
            return self if self.is_dependent else other
        first, second, size = np.array(self.clusters), np.array(other.clusters), self.n_clusters + other.n_clusters
        edges = coo_array((np.ones(len(first)), (first, self.n_clusters + second)), shape=(size, size))
        labels = connected_components(edges, directed=False)[1][first]
        return Units.from_clusters(
            query_ids := list(map(str, range(len(first)))), dict(zip(query_ids, labels, strict=True))
        )


def describe_queries(n_queries: int, n_clusters: int) -> str:
    """Say how many queries there are, and how many of them are independent if not all are.

    Examples:
        >>> describe_queries(1190, 240), describe_queries(1, 1)
        ('1,190 queries, 240 independent', '1 query')
    """
    queries = f"{n_queries:,} {'query' if n_queries == 1 else 'queries'}"
    return f"{queries}, {n_clusters:,} independent" if n_clusters < n_queries else queries

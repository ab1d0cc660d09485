"""Work on a cluster, by Ray."""

from rusbeir.cluster.workers import MODEL_CPUS, On, Placed, Workers, open_workers

__all__ = ["MODEL_CPUS", "On", "Placed", "Workers", "open_workers"]

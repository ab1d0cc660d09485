"""What several tests share, and benchmarks too: servers, small datasets and models, programs to be killed."""

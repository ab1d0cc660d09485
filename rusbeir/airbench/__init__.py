"""AIR-Bench: its result files and leaderboards."""

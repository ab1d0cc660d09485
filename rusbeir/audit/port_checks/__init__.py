"""Port checks: every segment of a port checked, scored and reported."""

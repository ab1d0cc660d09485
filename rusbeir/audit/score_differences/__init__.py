"""Score differences: the texts that lower a port's scores, and what their repair brings."""
